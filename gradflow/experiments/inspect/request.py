"""What `gradflow inspect` was asked for, read: a file or a module, its weights, its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from torch import Tensor, nn

from gradflow.checkpoints.batches import load_batch
from gradflow.checkpoints.fill_model import fill_model_
from gradflow.checkpoints.layers import load_checkpoint
from gradflow.checkpoints.user_files import load_object
from gradflow.errors import CellLoadError, SettingError
from gradflow.experiments.inspect.batch import Batch, read_batch
from gradflow.experiments.inspect.devices import computing_on
from gradflow.experiments.inspect.gradients import Subject
from gradflow.experiments.inspect.inspection import inspect_subject, subject_of
from gradflow.experiments.inspect.report import FindingKey, known_keys
from gradflow.experiments.inspect.request_checks import require_request
from gradflow.records.inspect import InspectResult
from gradflow.settings.inspect import InspectSettings
from gradflow.store import load_result

Progress = Callable[[str, int, int], None]


def run_inspect(settings: InspectSettings, progress: Progress | None = None) -> InspectResult:
    """Inspect what the settings name.

    Args:
        settings: a file of weights, or a module (with weights from a file); data; needs.
        progress: called as `progress(what, done, in all)`.

    Raises:
        SettingError: neither a file nor a module is named.
        GradflowError: what cannot be read, run or measured.
    """
    require_request(settings)
    known = _known(settings)
    with computing_on(settings.device):
        batch, notes = _batch(settings)
        result = _inspected(settings, batch, known, progress)
        return replace(result, notes=(*result.notes, *notes))


def _inspected(
    settings: InspectSettings,
    batch: Batch | None,
    known: frozenset[FindingKey],
    progress: Progress | None,
) -> InspectResult:
    if settings.model is None:
        path = str(settings.file or settings.checkpoint)
        found = load_checkpoint(path, nonlinearity=settings.nonlinearity)
        subject = Subject(found, None, _alone(batch, settings))
        return inspect_subject(subject, settings, progress, known)
    model = make_model(settings.model)
    weights = settings.checkpoint or settings.file
    notes = () if weights is None else fill_model_(model, weights)
    subject = subject_of(model, batch, settings.loss, settings.model)
    result = inspect_subject(subject, settings, progress, known)
    return replace(result, notes=(*result.notes, *notes))


def make_model(spec: str) -> nn.Module:
    """Return the module that `file.py:name` makes or is.

    Raises:
        CellLoadError: it cannot be made, or is no module.
    """
    made = load_object(spec)
    if callable(made) and not isinstance(made, nn.Module):
        try:
            made = made()
        except Exception as problem:  # whatever the user's code raises
            first = (str(problem).splitlines() or [""])[0]
            raise CellLoadError(
                f"--model {spec} is called without arguments, and fails: "
                f"{type(problem).__name__}: {first}"
            ) from problem
    if not isinstance(made, nn.Module):
        raise CellLoadError(f"--model {spec} makes no torch.nn.Module but {type(made).__name__}.")
    return made


def _known(settings: InspectSettings) -> frozenset[FindingKey]:
    """Return the findings of the baseline."""
    if settings.baseline is None:
        return frozenset()
    old = load_result(settings.baseline)
    if not isinstance(old, InspectResult):
        raise SettingError(
            f"--baseline takes a result of gradflow inspect; {settings.baseline} is one of "
            f"gradflow {old.command}."
        )
    return known_keys(old.findings)


def _batch(settings: InspectSettings) -> tuple[Batch | None, tuple[str, ...]]:
    """Return the data, and what one should know of how they were read."""
    if settings.data is None:
        return None, ()
    found = load_batch(settings.data, window=settings.window, target=settings.target)
    notes = found.get("notes", ()) if isinstance(found, dict) else ()
    batch = read_batch(found)
    if settings.window is not None and settings.layout == "time_first":  # windows come batch first
        batch = replace(batch, inputs=batch.inputs.transpose(0, 1))
    return batch, tuple(notes) if isinstance(notes, list | tuple) else ()


def _alone(batch: Batch | None, settings: InspectSettings) -> Batch | None:
    """Return data for bare layers, time first: windows of a series come batch first."""
    if batch is None or settings.layout is not None or settings.window is None:
        return batch
    x = batch.inputs
    return Batch(x.transpose(0, 1)) if isinstance(x, Tensor) and x.dim() == 3 else batch
