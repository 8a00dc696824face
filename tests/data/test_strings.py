import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.data.arrays import Strings


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
