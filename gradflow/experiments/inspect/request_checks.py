"""What cannot be asked of `gradflow inspect` together: a flag must not do nothing in silence."""

from __future__ import annotations

from pathlib import Path

from gradflow.errors import SettingError, UnknownNameError, nearest_name
from gradflow.records.finding_codes import FINDING_KINDS
from gradflow.settings.inspect import InspectSettings


def require_request(settings: InspectSettings) -> None:
    """Raise unless there is something to look at, and every setting says something of it.

    Raises:
        SettingError: neither a file nor a module, two files of weights, or a setting without that
            which it is about.
        UnknownNameError: a code that no finding has.
    """
    weights = [name for name in (settings.file, settings.checkpoint) if name is not None]
    if not weights and settings.model is None:
        raise SettingError(
            "gradflow inspect needs something to look at: a file of weights (gradflow inspect "
            "model.pt) or a module (--model file.py:make_model)."
        )
    if len(weights) == 2:
        raise SettingError(
            f"one file of weights is inspected; got {weights[0]} and --checkpoint {weights[1]}."
        )
    _require_data(settings)
    for flag, codes in (("--select", settings.select), ("--ignore", settings.ignore or ())):
        for code in codes:
            _require_code(flag, code)


def _require_data(settings: InspectSettings) -> None:
    series = settings.data is not None and Path(settings.data).suffix.lower() == ".csv"
    for flag, value in (("--window", settings.window), ("--target", settings.target)):
        if value is not None and not series:
            raise SettingError(
                f"{flag} cuts up a series, --data of a .csv; got {flag} {value} and "
                f"{'no --data' if settings.data is None else f'--data {settings.data}'}."
            )
    if settings.loss is not None and settings.data is None:
        raise SettingError(
            f"a loss compares answers with targets, which come with --data; got --loss "
            f"{settings.loss} and no --data."
        )
    if settings.loss is not None and settings.model is None:
        raise SettingError(
            "a loss is of a whole model's answer, and a file of weights holds no model; got "
            f"--loss {settings.loss}. Give the module by --model file.py:make_model."
        )


def _require_code(flag: str, code: str) -> None:
    if not any(known.startswith(code.upper()) for known in FINDING_KINDS):
        raise UnknownNameError(
            f"{flag} takes the codes of findings, or their beginnings; there is no {code!r}. "
            f"{nearest_name(code.upper(), FINDING_KINDS)}"
        )
