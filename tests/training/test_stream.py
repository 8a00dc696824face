"""Embedding by chunks: the file of one go, whatever stopped it on the way."""

import os
import signal

import numpy as np
import pytest

from graphsc.core.errors import CannotWriteError
from graphsc.core.files import StoppedError
from graphsc.data.readers import open_collection
from graphsc.training import embed_io as stream
from graphsc.training.embed_io import ENDINGS, EmbeddingStore, embed_to_file, read_vectors, write_vectors
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:50")


@pytest.fixture(scope="module")
def model(graphs):
    return train(graphs, settings={"encoder.width": 4}, training=TrainSettings(epochs=1)).model


class StopAfter:
    """A progress that asks this process to stop at its n-th call."""

    def __init__(self, calls, number=signal.SIGTERM):
        self.calls, self.number, self.seen = calls, number, []

    def __call__(self, done, total):
        self.seen.append((done, total))
        if len(self.seen) == self.calls:
            os.kill(os.getpid(), self.number)


@pytest.mark.parametrize("ending", ENDINGS)
def test_chunks_make_the_file_of_one_go(graphs, model, tmp_path, ending):
    whole, parts = tmp_path / f"whole{ending}", tmp_path / f"parts{ending}"
    assert embed_to_file(model, graphs, whole) == 50
    assert embed_to_file(model, graphs, parts, chunk=16) == 50
    rows, ids = read_vectors(parts)
    np.testing.assert_allclose(rows, model.embed(graphs), rtol=1e-5, atol=1e-6)
    assert [int(one) for one in ids] == list(range(50))
    assert sorted(path.name for path in tmp_path.iterdir()) == [parts.name, whole.name]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("calls", [1, 2, 4, 5])
def test_a_stop_at_any_chunk_leaves_no_gap_and_no_double(graphs, model, tmp_path, calls, number):
    embed_to_file(model, graphs, tmp_path / "undisturbed.npz", chunk=16)
    target = tmp_path / "v.npz"
    with pytest.raises(StoppedError) as stopped:
        embed_to_file(model, graphs, target, chunk=16, progress=StopAfter(calls, number))
    assert stopped.value.exit_code == 128 + number
    assert not target.exists()
    again = StopAfter(-1)
    embed_to_file(model, graphs, target, chunk=16, progress=again)
    # Chunks that were kept are not made again: the first report is where the stop left off.
    assert again.seen[0] == (min(16 * calls, 50), 50)
    assert target.read_bytes() == (tmp_path / "undisturbed.npz").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["undisturbed.npz", "v.npz"]


def stopped_after(graphs, model, target, calls, **options):
    with pytest.raises(StoppedError):
        embed_to_file(model, graphs, target, chunk=16, progress=StopAfter(calls), **options)
    return target.with_name(f".{target.name}.rows")


@pytest.mark.parametrize(
    ("damage", "first"),
    [
        (lambda data: data[:-1], 16),  # the second chunk is short of a byte
        (lambda data: data[:5] + bytes([data[5] ^ 1]) + data[6:], 0),
        (lambda data: data + b"half of a chunk", 32),
        (lambda data: b"", 0),
    ],
)
def test_damaged_chunks_are_made_again(graphs, model, tmp_path, damage, first):
    embed_to_file(model, graphs, tmp_path / "undisturbed.npz", chunk=16)
    folder = stopped_after(graphs, model, tmp_path / "v.npz", 2)
    (folder / "rows").write_bytes(damage((folder / "rows").read_bytes()))
    again = StopAfter(-1)
    embed_to_file(model, graphs, tmp_path / "v.npz", chunk=16, progress=again)
    assert again.seen[0] == (first, 50)
    assert (tmp_path / "v.npz").read_bytes() == (tmp_path / "undisturbed.npz").read_bytes()


@pytest.mark.parametrize("note", [b"", b"{}", b"[]", b'{"identity": {}, "sha256": 3}'])
def test_a_damaged_note_begins_anew(graphs, model, tmp_path, note):
    folder = stopped_after(graphs, model, tmp_path / "v.npz", 2)
    (folder / "done.json").write_bytes(note)
    again = StopAfter(-1)
    embed_to_file(model, graphs, tmp_path / "v.npz", chunk=16, progress=again)
    assert again.seen[0] == (0, 50)


def test_other_graphs_or_another_model_begin_anew(graphs, model, tmp_path):
    stopped_after(graphs, model, tmp_path / "v.npz", 2, identity="one")
    for identity, source in (("two", graphs), ("two", graphs[1:])):
        again = StopAfter(1)
        with pytest.raises(StoppedError):
            embed_to_file(model, source, tmp_path / "v.npz", chunk=16, identity=identity, progress=again)
        assert again.seen[0][0] == 0


def test_two_at_once_are_refused(graphs, model, tmp_path):
    said = {"model": "", "graphs": graphs.content_hash, "chunk": 16}
    with (
        EmbeddingStore(tmp_path / "v.npz", said, model.dimensions, 16).opened(),
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
    given = model.embed(molecules)
    assert [line[0] for line in lines[1:]] == [str(row) for row in range(8)]
    for row, position in ((1, 0), (2, 1), (5, 2), (6, 3)):
        np.testing.assert_allclose(np.array(lines[1 + row][1:-1], float), given[position], rtol=1e-6)
        assert lines[1 + row][-1] == ""
    for row in (0, 3, 4, 7):
        assert set(lines[1 + row][1:-1]) == {"nan"}
        assert lines[1 + row][-1]


def test_a_vector_of_many_chunks_is_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr("graphsc.training.embed_io.CHUNK", 3)
    rows = np.arange(20, dtype=np.float32).reshape(10, 2)
    for ending in ENDINGS:
        write_vectors(tmp_path / f"v{ending}", rows, np.arange(10))
        found, ids = read_vectors(tmp_path / f"v{ending}")
        np.testing.assert_array_equal(found, rows)
        assert [int(one) for one in ids] == list(range(10))


def test_few_graphs_leave_nothing_on_the_way(graphs, model, tmp_path, monkeypatch):
    monkeypatch.setattr(stream, "EmbeddingStore", None)  # would fail if it were made
    embed_to_file(model, graphs, tmp_path / "v.npz", chunk=50)
    assert [path.name for path in tmp_path.iterdir()] == ["v.npz"]
