"""The live panel of a training: a line for each layer, redrawn with each sample."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Sequence

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from gradflow.present import watch_words as words
from gradflow.records.inspect import SEVERITIES
from gradflow.records.watch import FlowFinding, FlowLayer, FlowSample

_WIDEST_NAME, _WIDEST_PROFILE = 32, 48
_ROOMY = 14  # columns of a profile, for which other numbers make room
_GAP = "  "
_LINES = 3  # of findings below the layers
_FRAME = 8  # lines of a terminal that are not for layers


class LivePanel:
    """Shows the last sample in place; begins with the first one and stays when closed.

    Args:
        console: where it is drawn; standard error when not given.
    """

    name = "the live panel"

    def __init__(self, console: Console | None = None) -> None:
        self._console = console or Console(stderr=True)
        self._live: Live | None = None
        self._told: list[FlowFinding] = []

    def take(
        self, sample: FlowSample, present: Sequence[FlowFinding], told: Sequence[FlowFinding]
    ) -> None:
        """Draw a sample.

        Args:
            sample: what was measured.
            present: all that it shows, by which its layers are judged.
            told: what is new among them; the last of these stand below.
        """
        self._told += [finding for finding in told if finding.severity != "info"]
        self._begin().update(panel(sample, present, self._told, self._console), refresh=True)

    def close(self) -> None:
        """Leave the last state on the screen and give the terminal back."""
        if self._live is not None:
            self._live.stop()
            self._live = None
            atexit.unregister(self.close)

    def _begin(self) -> Live:
        if self._live is None:
            # what the training prints goes above the panel, unless it goes to a file
            printed_here = sys.stdout is not None and sys.stdout.isatty()
            self._live = Live(
                console=self._console,
                auto_refresh=False,
                redirect_stdout=printed_here,
                vertical_overflow="ellipsis",
            )
            self._live.start()
            atexit.register(self.close)  # a watch that is never closed gives the cursor back, too
        return self._live


def wants_panel(console: Console | None = None) -> bool:
    """Return whether a panel would be seen and not in the way.

    It is in the way of a progress bar of tqdm, which moves the cursor by itself.
    """
    console = console or Console(stderr=True)
    tqdm = getattr(sys.modules.get("tqdm"), "tqdm", None)
    busy = bool(len(getattr(tqdm, "_instances", ())))
    return console.is_terminal and not console.is_dumb_terminal and not busy


def panel(
    sample: FlowSample,
    present: Sequence[FlowFinding],
    told: Sequence[FlowFinding],
    console: Console,
) -> RenderableType:
    """Return the panel: a line above, one for each layer, the gravest findings below."""
    shown = sample.layers[: max(1, console.height - _FRAME)]
    lines: list[RenderableType] = [_head(sample)]
    if shown:
        lines += _layer_lines(shown, present, console)
    if len(shown) < len(sample.layers):
        lines.append(Text(f"and {len(sample.layers) - len(shown)} more", style="dim"))
    grave = sorted(told, key=lambda finding: SEVERITIES.index(finding.severity))
    lines += [_finding(finding) for finding in reversed(grave[-_LINES:])]
    return Group(*lines)


def _layer_lines(
    layers: Sequence[FlowLayer], present: Sequence[FlowFinding], console: Console
) -> list[Text]:
    """Return heading and lines, in columns that fit the terminal."""
    plain = not console.encoding.startswith("utf")
    names = ["layer", *(words.place_text(layer) for layer in layers)]
    name_width = min(_WIDEST_NAME, max(map(len, names)), max(10, console.width * 2 // 5))
    numbers = [
        ("horizon", *map(words.horizon_text, layers)),
        ("at start", *map(words.far_text, layers)),
        ("keep", *map(words.keep_text, layers)),
    ]
    verdicts = ["verdict", *(words.verdict(layer, present) for layer in layers)]
    ends = name_width + max(map(len, verdicts)) + 2 * len(_GAP) + 1
    while True:
        profile = console.width - ends - sum(max(map(len, c)) + len(_GAP) for c in numbers)
        if profile >= _ROOMY or len(numbers) == 1:
            break
        numbers.pop()
    profile = max(1, min(_WIDEST_PROFILE, profile, max(layer.steps for layer in layers)))
    columns = [[cell.rjust(max(map(len, column))) for cell in column] for column in numbers]
    profiles = [_profile_heading(profile), *(_profile(each, profile, plain) for each in layers)]
    styles = ["dim", *(_style(words.gravest(layer, present)) for layer in layers)]
    return [
        _line(_fitted(name, name_width, plain=plain), drawn, right, verdict, style)
        for name, drawn, *right, verdict, style in zip(
            names, profiles, *columns, verdicts, styles, strict=True
        )
    ]


def _profile(layer: FlowLayer, width: int, plain: bool) -> str:
    return words.sparkline(layer.log10_dL_dh, width, plain=plain).ljust(width)


def _profile_heading(width: int) -> str:
    return "start" + "end".rjust(width - 5) if width >= 9 else "profile"[:width].ljust(width)


def _head(sample: FlowSample) -> Text:
    norm = sample.log10_parameter_gradient_norm
    parts = [f"gradflow, update {sample.update:,}"]
    if norm is not None:
        parts.append(f"parameter gradient 10^{norm:.1f}")
    if sample.loss_scale is not None:
        parts.append(f"loss scale {sample.loss_scale:g}")
    if sample.seconds is not None:
        parts.append(f"sample {1000 * sample.seconds:,.0f} ms")
    parts += sample.notes[:1]
    return Text(", ".join(parts), style="bold", overflow="ellipsis", no_wrap=True)


def _line(name: str, profile: str, right: list[str], verdict: str, style: str) -> Text:
    heads = style == "dim"
    text = Text(overflow="ellipsis", no_wrap=True, style="dim" if heads else "")
    text.append(name + _GAP)
    text.append(profile, style=style)
    text.append(_GAP + _GAP.join(right) + _GAP)
    text.append(verdict, style=style)
    return text


def _style(worst: FlowFinding | None) -> str:
    if worst is None:
        return "green"
    return "bold red" if worst.severity == "error" else "yellow"


def _finding(finding: FlowFinding) -> Text:
    return Text(words.finding_text(finding), style=_style(finding), overflow="fold")


def _fitted(name: str, width: int, *, plain: bool) -> str:
    """Return a name of exactly this width: of a long one the end says more."""
    if len(name) <= width:
        return name.ljust(width)
    mark = "~" if plain else "\N{HORIZONTAL ELLIPSIS}"
    return mark + name[len(name) - width + 1 :]
