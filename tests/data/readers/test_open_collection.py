"""`open_collection` finds the reader of any source; a wrong source is one sentence."""

from pathlib import Path

import numpy as np
import pytest

import graphsc
from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.readers import open_collection
from graphsc.data.readers.tu import read_tu


def test_a_collection_is_itself(three):
    assert open_collection(three) is three
    assert open_collection(three, features="constant").features.name == "constant"


def test_a_saved_collection_opens_by_its_path(three, tmp_path):
    three.save(tmp_path / "c.safetensors")
    assert open_collection(tmp_path / "c.safetensors") == three
    assert open_collection(str(tmp_path / "c.safetensors"), features="degree:3").features.width == 4


def test_mutag_by_name_in_any_case():
    collection = open_collection("MuTaG")
    assert len(collection) == 188
    assert collection.name == "MUTAG"


@pytest.fixture
def nothing_but_the_package(tmp_path, monkeypatch):
    monkeypatch.delenv("GRAPHSC_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def test_mutag_of_the_package_is_that_of_another_package(nothing_but_the_package):
    """GraKeL has the raw TU files among its tests."""
    grakel = pytest.importorskip("grakel")
    folder = Path(grakel.__file__).parent / "tests" / "data" / "MUTAG"
    expected = read_tu(folder)
    collection = open_collection("mutag")
    assert collection == expected
    assert collection.content_hash == NAMED["mutag"].content_hash == expected.content_hash
    for name in ("node_ptr", "edge_ptr", "edge_index", "labels"):
        one, other = getattr(collection, name), getattr(expected, name)
        assert one.dtype == other.dtype
        assert (one == other).all()


@pytest.mark.realdata
def test_mutag_of_the_package_is_that_of_the_archive(real_data):
    shipped = Path(graphsc.__file__).parent / "data" / "datasets" / "mutag.safetensors"
    assert open_collection(shipped) == read_tu(real_data("MUTAG"))


def test_mutag_of_the_package_takes_features_and_no_option_of_a_reader(nothing_but_the_package):
    assert open_collection("mutag", features="degree:3").features.width == 4
    with pytest.raises(ConfigError, match="takes no option 'allow_empty'"):
        open_collection("mutag", allow_empty=True)


def test_generator_by_name():
    assert len(open_collection("motifs:30")) == 30


def test_objects_in_memory_find_their_reader():
    networkx = pytest.importorskip("networkx")
    assert len(open_collection([networkx.path_graph(3), networkx.path_graph(4)])) == 2
    import torch
    from torch_geometric.data import Data

    assert len(open_collection([Data(edge_index=torch.tensor([[0], [1]]), num_nodes=2)])) == 1


def test_edge_list_by_its_path(tmp_path):
    (tmp_path / "e.csv").write_text("graph_id,source,target\n0,0,1\n1,0,1\n")
    assert len(open_collection(tmp_path / "e.csv")) == 2


@pytest.mark.parametrize(
    ("source", "options", "error", "message"),
    [
        ("mutga", {}, NotFoundError, "did you mean 'mutag'"),
        ("mutag", {"featurs": "degree"}, ConfigError, "did you mean 'features'"),
        ("mutag", {"allow_empty": "maybe"}, ConfigError, "allow_empty"),
        (object(), {}, NotFoundError, "no reader accepts a object"),
        (np.zeros(3), {}, NotFoundError, "no reader accepts a ndarray"),
        ("mutag", {"reader": "teu"}, ConfigError, "unknown reader 'teu'"),
    ],
    ids=["name", "option", "type", "object", "array", "reader"],
)
def test_wrong_sources_and_options_are_one_sentence(source, options, error, message):
    with pytest.raises(error, match=message):
        open_collection(source, **options)


def test_options_of_a_saved_collection_are_refused(three, tmp_path):
    three.save(tmp_path / "c.safetensors")
    with pytest.raises(ConfigError, match="no option 'nodes'"):
        open_collection(tmp_path / "c.safetensors", nodes="x")


def test_file_that_no_reader_accepts(tmp_path):
    (tmp_path / "x.docx").write_bytes(b"PK")
    with pytest.raises(NotFoundError, match="no reader accepts this"):
        open_collection(tmp_path / "x.docx")


def test_a_name_that_no_file_system_takes_is_not_found():
    with pytest.raises(NotFoundError, match=r"no data set, file or folder 'a{300}\.\.\.'"):
        open_collection("a" * 5000)
