"""The fast way and the patient way read the same numbers."""

import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DataError
from graphsc.data.readers import tu as numbers
from graphsc.data.readers.tu import all_integers, read_integers, read_numbers

rows = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.lists(st.integers(0, 10**17), min_size=width, max_size=width), min_size=1, max_size=30
    )
)


@given(rows=rows, separator=st.sampled_from([",", ", ", " ,", ",\t"]), end=st.sampled_from(["\n", "\r\n"]))
def test_integers_read_back_as_written(rows, separator, end):
    text = end.join(separator.join(map(str, row)) for row in rows).encode()
    assert all_integers(io.BytesIO(text), "x").tolist() == rows


@given(rows=rows, chunk=st.integers(1, 50))
def test_chunks_do_not_change_the_numbers_nor_the_line_numbers(rows, chunk):
    text = "\n".join(",".join(map(str, row)) for row in rows).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(numbers, "CHUNK", chunk)
        parts = list(read_integers(io.BytesIO(text), "x"))
    assert np.concatenate([part for _, part in parts]).tolist() == rows
    assert [line for line, _ in parts] == [
        1 + sum(len(part) for _, part in parts[:k]) for k in range(len(parts))
    ]


def test_fast_way_is_taken_for_plain_text_only():
    assert numbers._plain(b"1, 2\n3,4", 2).tolist() == [[1, 2], [3, 4]]
    for text in (
        b"1,-2",
        b"1,2\n\n3,4",
        b"1,2,3\n4",
        b"1 2,\n3,4",
        b",1 2",
        b"1,2\n3",
        b"1.5,2",
        b"1,1" + b"0" * 30,
    ):
        assert numbers._plain(text, 2) is None


@pytest.mark.parametrize(
    ("text", "line"), [(b"1,2\n3,x", 2), (b"1,2\n3", 2), (b"1,2\n\n3,4", 2), (b"5,6\n7,8\n9,0x1", 3)]
)
def test_wrong_line_is_named_at_any_chunk_size(text, line):
    for chunk in (1, 3, 1000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(numbers, "CHUNK", chunk)
            with pytest.raises(DataError, match=f"f.txt, line {line}"):
                all_integers(io.BytesIO(text), "f.txt", 2)


@given(
    st.lists(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2), min_size=1)
)
def test_floats_read_back_as_written(table):
    text = "\n".join(",".join(map(repr, row)) for row in table).encode()
    assert read_numbers(io.BytesIO(text), "x").tolist() == table


def test_negative_integers_take_the_patient_way():
    assert all_integers(io.BytesIO(b"-1\n1\n-1\n"), "x").tolist() == [[-1], [1], [-1]]


@given(st.binary(max_size=200))
def test_any_bytes_give_numbers_or_one_error(content):
    for read in (all_integers, read_numbers):
        try:
            table = read(io.BytesIO(content), "x")
        except DataError:
            continue
        assert table.ndim == 2


def test_endless_line_is_refused(monkeypatch):
    monkeypatch.setattr(numbers, "LONGEST_LINE", 100)
    monkeypatch.setattr(numbers, "CHUNK", 50)
    with pytest.raises(DataError, match="longer than a megabyte"):
        all_integers(io.BytesIO(b"1" * 1000), "x")
