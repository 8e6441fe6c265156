"""`gradflow.watch`: a watch over a training, with its log, its live panel and its receivers.

This is where measuring meets drawing: `gradflow.watching` measures, `gradflow.present` draws, and
neither knows the other's terminal or disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gradflow.errors import SettingError
from gradflow.monitor.shown import Shown
from gradflow.monitor.weights import findings_of_weights
from gradflow.provenance import Stopwatch, provenance
from gradflow.records.watch import FlowFinding, WatchRun
from gradflow.settings import WatchingSettings
from gradflow.watching.log import FlowLog
from gradflow.watching.reporting import LogReceiver, Receiver, Reporter, SinkReceiver
from gradflow.watching.watch import Watch

__all__ = ["ReportedWatch", "watch"]


class ReportedWatch(Watch):
    """A watch whose samples are judged, kept and shown; `gradflow.watch` makes one.

    `findings` holds what was found so far, each thing once, and `folder` the run folder of the
    log, None where there is none.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        every: int,
        scaler: torch.amp.GradScaler | None,
        reporter: Reporter,
        folder: Path | None,
        first_update: int,
    ) -> None:
        super().__init__(model, every=every, scaler=scaler)
        self._updates.count = first_update
        self.folder = folder
        self._reporter = reporter
        self.subscribe(reporter)

    @property
    def findings(self) -> list[FlowFinding]:
        """What was found so far, with the update at which it was found first."""
        return self._reporter.findings

    def _detach(self) -> None:  # however the watch ends: closed, by an error, by a fault
        super()._detach()
        self._reporter.close()


def watch(
    model: nn.Module,
    every: int = 100,
    *,
    needs_lag: int | None = None,
    out: str | Path | bool | None = None,
    panel: bool | None = None,
    sinks: Iterable[Any] | Any = (),
    first_update: int | None = None,
    scaler: torch.amp.GradScaler | None = None,
) -> ReportedWatch:
    """Watch gradient flow through time while a model trains, around an unchanged loop.

    Each sample holds, per layer and direction, log10 of ||dL/dh_t|| and ||dL/dc_t|| by distance
    from the end, through time, exact in float64. What is wrong is told while the training runs.

    Args:
        model: any module with recurrent layers.
        every: an update in so many is sampled, the first one among them.
        needs_lag: how many steps back the gradient must reach. Without it a gradient that does
            not reach the first step of the data is a warning.
        out: the run folder whose `watch.jsonl` the samples are appended to, which `gradflow watch`,
            `report` and `runs` read; `runs/watch-<start>` when not given, none where False. A
            training that is resumed goes on in its folder.
        panel: whether to show a live panel on standard error; when not given, on a terminal that
            no progress bar moves about. Without a panel findings go to the logger "gradflow".
        sinks: what else receives the samples, one or many: a SummaryWriter, wandb, a run of it,
            trackio, mlflow, a logger of Lightning, or a function of a sample.
        first_update: the number of the first update, where a training is resumed; when not given,
            the one after the last in the log that is continued, else 0.
        scaler: the GradScaler of mixed precision, where it is not found by itself.

    Returns:
        The watch: a context manager, with `samples`, `findings`, `folder` and `close()`.

    Raises:
        CellLoadError: the model has no recurrent layer.
        SettingError: a number or a sink that cannot be.
        RunFolderError: the run folder cannot be used.

    >>> model, x = nn.LSTM(2, 3), torch.randn(60, 4, 2)
    >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    >>> with watch(model, every=10, out=False) as flow:
    ...     for _ in range(20):
    ...         optimizer.zero_grad()
    ...         model(x)[0][-1].sum().backward()
    ...         _ = optimizer.step()
    >>> [sample.update for sample in flow.samples]
    [0, 10]
    """
    settings = WatchingSettings(every=every, needs_lag=needs_lag)
    every, needs_lag = settings.every, settings.needs_lag  # as numbers, however they were written
    _require_count(first_update)
    receivers: list[Receiver] = [SinkReceiver(sink) for sink in _many(sinks)]
    log = None
    if _is_first():  # of processes that train together one tells
        receivers.append(Shown(panel))
        log = _log(model, settings, out)
    if log is not None:
        receivers.insert(0, LogReceiver(log))
    earlier = WatchRun() if log is None or log.earlier is None else log.earlier
    if first_update is None:
        first_update = earlier.samples[-1].update + every if earlier.samples else 0
    reporter = Reporter(receivers, needs_lag=needs_lag, known=earlier.findings)
    folder = None if log is None else log.path.parent
    flow = ReportedWatch(
        model,
        every=every,
        scaler=scaler,
        reporter=reporter,
        folder=folder,
        first_update=first_update,
    )
    reporter.begin_with(findings_of_weights(model))
    return flow


def _log(
    model: nn.Module, settings: WatchingSettings, out: str | Path | bool | None
) -> FlowLog | None:
    """Return the log in the run folder that `out` means; None where none is wanted."""
    if out is False:
        return None
    if out is None or out is True:
        folder = Path("runs") / f"watch-{datetime.now(UTC):%Y%m%d-%H%M%S-%f}"[:-3]
    elif isinstance(out, str | Path) and str(out):
        folder = Path(out)
    else:
        raise SettingError(
            "out is the name of a run folder, or False where no log is wanted; "
            f"got {type(out).__name__} {out!r}. Such as out='runs/mine'."
        )
    environment = _environment(model, settings)
    return FlowLog(folder, config=settings.to_json(), environment=environment)


def _many(sinks: Iterable[Any] | Any) -> list[Any]:
    """Return the sinks as a list; a single one, such as a writer, is a list of one."""
    if sinks is None:
        return []
    several = isinstance(sinks, list | tuple | set | frozenset | Iterator)
    return list(sinks) if several else [sinks]


def _require_count(first_update: int | None) -> None:
    if first_update is None:
        return
    if not isinstance(first_update, int) or isinstance(first_update, bool) or first_update < 0:
        raise SettingError(
            "first_update is the number of the first update, so it is a whole number and at least "
            f"0; got {first_update!r}. Leave it out where a training begins."
        )


def _is_first() -> bool:
    """Return whether this is the first of the processes that train together, or the only one."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return int(torch.distributed.get_rank()) == 0
    return int(os.environ.get("RANK", "0") or 0) == 0


def _environment(model: nn.Module, settings: WatchingSettings) -> dict[str, Any]:
    first = next(iter(model.parameters()), torch.zeros(()))
    where = {"device": str(first.device), "dtype": str(first.dtype).removeprefix("torch.")}
    found = provenance("watch", settings, Stopwatch())
    return {**found, **where, "model": type(model).__name__}
