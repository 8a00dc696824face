import sys

import pytest

from graphsc.core.errors import ConfigError
from graphsc.core.registry import Registry, nearest

# A whole package by someone else: a module, and the metadata that pip would have installed with it.
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


def test_register_returns_what_it_files():
    registry = Registry("view")

    @registry.register("mine")
    def mine() -> int:
        return 3

    assert mine() == 3
    assert registry.get("mine") is mine


def test_an_unknown_name_gets_the_nearest_one(views):
    with pytest.raises(ConfigError) as caught:
        views.get("node_dorp")
    assert str(caught.value) == (
        "unknown view 'node_dorp'; did you mean 'node_drop'? valid: edge_drop, node_drop"
    )


def test_a_name_near_to_nothing_gets_the_list(views):
    with pytest.raises(ConfigError, match="unknown view 'xyz'; valid: edge_drop, node_drop"):
        views.get("xyz")


def test_nothing_to_choose_from_is_said():
    assert nearest("a", []) == "valid: none"


def test_a_name_registered_twice_is_refused(views):
    with pytest.raises(ConfigError, match="view 'node_drop' is registered twice"):
        views.register("node_drop")(float)
    assert views.get("node_drop") is str


def test_names_come_sorted(views):
    assert list(views) == ["edge_drop", "node_drop"]


def test_another_package_adds_an_entry_by_entry_point(views, plugin):
    assert list(views) == ["edge_drop", "node_drop", "shuffle"]
    assert views.get("shuffle")(rate=0.5).rate == 0.5


def test_a_plugin_is_not_imported_before_it_is_asked_for(views, plugin):
    assert "shuffle" in views
    assert "other_views" not in sys.modules
    views.get("shuffle")
    assert "other_views" in sys.modules


def test_a_plugin_of_another_kind_is_not_ours(views, plugin):
    assert "elsewhere" not in views


def test_a_misspelt_plugin_is_named_as_nearest(views, plugin):
    with pytest.raises(ConfigError, match="did you mean 'shuffle'"):
        views.get("shufle")


def test_a_plugin_is_loaded_once(views, plugin):
    assert views.get("shuffle") is views.get("shuffle")


def test_a_plugin_does_not_replace_an_entry_of_ours(views, plugin):
    views.register("shuffle")(float)
    assert views.get("shuffle") is float


@pytest.mark.parametrize("content", ["import something_nobody_has\n", "Shufle = 3\n"])
def test_a_plugin_that_cannot_be_loaded_is_named(views, plugin, tmp_path, content):
    (tmp_path / "other_views.py").write_text(content)
    with pytest.raises(ConfigError, match=r"view 'shuffle' of another package .*other_views:Shuffle"):
        views.get("shuffle")


def test_a_plugin_may_use_the_decorator_itself(views, plugin, tmp_path, monkeypatch):
    decorated = "from host import REGISTRY\n" + PLUGIN.replace(
        "@dataclass\n", "@REGISTRY.register('shuffle')\n@dataclass\n"
    )
    (tmp_path / "other_views.py").write_text(decorated)
    (tmp_path / "host.py").touch()
    import host

    monkeypatch.setattr(host, "REGISTRY", views, raising=False)
    assert views.get("shuffle").__name__ == "Shuffle"
    sys.modules.pop("host")
