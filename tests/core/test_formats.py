import pytest

from graphsc.core.errors import DamagedFileError
from graphsc.core.serialization import VERSIONS, check_stamp, stamp


@pytest.mark.parametrize("kind", sorted(VERSIONS))
def test_what_we_stamp_we_accept(kind):
    check_stamp(kind, stamp(kind), "a file")


def test_a_stamp_is_two_strings():
    assert stamp("collection") == {"format": "graphsc-collection", "format_version": "1"}


def test_a_newer_version_is_refused_in_words():
    with pytest.raises(DamagedFileError) as caught:
        check_stamp("collection", stamp("collection") | {"format_version": "2"}, "a.graphs")
    assert str(caught.value) == (
        "collection file has format version 2, this package reads up to 1 (a.graphs); upgrade graphsc"
    )


@pytest.mark.parametrize(
    "found", [{}, {"format": "pt"}, {"format": "graphsc-encoder", "format_version": "1"}]
)
def test_a_file_of_another_kind_is_refused(found):
    with pytest.raises(DamagedFileError, match="not a GraphSC collection file"):
        check_stamp("collection", found, "a file")


@pytest.mark.parametrize("version", ["", "0", "-1", "1.0", "one", "9" * 5000])
def test_a_version_that_is_none_is_refused(version):
    header = {"format": "graphsc-collection", "format_version": version}
    with pytest.raises(DamagedFileError, match="no format version"):
        check_stamp("collection", header, "a file")
