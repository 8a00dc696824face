"""Tables of text: cells, lines, columns by role, and the meaning of columns."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.data import arrays
from graphsc.data.arrays import Strings
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers.csv import (
    TextTable,
    feature_table,
    label_matrix,
    parse_ids,
    read_header,
    read_table,
    table_stem,
    table_suffix,
)

PLAIN = "smiles,y\nCC,1\nCO,\n"


def put(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def texts(table: TextTable) -> dict[str, list[str]]:
    rows = range(len(table.lines))
    return {name: [cells.text(row) for row in rows] for name, cells in table.columns.items()}


def test_cells_are_codes_of_distinct_texts_in_order_of_appearance(tmp_path: Path) -> None:
    cells = read_table(put(tmp_path, "a\n x \ny\nx\n")).columns["a"]
    assert cells.values == ["x", "y"]
    assert cells.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["t.csv", "t.CSV", "t.tsv", "t.csv.gz", "t.tsv.xz", "t.parquet"])
def test_every_file_type_holds_the_same_cells(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = (PLAIN.replace(",", "\t") if ".tsv" in name else PLAIN).encode()
    if name.endswith(".parquet"):
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow as arrow

        parquet.write_table(arrow.table({"smiles": ["CC", "CO"], "y": [1, None]}), path)
    else:
        compress = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
        path.write_bytes(compress(text))
    assert texts(read_table(path)) == {"smiles": ["CC", "CO"], "y": ["1", ""]}
    assert table_stem(path) == "t"


def test_a_row_is_on_the_line_an_editor_shows(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, 'a,b\n1,2\n\n"x\ny",4\n5,6\n'))
    assert list(table.lines) == [2, 5, 6]  # a cell with a line end ends on line 5
    assert table.where(2) == f"{table.path}, line 6"
    assert table.where_value("b", "4") == f"{table.path}, line 5"


def test_a_column_is_found_by_name_or_by_its_usual_names(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, "Smiles,y,id,name\nCC,1,2,3\n"))
    assert table.find_column("molecule", None, ("smiles", "mol")) == "Smiles"
    assert table.find_column("molecule", "y", ("smiles",)) == "y"
    with pytest.raises(DataError, match=r"no column 'z'.*columns: Smiles, y, id, name"):
        table.find_column("molecule", "z")
    with pytest.raises(DataError, match=r"id and name match.*set key_column"):
        table.find_column("key", None, ("id", "name"))
    with pytest.raises(DataError, match=r"none has a usual name.*set graph_column"):
        table.find_column("graph", None, ("graph",))
    assert table.columns_except(["y", "id"]) == ["Smiles", "name"]


def test_an_empty_cell_of_a_required_column_is_named_with_its_line(tmp_path: Path) -> None:
    table = read_table(put(tmp_path, PLAIN))
    assert table.required("smiles").values == ["CC", "CO"]
    with pytest.raises(DataError, match=r"'y' is empty .*table\.csv, line 3"):
        table.required("y")


@pytest.mark.parametrize("rows", [10, 20_000])
def test_a_compressed_table_that_unpacks_to_many_times_its_size_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    monkeypatch.setattr(arrays, "ALWAYS_UNPACKED", 1_000)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress(b"a,b\n" + b"1,2\n" * rows))
    if rows == 10:
        assert len(read_table(tmp_path / "t.csv.gz").lines) == 10
        return
    with pytest.raises(DataError, match=r"more than 50 times its size \(.*line [0-9]+\); unpack it"):
        read_table(tmp_path / "t.csv.gz")


def test_reading_a_header_never_raises(tmp_path: Path) -> None:
    assert read_header(put(tmp_path, " Smiles , y\nnot,a,table")) == ["Smiles", "y"]
    assert read_header(put(tmp_path, "a\tb\n", "t.tsv")) == ["a", "b"]
    assert read_header(put(tmp_path, "")) == []
    assert read_header(put(tmp_path, PLAIN, "broken.csv.gz")) == []
    assert read_header(tmp_path / "none.csv") == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", ".csv"), ("a.b.TSV.gz", ".tsv"), ("a.parquet", ".parquet"), ("a.parquet.gz", ""), ("csv", "")],
)
def test_the_suffix_says_what_a_file_is(name: str, kind: str) -> None:
    assert table_suffix(Path(name)) == kind


# Meaning of columns


def table_of(folder: Path, text: str) -> TextTable:
    path = folder / "table.csv"
    path.write_text(text)
    return read_table(path)


def test_whole_numbers_and_words_are_categories_and_decimals_attributes(tmp_path: Path) -> None:
    table = table_of(tmp_path, "a,n,code,q\nN,3,007,1\nC,1,7,.5\nN,1,,-2e1\n")
    features = feature_table(table, ["a", "n", "code", "q"])
    assert features.columns == (
        Column("a", 2, ("C", "N")),
        Column("n", 3, ("1", "2", "3")),
        Column("code", 3, ("", "007", "7")),
    )
    assert features.codes.tolist() == [[1, 2, 1], [0, 0, 2], [1, 0, 0]]
    assert features.float_names == ("q",)
    assert features.floats.tolist() == [[1.0], [0.5], [-20.0]]
    assert feature_table(table, []) == FeatureTable.empty(3)


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        (["0.5", "x"], "'x' is not a number, as other cells of 'w' are"),
        (["0.5", ""], "'w' is empty"),
        (["5", ""], "'w' is empty"),
        (["5", "1e99"], "'1e99' in 'w' is too large"),
    ],
)
def test_a_cell_that_is_no_number_is_named_with_its_line(
    tmp_path: Path, cells: list[str], words: str
) -> None:
    table = table_of(tmp_path, "w,v\n" + "".join(f"{cell},0\n" for cell in cells))
    with pytest.raises(DataError, match=rf"{words}.*table\.csv, line 3"):
        feature_table(table, ["w"])


def test_labels_are_numbers_or_classes_and_empty_cells_missing(tmp_path: Path) -> None:
    table = table_of(tmp_path, "y,toxic,none\n1,yes,\n,no,\n2.5,,\n")
    labels, classes = label_matrix(table, ["toxic", "y", "none"])
    np.testing.assert_array_equal(labels, [[1, 1, np.nan], [0, np.nan, np.nan], [np.nan, 2.5, np.nan]])
    assert classes == {"toxic": ("no", "yes")}


def test_labels_that_floats_would_merge_are_classes(tmp_path: Path) -> None:
    table = table_of(tmp_path, f"y,z\n{2**53 + 1},{2**53}\n{2**53},1\nnan,NA\n")
    labels, classes = label_matrix(table, ["y", "z"])
    np.testing.assert_array_equal(labels, [[1, 2.0**53], [0, 1], [np.nan, np.nan]])
    assert classes == {"y": ("9007199254740992", "9007199254740993")}


@pytest.mark.parametrize("cell", ["inf", "-Infinity", "1e999"])
@pytest.mark.parametrize("other", ["1", "word"])
def test_an_infinite_label_is_named_with_its_line(tmp_path: Path, cell: str, other: str) -> None:
    table = table_of(tmp_path, f"y,z\n{other},0\n{cell},0\n")
    with pytest.raises(DataError, match=rf"label '{cell}' is infinite.*line 3"):
        label_matrix(table, ["y"])


def test_ids_are_numbers_where_all_are_whole() -> None:
    numbers = parse_ids(["3", "-1", "0"])
    assert isinstance(numbers, np.ndarray)
    assert numbers.tolist() == [3, -1, 0]
    assert parse_ids(["3", "01"]) == Strings.of(["3", "01"])
