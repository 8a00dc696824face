"""Where named sets are looked for, in which order."""

import os

import pytest

from graphsc.core.errors import NotFoundError
from graphsc.data.names import NAMED, cache_folder, find, locate, search_folders

REDDIT = NAMED["reddit-multi-5k"]


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Three empty roots: two in the variable, and the cache; the working folder has no data."""
    one, two, cache = (tmp_path / name for name in ("one", "two", "cache"))
    for folder in (one, two, cache):
        folder.mkdir()
    monkeypatch.setenv("GRAPHSC_DATA", f"{one}{os.pathsep}{two}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.chdir(tmp_path)
    return one, two, tmp_path / "data", cache_folder()


def test_eight_sets_have_names():
    assert sorted(NAMED) == [
        "collab", "dd", "imdb-binary", "mutag", "nci1", "proteins", "reddit-binary", "reddit-multi-5k",
    ]  # fmt: skip


def test_first_folder_wins_and_one_level_down_counts(places):
    one, two, data, cache = places
    for folder in (cache, data, two, one / "below"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "REDDIT-MULTI-5K.zip").write_bytes(b"")
        found = find(REDDIT)
        assert found is not None
        assert found.resolve() == (folder / "REDDIT-MULTI-5K.zip").resolve()


def test_folder_counts_only_with_its_adjacency(places):
    folder = places[0] / "REDDIT-MULTI-5K"
    folder.mkdir()
    assert find(REDDIT) is None
    (folder / "REDDIT-MULTI-5K_A.txt").write_text("")
    assert find(REDDIT) == folder


def test_two_levels_down_does_not_count(places):
    deep = places[0] / "a" / "b"
    deep.mkdir(parents=True)
    (deep / "REDDIT-MULTI-5K.zip").write_bytes(b"")
    assert find(REDDIT) is None


def test_error_says_where_it_looked_and_what_to_do(places):
    with pytest.raises(NotFoundError) as error:
        locate(REDDIT)
    sentence = str(error.value)
    for part in (
        str(places[0]),
        str(places[1]),
        "./data",
        str(places[3]),
        "data get",
        "REDDIT-MULTI-5K.zip",
    ):
        assert part in sentence


def test_mutag_comes_from_grakel_where_nothing_else_has_it(places):
    pytest.importorskip("grakel")
    found = find(NAMED["mutag"])
    assert found is not None
    assert "grakel" in found.parts


def test_unreadable_root_is_passed_over(places, monkeypatch):
    monkeypatch.setenv("GRAPHSC_DATA", "/nonexistent/folder")
    assert search_folders()
    assert find(REDDIT) is None
