"""Where settings come from: flag, then `GRADFLOW_*`, then `--config` (TOML), then default.

    flags        --input-gate 0.3
    environment  GRADFLOW_INPUT_GATE=0.3
    TOML         input_gate = 0.3      (input-gate is read too)

The first of them that names a setting wins. An unknown key of a TOML file is refused, with the
nearest one that exists. A preset of configs/ goes by its bare name (`--config decay`).
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from gradflow.errors import SettingError, UnknownNameError, nearest_name
from gradflow.settings import (
    BenchmarkSettings,
    DecaySettings,
    DepthSettings,
    DoctorSettings,
    ExplainSettings,
    InitsSettings,
    InspectSettings,
    ParamsSettings,
    ParitySettings,
    ReportSettings,
    RunsSettings,
    SaturateSettings,
    Settings,
    SpectrumSettings,
    SpeedSettings,
    StepSettings,
    WatchSettings,
)
from gradflow.settings.problems import show

__all__ = [
    "COMMAND_SETTINGS",
    "BenchmarkSettings",
    "DecaySettings",
    "DepthSettings",
    "DoctorSettings",
    "ExplainSettings",
    "InitsSettings",
    "InspectSettings",
    "ParamsSettings",
    "ParitySettings",
    "ReportSettings",
    "RunsSettings",
    "SaturateSettings",
    "Settings",
    "SpectrumSettings",
    "SpeedSettings",
    "StepSettings",
    "WatchSettings",
    "find_config",
    "load_config",
    "preset_names",
    "resolve_settings",
    "settings_digest",
    "settings_toml",
    "unknown_variables",
]

COMMAND_SETTINGS: dict[str, type[Settings]] = {
    "decay": DecaySettings,
    "depth": DepthSettings,
    "spectrum": SpectrumSettings,
    "speed": SpeedSettings,
    "saturate": SaturateSettings,
    "parity": ParitySettings,
    "step": StepSettings,
    "params": ParamsSettings,
    "explain": ExplainSettings,
    "inits": InitsSettings,
    "inspect": InspectSettings,
    "benchmark": BenchmarkSettings,
    "runs": RunsSettings,
    "watch": WatchSettings,
    "report": ReportSettings,
    "doctor": DoctorSettings,
}
# What every command takes beside its settings; these never change what is measured.
COMMON_OPTIONS = ("config", "out", "format", "quiet", "debug", "force")
# Of the commands that sweep: where runs are made, and which.
SWEEP_OPTIONS = ("executor", "workers", "dry_run", "retry_failed")
DRAWING_OPTIONS = ("style",)  # of the commands that draw; how a figure looks is no setting either
_PREFIX = "GRADFLOW_"
_PACKAGE = Path(__file__).parent

AnySettings = TypeVar("AnySettings", bound=Settings)


def resolve_settings(
    model: type[AnySettings],
    *,
    flags: Mapping[str, Any],
    environment: Mapping[str, str] | None = None,
    config: str | Path | None = None,
) -> AnySettings:
    """Return the settings in force: flag before `GRADFLOW_*` before `config` before default.

    Args:
        model: the settings model of the command.
        flags: setting to value as the command line gave it; None or an empty list is "not given".
        environment: the variables to look into, such as `os.environ`; None for none.
        config: a TOML file, or the bare name of a preset.

    Raises:
        SettingError, GateValueError, UnknownNameError: a value or key that cannot be, named as
            the user gave it: `--gate`, `GRADFLOW_GATE` or `'gate' in my.toml`.

    >>> flags, environment = {"steps": "7"}, {"GRADFLOW_STEPS": "9", "GRADFLOW_HIDDEN": "5"}
    >>> settings = resolve_settings(DecaySettings, flags=flags, environment=environment)
    >>> settings.steps, settings.hidden
    (7, 5)
    """
    values: dict[str, Any] = {}
    labels: dict[str, str] = {}
    if config is not None:
        path = find_config(config)
        values = load_config(path)
        labels = {key: f"{key!r} in {path.name}" for key in values}
    variables = environment or {}
    for key in model.model_fields:
        variable = _PREFIX + key.upper()
        if variables.get(variable):
            values[key], labels[key] = variables[variable], variable
    for key, value in flags.items():
        if value is not None and value not in ([], ()):
            values[key], labels[key] = value, flag_name(key)
    return model.build(values, labels)


def flag_name(key: str) -> str:
    """Return the command-line flag of a setting.

    >>> flag_name("input_gate")
    '--input-gate'
    """
    return "--" + key.replace("_", "-")


def unknown_variables(environment: Mapping[str, str]) -> list[str]:
    """Return a sentence for each `GRADFLOW_*` variable that no command reads."""
    keys = {key for model in COMMAND_SETTINGS.values() for key in model.model_fields}
    others = (*COMMON_OPTIONS, *DRAWING_OPTIONS, *SWEEP_OPTIONS)
    known = {_PREFIX + key.upper() for key in (*keys, *others)}
    return [
        f"{name} is no setting of any command. {nearest_name(name, known)}"
        for name in sorted(environment)
        if name.startswith(_PREFIX) and name not in known
    ]


def preset_folder() -> Path:
    """Return the folder of the presets: inside an installed package, beside it in a checkout."""
    inside = _PACKAGE / "configs"
    return inside if inside.is_dir() else _PACKAGE.parent / "configs"


def preset_names() -> list[str]:
    """Return the names that `--config` takes without a file: one for each question.

    >>> "decay" in preset_names()
    True
    """
    return sorted(path.stem for path in preset_folder().glob("*.toml"))


def find_config(name: str | Path) -> Path:
    """Return the file that `--config name` means: a preset by its bare name, else a path.

    Raises:
        UnknownNameError: neither a preset nor a file.
    """
    text = str(name)
    if text in preset_names():
        return preset_folder() / f"{text}.toml"
    path = Path(text)
    if "\0" not in text and text and _is_there(path):
        return path
    raise UnknownNameError(
        f"--config takes a TOML file or the name of a preset; {show(text)} is neither. "
        + nearest_name(text, preset_names()).replace("Known:", "Presets:")
    )


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except PermissionError:  # it may be; reading it will tell
        return True
    except OSError:  # a name that no disk takes, a loop of links
        return False


def load_config(path: Path) -> dict[str, Any]:
    """Read a flat TOML file of settings; `input-gate` and `input_gate` are one key.

    Raises:
        SettingError: a folder, a file that cannot be read or is no TOML, or a key given twice.
    """
    try:
        # utf-8-sig: editors on Windows begin a file with a mark that TOML does not know.
        document = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except IsADirectoryError:
        raise SettingError(
            f"--config takes a file, and {str(path)!r} is a folder. A run folder's settings are "
            f"in {str(path / 'config.toml')!r}."
        ) from None
    except OSError as problem:
        raise SettingError(f"--config cannot read {str(path)!r}: {problem.strerror}.") from None
    except UnicodeDecodeError:
        raise SettingError(
            f"--config reads TOML, which is UTF-8 text, and {str(path)!r} is not. "
            "Save the file as UTF-8."
        ) from None
    except ValueError as problem:  # a number of thousands of digits too, not only TOML's own
        raise SettingError(f"--config cannot read {str(path)!r} as TOML: {problem}.") from None
    except RecursionError:
        raise SettingError(
            f"--config reads a flat file, KEY = VALUE; {str(path)!r} nests too deep to be read."
        ) from None
    settings: dict[str, Any] = {}
    for key, value in document.items():
        name = key.replace("-", "_")
        if name in settings:
            raise SettingError(f"{str(path)!r} gives {name!r} twice, with '-' and with '_'.")
        settings[name] = value
    return settings


def settings_digest(command: str, settings: Settings) -> str:
    """Return the sha256 of a command and all its settings; see `Settings.digest`."""
    return settings.digest(command)


def settings_toml(command: str, settings: Settings) -> str:
    """Return the settings in force as a TOML file that `gradflow <command> --config` reads.

    A setting that is not set is left out: TOML has no null.
    """
    lines = [f"# gradflow {command}, settings sha256 {settings_digest(command, settings)}"]
    for key, value in settings.to_json().items():
        if value is not None:
            lines.append(f"{key} = {_toml_value(value)}")
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(_toml_value(item) for item in value)}]"
    if isinstance(value, str):
        # JSON's escapes are TOML's, but for the delete character, which TOML wants escaped too.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    return json.dumps(value)
