"""What holds of all figures: one colour for a gate value, grey prints, print sizes, embedded fonts.

A line is a series where it has a label; what a figure calls it begins with no underscore.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle, StepPatch
from matplotlib.text import Text

from gradflow.present.decay import decay_figure
from gradflow.present.layout import words_of
from gradflow.present.notebook import PRESENTERS
from gradflow.present.palette import gate_color
from gradflow.present.theme import alt_text, figure_bytes, theme_of
from tests.present.decays import two_rows
from tests.present.drawn import text_boxes, texts_on_texts, texts_outside
from tests.present.every_figure import COMMANDS, STYLES, figures_of, result_of

APART = 0.1  # of lightness from black to white, which the eye tells apart on a grey print
VALUE = re.compile(r"(?:exact )?[fzg]=([\d.]+)$")
each_command = pytest.mark.parametrize("command", COMMANDS)
each_style = pytest.mark.parametrize("style", STYLES)


def luma(color: object) -> float:
    """How light a colour is on a grey print (Rec. 709)."""
    red, green, blue = to_rgb(color)  # type: ignore[arg-type]
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def valued_lines(figure: Figure) -> Iterator[tuple[float, str]]:
    """Yield each gate value that a line stands for, with the line's colour."""
    for ax in figure.axes:
        for line in ax.lines:
            found = VALUE.match(str(line.get_label()))
            if found:
                yield float(found[1]), to_hex(line.get_color())
        title = re.search(r"[fz]=([\d.]+)", ax.get_title(loc="left"))
        full = [line for line in ax.lines if line.get_label() == "full"]
        for line in full if title else []:
            yield float(title[1]), to_hex(line.get_color())  # type: ignore[index]


@each_style
def test_a_gate_value_has_the_same_colour_in_every_figure(style: str) -> None:
    """0.5 as f and as z, measured and exact, in curves, sweeps and paths, alone and among others.

    Nothing else is in the figure that its colour depends on.
    """
    colors: dict[float, set[str]] = {}
    seen = set()
    sets = {"run": figures_of("decay", style)}
    for values in ((0.5,), (0.3, 0.5, 0.9, 0.95)):
        sets[str(values)] = {"decay": decay_figure(two_rows(values, steps=5), style=style)}
    for figures in sets.values():
        for name, figure in figures.items():
            for value, color in valued_lines(figure):
                colors.setdefault(value, set()).add(color)
                seen.add(name)
    assert seen >= {"decay", "departure", "paths"}
    assert {value: {gate_color(value)} for value in colors} == colors
    assert len(colors) == 5
    assert len({gate_color(value) for value in colors}) == 5


def series_of(ax: Axes) -> list[tuple[str, tuple[object, ...], float, tuple[float, ...]]]:
    """The series of a panel: name, how it is drawn but for its colour, lightness, its rows.

    Rows are the heights of a series that is level, such as a bar of one initialization.
    """
    found = []
    bars = [(str(bar.get_label()), bar[0]) for bar in ax.containers if bar and bar[0] is not None]
    dots = [(name, dot) for name, dot in bars if isinstance(dot, Line2D)]
    for name, line in [*dots, *((str(line.get_label()), line) for line in ax.lines)]:
        values = np.asarray(line.get_ydata(), dtype=np.float64)
        if name.startswith("_") or not np.isfinite(values).any():
            continue
        rows = tuple(np.unique(values)) if len(set(values.tolist())) == 1 else ()
        found.append((name, _form(line), luma(line.get_color()), rows))
    for patch in ax.patches:
        if isinstance(patch, StepPatch):
            form = (_dashes(patch), "", "")
            found.append((str(patch.get_label()), form, luma(patch.get_edgecolor()[:3]), ()))
    return found


def _form(line: Line2D) -> tuple[object, ...]:
    marker = line.get_marker()
    marked = marker not in ("None", "", None)
    hollow = marked and to_hex(line.get_markerfacecolor()) == "#ffffff"
    return (_dashes(line), str(marker) if marked else "", hollow)


def _dashes(artist: Line2D | StepPatch) -> object:
    if artist.get_linestyle() in ("None", "none", ""):
        return "none"
    return str(artist._dash_pattern[1])  # matplotlib has no public reader of dashes


@each_command
@each_style
def test_the_series_of_a_panel_read_in_grey(command: str, style: str) -> None:
    """Any two differ in dashes, in marker, in lightness, or stand in rows of their own.

    Trends are left out among themselves: each ends in its own written value.
    """
    seen = 0
    for name, figure in figures_of(command, style).items():
        for ax in figure.axes:
            for one, other in combinations(series_of(ax), 2):
                if one[0] == other[0] or {one[0][:5], other[0][:5]} == {"trend"}:
                    continue
                seen += 1
                rows = bool(one[3] and other[3] and one[3] != other[3])
                apart = one[1] != other[1] or abs(one[2] - other[2]) >= APART or rows
                assert apart, f"{name}: {one[0]} and {other[0]} look alike in grey"
    assert seen or command in {"saturate", "params", "parity", "step"}  # no series of lines


def test_neighbouring_parts_of_a_bar_read_in_grey() -> None:
    """Input and recurrent weights, both biases, the head: lightness or hatch tells them apart."""
    (figure,) = figures_of("params", "paper").values()
    bars = [patch for patch in figure.axes[0].patches if isinstance(patch, Rectangle)]
    drawn = [bar for bar in bars if bar.get_width() > 0]
    assert len(drawn) >= 12
    for one, other in pairwise(drawn):
        if one.get_y() == other.get_y():
            apart = abs(luma(one.get_facecolor()[:3]) - luma(other.get_facecolor()[:3]))
            assert apart >= APART or one.get_hatch() != other.get_hatch()


@each_command
def test_a_figure_for_paper_has_print_sizes(command: str) -> None:
    """One or two columns wide, on a page; letters of 6 points and hairlines of 0.25 at least.

    Exponents are smaller, as they are in any text.
    """
    theme = theme_of("paper")
    for figure in figures_of(command, "paper").values():
        assert figure.get_figwidth() in (3.25, 6.75)
        assert figure.get_figheight() <= 8.5
        figure_bytes(figure, "svg")
        texts = [text for text in figure.findobj(Text) if isinstance(text, Text)]
        sizes = [text.get_fontsize() for text in texts if text.get_visible() and text.get_text()]
        assert min(sizes) >= theme.small
        assert max(sizes) <= 1.2 * theme.font
        lines = [line for ax in figure.axes for line in ax.lines]
        widths = [line.get_linewidth() for line in lines if line.get_linestyle() != "None"]
        assert min(widths, default=1.0) >= 0.25


@each_command
def test_a_figure_for_paper_leaves_title_and_caption_to_the_paper(command: str) -> None:
    """They stand in `words_of`; on the screen they are in the figure as well."""
    for (name, paper), screen in zip(
        figures_of(command, "paper").items(), figures_of(command, "screen").values(), strict=True
    ):
        words = words_of(paper)
        assert words == words_of(screen), name
        assert words.title
        assert alt_text(paper) == alt_text(screen) != ""
        first = words.title.split()[0]
        assert not [text for text, _ in text_boxes(paper) if text.startswith(f"{first} ")
                    and text in words.title]  # fmt: skip
        assert any(text in words.title and text.startswith(first) for text, _ in text_boxes(screen))


@each_command
@each_style
def test_no_text_is_cut_or_lies_on_another(command: str, style: str) -> None:
    """In both styles, with real results."""
    for name, figure in figures_of(command, style).items():
        assert texts_outside(figure) == [], name
        assert texts_on_texts(figure) == [], name


@each_command
def test_the_fonts_of_a_pdf_are_embedded(command: str) -> None:
    """Every font is TrueType (type 42) with its file in the PDF; none is of type 3."""
    for figure in figures_of(command, "paper").values():
        data = figure_bytes(figure, "pdf")
        fonts = re.findall(rb"/BaseFont /([\w-]+)", data)
        files = re.findall(rb"/FontFile2 \d+ 0 R", data)
        descriptors = re.findall(rb"/Type /FontDescriptor", data)
        assert b"/Subtype /Type3" not in data
        assert fonts
        assert len(files) == len(descriptors) >= len(set(fonts)) > 0


@each_command
def test_a_figure_made_twice_is_the_same_file(command: str) -> None:
    """To the byte: no date, no random id, no order of a set."""
    again = PRESENTERS[command](result_of(command), style="paper").figures
    for name, figure in figures_of(command, "paper").items():
        assert figure_bytes(figure, "svg") == figure_bytes(again[name], "svg")
