"""Embeddings as files that other tools read, joined to the ids of their graphs.

`embed_source` and `embed_to_file` embed any number of graphs: chunks of embeddings are stored beside the
target, and the target is written from them. A stop or a kill loses at most one chunk per worker. Tables of
molecules are never in memory as a whole. `embed_files` does the same for the files of a folder.
"""

from __future__ import annotations

import csv
import io
import tempfile
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import IO, cast

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.chunks import ChunkStore
from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.files import StopRequest, atomic_write, check_writable, remove_stray_files
from graphsc.core.parallel import Sendable, Shared, use_cluster
from graphsc.core.parts import (
    Answer,
    FileTask,
    Part,
    Progress,
    check_ending,
    compute_file,
    compute_files,
    find_parts,
    name_targets,
)
from graphsc.core.registry import require
from graphsc.core.tables import safe_cell
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.molecules.conversion import Plan, RowOptions, chunk_to_collection, outcome_of, prepare
from graphsc.data.molecules.rejected import common_reasons, insert_rejected_rows
from graphsc.data.molecules.rows import Packed, RowsTask, hash_of, hash_of_rows, is_smiles_file, unpack
from graphsc.data.molecules.sdf import is_sdf
from graphsc.data.readers import find_reader, find_saved, open_collection
from graphsc.data.readers.csv import table_suffix
from graphsc.training.distributed import driver_device
from graphsc.training.embedding_files import ENDINGS, HASH, REASON, ContentHash
from graphsc.training.model_io import Model, find_model, load_model, save_model

CHUNK = 8192  # graphs; a few megabytes at any usual width
SENT = 2**26  # bytes; a larger file must be on the worker under the same path

Chunks = Iterator[NDArray[np.floating]]
Reasons = Sequence[tuple[str, int]]


@dataclass(frozen=True)
class Embedded:
    """Summary of a file of embeddings."""

    path: Path
    name: str  # of the collection
    rows: int
    graphs: int  # rows without those that hold no molecule
    dimensions: int
    reasons: tuple[tuple[str, int], ...] = ()  # the most frequent ones of rows without a molecule
    rejected_edges: tuple[str, ...] = ()  # why each malformed row of an edge list was left out


def embed_source(
    run: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    jobs: int | None = 1,
    cluster: str | None = None,
    device: str = "auto",
    chunk: int = CHUNK,
    progress: Progress = lambda done, total: None,
) -> Embedded:
    """Embed the graphs of any source into a file, one row per graph.

    Rows of the source without a molecule are rows of the file, too, with NaN and the reason. After a stop or
    a kill, the same call resumes from the chunks that were finished.

    Args:
        run: A run folder, a model file or the name of a model.
        source: A source of `open_collection`.
        out: FILE.npz, FILE.csv or FILE.parquet.
        reader: Name of the reader; guessed from the source by default.
        options: Options of the reader.
        jobs: Local processes; 1 embeds in this process, None uses one per core.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`, which is used instead of `jobs`.
        device: `auto`, `cpu`, `cuda` or `mps`, where the model runs. Local processes share all GPUs.
        chunk: Graphs per chunk.
        progress: Called with the rows done and the rows in total.

    Raises:
        DataError: The source cannot be read, or was replaced while it was read.
        CannotWriteError: Another process writes this target, or the disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished chunks are kept.
    """
    target = Path(out)
    check_target(target)
    check_writable(target)
    remove_stray_files(target.parent)
    file = find_model(run)
    model = load_model(file, driver_device(device, jobs, cluster))
    embedding = _Embedding(model, hash_of(file), chunk, device)
    task: _EmbedRows | _EmbedCollection
    malformed: tuple[str, ...] = ()
    reading = _molecule_reading(source, reader, options or {})
    if reading is not None:
        task = _EmbedRows(*reading, target, embedding)
    else:
        with use_cluster(cluster):
            collection = open_collection(str(source), reader=reader, **(options or {}))
        malformed = tuple(row.reason for row in collection.rejected_edges)
        task = _EmbedCollection(collection, target, embedding)
    compute_file(task, _embed_piece, embedding.sendable, jobs=jobs, cluster=cluster, progress=progress)
    return Embedded(
        target,
        task.name,
        cast(int, task.summary["rows"]),
        cast(int, task.summary["graphs"]),
        model.dimensions,
        tuple((reason, count) for reason, count in cast(Reasons, task.summary.get("reasons", ()))),
        malformed,
    )


def embed_to_file(
    model: Model,
    collection: GraphCollection,
    target: Path,
    *,
    identity: str = "",
    jobs: int | None = 1,
    cluster: str | None = None,
    device: str = "auto",
    progress: Progress = lambda done, total: None,
    chunk: int = CHUNK,
) -> int:
    """Embed all graphs of a collection into a file, like `embed_source`.

    Args:
        model: A trained model.
        collection: The graphs to embed.
        target: FILE.npz, FILE.csv or FILE.parquet.
        identity: Hash of the model. Chunks of another model or other graphs are not resumed from.
        jobs: Local processes; 1 embeds in this process, None uses one per core.
        cluster: The scheduler of a Dask cluster. Every graph is sent to one worker, the model to each once.
        device: Where workers run the model; with one job it stays where it is.
        progress: Called with the graphs done and the graphs in total.
        chunk: Graphs per chunk.

    Returns:
        The number of rows written.
    """
    check_target(target)
    remove_stray_files(target.parent)
    embedding = _Embedding(model, identity, chunk, device)
    task = _EmbedCollection(collection, target, embedding)
    compute_file(task, _embed_piece, embedding.sendable, jobs=jobs, cluster=cluster, progress=progress)
    return cast(int, task.summary["rows"])


def embed_files(
    run: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    jobs: int | None = 1,
    cluster: str | None = None,
    device: str = "auto",
    chunk: int = CHUNK,
    progress: Progress = lambda done, total: None,
    log: Callable[[str], None] = lambda message: None,
) -> list[Part]:
    """Embed many files into a folder: one file per source, with its stem, rows and ids.

    A file that is finished is not computed again, unless its source, the model, the options or the version
    has changed. A source that cannot be read is named, and the others finish.

    Args:
        run: A run folder, a model file or the name of a model.
        source: A pattern such as `parts/*.csv`, or a folder of tables, .smi files or saved collections.
        out: The folder of the embeddings; other files in it are left alone.
        format: `npz`, `csv` or `parquet`; by default that of each source, csv for others.
        reader: Name of the reader; guessed from each source by default.
        options: Options of the reader.
        jobs: Local processes; 1 embeds in this process, None uses one per core.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`, which is used instead of `jobs`.
        device: `auto`, `cpu`, `cuda` or `mps`, where the model runs. Local processes share all GPUs.
        chunk: Graphs per chunk of a table of molecules; other sources are one chunk.
        progress: Called with the files done and the files in total.
        log: Receives one sentence per file that fails.

    Returns:
        One part per source, sorted by name; see `check_parts`.

    Raises:
        ConfigError: Two sources have one target, or the sources are in the folder of the targets.
        CannotWriteError: The disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished files and chunks are kept.
    """
    ending = None if format is None else f".{format}"
    parts = find_parts(source, _is_part)
    targets = name_targets(parts, Path(out), partial(part_name, ending=ending), ENDINGS, "embeddings")
    file = find_model(run)
    model = load_model(file, driver_device(device, jobs, cluster))
    embedding = _Embedding(model, hash_of(file), chunk, device)
    tasks: list[FileTask[Piece]] = []
    for part, target in targets.items():
        try:
            reading = _molecule_reading(part, reader, options or {})
        except (DataError, NotFoundError):
            reading = None  # the task finds the same error, and only that file fails
        tasks.append(
            _EmbedWhole(part, target, reader, options or {}, embedding, send=cluster is not None)
            if reading is None
            else _EmbedRows(*reading, target, embedding)
        )
    return compute_files(
        tasks, _embed_piece, embedding.sendable, jobs=jobs, cluster=cluster, progress=progress, log=log
    )


def part_name(source: Path, ending: str | None) -> str:
    """The name of the target of a source: its stem with an ending, by default that of its own format."""
    own = table_suffix(source)
    name = source.name
    for suffix in (".gz", ".xz"):
        name = name.removesuffix(suffix)
    stem = Path(name).stem
    return stem + (ending or (".parquet" if own == ".parquet" else ".csv"))


def _is_part(path: Path) -> bool:
    molecules = is_smiles_file(path) or is_sdf(path)
    return bool(table_suffix(path)) or molecules or path.suffix == ".safetensors"


def _molecule_reading(
    source: str | Path, reader: str | None, options: Mapping[str, object]
) -> tuple[Path, RowOptions] | None:
    """The table and the options of a source whose rows can be embedded one by one; None for other sources."""
    text = str(source)
    if find_saved(text, reader, options) is not None:
        return None
    reading = find_reader(text, reader, options)
    if reading.reader != "smiles" or not reading.options.keys() <= RowOptions.__annotations__.keys():
        return None
    return Path(str(reading.source)), cast(RowOptions, reading.options)


# Tasks


@dataclass(frozen=True)
class _Whole:
    """A file that a worker reads itself."""

    path: Path
    sha256: str
    content: bytes | None  # None: the worker finds the file under its path
    reader: str | None
    options: Mapping[str, object]
    ending: str


Piece = GraphCollection | tuple[Plan, Packed] | _Whole


@dataclass(frozen=True)
class _Embedding:
    """What all tasks of a call share."""

    model: Model
    model_hash: str
    chunk: int
    device: str  # of the workers

    @property
    def settings(self) -> dict[str, object]:
        return {
            "verb": "embed", "version": __version__, "model": self.model_hash,
            "dimensions": self.model.dimensions,
        }  # fmt: skip

    @property
    def sendable(self) -> Sendable[Model]:
        return Sendable(self.model, _save_into, partial(_load_from, device=self.device))


def _save_into(model: Model, folder: Path) -> None:
    save_model(folder / "model.safetensors", model.method, model.recipe, model.features)


def _load_from(folder: Path, device: str) -> Model:
    return load_model(folder / "model.safetensors", device)


def _embed_piece(shared: Shared[Model], piece: Piece) -> Answer:
    """The embeddings of a chunk, or the whole file of embeddings of a source; runs in a worker."""
    model = shared.get()
    if isinstance(piece, GraphCollection):
        return _as_bytes(model.embed(piece)), {}
    if isinstance(piece, _Whole):
        return _embed_whole(model, piece)
    plan, rows = piece
    collection, outcome = chunk_to_collection(unpack(rows), plan)
    facts = {**asdict(outcome), "sha256": hash_of_rows(rows)}
    return b"" if collection is None else _as_bytes(model.embed(collection)), facts


def _as_bytes(embeddings: NDArray[np.float32]) -> bytes:
    return np.ascontiguousarray(embeddings, "<f4").tobytes()


class _EmbedCollection(FileTask[Piece]):
    """The graphs of a collection; workers get the graphs of their chunk."""

    def __init__(self, collection: GraphCollection, target: Path, embedding: _Embedding) -> None:
        super().__init__(collection.name, target)
        self.name, self.collection = collection.name, collection
        self.width, self.chunk = embedding.model.dimensions, embedding.chunk
        self.settings = embedding.settings
        graphs = embedding.model.fit_features(collection)
        # A slice has all of these, and they would be sent with every chunk.
        self.graphs = replace(graphs, labels=None, tasks=(), classes={}, notes=(), rejected=())

    def fingerprint(self) -> str:
        return self.collection.content_hash

    def open(self) -> None:
        self.rows = len(self.collection)

    def pieces(self, missing: Collection[int]) -> Iterator[tuple[int, Piece]]:
        for index in sorted(missing):
            yield index, self.graphs[index * self.chunk : (index + 1) * self.chunk]

    def write(self, chunks: ChunkStore, request: StopRequest) -> None:
        table = _table_of(
            self.collection, self.width, lambda: _stored(chunks, self.count, self.width, request)
        )
        write_table(self.target, table)
        self.summary = _summary(self.collection, len(table))


class _EmbedRows(RowsTask[Piece]):
    """The molecules of a table; workers get the SMILES of their chunk."""

    def __init__(self, path: Path, options: RowOptions, target: Path, embedding: _Embedding) -> None:
        super().__init__(path, target)
        self.options = options
        self.width, self.chunk = embedding.model.dimensions, embedding.chunk
        self.settings = {
            **embedding.settings, "rdkit": require("rdkit").__version__,
            "options": {key: value for key, value in options.items() if key != "name"},
        }  # fmt: skip

    def open(self) -> None:
        self.table, plan, self.rows = prepare(self.path, **self.options)
        self.name = plan.name
        self.plan = replace(plan, tasks=(), classes={}, has_ids=False)

    def piece(self, rows: Packed) -> Piece:
        return self.plan, rows

    def write(self, chunks: ChunkStore, request: StopRequest) -> None:
        lost = [row for k in range(self.count) for row in outcome_of(chunks.facts(k)).rejected]
        reasons = {row.row: row.reason for row in lost}
        # Also where the source has no ids: every chunk of rows is compared with the rows that were embedded.
        texts = (row.id or str(row.number) for _, rows in self.stored_rows(chunks) for row in rows)
        strings = Strings.of(texts)
        ids: Ids = strings if self.table.has_ids else np.arange(self.rows, dtype=np.int64)
        is_rejected = np.zeros(self.rows, dtype=bool)
        is_rejected[list(reasons)] = True

        def stored() -> Chunks:
            return _stored(chunks, self.count, self.width, request)

        table = EmbeddingTable(stored, self.width, ids)
        if reasons:
            table = EmbeddingTable(
                lambda: _with_nan_rows(stored(), is_rejected, self.width),
                self.width, ids, [reasons.get(row, "") for row in range(self.rows)],
            )  # fmt: skip
        write_table(self.target, table, self.check_source)
        self.summary = {
            "rows": self.rows, "graphs": self.rows - len(lost),
            "reasons": common_reasons(row.reason for row in lost),
        }  # fmt: skip


class _EmbedWhole(FileTask[Piece]):
    """One of many files that is no table of molecules; a worker reads it and returns the target's bytes."""

    def __init__(
        self,
        path: Path,
        target: Path,
        reader: str | None,
        options: Mapping[str, object],
        embedding: _Embedding,
        *,
        send: bool,
    ) -> None:
        super().__init__(str(path), target)
        self.path, self.reader, self.options, self.send = path, reader, options, send
        self.settings = {**embedding.settings, "reader": reader, "options": dict(options)}

    def fingerprint(self) -> str:
        return hash_of(self.path)

    def open(self) -> None:
        self.rows = 1  # a single chunk

    def pieces(self, missing: Collection[int]) -> Iterator[tuple[int, Piece]]:
        for index in missing:
            sent = self.send and self.path.stat().st_size <= SENT
            content = self.path.read_bytes() if sent else None
            yield (
                index,
                _Whole(
                    self.path.absolute(),
                    self.source_hash,
                    content,
                    self.reader,
                    self.options,
                    self.target.suffix,
                ),
            )

    def write(self, chunks: ChunkStore, request: StopRequest) -> None:
        with atomic_write(self.target) as file:
            file.write(chunks.read(0))
            self.check_source()
        facts = chunks.facts(0)
        self.summary = {key: facts[key] for key in ("rows", "graphs", "reasons") if key in facts}


def _embed_whole(model: Model, piece: _Whole) -> Answer:
    with tempfile.TemporaryDirectory() as folder:
        path = piece.path
        if piece.content is not None:
            path = Path(folder) / piece.path.name
            path.write_bytes(piece.content)
        if hash_of(path) != piece.sha256:
            raise DataError("this file has other content where it is embedded", where=str(piece.path))
        try:
            collection = open_collection(str(path), reader=piece.reader, **piece.options)
        except (DataError, NotFoundError) as error:
            raise type(error)(error.what, where=str(piece.path), hint=error.hint) from error
        embeddings = model.embed(collection)
        table = _table_of(collection, model.dimensions, lambda: iter([embeddings]))
        file = io.BytesIO()
        _WRITERS[piece.ending](file, table)
    return file.getvalue(), _summary(collection, len(table))


def _summary(collection: GraphCollection, rows: int) -> dict[str, object]:
    reasons = common_reasons(row.reason for row in collection.rejected)
    return {"rows": rows, "graphs": len(collection), "reasons": reasons}


def _stored(chunks: ChunkStore, count: int, width: int, request: StopRequest) -> Chunks:
    """The stored embeddings of all chunks, in order."""
    for index in range(count):
        request.check("all graphs are embedded, the file is not written yet")
        yield np.frombuffer(chunks.read(index), "<f4").reshape(-1, width)


def _table_of(collection: GraphCollection, width: int, chunks: Callable[[], Chunks]) -> EmbeddingTable:
    """The embeddings of a collection for all rows of its source."""
    if not collection.rejected:
        return EmbeddingTable(chunks, width, collection.ids)
    no_columns = np.empty((len(collection), 0), np.float32)
    _, ids, reasons = insert_rejected_rows(no_columns, collection.ids, collection.rejected)
    rejected = np.zeros(len(ids), dtype=bool)
    rejected[[row.row for row in collection.rejected]] = True
    return EmbeddingTable(lambda: _with_nan_rows(chunks(), rejected, width), width, ids, reasons)


def _with_nan_rows(chunks: Chunks, rejected: NDArray[np.bool_], width: int) -> Chunks:
    """Insert a row of NaN for every rejected row of the source.

    Args:
        chunks: Embeddings of the rows that are not rejected, in order.
        rejected: One value per row of the source.
        width: Number of columns.
    """
    valid = np.flatnonzero(~rejected)
    first, embedded = 0, 0
    for embeddings in chunks:
        embedded += len(embeddings)
        last = int(valid[embedded]) if embedded < len(valid) else len(rejected)
        rows = np.full((last - first, width), np.nan, dtype=np.float32)
        rows[~rejected[first:last]] = embeddings
        yield rows
        first = last


# Writing


@dataclass(frozen=True)
class EmbeddingTable:
    """Rows to be written, of which only some need to be in memory at once."""

    chunks: Callable[[], Chunks]  # called once per pass over the rows
    dimensions: int
    ids: Ids
    reasons: Sequence[str] | None = None  # why a row has no embedding, "" where it has one

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def columns(self) -> list[str]:
        return [f"v{index}" for index in range(self.dimensions)]

    def __iter__(self) -> Iterator[tuple[slice, list[int] | list[str], NDArray[np.floating]]]:
        """The rows, ids and embeddings of each chunk."""
        start = 0
        for embeddings in self.chunks():
            stop = start + len(embeddings)
            ids = self.ids.take(np.arange(start, min(stop, len(self))))
            yield slice(start, stop), list(ids) if isinstance(ids, Strings) else ids.tolist(), embeddings
            start = stop


def check_target(path: Path) -> None:
    """Refuse a file name of an unknown format, or one whose extra is not installed."""
    check_ending(path, ENDINGS, "embeddings")


def write_embeddings(
    path: str | Path, embeddings: NDArray[np.floating], ids: Ids, reasons: Sequence[str] | None = None
) -> None:
    """Write embeddings to a .npz, .csv or .parquet file, whole or not at all.

    Args:
        path: Its ending decides the format.
        embeddings: Graphs x dimensions.
        ids: One per graph.
        reasons: Why a row has no embedding, "" where it has one; a column of the file if given.
    """

    def chunks() -> Chunks:
        yield from (embeddings[start : start + CHUNK] for start in range(0, len(embeddings), CHUNK))

    path = Path(path)
    check_target(path)
    write_table(path, EmbeddingTable(chunks, embeddings.shape[1], ids, reasons))


def write_table(path: Path, table: EmbeddingTable, check: Callable[[], None] = lambda: None) -> None:
    """Write rows to a file, whole or not at all; `check` may raise an error before the file appears."""
    with atomic_write(path) as file:
        _WRITERS[path.suffix](file, table)
        check()


def _write_csv(file: IO[bytes], table: EmbeddingTable) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", *table.columns, *([] if table.reasons is None else [REASON])])
    for rows, ids, embeddings in table:
        reasons = [[]] * len(ids) if table.reasons is None else [[safe_cell(r)] for r in table.reasons[rows]]
        for graph_id, embedding, reason in zip(ids, embeddings.tolist(), reasons, strict=True):
            writer.writerow([safe_cell(graph_id), *embedding, *reason])
    text.detach()  # flushes, and leaves the file open


def _write_npz(file: IO[bytes], table: EmbeddingTable) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        shape = (len(table), table.dimensions)
        _write_array(archive, "vectors", np.dtype(np.float32), shape, table.chunks())
        if isinstance(table.ids, Strings):
            _write_texts(archive, "ids", table.ids)
        else:
            _write_array(archive, "ids", np.dtype(np.int64), (len(table),), iter([table.ids]))
        if table.reasons is not None:
            _write_texts(archive, "reasons", table.reasons)


def _write_texts(archive: zipfile.ZipFile, name: str, texts: Strings | Sequence[str]) -> None:
    dtype = np.dtype(f"U{max(1, max(map(len, texts), default=1))}")
    remaining = iter(texts)
    parts = (np.array(part, dtype) for part in iter(lambda: list(islice(remaining, CHUNK)), []))
    _write_array(archive, name, dtype, (len(texts),), parts)


def _write_array(
    archive: zipfile.ZipFile,
    name: str,
    dtype: np.dtype[np.generic],
    shape: tuple[int, ...],
    parts: Iterator[NDArray[np.generic]],
) -> None:
    """Write one array of an .npz file from parts.

    The date in a `ZipInfo` is constant, so that equal arrays give equal files.
    """
    info = zipfile.ZipInfo(f"{name}.npy")
    info.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array_header_2_0(
            member, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        )
        for part in parts:
            member.write(np.ascontiguousarray(part, dtype).tobytes())


def _write_parquet(file: IO[bytes], table: EmbeddingTable) -> None:
    pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    id_type = pyarrow.string() if isinstance(table.ids, Strings) else pyarrow.int64()
    fields = [("id", id_type), *((name, pyarrow.float32()) for name in table.columns)]
    if table.reasons is not None:
        fields.append((REASON, pyarrow.string()))
    content = ContentHash()
    with parquet.ParquetWriter(file, pyarrow.schema(fields)) as writer:
        for rows, ids, embeddings in table:
            encodable = [_encodable(graph_id) for graph_id in ids]
            columns = {"id": encodable} | {name: embeddings[:, k] for k, name in enumerate(table.columns)}
            if table.reasons is not None:
                columns[REASON] = list(table.reasons[rows])
            content.update(encodable, embeddings)
            writer.write_table(pyarrow.table(columns, schema=writer.schema))
        writer.add_key_value_metadata({HASH: content.hexdigest()})


def _encodable(graph_id: int | str) -> int | str:
    """An id without lone surrogates, which UTF-8 cannot encode."""
    return graph_id.encode("utf-8", "replace").decode() if isinstance(graph_id, str) else graph_id


_WRITERS = {".npz": _write_npz, ".csv": _write_csv, ".parquet": _write_parquet}
