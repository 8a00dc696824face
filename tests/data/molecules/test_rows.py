import json

import pytest

from graphsc.core.errors import DataError
from graphsc.data.molecules.rows import Row, chunks_of, hash_of_rows, open_rows, pack, unpack
from graphsc.data.readers import find_reader, open_collection


@pytest.mark.parametrize(
    "rows",
    [
        [Row(3, 4, "C"), Row(4, 6, "O")],
        [Row(0, 1, "C", "a", ("1", "")), Row(1, 2, "", None, ("", ""), "empty")],
        [Row(7, 9, "\ud800", problem="odd")],
    ],
    ids=["plain", "all", "problem"],
)
def test_rows_come_back_from_json_as_they_were(rows):
    assert unpack(json.loads(json.dumps(pack(rows)))) == rows


def test_chunks_hold_every_row_once():
    rows = [Row(number, number, "C") for number in range(7)]
    assert [len(chunk) for chunk in chunks_of(iter(rows), 3)] == [3, 3, 1]
    assert [row for chunk in chunks_of(iter(rows), 3) for row in chunk] == rows


def test_the_hash_of_rows_changes_with_any_molecule():
    rows = [Row(0, 1, "C"), Row(1, 2, "O")]
    assert hash_of_rows(pack(rows)) == hash_of_rows(pack(list(rows)))
    assert hash_of_rows(pack(rows)) != hash_of_rows(pack([rows[0], Row(1, 2, "N")]))
    assert hash_of_rows(pack(rows)) != hash_of_rows(pack(rows[:1]))


@pytest.fixture
def parquet(tmp_path):
    arrow, module = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")

    def write(**columns):
        module.write_table(arrow.table(columns), tmp_path / "m.parquet")
        return tmp_path / "m.parquet"

    return write


def test_molecules_are_read_from_parquet(parquet):
    path = parquet(key=["a", "b", "c"], Smiles=["CCO", None, " CN "], y=[1.5, 2.0, float("nan")])
    source = open_rows(path, label_columns="*")
    assert (source.name, source.tasks) == ("m", ("key", "y"))
    assert list(source.rows()) == [
        Row(0, 1, "CCO", None, ("a", "1.5")),
        Row(1, 2, "", None, ("b", "2.0")),
        Row(2, 3, "CN", None, ("c", "")),
    ]
    pytest.importorskip("rdkit")
    collection = open_collection(str(path), id_column="key")
    assert list(collection.ids) == ["a", "c"]
    assert [row.reason for row in collection.rejected] == ["empty"]


def test_the_columns_of_a_parquet_file_decide_its_reader(parquet):
    assert find_reader(str(parquet(smiles=["C"])), None, {}).reader == "smiles"
    assert find_reader(str(parquet(graph_id=[1], source=[1], target=[2])), None, {}).reader == "edges"
    assert find_reader(str(parquet(smiles=["C"], source=[1], target=[2])), None, {}).reader == "edges"
    assert find_reader(str(parquet(x=[1])), None, {}).reader == "edges"  # which says what it lacks


def test_a_damaged_parquet_file_is_named(tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "m.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(DataError, match=r"cannot read.*m\.parquet"):
        open_rows(tmp_path / "m.parquet")
