"""The live panel: one line a layer, in any terminal, and out of the way when it must be."""

from __future__ import annotations

import io
import sys
from types import SimpleNamespace

import pytest
from rich.console import Console

from gradflow.present.watch_panel import LivePanel, panel, wants_panel
from gradflow.watching.findings import FindingMemory, sample_findings
from tests.data.watched_runs import flow_layer, flow_sample


def _console(width: int = 80, *, encoding: str = "utf-8", height: int = 30, **how) -> Console:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(file=file, width=width, height=height, legacy_windows=False, **how)


def _text(console: Console) -> str:
    console.file.flush()
    return console.file.buffer.getvalue().decode(console.encoding)


def _drawn(console: Console, *layers, **sample) -> list[str]:
    taken = flow_sample(1200, *layers, **sample)
    console.print(panel(taken, sample_findings(taken), FindingMemory().new_of(taken), console))
    return _text(console).splitlines()


LAYERS = (
    flow_layer(0.1, 60, name="encoder"),
    flow_layer(0.9, 20, name="a.very.long.name.of.a.module.in.some.model", direction="reverse"),
    flow_layer(1.3, 60, name="other"),
)


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_every_layer_has_one_line_that_fits(width: int):
    """Numbers make room for the profile in a narrow terminal; the verdict stays."""
    lines = _drawn(_console(width), *LAYERS)
    assert max(map(len, lines)) <= width
    if width >= 60:
        assert [line.split()[-1] for line in lines[2:5]] == ["vanishes", "fine", "explodes"]


def test_modules_of_one_kind_of_name_are_told_apart():
    """In 80 columns "encoder.gru, layer 0, reverse" stands whole beside its decoder."""
    layers = [
        flow_layer(0.9, 20, name=f"{part}.gru", direction="reverse")
        for part in ("encoder", "decoder")
    ]
    lines = _drawn(_console(80), *layers)
    assert [row[:29] for row in lines[2:4]] == [
        "encoder.gru, layer 0, reverse", "decoder.gru, layer 0, reverse",
    ]  # fmt: skip


def test_a_line_shows_profile_horizon_and_verdict():
    """The profile has the last step on the right, under its heading."""
    head, heading, line, *_ = _drawn(_console(80), LAYERS[0], loss_scale=1024.0)
    assert head.startswith("gradflow, update 1,200, parameter gradient 10^0.2, loss scale 1024")
    assert heading.split() == ["layer", "start", "end", "horizon", "at", "start", "keep", "verdict"]
    *name, profile, horizon, left, keep, verdict = line.split()
    assert name == ["encoder,", "layer", "0"]
    assert (horizon, left, keep, verdict) == ("3", "10^-59.0", "0.10", "vanishes")
    assert profile.endswith("█")


def test_a_terminal_without_utf8_gets_plain_letters():
    """Nothing that it cannot show."""
    console = _console(80, encoding="ascii")
    _drawn(console, *LAYERS)
    assert _text(console).isascii()


def test_more_layers_than_lines_are_counted():
    """A terminal of twelve lines shows four layers and says how many are left."""
    layers = [flow_layer(0.9, 20, layer=index) for index in range(20)]
    lines = _drawn(_console(80, height=12), *layers)
    assert lines[-1].strip() == "and 16 more"


def test_findings_stand_below_the_gravest_first():
    """Three of them at most."""
    text = "\n".join(_drawn(_console(120), *LAYERS, flow_layer(2.0, 60, name="worst")))
    assert text.index("GF102 error [worst") < text.index("GF101 warning [encoder")


def test_a_sample_without_layers_is_a_line_alone():
    """No recurrent layer ran."""
    assert _drawn(_console(80), log10_parameter_gradient_norm=None, seconds=None)[0].startswith(
        "gradflow, update 1,200"
    )


def test_the_panel_is_redrawn_in_place_and_stays_when_closed():
    """On a terminal: the cursor goes up over the last drawing, and is shown again at the end."""
    console = _console(80, force_terminal=True)
    live = LivePanel(console)
    for update in (0, 100):
        sample = flow_sample(update, *LAYERS)
        live.take(sample, sample_findings(sample), ())
    live.close()
    live.close()
    text = _text(console)
    assert "update 100" in text
    assert text.count("\x1b[1A") >= len(LAYERS)
    assert text.count("\x1b[?25l") == text.count("\x1b[?25h") == 1


def test_a_panel_that_shows_nothing_leaves_no_trace():
    """A training that ends before its first sample."""
    console = _console(80, force_terminal=True)
    LivePanel(console).close()
    assert _text(console) == ""


def test_a_panel_is_wanted_on_a_terminal_that_no_progress_bar_moves_about(
    monkeypatch: pytest.MonkeyPatch,
):
    """tqdm moves the cursor by itself."""
    terminal, pipe = _console(force_terminal=True), _console(force_terminal=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setitem(sys.modules, "tqdm", SimpleNamespace(tqdm=SimpleNamespace(_instances=[])))
    assert wants_panel(terminal)
    assert not wants_panel(pipe)
    bar = SimpleNamespace(tqdm=SimpleNamespace(_instances=["bar"]))
    monkeypatch.setitem(sys.modules, "tqdm", bar)
    assert not wants_panel(terminal)
