"""The callback for Lightning, in a real fit."""

from __future__ import annotations

import csv
import io
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import gradflow
from gradflow.errors import SettingError
from gradflow.store import load_log
from tests.monitor.forgetful import Forgetful

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # its own, of what it imports
    import pytorch_lightning as pl
    from pytorch_lightning.loggers import CSVLogger

# Lightning advises on workers and the like
pytestmark = pytest.mark.filterwarnings("ignore::Warning:pytorch_lightning")


class _Module(pl.LightningModule):
    def __init__(self, fails_at: int | None = None) -> None:
        super().__init__()
        self.inner = Forgetful(0.1)
        self._fails_at = fails_at

    def _loss(self, batch):
        x, y = batch
        return nn.functional.cross_entropy(self.inner(x.transpose(0, 1)), y)

    def training_step(self, batch, index):
        if index == self._fails_at:
            raise ArithmeticError("the loop raised")
        return self._loss(batch)

    def validation_step(self, batch, index):
        self._loss(batch)

    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), lr=1e-3)


def _batches() -> DataLoader:
    torch.manual_seed(0)
    x = torch.randn(32, 60, 2)
    return DataLoader(TensorDataset(x, (x[:, 0, 0] > 0).long()), batch_size=8)


def _fit(callback, *, epochs: int = 2, module=None, **how) -> pl.LightningModule:
    model = module or _Module()
    batches = _batches()
    trainer = pl.Trainer(
        max_epochs=epochs, accelerator="cpu", callbacks=[callback], enable_progress_bar=False,
        enable_model_summary=False, enable_checkpointing=False,
        **{"logger": False, **how},
    )  # fmt: skip
    trainer.fit(model, batches, batches)
    return model


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_fit_is_watched_with_validations_in_between():
    """Eight updates of two epochs, each third of them sampled; the validations are no updates."""
    callback = gradflow.lightning_callback(every=3, out="run")
    assert isinstance(callback, pl.Callback)
    _fit(callback)
    assert [sample.update for sample in callback.flow.samples] == [0, 3, 6]
    assert callback.flow.closed
    assert [finding.code for finding in callback.flow.findings] == ["GF101"]
    assert load_log("run").samples == tuple(callback.flow.samples)


def test_the_norm_is_that_before_lightning_clips():
    """Clipped to 1e-4, it is larger."""
    callback = gradflow.lightning_callback(every=1, out=False)
    _fit(callback, gradient_clip_val=1e-4)
    norms = [sample.log10_parameter_gradient_norm for sample in callback.flow.samples]
    assert min(norms) > -3.0


def test_the_trainers_loggers_receive_the_samples():
    """Under the update as the trainer counts it; or not, where that is wished."""
    _fit(gradflow.lightning_callback(every=4, out=False), logger=CSVLogger("kept", version=0))
    text = Path("kept/lightning_logs/version_0/metrics.csv").read_text()
    rows = list(csv.DictReader(io.StringIO(text)))
    horizons = {int(row["step"]): row.get("gradflow/inner.rnn.l0/horizon") for row in rows}
    assert set(horizons) >= {0, 4}
    assert 3 <= float(horizons[4]) <= 6
    silent = gradflow.lightning_callback(every=4, out=False, to_loggers=False)
    _fit(silent, logger=CSVLogger("silent", version=0))
    assert len(silent.flow.samples) == 2
    assert not Path("silent/lightning_logs/version_0/metrics.csv").exists()


def test_a_fit_that_raises_leaves_no_hook_behind():
    """Lightning tells its callbacks."""
    callback, module = gradflow.lightning_callback(every=1, out=False), _Module(fails_at=2)
    with pytest.raises(ArithmeticError, match="the loop raised"):
        _fit(callback, module=module)
    assert callback.flow.closed
    assert not module.inner.rnn._forward_hooks
    assert len(callback.flow.samples) == 2


def test_training_is_the_same_with_and_without_the_callback():
    """Bit for bit."""
    watched = _fit(gradflow.lightning_callback(every=1, out=False))
    plain = _fit(pl.Callback())
    for name, weight in plain.state_dict().items():
        assert torch.equal(weight, watched.state_dict()[name])


def test_the_callback_is_of_each_package_that_was_imported(monkeypatch: pytest.MonkeyPatch):
    """`lightning` holds a copy of the same classes under another name."""

    class Other:
        """The class of the same name in the other package."""

    monkeypatch.setitem(sys.modules, "lightning.pytorch", SimpleNamespace(Callback=Other))
    both = gradflow.lightning_callback()
    assert isinstance(both, Other)
    assert isinstance(both, pl.Callback)
    monkeypatch.delitem(sys.modules, "pytorch_lightning")
    assert not isinstance(gradflow.lightning_callback(), pl.Callback)
    monkeypatch.delitem(sys.modules, "lightning.pytorch")
    with pytest.raises(SettingError, match="neither 'lightning' nor"):
        gradflow.lightning_callback()
