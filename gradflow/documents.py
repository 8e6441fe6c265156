"""Results as text: strict JSON, and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from typing import Any

Json = dict[str, Any]
Row = Mapping[str, Any]


def json_text(document: Json) -> str:
    r"""Return a document as strict JSON (no NaN, no infinity, plain ASCII) with a last newline.

    Objects are indented; a list of plain values stays on one line, however long.

    >>> json_text({"steps": [1, 2], "checks": []})
    '{\n  "steps": [1, 2],\n  "checks": []\n}\n'
    """
    return _indented(document, "\n") + "\n"


def csv_text(rows: Sequence[Row]) -> str:
    r"""Return rows as one CSV with a header; what a row lacks, or has as None, is empty.

    >>> csv_text([{"step": 1, "norm": 0.5}, {"step": 2, "norm": None}])
    'step,norm\n1,0.5\n2,\n'
    """
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def _indented(value: Any, line: str) -> str:
    inner = line + "  "
    if isinstance(value, dict) and value:
        pairs = (f"{json.dumps(key)}: {_indented(entry, inner)}" for key, entry in value.items())
        return "{" + inner + f",{inner}".join(pairs) + line + "}"
    if isinstance(value, list) and any(isinstance(entry, dict | list) for entry in value):
        entries = (_indented(entry, inner) for entry in value)
        return "[" + inner + f",{inner}".join(entries) + line + "]"
    return json.dumps(value, allow_nan=False)
