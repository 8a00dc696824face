"""Ragged arrays and arrays of strings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.data.arrays import Strings, chunks_of_edges, gather_index, pointer, smallest_unsigned


def test_pointer_of_hand_made_lengths():
    assert pointer(np.array([2, 0, 3])).tolist() == [0, 2, 2, 5]


def test_pointer_of_nothing_is_one_zero():
    assert pointer(np.zeros(0, np.int64)).tolist() == [0]


def test_pointer_of_narrow_lengths_does_not_overflow():
    assert pointer(np.full(3, 200, np.uint8)).tolist() == [0, 200, 400, 600]


@given(st.data())
def test_gathered_positions_equal_a_loop_over_rows(data):
    lengths = data.draw(st.lists(st.integers(0, 5), min_size=1, max_size=10))
    rows = data.draw(st.lists(st.integers(0, len(lengths) - 1), max_size=12))
    starts = [sum(lengths[:row]) for row in range(len(lengths))]
    expected = [starts[row] + i for row in rows for i in range(lengths[row])]

    flat, ptr = gather_index(pointer(np.array(lengths)), np.array(rows, dtype=np.int64))

    assert flat.tolist() == expected
    assert ptr.tolist() == [sum(lengths[row] for row in rows[:k]) for k in range(len(rows) + 1)]


@pytest.mark.parametrize(
    ("largest", "dtype"),
    [
        (-1, np.uint8),
        (0, np.uint8),
        (255, np.uint8),
        (256, np.uint16),
        (65_535, np.uint16),
        (65_536, np.uint32),
        (2**32 - 1, np.uint32),
        (2**32, np.uint64),
    ],
)
def test_smallest_unsigned_is_the_narrowest_that_holds_it(largest, dtype):
    assert smallest_unsigned(largest) == dtype


@given(st.lists(st.integers(0, 9), max_size=12), st.integers(1, 20))
def test_edge_chunks_cover_every_graph_once_and_are_small(lengths, most):
    ptr = np.cumsum([0, *lengths])
    chunks = list(chunks_of_edges(ptr, most))
    assert [i for chunk in chunks for i in range(chunk.start, chunk.stop)] == list(range(len(lengths)))
    for chunk in chunks:
        assert chunk.stop - chunk.start == 1 or sum(lengths[chunk.start : chunk.stop]) <= most


# Strings


@given(st.lists(st.text(st.characters(exclude_categories=[]))))
def test_every_string_comes_back(strings):
    assert list(Strings.of(strings)) == strings


@given(st.data())
def test_taking_equals_a_loop(data):
    strings = data.draw(st.lists(st.text(), min_size=1))
    index = data.draw(st.lists(st.integers(0, len(strings) - 1)))
    taken = Strings.of(strings).take(np.array(index, dtype=np.int64))
    assert list(taken) == [strings[i] for i in index]


def test_bytes_are_utf8_laid_end_to_end():
    strings = Strings.of(["ab", "", "é"])
    assert strings.bytes.tobytes() == b"ab\xc3\xa9"
    assert strings.ptr.tolist() == [0, 2, 2, 4]


def test_negative_positions_count_from_the_end():
    assert Strings.of(["a", "b"])[-2] == "a"


@pytest.mark.parametrize("index", [2, -3])
def test_a_position_out_of_range_is_refused(index):
    with pytest.raises(IndexError, match=f"string {index} of 2"):
        Strings.of(["a", "b"])[index]


def test_no_strings_have_length_zero():
    assert len(Strings.of([])) == 0


def test_equality_is_of_content():
    assert Strings.of(["ab", "c"]) == Strings.of(iter(["ab", "c"]))
    assert Strings.of(["ab", "c"]) != Strings.of(["a", "bc"])
    assert Strings.of(["ab"]) != ["ab"]
