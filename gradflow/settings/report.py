"""What can be asked of `gradflow report`."""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import AfterValidator, BeforeValidator, Field

from gradflow.errors import nearest_name
from gradflow.settings.base import Names, Seed, Settings, drop_repeats, split_list
from gradflow.settings.problems import show

FigureFormat = Literal["png", "svg", "pdf"]


def _known_format(value: Any) -> Any:
    known = get_args(FigureFormat)
    if value not in known:
        near = nearest_name(str(value), known)
        raise ValueError(f"must name formats of figure files; got {show(value)}. {near}")
    return value


def _as_paths(value: Any) -> Any:
    """Return the folders as they are given: a comma may be part of a name."""
    return (value,) if isinstance(value, str) else value


Format = Annotated[FigureFormat, BeforeValidator(_known_format)]
Paths = Annotated[tuple[str, ...], BeforeValidator(_as_paths), AfterValidator(drop_repeats)]


class ReportSettings(Settings):
    """What `gradflow report` shows, and what it runs first.

    `runs` are run folders, or folders of them; `studies` are presets or TOML files whose names
    begin with their command ("decay", "benchmark-quick", "my/decay-slow.toml").

    >>> ReportSettings(runs="runs/decay", studies="params, decay").studies
    ('params', 'decay')
    """

    runs: Paths | None = Field(None, description="the list of run folders to show")
    studies: Names | None = Field(None, description="the list of studies to run first")
    title: str = Field("Gradient flow in recurrent networks", description="the page's heading")
    figure_format: Annotated[
        tuple[Format, ...], BeforeValidator(split_list), AfterValidator(drop_repeats)
    ] = Field(("png", "svg", "pdf"), description="the list of formats of figure files")
    seed: Seed | None = Field(None, description="the seed of the studies, each one's own if none")
