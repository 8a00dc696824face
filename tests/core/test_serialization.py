"""Format versions, and numbers packed as text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError
from graphsc.core.serialization import VERSIONS, check_stamp, pack, pack_floats, stamp, unpack, unpack_floats


@pytest.mark.parametrize("kind", sorted(VERSIONS))
def test_every_stamp_is_accepted(kind):
    check_stamp(kind, stamp(kind), "a file")


def test_a_stamp_is_two_strings():
    assert stamp("collection") == {"format": "graphsc-collection", "format_version": "1"}


def test_a_newer_version_is_refused():
    with pytest.raises(DamagedFileError) as caught:
        check_stamp("collection", stamp("collection") | {"format_version": "2"}, "a.graphs")
    assert str(caught.value) == (
        "collection file has format version 2, this package reads up to 1 (a.graphs); upgrade graphsc"
    )


@pytest.mark.parametrize(
    "header", [{}, {"format": "pt"}, {"format": "graphsc-encoder", "format_version": "1"}]
)
def test_a_file_of_another_kind_is_refused(header):
    with pytest.raises(DamagedFileError, match="not a GraphSC collection file"):
        check_stamp("collection", header, "a file")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", "one", "9" * 5000])
def test_an_invalid_version_is_refused(version):
    header = {"format": "graphsc-collection", "format_version": version}
    with pytest.raises(DamagedFileError, match="no format version"):
        check_stamp("collection", header, "a file")


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@given(values=st.lists(st.floats(-1000, 1000), max_size=30))
def test_floats_round_trip(kind, values):
    array = np.array(values, dtype=kind)
    unpacked = unpack_floats(pack_floats(array))
    assert unpacked.dtype == kind
    np.testing.assert_array_equal(unpacked, array)


def test_integers_take_one_byte_or_two():
    assert pack(np.array([0, 255])).startswith("1:")
    assert pack(np.array([0, 256])).startswith("2:")
    np.testing.assert_array_equal(unpack(pack(np.array([0, 65535]))), [0, 65535])
