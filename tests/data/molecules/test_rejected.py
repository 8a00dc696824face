import numpy as np
import pytest

from graphsc.data.arrays import Strings
from graphsc.data.molecules.rejected import (
    Rejected,
    common_reasons,
    insert_rejected_rows,
    read_rejected,
    write_rejected,
)

RESULTS = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], dtype=np.float32)
REJECTED = [Rejected(0, 2, "x", "no molecule", "a"), Rejected(3, 5, "", "empty", "")]


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (np.array([1, 2, 4]), [0, 1, 2, 3, 4]),
        (Strings.of(["b", "c", "e"]), ["a", "b", "c", "3", "e"]),
    ],
    ids=["numbers", "words"],
)
def test_every_row_of_the_source_is_in_its_place(ids, expected):
    rows, all_ids, reasons = insert_rejected_rows(RESULTS, ids, REJECTED)
    nan = [np.nan, np.nan]
    np.testing.assert_array_equal(rows, [nan, [1, 2], [3, 4], nan, [5, 6]])
    assert list(all_ids) == expected
    assert reasons == ["no molecule", "", "", "empty", ""]
    assert rows.dtype == np.float32


def test_reasons_that_differ_in_digits_count_as_one_and_the_most_frequent_come_first():
    reasons = [
        "empty",
        "valence of atom 3",
        "NUL byte",
        "valence of atom 12",
        "empty",
        "valence of atom 1",
        "x",
    ]
    assert common_reasons(reasons) == [("valence of atom 3", 3), ("empty", 2), ("NUL byte", 1)]
    assert common_reasons([]) == []


@pytest.mark.parametrize("identity", [None, "M-7"])
def test_the_list_has_the_ids_of_a_source_with_ids(identity, tmp_path):
    rows = [Rejected(0, 2, "x", "no molecule", identity), Rejected(3, 5, "", "empty")]
    write_rejected(tmp_path / "r.csv", rows)
    assert read_rejected(tmp_path / "r.csv") == rows
    header = (tmp_path / "r.csv").read_text().splitlines()[0]
    assert header == ("row,line,smiles,reason" if identity is None else "row,line,smiles,reason,id")
