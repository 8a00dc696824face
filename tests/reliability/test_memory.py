"""Files that claim to be huge, or are: one sentence, at once, in little memory."""

import json
import os
import time
import zipfile

import numpy as np
import pytest
from hurt import error_of

from graphsc.core.errors import DataError
from graphsc.data.readers import open_collection
from graphsc.training.embedding_files import read_embeddings

HUGE = 50 * 2**30


@pytest.fixture
def command(graphsc):
    """`command(folder, *arguments)`: exit code, output and errors, in less than 30 s of work and 1 GB."""

    def call(folder, *arguments):
        start = time.monotonic()
        done = graphsc(folder, *arguments)
        assert done.seconds < 30
        assert time.monotonic() - start < 120
        assert done.peak < 2**20, "kB"
        return done[:3]

    return call


def make_huge(path):
    """Lengthen a file to 50 GB that take no place on the disk."""
    try:
        os.truncate(path, HUGE)
    except OSError as error:
        pytest.skip(f"no sparse files here: {error}")
    return path


def claim(path, start, size):
    """A safetensors file whose header, that of `start`, claims a tensor of this many bytes."""
    content = start.read_bytes()
    length = int.from_bytes(content[:8], "little")
    metadata = json.loads(content[8 : 8 + length])["__metadata__"]
    spec = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    header = json.dumps({"__metadata__": metadata, "x": spec}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header)
    try:
        os.truncate(path, 8 + len(header) + size)
    except OSError as error:
        pytest.skip(f"no sparse files of this size here: {error}")
    return path


def test_huge_model(command, trained, tmp_path):
    make_huge(trained / "model.safetensors")
    line = error_of(command(tmp_path, "embed", trained, "motifs:9", "--out", "x.npz"))
    assert "model file is damaged" in line


def test_huge_file_of_zeros_as_a_model(command, tmp_path):
    (tmp_path / "m.safetensors").touch()
    make_huge(tmp_path / "m.safetensors")
    line = error_of(command(tmp_path, "embed", "m.safetensors", "motifs:9", "--out", "x.npz"))
    assert "model file is damaged" in line


def test_model_that_claims_more_than_the_memory(command, trained, tmp_path):
    path = claim(tmp_path / "m.safetensors", trained / "model.safetensors", 2**42)
    line = error_of(command(tmp_path, "embed", path, "motifs:9", "--out", "x.npz"))
    assert "do not fit the memory" in line


def test_device_without_end_as_a_model(command, tmp_path):
    line = error_of(command(tmp_path, "embed", "/dev/zero", "motifs:9", "--out", "x.npz"))
    assert "\n" not in line


def test_huge_checkpoint_is_passed_over(command, trained, tmp_path):
    (trained / "model.safetensors").unlink()
    newest = max((trained / "checkpoints").iterdir())
    make_huge(newest)
    code, _, err = command(
        tmp_path, "train", "motifs:24", "--epochs", 3, "--set", "encoder.width=4", "--set", "batch_size=8",
        "--out", trained,
    )  # fmt: skip
    assert code == 0, err
    assert "checkpoint file is damaged" in err


def test_huge_stored_embeddings(command, trained, tmp_path):
    make_huge(max((trained / "embeddings").iterdir()))
    line = error_of(command(tmp_path, "evaluate", trained))
    assert "embeddings file is damaged" in line


@pytest.mark.parametrize("kept", [True, False])
def test_huge_collection(command, tmp_path, kept):
    path = tmp_path / "c.safetensors"
    open_collection("motifs:9").save(path)
    if not kept:
        path.write_bytes(b"")
    make_huge(path)
    line = error_of(command(tmp_path, "data", "check", path))
    assert "collection is damaged" in line


@pytest.mark.parametrize("name", ["x.npz", "x.csv", "x.parquet", "header.csv"])
def test_huge_file_of_embeddings(command, tmp_path, name):
    (tmp_path / name).write_text("id,0\n" if name == "header.csv" else "")
    make_huge(tmp_path / name)
    line = error_of(command(tmp_path, "explore", name, "--data", "motifs:24"))
    assert "not a file of embeddings" in line


def test_small_archive_of_embeddings_that_claims_to_be_huge(command, tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, archive.open("vectors.npy", "w") as member:
        header = {"descr": "<f4", "fortran_order": False, "shape": (2**36, 64)}
        np.lib.format.write_array_header_2_0(member, header)
    line = error_of(command(tmp_path, "explore", "x.npz", "--data", "motifs:24"))
    assert "not a file of embeddings" in line


def test_archive_of_embeddings_that_unpacks_to_more_than_the_memory(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", vectors=np.zeros((1000, 100), np.float32), ids=np.arange(1000))
    read_embeddings(tmp_path / "x.npz")
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 50}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__)
    with pytest.raises(DataError, match="do not fit the memory of 204,800 bytes"):
        read_embeddings(tmp_path / "x.npz")
