"""The search path of named data sets."""

import os
from pathlib import Path

import pytest

import graphsc
from graphsc.core.errors import NotFoundError
from graphsc.data.datasets.catalog import (
    NAMED,
    TU_ADDRESS,
    TU_SETS,
    cache_folder,
    find,
    find_converted,
    locate,
    search_folders,
)
from graphsc.data.readers import open_collection

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


def test_named_data_sets():
    assert sorted(name for name, entry in NAMED.items() if entry.reader == "tu" and entry.content_hash) == [
        "collab", "dd", "imdb-binary", "mutag", "nci1", "proteins", "reddit-binary", "reddit-multi-5k",
    ]  # fmt: skip
    assert sorted(name for name, entry in NAMED.items() if entry.reader == "ogb") == [
        "ogbg-molhiv", "ogbg-molpcba",
    ]  # fmt: skip
    assert sorted(name for name, entry in NAMED.items() if entry.reader == "smiles") == [
        "bace", "bbbp", "clintox", "hiv", "moses", "muv", "sider", "tox21", "toxcast", "zinc250k",
    ]  # fmt: skip


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_molecules_are_found_plain_or_compressed(places, ending):
    path = places[0] / f"BBBP.csv{ending}"
    path.write_bytes(b"")
    assert find(NAMED["bbbp"]) == path


def test_converted_collection_goes_before_the_table_it_was_made_of(places):
    pytest.importorskip("rdkit")
    folder = places[1]
    (folder / "BBBP.csv").write_text("smiles,p_np\nC,1\nO,0\n")
    assert find_converted(NAMED["bbbp"]) is None
    open_collection(["C"]).save(folder / "bbbp.safetensors")
    assert len(open_collection("bbbp")) == 1
    assert len(open_collection("bbbp", max_atoms=9)) == 2  # an option that a file cannot have


def test_named_molecules_come_with_their_labels_and_title(places):
    pytest.importorskip("rdkit")
    (places[0] / "bace.csv").write_text("mol,CID,Class,Model\nCCO,a,1,Train\nO,b,0,Test\n")
    collection = open_collection("BACE")
    assert (collection.name, collection.tasks) == ("BACE", ("Class",))
    assert collection.labels[:, 0].tolist() == [1, 0]


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


def test_mutag_comes_with_the_package_and_the_search_path_goes_first(places):
    shipped = Path(graphsc.__file__).parent / "data" / "datasets" / "mutag.safetensors"
    assert find(NAMED["mutag"]) == find_converted(NAMED["mutag"]) == shipped
    (places[0] / "MUTAG.zip").write_bytes(b"")
    assert find(NAMED["mutag"]) == places[0] / "MUTAG.zip"
    assert find_converted(NAMED["mutag"]) is None


def test_mutag_has_a_citation():
    assert "Debnath" in str(NAMED["mutag"].citation)


def test_unreadable_folder_is_skipped(places, monkeypatch):
    monkeypatch.setenv("GRAPHSC_DATA", "/nonexistent/folder")
    assert search_folders()
    assert find(REDDIT) is None


def test_every_tu_set_has_its_own_name_and_a_public_address():
    names = [entry.name for entry in TU_SETS]
    assert len(names) == len(set(names)) == 128
    assert all(entry.address == f"{TU_ADDRESS}/{entry.title}.zip" for entry in TU_SETS)


def test_figures_of_the_catalogue_are_those_of_mutag():
    statistics = open_collection("mutag").describe()
    entry = NAMED["mutag"]
    assert (statistics.graphs, len(statistics.classes)) == (entry.graphs, entry.classes)
    assert (round(statistics.nodes_mean, 2), round(statistics.edges_mean, 2)) == (entry.nodes, entry.edges)


def test_a_tu_set_without_a_hash_is_found_on_the_search_path(places):
    (places[0] / "PTC_MR.zip").write_bytes(b"")
    assert find(NAMED["ptc_mr"]) == places[0] / "PTC_MR.zip"


def test_a_folder_of_ogb_is_found_by_the_names_that_it_has(places):
    for name in ("ogbg_molhiv", "hiv"):
        raw = places[0] / name / "raw"
        raw.mkdir(parents=True)
        (raw / "edge.csv.gz").write_bytes(b"")
        assert find(NAMED["ogbg-molhiv"]) == places[0] / name
        (raw / "edge.csv.gz").unlink()
