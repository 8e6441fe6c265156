"""A callback for Lightning, made of whichever of its two packages the user has imported."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradflow.errors import SettingError
from gradflow.monitor.reported import ReportedWatch, watch

_PACKAGES = ("lightning.pytorch", "pytorch_lightning")


def lightning_callback(
    every: int = 100,
    *,
    needs_lag: int | None = None,
    out: str | Path | bool | None = None,
    panel: bool = False,
    sinks: Iterable[Any] | Any = (),
    to_loggers: bool = True,
) -> Any:
    """Return a callback that watches gradient flow while Lightning's Trainer fits a model.

    `Trainer(callbacks=[gradflow.lightning_callback(every=100)])`. It works with `lightning` and
    with `pytorch_lightning`, whichever was imported before (with both where both were), and imports
    neither. Its `flow` is the watch.

    Args:
        every, needs_lag, out, sinks: as in `gradflow.watch`.
        panel: whether to show a live panel, which Lightning's own progress bar would disturb.
        to_loggers: whether the trainer's loggers receive the samples, too.

    Raises:
        SettingError: neither of the packages was imported.
    """
    bases = tuple(sys.modules[name].Callback for name in _PACKAGES if name in sys.modules)
    if not bases:
        raise SettingError(
            "the callback is made of Lightning's own class, and neither 'lightning' nor "
            "'pytorch_lightning' was imported. Import the one whose Trainer you use before."
        )
    watching = _Fitting(every, needs_lag, out, panel, sinks, to_loggers)
    return type("GradientFlow", (_Hooks, *bases), {})(watching)


class _Fitting:
    """What a fit is watched by, with the arguments of the callback."""

    def __init__(
        self,
        every: int,
        needs_lag: int | None,
        out: str | Path | bool | None,
        panel: bool,
        sinks: Any,
        to_loggers: bool,
    ) -> None:
        given = list(sinks) if isinstance(sinks, list | tuple) else [sinks]
        self._sinks, self._to_loggers = given, to_loggers
        self._how: dict[str, Any] = {
            "every": every, "needs_lag": needs_lag, "out": out, "panel": panel,
        }  # fmt: skip
        self.flow: ReportedWatch | None = None

    def begin(self, trainer: Any, module: Any) -> None:
        """Begin to watch; updates are counted as the trainer counts them."""
        self.end()
        loggers = list(trainer.loggers) if self._to_loggers else []
        self.flow = watch(
            module,
            sinks=[*self._sinks, *loggers],
            first_update=int(trainer.global_step),
            **self._how,
        )

    def end(self) -> None:
        """End the watch."""
        if self.flow is not None:
            self.flow.close()


class _Hooks:
    """The hooks of the callback; Lightning's own class, behind it, has all others."""

    def __init__(self, watching: _Fitting) -> None:
        super().__init__()
        self._watching = watching

    @property
    def flow(self) -> ReportedWatch | None:
        """The watch over the present or last fit, None before the first."""
        return self._watching.flow

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        """Begin to watch, after the sanity check of the validation."""
        self._watching.begin(trainer, pl_module)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        """End the watch."""
        del trainer, pl_module
        self._watching.end()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        """End the watch, too."""
        del trainer, pl_module, exception
        self._watching.end()
