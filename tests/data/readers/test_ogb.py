"""OGB's archives: exact arrays of a tiny one, and one clear error for each wrong file."""

import gzip
import zipfile

import numpy as np
import pytest

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError
from graphsc.data.readers import open_collection
from graphsc.data.readers.ogb import read_ogb, read_ogb_split

# Two molecules: a chain of three atoms and a pair. Two tasks; one label is missing.
FILES = {
    "raw/edge.csv.gz": "0,1\n1,2\n0,1\n",
    "raw/num-node-list.csv.gz": "3\n2\n",
    "raw/num-edge-list.csv.gz": "2\n1\n",
    "raw/node-feat.csv.gz": "5,0,1,5,3,0,2,0,0\n6,0,2,5,1,0,2,0,0\n5,0,1,5,3,0,2,0,0\n"
    "5,0,1,5,0,0,1,0,1\n7,0,1,5,0,0,1,0,1\n",
    "raw/edge-feat.csv.gz": "0,0,0\n1,0,0\n2,0,1\n",
    "raw/graph-label.csv.gz": "0.0,1.0\n1.0,\n",
    "split/scaffold/train.csv.gz": "1\n",
    "split/scaffold/valid.csv.gz": "0\n",
    "split/scaffold/test.csv.gz": "",
}


def write_folder(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(gzip.compress(text.encode()))
    return folder


@pytest.fixture
def folder(tmp_path):
    return write_folder(tmp_path / "ogbg_toy", FILES)


@pytest.fixture
def archive(tmp_path):
    with zipfile.ZipFile(tmp_path / "toy.zip", "w") as file:
        for name, text in FILES.items():
            file.writestr(f"toy/{name}", gzip.compress(text.encode()))
        file.writestr("toy/mapping/README.md", "words")
    return tmp_path / "toy.zip"


def test_arrays_of_a_folder(folder):
    graphs = read_ogb(folder)
    assert graphs.name == "ogbg_toy"
    assert graphs.undirected
    assert graphs.node_ptr.tolist() == [0, 3, 5]
    assert graphs.edge_ptr.tolist() == [0, 4, 6]
    pairs = [set(map(tuple, graphs.graph(i).edge_index.T.tolist())) for i in range(2)]
    assert pairs == [{(0, 1), (1, 0), (1, 2), (2, 1)}, {(0, 1), (1, 0)}]
    np.testing.assert_array_equal(graphs.labels, [[0, 1], [1, np.nan]])
    assert [column.name for column in graphs.nodes.columns][:2] == ["atomic_number", "chirality"]
    atoms = graphs.nodes.columns[0]
    assert [atoms.values[code] for code in graphs.nodes.codes[:, 0]] == ["5", "6", "5", "5", "7"]


def test_both_directions_of_a_bond_have_its_features(folder):
    graphs = read_ogb(folder)
    bonds = graphs.edges.columns[0]
    types = {
        (int(s), int(d)): bonds.values[int(code)]
        for s, d, code in zip(*graphs.edge_index[:, :4], graphs.edges.codes[:4, 0], strict=True)
    }
    assert types == {(0, 1): "0", (1, 0): "0", (1, 2): "1", (2, 1): "1"}


def test_edges_that_are_listed_in_both_directions(tmp_path):
    files = {**FILES, "raw/edge.csv.gz": "0,1\n1,0\n0,1\n"}
    graphs = read_ogb(write_folder(tmp_path, files), add_inverse_edges=False)
    assert [set(map(tuple, graph.edge_index.T.tolist())) for graph in graphs.graphs()] == [
        {(0, 1), (1, 0)},
        {(0, 1)},
    ]


def test_zip_equals_folder(folder, archive):
    assert read_ogb(archive, name="x") == read_ogb(folder, name="x")


def test_source_is_recognised(folder, archive):
    assert len(open_collection(folder)) == len(open_collection(archive)) == 2


def test_official_split(folder, archive):
    for source in (folder, archive):
        split = read_ogb_split(source)
        assert {part: rows.tolist() for part, rows in split.items()} == {
            "train": [1],
            "valid": [0],
            "test": [],
        }


def test_by_name_on_the_search_path(archive, tmp_path, monkeypatch):
    archive.rename(tmp_path / "hiv.zip")
    monkeypatch.setenv("GRAPHSC_DATA", str(tmp_path))
    assert open_collection("ogbg-molhiv").name == "ogbg-molhiv"
    assert read_ogb_split("ogbg-molhiv")["train"].tolist() == [1]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("raw/edge.csv.gz", "0,1\n1,2\n", "2 rows for 3 edges"),
        ("raw/edge.csv.gz", "0,1\n1,2\n0,7\n", "node"),
        ("raw/edge.csv.gz", "0,1\n1,-2\n0,1\n", "negative number .*line 2"),
        ("raw/num-node-list.csv.gz", "3\nx\n", "not a whole number .*line 2"),
        ("raw/node-feat.csv.gz", "5\n", "1 rows for 5 nodes .*line 2"),
        ("raw/graph-label.csv.gz", "0.0,1.0\n1.0\n", "1 cells where 2 are expected .*line 2"),
        ("raw/graph-label.csv.gz", "0.0,b\n1.0,\n", "not a table of numbers"),
        ("raw/graph-label.csv.gz", "0.0,1.0\n", "label"),
    ],
)
def test_a_wrong_table_is_named(tmp_path, name, text, message):
    with pytest.raises(DataError, match=message):
        read_ogb(write_folder(tmp_path, {**FILES, name: text}))


def test_a_missing_table_is_named(folder):
    (folder / "raw/num-edge-list.csv.gz").unlink()
    with pytest.raises(DataError, match=r"raw/num-edge-list\.csv\.gz is missing"):
        read_ogb(folder)


def test_a_damaged_table_is_named(folder):
    (folder / "raw/edge.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(DamagedFileError, match=r"raw/edge\.csv\.gz"):
        read_ogb(folder)


def test_a_table_that_unpacks_to_too_much_is_refused(folder, monkeypatch):
    monkeypatch.setattr("graphsc.data.readers.ogb.ALWAYS_UNPACKED", 10)
    monkeypatch.setattr("graphsc.data.readers.ogb.MOST_TIMES", 0)
    with pytest.raises(DataError, match="too large unpacked"):
        read_ogb(folder)


def test_an_archive_of_another_layout_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as file:
        file.writestr("x/readme.txt", "")
    with pytest.raises(DataError, match="no files raw/edge"):
        read_ogb(tmp_path / "x.zip")


def test_no_such_source(tmp_path):
    with pytest.raises(NotFoundError, match="no such file"):
        read_ogb(tmp_path / "none.zip")
