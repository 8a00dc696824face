"""Sheets: cells as texts, rows with their lines, columns by role."""

from __future__ import annotations

import gzip
import lzma
from pathlib import Path

import pytest

from graphsc.core.errors import DataError
from graphsc.data.readers.csv import Sheet, kind_of, peek_header, read_sheet, stem_of

PLAIN = "smiles,y\nCC,1\nCO,\n"


def put(folder: Path, text: str, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode())
    return path


def texts(sheet: Sheet) -> dict[str, list[str]]:
    rows = range(len(sheet.lines))
    return {name: [cells.text(row) for row in rows] for name, cells in sheet.columns.items()}


def test_cells_are_codes_of_distinct_texts_in_order_of_appearance(tmp_path: Path) -> None:
    cells = read_sheet(put(tmp_path, "a\n x \ny\nx\n")).columns["a"]
    assert cells.values == ["x", "y"]
    assert cells.codes.tolist() == [0, 1, 0]


@pytest.mark.parametrize("name", ["t.csv", "t.CSV", "t.tsv", "t.csv.gz", "t.tsv.xz", "t.parquet"])
def test_every_kind_of_file_holds_the_same_cells(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    text = (PLAIN.replace(",", "\t") if ".tsv" in name else PLAIN).encode()
    if name.endswith(".parquet"):
        parquet = pytest.importorskip("pyarrow.parquet")
        import pyarrow as arrow

        parquet.write_table(arrow.table({"smiles": ["CC", "CO"], "y": [1, None]}), path)
    else:
        compress = {".gz": gzip.compress, ".xz": lzma.compress}.get(path.suffix, bytes)
        path.write_bytes(compress(text))
    assert texts(read_sheet(path)) == {"smiles": ["CC", "CO"], "y": ["1", ""]}
    assert stem_of(path) == "t"


def test_a_row_is_on_the_line_an_editor_shows(tmp_path: Path) -> None:
    sheet = read_sheet(put(tmp_path, 'a,b\n1,2\n\n"x\ny",4\n5,6\n'))
    assert list(sheet.lines) == [2, 5, 6]  # a cell with a line end ends on line 5
    assert sheet.where(2) == f"{sheet.path}, line 6"
    assert sheet.where_value("b", "4") == f"{sheet.path}, line 5"


def test_a_column_is_picked_by_name_or_by_the_usual_names(tmp_path: Path) -> None:
    sheet = read_sheet(put(tmp_path, "Smiles,y,id,name\nCC,1,2,3\n"))
    assert sheet.pick("molecule", None, ("smiles", "mol")) == "Smiles"
    assert sheet.pick("molecule", "y", ("smiles",)) == "y"
    with pytest.raises(DataError, match=r"no column 'z'.*columns: Smiles, y, id, name"):
        sheet.pick("molecule", "z")
    with pytest.raises(DataError, match=r"id and name could each be it.*set key_column"):
        sheet.pick("key", None, ("id", "name"))
    with pytest.raises(DataError, match=r"none is it.*set graph_column"):
        sheet.pick("graph", None, ("graph",))
    assert sheet.rest(["y", "id"]) == ["Smiles", "name"]


def test_an_empty_cell_of_a_full_column_is_named_with_its_line(tmp_path: Path) -> None:
    sheet = read_sheet(put(tmp_path, PLAIN))
    assert sheet.full("smiles").values == ["CC", "CO"]
    with pytest.raises(DataError, match=r"'y' is empty .*table\.csv, line 3"):
        sheet.full("y")


def test_a_header_is_peeked_at_without_an_error(tmp_path: Path) -> None:
    assert peek_header(put(tmp_path, " Smiles , y\nnot,a,table")) == ["Smiles", "y"]
    assert peek_header(put(tmp_path, "a\tb\n", "t.tsv")) == ["a", "b"]
    assert peek_header(put(tmp_path, "")) == []
    assert peek_header(put(tmp_path, PLAIN, "broken.csv.gz")) == []
    assert peek_header(tmp_path / "none.csv") == []


@pytest.mark.parametrize(
    ("name", "kind"),
    [("a.csv", ".csv"), ("a.b.TSV.gz", ".tsv"), ("a.parquet", ".parquet"), ("a.parquet.gz", ""), ("csv", "")],
)
def test_the_suffix_says_what_a_file_is(name: str, kind: str) -> None:
    assert kind_of(Path(name)) == kind
