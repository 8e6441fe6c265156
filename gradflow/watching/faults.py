"""What becomes of a fault of the watch: one warning, and the training goes on."""

from __future__ import annotations

import logging
import warnings


class WatchWarning(UserWarning):
    """The watch cannot do what it was asked for, or ended by a fault of its own."""


def warn(message: str) -> None:
    """Warn the user, also where warnings are made errors: those must not end a training either."""
    try:
        warnings.warn(message, WatchWarning, stacklevel=4)
    except WatchWarning:
        logging.getLogger("gradflow").warning(message)
