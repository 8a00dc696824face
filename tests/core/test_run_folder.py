"""Rules of a run folder: format headers, resumed settings, recorded environments."""

import pytest

from graphsc.core.config import dump_yaml, read_config
from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.files import read_json, write_json
from graphsc.core.run_folder import RunFolder

CONFIG = {"method": "graphsc", "training": {"seed": 0}, "epochs": 3, "device": "cpu"}


@pytest.fixture
def folder(tmp_path):
    return RunFolder(tmp_path)


def test_configuration_has_a_format_header(folder):
    folder.save_config(CONFIG)
    assert read_config(folder.config) == {"format": "graphsc-run", "format_version": "1", **CONFIG}


def test_changeable_settings_may_differ(folder):
    folder.save_config(CONFIG)
    folder.save_config({**CONFIG, "epochs": 5, "device": "cuda"})
    assert read_config(folder.config)["epochs"] == 5


def test_other_settings_are_named(folder):
    folder.save_config(CONFIG)
    with pytest.raises(ConfigError, match=r"training\.seed: 0 against 1") as caught:
        folder.save_config({**CONFIG, "training": {"seed": 1}})
    assert "format" not in str(caught.value)


@pytest.mark.parametrize("version", ["2", 2])
def test_configuration_of_a_newer_version_is_refused(folder, version):
    text = dump_yaml({"format": "graphsc-run", "format_version": version, **CONFIG})
    folder.config.write_text(text)
    with pytest.raises(DamagedFileError) as caught:
        folder.save_config(CONFIG)
    assert str(caught.value) == (
        f"run file has format version 2, this package reads up to 1 ({folder.config}); upgrade graphsc"
    )
    assert folder.config.read_text() == text


def test_configuration_without_a_format_header_is_refused(folder):
    folder.config.write_text(dump_yaml(CONFIG))
    with pytest.raises(DamagedFileError, match="not a GraphSC run file"):
        folder.save_config(CONFIG)


def test_environments_are_added_only_when_they_change(folder):
    first, second = {"torch": "2.6", "threads": 1}, {"torch": "2.7", "threads": 1}
    for facts in (first, first, second, second, first):
        folder.record_environment(facts)
    assert folder.environments() == [first, second, first]


def test_environments_have_a_format_header(folder):
    folder.record_environment({"threads": 1})
    assert read_json(folder.environment, "environments") == {
        "format": "graphsc-environments",
        "format_version": "1",
        "environments": [{"threads": 1}],
    }


@pytest.mark.parametrize("text", ["", "{", "[]", "7", '{"threads": 1}', '{"environments": 7}', "\udcff"])
def test_damaged_environments_are_refused_and_not_overwritten(folder, text):
    folder.environment.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(DamagedFileError, match="remove the file to resume"):
        folder.record_environment({"threads": 1})
    assert folder.environment.read_bytes() == text.encode(errors="surrogateescape")


def test_environments_of_a_newer_version_are_refused(folder):
    folder.record_environment({"threads": 1})
    write_json(folder.environment, {**read_json(folder.environment, "environments"), "format_version": "2"})
    with pytest.raises(DamagedFileError, match="format version 2"):
        folder.record_environment({"threads": 2})
