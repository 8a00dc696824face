"""Embeddings in files: the same bytes after any interruption, and read as they were written."""

import gzip
import os
import signal

import numpy as np
import pytest

from graphsc.core import parts
from graphsc.core.chunks import open_chunks
from graphsc.core.errors import CannotWriteError, ConfigError, DataError, NotFoundError
from graphsc.core.files import StoppedError
from graphsc.core.parallel import Sendable, Shared
from graphsc.core.parts import file_hash
from graphsc.data.arrays import Strings
from graphsc.data.readers import open_collection
from graphsc.training import embed_io
from graphsc.training.embed_io import embed_files, embed_source, embed_to_file, write_embeddings
from graphsc.training.embedding_files import ENDINGS, read_embedding_ids, read_embeddings
from graphsc.training.model_io import load_model
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
    rows, ids = stored(chunked)
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


def stored(path):
    """The rows and ids of a file in which every row has an embedding."""
    read = read_embeddings(path)
    assert read.left_out == 0
    return read.rows, read.ids


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
    assert [line[0] for line in lines[1:]] == list("abcdefgh")
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
        rows, ids = stored(tmp_path / f"v{ending}")
        np.testing.assert_array_equal(rows, embeddings)
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
    rows, ids = stored(tmp_path / f"v{ending}")
    np.testing.assert_array_equal(rows, EMBEDDINGS)
    assert list(ids) == NAMES


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet"])
def test_rows_without_an_embedding_are_left_out_and_counted(tmp_path, ending):
    """A file with one invalid SMILES could not be opened again."""
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    rows = EMBEDDINGS.copy()
    rows[2] = np.nan
    write_embeddings(tmp_path / f"v{ending}", rows, Strings.of(NAMES), ["", "", "empty", ""])
    read = read_embeddings(tmp_path / f"v{ending}")
    np.testing.assert_array_equal(read.rows, EMBEDDINGS[[0, 1, 3]])
    assert read.ids == [NAMES[0], NAMES[1], NAMES[3]]
    assert (read.left_out, read.reasons) == (1, ("empty",))


@pytest.mark.parametrize("ending", [".npz", ".csv", ".parquet"])
def test_ids_can_be_read_alone(tmp_path, ending):
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    names = ["plain", "with, comma", "two\nlines", "=sum", 'a "quote"']
    rows = np.ones((5, 3), np.float32)
    rows[1] = np.nan
    write_embeddings(tmp_path / f"v{ending}", rows, Strings.of(names), ["", "empty", "", "", ""])
    assert read_embedding_ids(tmp_path / f"v{ending}") == names
    write_embeddings(tmp_path / f"n{ending}", rows, np.arange(5))
    assert read_embedding_ids(tmp_path / f"n{ending}") == ["0", "1", "2", "3", "4"]


def test_ids_of_another_file_are_refused(tmp_path):
    (tmp_path / "v.csv").write_text("name,v0\na,1\n")
    with pytest.raises(DataError, match="first column is not called id"):
        read_embedding_ids(tmp_path / "v.csv")


def test_a_row_that_is_partly_nan_is_damage(tmp_path):
    rows = EMBEDDINGS.copy()
    rows[2, 1] = np.nan
    write_embeddings(tmp_path / "v.npz", rows, Strings.of(NAMES))
    with pytest.raises(DataError, match="holds NaN or infinity"):
        read_embeddings(tmp_path / "v.npz")


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


def test_two_processes_write_the_bytes_of_one(graphs, model, tmp_path):
    for jobs in (1, 2):
        embed_to_file(model, graphs, tmp_path / f"{jobs}.npz", chunk=8, jobs=jobs)
    assert (tmp_path / "1.npz").read_bytes() == (tmp_path / "2.npz").read_bytes()


# Tables of molecules, which are read chunk by chunk, and many files

ROWS = ["CCO", "nothing", "c1ccccc1", "CC(=O)O", "", "CCN", "also nothing", "CCCl", "C"]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run folder with a model of molecules."""
    pytest.importorskip("rdkit")
    folder = tmp_path_factory.mktemp("run") / "run"
    molecules = open_collection(["CCO", "CCN", "c1ccccc1", "CC(=O)O", "CCCl"])
    train(molecules, settings={"encoder.width": 4}, training=TrainSettings(epochs=1), out=folder)
    return folder


def write_rows(path, rows=ROWS, name="m"):
    path.parent.mkdir(exist_ok=True)
    cells = [f"{name}{place},{text}" for place, text in enumerate(rows)]
    path.write_text("\n".join(["key,smiles", *cells]) + "\n")
    return path


def cells_of(path):
    return [line.split(",") for line in path.read_text().splitlines()[1:]]


@pytest.mark.parametrize("chunk", [1, 2, 4, 100])
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_table_of_molecules_keeps_rows_ids_and_reasons(trained, tmp_path, chunk, jobs):
    source = write_rows(tmp_path / "m.csv")
    done = embed_source(
        trained, source, tmp_path / "v.csv", options={"id_column": "key"}, chunk=chunk, jobs=jobs
    )
    assert (done.rows, done.graphs, done.name) == (9, 6, "m")
    cells = cells_of(tmp_path / "v.csv")
    assert [row[0] for row in cells] == [f"m{place}" for place in range(9)]
    assert [bool(row[-1]) for row in cells] == [False, True, False, False, True, False, True, False, False]
    molecules = [text for place, text in enumerate(ROWS) if place not in (1, 4, 6)]
    expected = load_model(trained / "model.safetensors").embed(open_collection(molecules))
    found = np.array([row[1:-1] for row in cells if not row[-1]], dtype=float)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_row_numbers_are_the_ids_of_a_table_without_ids(trained, tmp_path):
    source = write_rows(tmp_path / "m.csv", ["CCO", "CCN", "C"])
    embed_source(trained, source, tmp_path / "v.npz", chunk=2)
    with np.load(tmp_path / "v.npz") as stored:
        assert stored["ids"].tolist() == [0, 1, 2]
        assert set(stored.files) == {"vectors", "ids"}


@pytest.mark.parametrize("chunk", [2, 100])
def test_a_table_without_a_molecule_keeps_its_rows(trained, tmp_path, chunk):
    source = write_rows(tmp_path / "m.csv", ["nothing", "", "not one"])
    done = embed_source(trained, source, tmp_path / "v.npz", chunk=chunk)
    assert (done.rows, done.graphs) == (3, 0)
    with np.load(tmp_path / "v.npz") as stored:
        assert stored["vectors"].shape == (3, done.dimensions)
        assert np.isnan(stored["vectors"]).all()
        assert stored["reasons"].tolist() == ["not a SMILES string", "empty", "not a SMILES string"]


@pytest.mark.parametrize("rows", [["CCO", "CCN"], [*ROWS, "C"], [*ROWS[:5], "CCS", *ROWS[6:]]])
@pytest.mark.parametrize("when", [0, 4, 9])
def test_a_table_that_is_replaced_meanwhile_is_refused(trained, tmp_path, rows, when):
    source = write_rows(tmp_path / "m.csv")

    def replace(done, total):
        if done == when:
            write_rows(source, rows)

    with pytest.raises(DataError, match="changed while it was read"):
        embed_source(trained, source, tmp_path / "v.csv", chunk=2, progress=replace)
    assert not (tmp_path / "v.csv").exists()


def test_a_changed_id_is_a_changed_table(trained, tmp_path):
    """Molecules are compared chunk by chunk, all other cells by the hash before the file appears."""
    source = write_rows(tmp_path / "m.csv")

    def replace(done, total):
        write_rows(source, name="n")

    with pytest.raises(DataError, match="changed while it was read"):
        embed_source(trained, source, tmp_path / "v.csv", chunk=2, progress=replace)


def write_parts(folder):
    """Parts of several formats, with 9, 3, 2 and 2 rows."""
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    write_rows(folder / "a.csv")
    with gzip.open(folder / "b.csv.gz", "wt") as file:
        file.write("smiles\nCCO\nCCN\nC\n")
    (folder / "c.smi").write_text("CCO first\nCCN second\n")
    parquet.write_table(arrow.table({"SMILES": ["CCO", None, "CCl"], "y": [1, 2, 3]}), folder / "d.parquet")
    (folder / "README.md").write_text("not a part")


PARTS = ["a.csv", "b.csv", "c.csv", "d.parquet"]


@pytest.mark.parametrize("jobs", [1, 2])
def test_every_file_of_a_folder_has_a_file_with_its_rows(trained, tmp_path, jobs):
    write_parts(tmp_path / "parts")
    parts = embed_files(trained, tmp_path / "parts", tmp_path / "out", jobs=jobs, chunk=2)
    assert [part.target.name for part in parts] == PARTS
    assert [part.error for part in parts] == [None] * 4
    assert [tuple(part.summary.values()) for part in parts] == [
        (9, 6, [("not a SMILES string", 2), ("empty", 1)]), (3, 3, []), (2, 2, []), (3, 2, [("empty", 1)]),
    ]  # fmt: skip
    assert [row[0] for row in cells_of(tmp_path / "out" / "c.csv")] == ["first", "second"]
    for part in PARTS[:2]:
        source = tmp_path / "parts" / (part if part == "a.csv" else "b.csv.gz")
        embed_source(trained, source, tmp_path / part, chunk=2)
        assert (tmp_path / "out" / part).read_bytes() == (tmp_path / part).read_bytes()
    table = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / "out" / "d.parquet")
    assert table["id"].to_pylist() == [0, 1, 2]
    assert [bool(reason) for reason in table["reason"].to_pylist()] == [False, True, False]


def test_a_pattern_and_a_format(trained, tmp_path):
    write_parts(tmp_path / "parts")
    parts = embed_files(trained, f"{tmp_path}/parts/[bc].*", tmp_path / "out", format="npz")
    assert [part.target.name for part in parts] == ["b.npz", "c.npz"]
    assert read_embeddings(tmp_path / "out" / "c.npz").ids == ["first", "second"]


def test_only_what_has_changed_is_embedded_again(trained, tmp_path):
    write_parts(tmp_path / "parts")

    def computed(**options):
        return [
            part.target.name
            for part in embed_files(trained, tmp_path / "parts", tmp_path / "out", **options)
            if part.computed
        ]

    assert computed() == PARTS
    assert computed() == []
    (tmp_path / "parts" / "c.smi").write_text("CCO first\nCCS second\n")
    assert computed() == ["c.csv"]
    assert computed(options={"max_atoms": 50}) == PARTS
    other = tmp_path / "other"
    train(open_collection(["CCO", "CCN"]), "raw", out=other)
    parts = embed_files(other, tmp_path / "parts", tmp_path / "out")
    assert [part.target.name for part in parts if part.computed] == PARTS


def test_edge_lists_and_saved_collections_are_parts_too(tmp_path, graphs):
    run = tmp_path / "run"
    train(graphs, settings={"encoder.width": 4}, training=TrainSettings(epochs=1), out=run)
    (tmp_path / "parts").mkdir()
    graphs[:7].save(tmp_path / "parts" / "saved.safetensors")
    (tmp_path / "parts" / "edges.csv").write_text("graph_id,source,target\nx,1,2\nx,2,3\ny,1,2\n")
    (tmp_path / "parts" / "no.csv").write_text("graph_id,source,target\nx,1\n")
    said = []
    parts = embed_files(run, tmp_path / "parts", tmp_path / "out", jobs=2, log=said.append)
    assert [(part.target.name, part.error is None) for part in parts] == [
        ("edges.csv", True), ("no.csv", False), ("saved.csv", True),
    ]  # fmt: skip
    assert "2 cells where the header has 3" in said[0]
    assert str(tmp_path / "parts" / "no.csv") in said[0]
    assert read_embeddings(tmp_path / "out" / "edges.csv").ids == ["x", "y"]
    rows, _ = stored(tmp_path / "out" / "saved.csv")
    expected = load_model(run / "model.safetensors").embed(graphs[:7])
    np.testing.assert_allclose(rows, expected, rtol=1e-5, atol=1e-6)


def test_two_sources_of_one_target_are_refused_before_any_work(trained, tmp_path):
    write_parts(tmp_path / "parts")
    (tmp_path / "parts" / "a.smi").write_text("CCO\n")
    with pytest.raises(ConfigError, match=r"would both be written to a\.csv"):
        embed_files(trained, tmp_path / "parts", tmp_path / "out")
    assert not list((tmp_path).glob("out/*"))


def test_a_file_that_differs_where_it_is_embedded_is_refused(graphs, model, tmp_path):
    """A worker opens a large file by its path, and embeds it only if it has the content of the caller's."""
    path = tmp_path / "g.safetensors"
    graphs.save(path)
    piece = embed_io._Whole(path, file_hash(path), None, None, {}, ".npz")
    content, facts = embed_io._embed_piece(Shared(Sendable(model, None, None)), piece)
    (tmp_path / "v.npz").write_bytes(content)
    assert (len(read_embeddings(tmp_path / "v.npz").rows), facts["rows"]) == (50, 50)
    graphs[:20].save(path)
    with pytest.raises(DataError, match=r"other content where it is embedded.*g\.safetensors"):
        embed_io._embed_piece(Shared(Sendable(model, None, None)), piece)
    path.unlink()
    with pytest.raises(DataError, match=r"cannot read.*g\.safetensors"):
        embed_io._embed_piece(Shared(Sendable(model, None, None)), piece)
