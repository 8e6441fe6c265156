"""User modules that copy.deepcopy refuses: measured as they are, and never held at two values."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest

from gradflow.checkpoints import load_cell
from gradflow.config import DecaySettings, SaturateSettings
from gradflow.errors import CellLoadError
from gradflow.experiments.decay import run_decay
from gradflow.experiments.saturate import run_saturate

# the users' own doing; only torch's words about copies are ours to silence
pytestmark = pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")

SOURCE = """
import torch
from torch import nn

@torch.jit.script
def scripted(h: torch.Tensor) -> torch.Tensor:
    return 1.0 * h

class Keeping(nn.Module):
    input_size, hidden_size = 1, 3
    gates = [{"name": "keep", "role": "keep", "bias": "mix.bias", "weights": "mix.weight"}]

    def __init__(self):
        super().__init__()
        with torch.random.fork_rng():  # a file that draws on import would be run for every load
            self.mix = nn.Linear(4, 3)
        self.identity = scripted

    def forward(self, x, h):
        return torch.sigmoid(self.mix(torch.cat([x, h], dim=1))) * self.identity(h)

class Stubborn(Keeping):
    def __deepcopy__(self, memo):
        raise AttributeError("one of a kind")

class ScriptedLayer(Keeping):
    def __init__(self):
        super().__init__()
        self.identity = torch.jit.script(nn.Identity())

class Spectral(Keeping):
    def __init__(self):
        super().__init__()
        self.register_buffer("turn", torch.ones(3, dtype=torch.complex64))

class OnlyFloat32(Keeping):
    def forward(self, x, h):
        return 0.5 * h.float()

single = Keeping()
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Return the place of a file with cells that cannot be copied."""
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(SOURCE)
    return "mine.py"


@pytest.mark.parametrize("name", ["Keeping", "Stubborn"])
def test_a_module_that_cannot_be_copied_is_held_and_measured(place: str, name: str) -> None:
    """A keep gate at f keeps f^T of the state, whether or not its module can be copied."""
    settings = DecaySettings(
        cell=f"{place}:{name}", gate="0.5,0.9", candidate_gain=0.0, steps=4, hidden=3
    )
    full = [curve for curve in run_decay(settings).curves if curve.path == "full"]
    ends = [curve.log10_norm[-1] for curve in full]
    np.testing.assert_allclose(ends, 4 * np.log10([0.5, 0.9]), rtol=1e-12)


def test_one_module_cannot_be_held_at_two_values_at_once(place: str) -> None:
    """Two curves of one shared module would both show the gate value that was set last."""
    settings = DecaySettings(cell=f"{place}:single", gate="0.5,0.9", candidate_gain=0.0, steps=4)
    with pytest.raises(CellLoadError, match=r"cannot be copied .*makes a new one at each call"):
        run_decay(settings)


def test_loading_scripted_layers_is_silent(place: str) -> None:
    """What torch warns of while a scripted layer is copied and converted is no user's concern."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        load_cell(f"{place}:ScriptedLayer", 1, 3)
    assert [str(warning.message) for warning in caught if ".grad" in str(warning.message)] == []


def test_a_complex_buffer_is_refused(place: str) -> None:
    """Converted to a real dtype, a complex buffer would lose its imaginary part unasked."""
    with pytest.raises(CellLoadError, match=r"buffer 'turn' is complex.*two buffers"):
        load_cell(f"{place}:Spectral", 1, 3)


def test_a_cell_that_runs_in_no_dtype_asked_for_is_a_wrong_request(place: str) -> None:
    """A saturation without a single trial has shown nothing."""
    settings = SaturateSettings(cell=f"{place}:OnlyFloat32", dtype="float16,float64", steps=1)
    with pytest.raises(CellLoadError, match=r"none of the dtypes asked for.*torch\.float32"):
        run_saturate(settings)
