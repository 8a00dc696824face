import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.data.arrays import gather_index, pointer, smallest_unsigned


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
