"""A callback for the Trainer of Hugging Face's transformers."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from gradflow.errors import SettingError
from gradflow.monitor.reported import ReportedWatch, watch


def trainer_callback(
    every: int = 100,
    *,
    needs_lag: int | None = None,
    out: str | Path | bool | None = None,
    panel: bool = False,
    sinks: Iterable[Any] | Any = (),
) -> Any:
    """Return a callback that watches gradient flow while a Hugging Face Trainer trains.

    `Trainer(..., callbacks=[gradflow.trainer_callback(every=100)])`. The Trainer's own events come
    after it has clipped the gradients; the watch takes them where they arise, before. Its `flow` is
    the watch.

    Args:
        every, needs_lag, out, sinks: as in `gradflow.watch`.
        panel: whether to show a live panel, which the Trainer's own progress bar would disturb.

    Raises:
        SettingError: transformers was not imported.
    """
    module = sys.modules.get("transformers")
    if module is None:
        raise SettingError(
            "the callback is made of transformers' own class, and 'transformers' was not imported. "
            "Import its Trainer before."
        )
    how = {"every": every, "needs_lag": needs_lag, "out": out, "panel": panel, "sinks": sinks}
    return type("GradientFlow", (_Events, module.TrainerCallback), {})(how)


class _Events:
    """The events of the callback; transformers' own class, behind it, has all others."""

    def __init__(self, how: dict[str, Any]) -> None:
        super().__init__()
        self._how = how
        self.flow: ReportedWatch | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Begin to watch; updates are counted as the Trainer counts them."""
        del args, control
        if self.flow is not None:  # of a training that ended by an error, which has no event
            self.flow.close()
        self.flow = watch(more["model"], first_update=int(state.global_step), **self._how)

    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """End the watch."""
        del args, state, control, more
        if self.flow is not None:
            self.flow.close()
