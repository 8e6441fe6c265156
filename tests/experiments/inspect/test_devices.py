"""An inspection computes where it is told to, whatever device torch makes new tensors on.

torch's `meta` device stands for a graphics card here: a tensor that is made on the default device
by mistake has no numbers on it, and whatever needs them fails.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from gradflow.cells.torch_layers import cells_of_layer
from gradflow.engine.gate_statistics import cell_statistics
from gradflow.engine.lag_norms import lag_norms
from gradflow.engine.lag_windows import choose_windows
from gradflow.engine.lyapunov import lyapunov_spectrum
from gradflow.engine.sample_gradients import sample_influence
from gradflow.engine.state_gradients import state_gradients
from gradflow.engine.unrolled import UnrolledLayer
from gradflow.errors import UnknownNameError
from gradflow.experiments.inspect import inspect
from gradflow.experiments.inspect.alone import run_alone
from gradflow.experiments.inspect.twin_run import found_in
from tests.data import inspected_models as models
from tests.experiments.inspect.looks import draw


@pytest.fixture
def elsewhere() -> Iterator[None]:
    """Another default device than the one with the numbers."""
    torch.set_default_device("meta")
    try:
        yield
    finally:
        torch.set_default_device(None)


def on_cpu(model: type[nn.Module], *args: object, **options: object) -> nn.Module:
    """A module with numbers, whatever the default device."""
    with torch.device("cpu"):
        return model(*args, **options)


def numbers(*shape: int) -> torch.Tensor:
    """Unit random numbers on the CPU."""
    with torch.device("cpu"):
        return draw(*shape)


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("reverse", [False, True])
def test_the_engine_makes_no_tensor_on_the_default_device(reverse: bool):
    """Unrolling, gradients, norms by lag and gates of a padded batch: all by the data's device."""
    layer = on_cpu(nn.LSTM, 3, 4, bidirectional=True).double()
    twin = UnrolledLayer(cells_of_layer(layer), directions=2)
    output = twin.run(numbers(9, 2, 3).double(), torch.tensor([9, 5], device="cpu"))
    assert state_gradients(output.sum(), twin.calls[0])[0].connected
    trace, cell = twin.calls[0][reverse], twin.cells[reverse]
    lengths = trace.own.sum(dim=0)
    windows = choose_windows(cell, lengths)
    before = trace.before
    found = lag_norms(cell, trace.inputs, before, windows, lengths=lengths, reverse=reverse)
    assert found.log10_norm.device.type == "cpu"
    assert float(found.log10_norm[1, 0]) < 1.0
    gates = cell_statistics(cell, trace.inputs, before, trace.own).gates
    assert 0.0 < gates[0].value_mean < 1.0
    start = tuple(part[0] for part in before)
    assert lyapunov_spectrum(cell, start, trace.inputs, 1, warmup=2).exponents.device.type == "cpu"
    x = numbers(4, 6, 3)
    assert sample_influence(lambda rows: rows.cumsum(0)[:, -1], x).largest_cross > 0


@pytest.mark.usefixtures("elsewhere")
def test_layers_alone_are_run_on_their_own_device():
    """Zero and random input is made where the weights are; the fused layer beside the twin too."""
    found = found_in(on_cpu(nn.GRU, 3, 4, 2))
    (ran,) = run_alone(found, steps=8, seed=0)
    assert ran.watched.fused_gap < 1e-12
    assert ran.own_gap < 1e-6


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("make", [models.Tagger, lambda: models.Truncated(None), models.OwnNet])
def test_a_model_is_inspected_whatever_the_default_device(make):
    """A model that makes its own zeros makes them where the copy is."""
    model = on_cpu(make)
    tokens = torch.arange(60, device="cpu").reshape(4, 15) % 20
    batch = tokens if isinstance(model, models.Tagger) else numbers(4, 15, 3)
    result = inspect(model, batch, loss=lambda output: output.sum())
    assert result.healthy
    assert result.layers[0].log10_dL_dh[0] is not None
    assert torch.get_default_device() == torch.device("meta")


@pytest.mark.usefixtures("elsewhere")
def test_a_file_is_inspected_whatever_the_default_device(tmp_path: Path):
    """Plain, projected and parametrised weights keep their numbers."""
    plain = on_cpu(nn.LSTM, 3, 4, proj_size=2)
    normed = nn.utils.parametrizations.weight_norm(on_cpu(nn.GRU, 3, 4), "weight_hh_l0")
    state = {f"a.{n}": p for n, p in plain.state_dict().items()}
    state |= {f"b.{n}": p for n, p in normed.state_dict().items()}
    torch.save(state, tmp_path / "weights.pt")
    result = inspect(tmp_path / "weights.pt")
    assert [layer.kind for layer in result.layers] == ["lstm", "gru"]
    assert result.layers[1].fused_difference < 1e-12


def test_a_device_that_is_not_there_is_refused():
    """Before anything runs, with those that are."""
    with pytest.raises(UnknownNameError, match=r"is not to be had|is no device"):
        inspect(nn.GRU(3, 4), device="meta")
    with pytest.raises(UnknownNameError, match="cpu"):
        inspect(nn.GRU(3, 4), device="gpu")
