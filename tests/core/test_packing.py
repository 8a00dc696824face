"""Numbers as text and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.serialization import pack, pack_floats, unpack, unpack_floats


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@given(values=st.lists(st.floats(-1000, 1000), max_size=30))
def test_floats_come_back_as_they_were(kind, values):
    array = np.array(values, dtype=kind)
    found = unpack_floats(pack_floats(array))
    assert found.dtype == kind
    np.testing.assert_array_equal(found, array)


def test_whole_numbers_take_one_byte_or_two():
    assert pack(np.array([0, 255])).startswith("1:")
    assert pack(np.array([0, 256])).startswith("2:")
    np.testing.assert_array_equal(unpack(pack(np.array([0, 65535]))), [0, 65535])
