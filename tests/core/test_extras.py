import sys
import tomllib
from pathlib import Path

import pytest

from graphsc.core.errors import MissingExtraError
from graphsc.core.registry import EXTRA_OF, require

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"


def test_an_installed_module_is_returned():
    assert require("json.decoder") is sys.modules["json.decoder"]


def test_a_missing_package_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(EXTRA_OF, "no_such_package", "chem")
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_package.part")
    assert str(caught.value) == "this needs no_such_package; pip install 'graphsc[chem]'"


def test_a_package_that_lacks_something_else_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import something_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTRA_OF, "needs_more", "chem")
    with pytest.raises(ModuleNotFoundError, match="something_nobody_has"):
        require("needs_more")


def test_a_missing_part_of_an_installed_package_is_not_called_a_missing_package(tmp_path, monkeypatch):
    (tmp_path / "half_there").mkdir()
    (tmp_path / "half_there" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTRA_OF, "half_there", "chem")
    with pytest.raises(ModuleNotFoundError, match=r"half_there\.part"):
        require("half_there.part")


def test_every_extra_named_is_one_that_pip_can_install():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    assert set(EXTRA_OF.values()) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("package", sorted(EXTRA_OF))
def test_each_extra_brings_its_package(package):
    distribution = {"umap": "umap-learn"}.get(package, package)
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert any(line.startswith(distribution) for line in extras[EXTRA_OF[package]])
