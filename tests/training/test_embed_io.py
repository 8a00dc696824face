"""Embeddings in files: the same bytes after any interruption, and read as they were written."""

import os
import signal

import numpy as np
import pytest

from graphsc.core import parts
from graphsc.core.chunks import open_chunks
from graphsc.core.errors import CannotWriteError, DataError, NotFoundError
from graphsc.core.files import StoppedError
from graphsc.data.arrays import Strings
from graphsc.data.readers import open_collection
from graphsc.training import embed_io
from graphsc.training.embed_io import ENDINGS, embed_to_file, read_embeddings, write_embeddings
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:50")


@pytest.fixture(scope="module")
def model(graphs):
    return train(graphs, settings={"encoder.width": 4}, training=TrainSettings(epochs=1)).model


class StopAfter:
    """A progress callback that sends a stop signal to this process at its n-th call."""

    def __init__(self, calls, number=signal.SIGTERM):
        self.calls, self.number, self.seen = calls, number, []

    def __call__(self, done, total):
        self.seen.append((done, total))
        if len(self.seen) == self.calls:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("ending", ENDINGS)
def test_chunks_give_the_embeddings_of_one_call(graphs, model, tmp_path, ending):
    whole, chunked = tmp_path / f"whole{ending}", tmp_path / f"parts{ending}"
    assert embed_to_file(model, graphs, whole) == 50
    assert embed_to_file(model, graphs, chunked, chunk=16) == 50
    rows, ids = read_embeddings(chunked)
    np.testing.assert_allclose(rows, model.embed(graphs), rtol=1e-5, atol=1e-6)
    assert [int(graph_id) for graph_id in ids] == list(range(50))
    assert sorted(path.name for path in tmp_path.iterdir()) == [chunked.name, whole.name]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("calls", [1, 2, 4, 5])
def test_a_stop_at_any_chunk_loses_no_row_and_repeats_none(graphs, model, tmp_path, calls, number):
    embed_to_file(model, graphs, tmp_path / "undisturbed.npz", chunk=16)
    target = tmp_path / "v.npz"
    with pytest.raises(StoppedError) as stopped:
        embed_to_file(model, graphs, target, chunk=16, progress=StopAfter(calls, number))
    assert stopped.value.exit_code == 128 + number
    assert not target.exists()
    again = StopAfter(-1)
    embed_to_file(model, graphs, target, chunk=16, progress=again)
    # Finished chunks are not computed again: the first report is where the stop left off. The first call
    # of `progress` is before the first chunk, the others are after one chunk each.
    assert again.seen[0] == (min(16 * (calls - 1), 50), 50)
    assert target.read_bytes() == (tmp_path / "undisturbed.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["undisturbed.npz", "v.npz"]


def stopped_after(graphs, model, target, calls, **options):
    with pytest.raises(StoppedError):
        embed_to_file(model, graphs, target, chunk=16, progress=StopAfter(calls), **options)
    return target.with_name(f".{target.name}.chunks")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[:5] + bytes([data[5] ^ 1]) + data[6:],
        lambda data: data + b"half of a chunk",
        lambda data: b"",
    ],
)
@pytest.mark.parametrize("index", [0, 1])
def test_a_damaged_chunk_is_embedded_again(graphs, model, tmp_path, damage, index):
    embed_to_file(model, graphs, tmp_path / "undisturbed.npz", chunk=16)
    folder = stopped_after(graphs, model, tmp_path / "v.npz", 3)
    chunk = folder / f"chunk-00000{index}.bin"
    chunk.write_bytes(damage(chunk.read_bytes()))
    again = StopAfter(-1)
    embed_to_file(model, graphs, tmp_path / "v.npz", chunk=16, progress=again)
    assert again.seen[0] == (16, 50)
    assert (tmp_path / "v.npz").read_bytes() == (tmp_path / "undisturbed.npz").read_bytes()


@pytest.mark.parametrize("identity", [b"", b"{}", b"[]", b'{"identity": {}, "sha256": 3}'])
def test_a_damaged_identity_starts_anew(graphs, model, tmp_path, identity):
    folder = stopped_after(graphs, model, tmp_path / "v.npz", 2)
    (folder / "identity.json").write_bytes(identity)
    again = StopAfter(-1)
    embed_to_file(model, graphs, tmp_path / "v.npz", chunk=16, progress=again)
    assert again.seen[0] == (0, 50)


def test_other_graphs_or_another_model_start_anew(graphs, model, tmp_path):
    stopped_after(graphs, model, tmp_path / "v.npz", 2, identity="one")
    for identity, source in (("two", graphs), ("two", graphs[1:])):
        again = StopAfter(1)
        with pytest.raises(StoppedError):
            embed_to_file(model, source, tmp_path / "v.npz", chunk=16, identity=identity, progress=again)
        assert again.seen[0][0] == 0


def test_two_at_once_are_refused(graphs, model, tmp_path):
    with (
        open_chunks(tmp_path / "v.npz", {}),
        pytest.raises(CannotWriteError, match=f"being written by process {os.getpid()}"),
    ):
        embed_to_file(model, graphs, tmp_path / "v.npz", chunk=16)


@pytest.mark.parametrize("chunk", [1, 2, 3, 100])
def test_rows_without_a_molecule_keep_their_places_in_chunks_of_any_size(tmp_path, chunk):
    pytest.importorskip("rdkit")
    table = tmp_path / "m.csv"
    table.write_text("id,smiles\na,nothing\nb,CCO\nc,CO\nd,nonsense\ne,none\nf,C\ng,CN\nh,bad\n")
    molecules = open_collection(str(table))
    model = train(molecules, "raw").model
    embed_to_file(model, molecules, tmp_path / "v.csv", chunk=chunk)
    lines = [line.split(",") for line in (tmp_path / "v.csv").read_text().splitlines()]
    embeddings = model.embed(molecules)
    assert [line[0] for line in lines[1:]] == [str(row) for row in range(8)]
    for row, position in ((1, 0), (2, 1), (5, 2), (6, 3)):
        np.testing.assert_allclose(np.array(lines[1 + row][1:-1], float), embeddings[position], rtol=1e-6)
        assert lines[1 + row][-1] == ""
    for row in (0, 3, 4, 7):
        assert set(lines[1 + row][1:-1]) == {"nan"}
        assert lines[1 + row][-1]


def test_embeddings_of_many_chunks_are_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(embed_io, "CHUNK", 3)
    embeddings = np.arange(20, dtype=np.float32).reshape(10, 2)
    for ending in ENDINGS:
        write_embeddings(tmp_path / f"v{ending}", embeddings, np.arange(10))
        stored, ids = read_embeddings(tmp_path / f"v{ending}")
        np.testing.assert_array_equal(stored, embeddings)
        assert [int(graph_id) for graph_id in ids] == list(range(10))


def test_few_graphs_are_embedded_without_a_chunk_store(graphs, model, tmp_path, monkeypatch):
    monkeypatch.setattr(parts, "open_chunks", None)  # would fail if it were called
    embed_to_file(model, graphs, tmp_path / "v.npz", chunk=50)
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]


EMBEDDINGS = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
NAMES = ["a", "=1+1", "'quoted", "日本, x"]


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet"])
def test_embeddings_are_read_as_they_were_written(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    write_embeddings(tmp_path / f"v{ending}", EMBEDDINGS, Strings.of(NAMES))
    rows, ids = read_embeddings(tmp_path / f"v{ending}")
    np.testing.assert_array_equal(rows, EMBEDDINGS)
    assert list(ids) == NAMES


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="gone"):
        read_embeddings(tmp_path / "gone.npz")


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
def test_a_file_without_embeddings_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError):
        read_embeddings(tmp_path / name)


def test_nothing_in_an_archive_is_unpickled(tmp_path):
    np.savez(tmp_path / "v.npz", vectors=EMBEDDINGS, ids=np.array([{"a": 1}] * 4, dtype=object))
    with pytest.raises(DataError, match="pickle"):
        read_embeddings(tmp_path / "v.npz")
