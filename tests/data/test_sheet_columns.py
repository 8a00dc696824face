"""What columns of text mean."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers.csv import Sheet, as_ids, as_labels, as_table, read_sheet


def sheet_of(folder: Path, text: str) -> Sheet:
    path = folder / "table.csv"
    path.write_text(text)
    return read_sheet(path)


def test_whole_numbers_and_words_are_categories_and_decimals_attributes(tmp_path: Path) -> None:
    sheet = sheet_of(tmp_path, "a,n,code,q\nN,3,007,1\nC,1,7,.5\nN,1,,-2e1\n")
    table = as_table(sheet, ["a", "n", "code", "q"])
    assert table.columns == (
        Column("a", 2, ("C", "N")),
        Column("n", 3, ("1", "2", "3")),
        Column("code", 3, ("", "007", "7")),
    )
    assert table.codes.tolist() == [[1, 2, 1], [0, 0, 2], [1, 0, 0]]
    assert table.float_names == ("q",)
    assert table.floats.tolist() == [[1.0], [0.5], [-20.0]]
    assert as_table(sheet, []) == FeatureTable.empty(3)


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
    sheet = sheet_of(tmp_path, "w,v\n" + "".join(f"{cell},0\n" for cell in cells))
    with pytest.raises(DataError, match=rf"{words}.*table\.csv, line 3"):
        as_table(sheet, ["w"])


def test_labels_are_numbers_or_classes_and_empty_cells_missing(tmp_path: Path) -> None:
    sheet = sheet_of(tmp_path, "y,toxic,none\n1,yes,\n,no,\n2.5,,\n")
    labels, classes = as_labels(sheet, ["toxic", "y", "none"])
    np.testing.assert_array_equal(labels, [[1, 1, np.nan], [0, np.nan, np.nan], [np.nan, 2.5, np.nan]])
    assert classes == {"toxic": ("no", "yes")}


def test_ids_are_numbers_where_all_are_whole() -> None:
    numbers = as_ids(["3", "-1", "0"])
    assert isinstance(numbers, np.ndarray)
    assert numbers.tolist() == [3, -1, 0]
    assert as_ids(["3", "01"]) == Strings.of(["3", "01"])
