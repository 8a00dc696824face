import json

import pytest

from graphsc.data.molecules.rows import Row, chunks_of, pack, unpack


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
