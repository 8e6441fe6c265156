"""The options that every command takes, and the shape of all others.

Options are read as text and judged by the settings model of the command, like a TOML file is; so
None here means "not given".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

FORMATS = ("table", "json", "csv")
STYLES = ("screen", "paper")
_PANEL = "How it runs and is shown"


Text = str | None
TextList = list[str] | None  # repeated flags, each of them a comma list
Switch = bool | None


def one_of(*names: str) -> Callable[[str], list[str]]:
    """Return a shell completion that offers the names that begin as typed."""
    return lambda incomplete: [name for name in names if name.startswith(incomplete)]


def with_default(text: str, default: str) -> str:
    """Return a help text with the default after it, as the user would write it."""
    return f"{text} [dim](default: {default})[/dim]"


def setting(text: str, *, default: str, panel: str, names: Sequence[str] = ()) -> Any:
    """Return the option of a setting.

    Args:
        text: what the setting is.
        default: the default as the user would write it; the settings model has the real one.
        panel: where `--help` shows it.
        names: what shell completion offers.
    """
    return typer.Option(
        metavar="VALUE",
        help=with_default(text, default),
        show_default=False,
        rich_help_panel=panel,
        autocompletion=one_of(*names) if names else None,
    )


def state_setting(panel: str) -> Any:
    """Return the option of the part of the state that is measured."""
    return setting(
        "Part of the state: c, h or joint.",
        default="c for an LSTM, h for others",
        panel=panel,
        names=("c", "h", "joint"),
    )


def start_setting(panel: str) -> Any:
    """Return the option of the state at step 0."""
    return setting(
        "State at step 0: random or zero.",
        default="random",
        panel=panel,
        names=("random", "zero"),
    )


def reset_setting(panel: str) -> Any:
    """Return the option of the GRU's reset place."""
    return setting(
        "GRU: reset before the matrix product (textbooks) or after it (torch).",
        default="after",
        panel=panel,
        names=("after", "before"),
    )


def norm_setting(panel: str) -> Any:
    """Return the option of the norm."""
    return setting(
        "spectral or frobenius.", default="spectral", panel=panel, names=("spectral", "frobenius")
    )


def dtype_setting(panel: str) -> Any:
    """Return the option of the dtype that is computed in."""
    names = ("float64", "float32")
    return setting("float64 or float32.", default="float64", panel=panel, names=names)


def _presets(incomplete: str) -> list[str]:
    from gradflow.config import preset_names

    return [name for name in preset_names() if name.startswith(incomplete)]


Config = Annotated[
    Text,
    typer.Option(
        metavar="FILE",
        help="Settings from a TOML file, or a preset by its name; flags win over it.",
        envvar="GRADFLOW_CONFIG",
        autocompletion=_presets,
        rich_help_panel=_PANEL,
    ),
]
Out = Annotated[
    Text,
    typer.Option(
        metavar="DIR",
        help=with_default("The run folder.", "runs/<command>-<digest>"),
        envvar="GRADFLOW_OUT",
        rich_help_panel=_PANEL,
    ),
]
Format = Annotated[
    Text,
    typer.Option(
        metavar="NAME",
        help=with_default("What standard output carries: table, json or csv.", "table"),
        envvar="GRADFLOW_FORMAT",
        autocompletion=one_of(*FORMATS),
        rich_help_panel=_PANEL,
    ),
]
Style = Annotated[
    Text,
    typer.Option(
        metavar="NAME",
        help=with_default(
            "How figures look: screen, or paper (one or two columns wide, and PDF too).", "screen"
        ),
        envvar="GRADFLOW_STYLE",
        autocompletion=one_of(*STYLES),
        rich_help_panel=_PANEL,
    ),
]
Seed = Annotated[
    Text,
    typer.Option(
        metavar="N",
        help=with_default("Seed of all that is random.", "0"),
        rich_help_panel=_PANEL,
    ),
]
Device = Annotated[
    Text,
    typer.Option(
        metavar="NAME",
        help=with_default("Where to compute: cpu, cuda, cuda:1, mps.", "cpu"),
        rich_help_panel=_PANEL,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", help="No progress, no notes.", envvar="GRADFLOW_QUIET", rich_help_panel=_PANEL
    ),
]
Debug = Annotated[
    bool,
    typer.Option(
        "--debug",
        help="Show the traceback of a failure.",
        envvar="GRADFLOW_DEBUG",
        rich_help_panel=_PANEL,
    ),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force",
        help="Replace a run of other settings in the run folder.",
        envvar="GRADFLOW_FORCE",
        rich_help_panel=_PANEL,
    ),
]
