"""Where settings come from, and which source wins."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from gradflow.config import (
    COMMAND_SETTINGS,
    COMMON_OPTIONS,
    DecaySettings,
    SaturateSettings,
    find_config,
    load_config,
    preset_names,
    resolve_settings,
    settings_digest,
    settings_toml,
    unknown_variables,
)
from gradflow.errors import GateValueError, RequestError, SettingError, UnknownNameError

# Presets that are not their command's default, and the command.
MORE_PRESETS = {"benchmark-quick": "benchmark", "delay-sweep": "benchmark"}


@pytest.fixture
def toml(tmp_path: Path) -> Path:
    """A settings file that asks for 11 steps."""
    path = tmp_path / "mine.toml"
    path.write_text("steps = 11\n")
    return path


def test_a_flag_wins_over_the_environment_over_the_file_over_the_default(toml: Path):
    """The nearer the user's fingers, the stronger the word."""
    environment = {"GRADFLOW_STEPS": "22"}
    sources = [{}, {"config": toml}, {"config": toml, "environment": environment}]
    found = [resolve_settings(DecaySettings, flags={}, **source).steps for source in sources]
    flag = resolve_settings(
        DecaySettings, flags={"steps": "33"}, config=toml, environment=environment
    )
    assert [*found, flag.steps] == [100, 11, 22, 33]


def test_a_flag_that_was_not_given_does_not_count(toml: Path):
    """None and an empty list are what the parser has for a flag that is absent."""
    settings = resolve_settings(DecaySettings, flags={"steps": None, "gate": []}, config=toml)
    assert (settings.steps, settings.gate) == (11, (0.1, 0.5, 0.9))


def test_an_error_names_the_source_as_the_user_wrote_it(tmp_path: Path):
    """The flag, the variable or the key and its file: where to go and mend it."""
    path = tmp_path / "mine.toml"
    path.write_text("input-gate = 7\n")
    with pytest.raises(GateValueError, match=r"^--gate must lie strictly"):
        resolve_settings(DecaySettings, flags={"gate": ["1.5"]})
    with pytest.raises(GateValueError, match=r"^GRADFLOW_RESET_GATE must lie strictly"):
        resolve_settings(DecaySettings, flags={}, environment={"GRADFLOW_RESET_GATE": "1.5"})
    with pytest.raises(GateValueError, match=r"^'input_gate' in mine.toml must lie strictly"):
        resolve_settings(DecaySettings, flags={}, config=path)


def test_an_unknown_key_of_a_file_is_refused_with_the_nearest_name(tmp_path: Path):
    """A misspelt key would otherwise run the default and look as if it had worked."""
    path = tmp_path / "mine.toml"
    path.write_text("hiden = 3\n")
    with pytest.raises(UnknownNameError, match=r"'hiden' in mine.toml .* Did you mean 'hidden'\?"):
        resolve_settings(DecaySettings, flags={}, config=path)


def test_an_unknown_variable_is_told():
    """A misspelt variable is named with the nearest one that some command reads."""
    environment = {"GRADFLOW_STEP": "3", "GRADFLOW_OUT": "x", "GRADFLOW_BEYOND": "1", "HOME": "/"}
    (sentence,) = unknown_variables(environment)
    assert "GRADFLOW_STEP is no setting" in sentence
    assert "Did you mean 'GRADFLOW_STEPS'?" in sentence


def test_no_setting_has_the_name_of_a_common_option():
    """`--out` and its like say where results go; they are never part of what is measured."""
    keys = {key for model in COMMAND_SETTINGS.values() for key in model.model_fields}
    assert not keys & set(COMMON_OPTIONS)


@pytest.mark.parametrize("name", [name for name in preset_names() if name not in MORE_PRESETS])
def test_every_preset_is_the_default_of_its_command_written_out(name: str):
    """`--config decay` changes nothing: the preset is there to be read and copied.

    A setting without a default (the second side of a comparison) may have a value there.
    """
    model = COMMAND_SETTINGS[name]
    settings, usual = resolve_settings(model, flags={}, config=name), model()
    for key in model.model_fields:
        assert getattr(usual, key) in (None, getattr(settings, key)), key


def test_every_command_with_settings_has_a_preset():
    """One question, one name: a command's preset is called like it; three commands ask nothing."""
    asking = set(COMMAND_SETTINGS) - {"doctor", "explain", "runs"}
    assert preset_names() == sorted(asking | set(MORE_PRESETS))


@pytest.mark.parametrize(("name", "command"), MORE_PRESETS.items())
def test_another_preset_of_a_command_is_read_by_it(name: str, command: str):
    """A second question to one command has a preset of its own, and differs from the default."""
    model = COMMAND_SETTINGS[command]
    assert resolve_settings(model, flags={}, config=name) != model()


def test_a_preset_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A preset goes by its bare name; a path says where it is by itself."""
    monkeypatch.chdir(tmp_path)
    assert find_config("decay").name == "decay.toml"
    (tmp_path / "decay.toml").write_text("steps = 5\n")
    assert load_config(find_config("decay.toml")) == {"steps": 5}
    with pytest.raises(UnknownNameError, match=r"'decy' is neither. Did you mean 'decay'\?"):
        find_config("decy")


@pytest.mark.parametrize("name", ["", "no/such.toml", "a\0b"])
def test_a_file_that_is_not_there_is_a_wrong_request(name: str):
    """The message lists the presets that there are."""
    with pytest.raises(UnknownNameError, match="Presets: benchmark"):
        find_config(name)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"steps = \n", "as TOML"),
        (b"steps = 1\nsteps = 2\n", "as TOML"),
        (b'{"steps": 1}', "as TOML"),
        (b"\xff\xfes\0t\0", "UTF-8"),
        (b"cell = '\xe9'", "UTF-8"),
        (b"input-gate = 0.1\ninput_gate = 0.2\n", "twice"),
    ],
)
def test_a_file_that_is_no_toml_is_one_message(tmp_path: Path, content: bytes, words: str):
    """The file is named, and what is wrong with it."""
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(SettingError, match=words) as caught:
        load_config(path)
    assert "bad.toml" in str(caught.value)


def test_a_folder_is_no_settings_file(tmp_path: Path):
    """Who names a run folder is told of the settings file in it."""
    with pytest.raises(SettingError, match=r"is a folder.*config\.toml"):
        load_config(tmp_path)


def test_a_byte_order_mark_is_no_fault(tmp_path: Path):
    """Editors on Windows begin a UTF-8 file with a mark."""
    path = tmp_path / "bom.toml"
    path.write_bytes(b"\xef\xbb\xbfsteps = 7\n")
    assert load_config(path) == {"steps": 7}


@pytest.mark.parametrize(
    "settings",
    [
        DecaySettings(),
        DecaySettings(cell='a "b"\\c\x7f\t\N{GREEK SMALL LETTER LAMDA}\N{ROCKET}.py:make'),
        DecaySettings(gate=[1e-300, 0.1], input_gate=1e-5, points=3, state="joint"),
    ],
)
def test_the_resolved_file_makes_the_same_settings_again(tmp_path: Path, settings: DecaySettings):
    """`--config runs/x/config.toml` repeats run x, whatever its settings were."""
    path = tmp_path / "config.toml"
    path.write_text(settings_toml("decay", settings), encoding="utf-8")
    assert resolve_settings(DecaySettings, flags={}, config=path) == settings
    tomllib.loads(path.read_text(encoding="utf-8"))


def test_the_digest_is_of_the_question_and_every_setting():
    """Two runs share a digest exactly when they measure the same."""
    digests = {
        settings_digest("decay", DecaySettings()),
        settings_digest("decay", DecaySettings(seed=1)),
        settings_digest("decay", DecaySettings(gate=(0.5, 0.1, 0.9))),
        settings_digest("saturate", SaturateSettings()),
    }
    assert len(digests) == 4
    assert settings_digest("decay", DecaySettings(gate="0.10,0.5,0.9")) in digests


def test_wrong_requests_never_show_as_pydantic_errors():
    """The library raises the house's errors too, not only the command line."""
    with pytest.raises(RequestError):
        DecaySettings(steps="x")
