"""What to say of a file that is not read because reading it would run code."""

from __future__ import annotations

from pathlib import Path

from gradflow.checkpoints.files.pickled_names import is_hostile, is_of_module, is_of_quantised
from gradflow.errors import CheckpointError, QuantisedError, UnsafeCheckpointError

_SHOWN = 3


def refusal_of_names(path: Path, names: list[str]) -> CheckpointError:
    """Return the error for a file that names these classes and functions (one or more).

    The cure runs in the project that wrote the file, whose code its owner trusts.
    """
    hostile = [name for name in names if is_hostile(name)]
    if hostile:
        return UnsafeCheckpointError(
            f"{path} would call {_listing(hostile)} when it is read, for which weights have no "
            "use; nothing of it was run.\nDo not load it elsewhere either (weights_only=False runs "
            "it), unless you know who made it and why."
        )
    if any(is_of_quantised(name) for name in names):
        return QuantisedError(
            f"{path} holds weights that were quantised and packed ({_listing(names)}), which "
            "cannot be unpacked without running it.\nGive the floating-point checkpoint that it "
            "was made from."
        )
    modules = [name for name in names if is_of_module(name)]
    if modules:
        return UnsafeCheckpointError(
            f"{path} is a whole pickled module ({_listing(_own_first(names))}): to read it would "
            "run the code of its classes; nothing of it was run.\nWhere you trust it, save its "
            f"weights alone, from the project that wrote it: m = torch.load({str(path)!r}, "
            "weights_only=False); torch.save(m.state_dict(), 'weights.pt')"
        )
    return UnsafeCheckpointError(
        f"{path} holds objects of {_listing(names)} beside its weights: to read it would run "
        "their code; nothing of it was run.\nWhere you trust it, save its weights alone, from the "
        f"project that wrote it: c = torch.load({str(path)!r}, weights_only=False); "
        "torch.save(c['state_dict'], 'weights.pt')"
    )


def _own_first(names: list[str]) -> list[str]:
    """Return the user's own classes before torch's."""
    return sorted(names, key=lambda name: name.startswith(("torch.", "collections.", "builtins.")))


def _listing(names: list[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
