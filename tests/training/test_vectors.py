"""Vectors come back from files as they were written."""

import numpy as np
import pytest

from graphsc.core.errors import DataError, NotFoundError
from graphsc.data.arrays import Strings
from graphsc.training.embed_io import read_vectors, write_vectors

ROWS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
NAMES = ["a", "=1+1", "'quoted", "日本, x"]


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet"])
def test_what_was_written_is_read(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    write_vectors(tmp_path / f"v{ending}", ROWS, Strings.of(NAMES))
    rows, ids = read_vectors(tmp_path / f"v{ending}")
    np.testing.assert_array_equal(rows, ROWS)
    assert list(ids) == NAMES


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="gone"):
        read_vectors(tmp_path / "gone.npz")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("v.txt", b"id,v0\na,1\n"),
        ("v.npz", b"not a zip"),
        ("v.csv", b""),
        ("v.csv", b"name,v0\na,1\n"),
        ("v.csv", b"id,v0\na,one\n"),
        ("v.csv", b"id,v0\na,nan\n"),
        ("v.csv", b"id,v0,v1\na,1,2\nb,1\n"),
        ("v.csv", b"id,v0\n"),
    ],
)
def test_what_holds_no_vectors_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError):
        read_vectors(tmp_path / name)


def test_nothing_in_an_archive_is_unpickled(tmp_path):
    np.savez(tmp_path / "v.npz", vectors=ROWS, ids=np.array([{"a": 1}] * 4, dtype=object))
    with pytest.raises(DataError, match="pickle"):
        read_vectors(tmp_path / "v.npz")
