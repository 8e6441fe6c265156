"""`gradflow explain`: what a finding's code means, when it is made, and what to try."""

from __future__ import annotations

from typing import Annotated

import typer

from gradflow.cli.common import require_format
from gradflow.cli.options import Config, Debug, Force, Format, Out, Quiet, Seed, Text
from gradflow.cli.streams import write_result


def explain(
    code: Annotated[
        Text,
        typer.Argument(
            metavar="CODE", help="A code such as GF101; all titles without.", show_default=False
        ),
    ] = None,
    seed: Seed = None,
    config: Config = None,
    out: Out = None,
    format: Format = None,
    quiet: Quiet = False,
    debug: Debug = False,
    force: Force = False,
) -> None:
    """What does a finding of `gradflow inspect` mean, and what helps?

    Says for a code what it means, when it is given, and what to try. Nothing is
    stored.
    """
    from gradflow.documents import csv_text, json_text
    from gradflow.records.finding_codes import FINDING_KINDS, finding_kinds

    shown = require_format(format)
    kinds = finding_kinds(code)
    rows = [kind.to_json() for kind in kinds]
    if shown == "json":
        write_result(json_text({"schema": "gradflow/explain/1", "results": {"findings": rows}}))
    elif shown == "csv":
        write_result(csv_text(rows))
    elif len(kinds) == len(FINDING_KINDS):
        write_result("".join(f"{kind.code}  {kind.title}\n" for kind in kinds))
    else:
        write_result("\n\n".join(kind.explain() for kind in kinds) + "\n")
