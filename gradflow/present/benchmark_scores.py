"""The figures of accuracy against delay, and of cost against accuracy."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter, NullLocator

from gradflow.present import benchmark_words as words
from gradflow.present.benchmark_learning import BASELINE, baseline_line
from gradflow.present.benchmark_looks import legend_of, model_looks
from gradflow.present.layout import Grid, Words, labels_that_fit, make_sheet
from gradflow.present.palette import INK, QUIET
from gradflow.present.theme import Theme, describe, theme_context
from gradflow.records.benchmark import COMPARISONS, WIDTH, BenchmarkResult

_LEARNED = 0.9
_COSTS = (("training_seconds", "training (s, log scale)"), ("multiply_adds", "multiply-adds"))


def accuracy_figure(result: BenchmarkResult, *, style: str = "screen") -> Figure:
    """Return test accuracy against delay, with the seeds' spread, one panel a comparison.

    The dashed line is a memoryless model, the dotted one where a task counts as learned.
    """
    looks = model_looks(result)
    with theme_context(style) as theme:
        legend = legend_of(list(looks.values()), theme, marked=True)
        legend += [(baseline_line(theme), "no memory"), (_learned_line(theme), "learned")]
        subtitle = f"{words.conditions(result)}; bars: least to greatest over seeds"
        texts = Words(words.title(result), subtitle, words.finding(result))
        sheet = make_sheet(theme, _grid(theme), texts, legend=legend)
        for comparison, ax in zip(COMPARISONS, sheet.axes[0], strict=True):
            ax.set_title(words.comparison_title(result, comparison), fontsize=theme.font)
            draw_accuracy(ax, result, comparison, theme=theme)
        sheet.axes[0][0].set_ylabel(f"test {words.score_name(result)}")
        sheet.axes[0][1].tick_params(labelleft=False)
        return describe(sheet.figure, _accuracy_alt(result))


def draw_accuracy(ax: Axes, result: BenchmarkResult, comparison: str, *, theme: Theme) -> None:
    """Draw the accuracies of one comparison; models stand a little apart at each delay."""
    looks = model_looks(result)
    delays = [facts.delay for facts in result.tasks]
    log = len(delays) > 1 and max(delays) / min(delays) > 8
    _delay_axis(ax, delays, log=log, theme=theme)
    chance = [facts.accuracy for facts in result.tasks]
    ax.axhline(chance[0], color=INK, linewidth=theme.line * 0.55, linestyle=BASELINE)
    ax.axhline(_LEARNED, color=QUIET, linewidth=theme.line * 0.5, linestyle=":")
    for place, ((cell, init), look) in enumerate(looks.items()):
        rows = [
            row
            for row in result.compared(comparison)
            if (row.cell, row.init) == (cell, init) and row.accuracy is not None
        ]
        if not rows:
            continue
        apart = (place - (len(looks) - 1) / 2) / max(len(looks), 2)
        x = [_apart(row.delay, apart, delays, log=log) for row in rows]
        spreads = [row.accuracy for row in rows if row.accuracy is not None]
        y = [spread.mean for spread in spreads]
        low = [spread.mean - spread.least for spread in spreads]
        high = [spread.greatest - spread.mean for spread in spreads]
        dots = look.dot(theme) | look.line(theme)
        ax.errorbar(x, y, yerr=[low, high], label=look.name, elinewidth=theme.line * 0.5, **dots)
    ax.set_ylim(0.0, 1.04)


def cost_figure(result: BenchmarkResult, *, style: str = "screen") -> Figure:
    """Return test accuracy against what it cost: seconds of training, and multiply-adds.

    Each model at the common width is a filled mark for each delay (larger for a longer one); one
    at the matched width is hollow.
    """
    looks = model_looks(result)
    with theme_context(style) as theme:
        texts = Words(
            words.title(result),
            "marks grow with the delay, from "
            f"T={result.tasks[0].delay} to T={result.tasks[-1].delay}; filled: same width, "
            "hollow: nearest parameter count",
            _cost_caption(result),
        )
        legend = legend_of(list(looks.values()), theme, marked=True)
        legend.append((baseline_line(theme), "no memory"))
        sheet = make_sheet(theme, _grid(theme), texts, legend=legend)
        for (cost, label), ax in zip(_COSTS, sheet.axes[0], strict=True):
            title = "time" if cost == "training_seconds" else "work of one sequence, forward"
            ax.set_title(f"Accuracy against {title}", fontsize=theme.font)
            draw_cost(ax, result, cost, theme=theme)
            ax.set_xlabel(label if "scale" in label else f"{label} (log scale)")
        sheet.axes[0][0].set_ylabel(f"test {words.score_name(result)}")
        sheet.axes[0][1].tick_params(labelleft=False)
        return describe(sheet.figure, f"Test accuracy against cost. {_cost_caption(result)}")


def draw_cost(ax: Axes, result: BenchmarkResult, cost: str, *, theme: Theme) -> None:
    """Draw a mark for each row of both comparisons."""
    looks = model_looks(result)
    delays = [facts.delay for facts in result.tasks]
    ax.axhline(result.tasks[0].accuracy, color=INK, lw=theme.line * 0.55, linestyle=BASELINE)
    for comparison in COMPARISONS:
        for row in result.compared(comparison):
            if row.accuracy is None or cost not in row.costs:
                continue
            look = looks[row.cell, row.init]
            size = 0.6 + 0.7 * delays.index(row.delay) / max(1, len(delays) - 1)
            dot = look.dot(theme, size)
            if comparison != WIDTH:
                dot |= {"markerfacecolor": "none", "markeredgecolor": look.color, "mew": 1.2}
                dot.pop("markeredgewidth")
            ax.plot([row.costs[cost].mean], [row.accuracy.mean], linestyle="none", alpha=0.9, **dot)
    ax.set_xscale("log")
    plain_log_ticks(ax)
    ax.set_ylim(0.0, 1.04)


def _grid(theme: Theme) -> Grid:
    return Grid(1, 2, tick_room=5.2, label_room=0.8 * theme.em)


def _learned_line(theme: Theme) -> Line2D:
    return Line2D([], [], color=QUIET, linewidth=theme.line * 0.5, linestyle=":")


def plain_log_ticks(ax: Axes) -> None:
    """Label a log x axis with plain numbers, few of them."""
    low, high = ax.get_xlim()
    few = high / low < 300.0
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if few else (1.0,), numticks=6))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _plain(value)))
    ax.xaxis.set_minor_formatter(NullFormatter())


def _plain(value: float) -> str:
    return f"{value:g}" if value < 1e4 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")


def _delay_axis(ax: Axes, delays: list[int], *, log: bool, theme: Theme) -> None:
    room = 1.6 if log else 0.12 * max(1, max(delays) - min(delays))
    if log:
        ax.set_xscale("log")
        ax.set_xlim(min(delays) / room, max(delays) * room)
    else:
        ax.set_xlim(min(delays) - room, max(delays) + room)
    most = labels_that_fit(ax, str(max(delays)), theme.font * 0.9)
    shown = delays if len(delays) <= most else delays[:: -(-len(delays) // most)]
    ax.xaxis.set_major_locator(FixedLocator(shown))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xlabel("delay T (steps)" + (", log scale" if log else ""))


def _apart(delay: int, share: float, delays: list[int], *, log: bool) -> float:
    """Return where a model stands beside a delay: as far as its bars need not to lie on others'."""
    if log:
        return float(delay * 1.16**share)
    span = max(delays) - min(delays) or 2.0
    return delay + 0.05 * span * share


def _accuracy_alt(result: BenchmarkResult) -> str:
    chance = result.tasks[0].accuracy
    return f"Test accuracy against delay; without memory {chance:.3g}. {words.finding(result)}"


def _cost_caption(result: BenchmarkResult) -> str:
    longest = result.tasks[-1].delay
    rows = [row for row in result.compared(WIDTH) if row.delay == longest and row.costs]
    parts = [
        f"{words.row_name(row)} {words.mean(row.costs['training_seconds'], 2)} s to "
        f"{words.mean(row.accuracy, 2)}"
        for row in rows
    ]
    return f"At T={longest}, same width: {', '.join(parts)}." if parts else ""
