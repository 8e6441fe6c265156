"""Everything that a user can get wrong, as one tree.

    GradflowError
    |-- RequestError                  the request was wrong: exit code 2, one message, no traceback
    |   |-- GateValueError            a gate value outside (0, 1), a gain that is not a number
    |   |-- UnknownNameError          a cell, gate, state, norm, key or preset that does not exist
    |   |-- ShapeError                wrong rank, width or length of a tensor
    |   |-- SubjectError              something that is no cell where one is measured
    |   |-- DtypeError                a dtype that does not fit or that the device lacks
    |   |-- SettingError              an impossible value, or a TOML file that cannot be read
    |   |-- CellLoadError             a user's cell: missing file, missing name, a wrong return
    |   |   `-- CellCallError         a user's cell: a call of it that fails or answers wrongly
    |   |-- CheckpointError           a file of weights: unreadable, or without a recurrent layer
    |   |   |-- UnsafeCheckpointError   to read it would run code that is pickled in it
    |   |   `-- QuantisedError          its recurrent weights are stored as whole numbers
    |   |-- SeriesError               a file of input data that cannot be read as a series
    |   |-- DivergenceError           a state that left the finite numbers while it was measured
    |   |-- RunFolderError            an output folder that cannot or must not be written, or read
    |   |-- SchedulerError            workers that cannot be started, reached or used
    |   `-- OutputError               standard output cannot be written (a full disk behind it)
    `-- Interrupted                   stopped by the user: exit code 130, what was done is kept

Every message gives the rule, the reason, what came and the cure, in one to three lines.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class GradflowError(Exception):
    """Root of every error that gradflow raises on purpose."""


class RequestError(GradflowError):
    """The request was wrong; nothing was written."""


class GateValueError(RequestError, ValueError):
    """A gate cannot be held at the value asked for."""


class UnknownNameError(RequestError, KeyError):
    """A name that does not exist; the message offers the nearest one that does."""

    def __str__(self) -> str:  # KeyError would show the message's repr
        return str(self.args[0]) if self.args else ""


class ShapeError(RequestError, ValueError):
    """A tensor of the wrong rank, width or length."""


class SubjectError(RequestError, TypeError):
    """What came to be measured is no cell."""


class DtypeError(RequestError, TypeError):
    """A dtype that does not fit its partner, or that the device cannot compute in."""


class SettingError(RequestError, ValueError):
    """A setting with an impossible value, or a settings file that cannot be read."""


class CellLoadError(RequestError):
    """A user's cell could not be loaded, called or understood."""


class CellCallError(CellLoadError, RuntimeError):
    """A call of a user's cell failed, or answered with something that is no new state.

    It is a RuntimeError too, so that whoever tries another way where a module cannot be traced
    need not know whose module it is.
    """


class CheckpointError(RequestError, ValueError):
    """A file of weights that cannot be read, or that holds no recurrent layer."""


class UnsafeCheckpointError(CheckpointError):
    """A file of weights that would run code of its own if it were read; it was not."""


class QuantisedError(CheckpointError):
    """Recurrent weights that are stored as whole numbers."""


class SeriesError(RequestError, ValueError):
    """A file of input data that cannot be read, or that holds no series of finite numbers."""


class DivergenceError(RequestError, ArithmeticError):
    """A state, or its Jacobian, that is no longer finite where the measurement needs it to be."""


class RunFolderError(RequestError, OSError):
    """An output folder that cannot be written or read, or that holds another run."""


class SchedulerError(RequestError, OSError):
    """A scheduler or workers that cannot be started, reached or used; stored rows stay."""


class OutputError(RequestError, OSError):
    """Standard output cannot be written."""


class Interrupted(GradflowError):
    """The user stopped the run; what was done so far is kept.

    Args:
        message: how far it came.
        partial: what was measured by then, in the form of a whole result; None where nothing was.
    """

    def __init__(self, message: str, *, partial: object | None = None) -> None:
        super().__init__(message)
        self.partial = partial


def nearest_name(name: object, known: Iterable[str]) -> str:
    """Return a sentence that offers the known name closest to `name`, and lists them all.

    >>> nearest_name("lsmt", ["lstm", "gru"])
    "Did you mean 'lstm'? Known: gru, lstm."
    >>> nearest_name("quux", ["lstm", "gru"])
    'Known: gru, lstm.'
    >>> nearest_name("LSTM", ["lstm", "gru"])
    "Did you mean 'lstm'? Known: gru, lstm."
    """
    names = sorted(known)
    folded = {other.casefold(): other for other in reversed(names)}
    close = difflib.get_close_matches(str(name).casefold(), folded, n=1)
    listing = f"Known: {', '.join(names)}."
    return f"Did you mean {folded[close[0]]!r}? {listing}" if close else listing
