"""Embeddings as files that other tools read, joined to the ids of their graphs.

`embed_to_file` embeds any number of graphs with memory for a few thousand: chunks of embeddings are stored
beside the target, and the target is written from them. A stop or a kill loses at most one chunk.
"""

from __future__ import annotations

import csv
import io
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.chunks import open_chunks
from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.files import StopRequest, atomic_write, remove_stray_files, stop_requests
from graphsc.core.registry import require
from graphsc.core.tables import safe_cell
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.molecules.rejected import insert_rejected_rows
from graphsc.training.model_io import Model

ENDINGS = (".npz", ".csv", ".parquet")
CHUNK = 8192  # graphs; a few megabytes at any usual width

Chunks = Iterator[NDArray[np.floating]]
Progress = Callable[[int, int], None]  # graphs done, graphs in total


def embed_to_file(
    model: Model,
    collection: GraphCollection,
    target: Path,
    *,
    identity: str = "",
    progress: Progress = lambda done, total: None,
    chunk: int = CHUNK,
) -> int:
    """Embed all graphs of a collection into a file, one row per graph.

    Rows of the source without a molecule are rows of the file, too, with NaN and the reason. After a stop or
    a kill, the same call resumes from the chunks that were finished. A collection of at most one chunk is
    embedded in memory.

    Args:
        model: A trained model.
        collection: The graphs to embed.
        target: FILE.npz, FILE.csv or FILE.parquet.
        identity: Hash of the model. Chunks of another model or other graphs are not resumed from.
        progress: Called with the graphs done and the graphs in total.
        chunk: Graphs per chunk.

    Returns:
        The number of rows written.

    Raises:
        CannotWriteError: Another process writes this target, or the disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished chunks are kept.
    """
    check_target(target)
    remove_stray_files(target.parent)
    graphs = model.fit_features(collection)
    width, total = model.dimensions, len(graphs)
    if total <= chunk:
        embeddings = model.embed(graphs)
        return _write_collection(target, collection, width, lambda: iter([embeddings]), StopRequest())
    chunk_identity = {
        "verb": "embed",
        "version": __version__,
        "model": identity,
        "graphs": collection.content_hash,
        "dimensions": width,
        "chunk": chunk,
    }
    with open_chunks(target, chunk_identity) as chunks, stop_requests() as request:
        starts = range(0, total, chunk)
        missing = chunks.missing(len(starts))
        done = total - sum(min(chunk, total - starts[index]) for index in missing)
        for index in missing:
            progress(done, total)
            embeddings = model.embed(graphs[starts[index] : starts[index] + chunk])
            chunks.write(index, np.ascontiguousarray(embeddings, "<f4").tobytes())
            done += len(embeddings)
            request.check(f"{done:,} of {total:,} graphs are embedded")
        progress(total, total)

        def stored() -> Chunks:
            for index in range(len(starts)):
                yield np.frombuffer(chunks.read(index), "<f4").reshape(-1, width)

        return _write_collection(target, collection, width, stored, request)


def _write_collection(
    target: Path, collection: GraphCollection, width: int, chunks: Callable[[], Chunks], request: StopRequest
) -> int:
    """Write the embeddings of a collection for all rows of its source; return how many there are."""

    def checked() -> Chunks:
        for embeddings in chunks():
            request.check("all graphs are embedded, the file is not written yet")
            yield embeddings

    if not collection.rejected:
        _write(target, EmbeddingTable(checked, width, collection.ids))
        return len(collection)
    no_columns = np.empty((len(collection), 0), np.float32)
    _, ids, reasons = insert_rejected_rows(no_columns, collection.ids, collection.rejected)
    rejected = np.zeros(len(ids), dtype=bool)
    rejected[[row.row for row in collection.rejected]] = True
    table = EmbeddingTable(lambda: _with_nan_rows(checked(), rejected, width), width, ids, reasons)
    _write(target, table)
    return len(ids)


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
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write embeddings to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(ENDINGS)}",
        )  # fmt: skip
    if path.suffix == ".parquet":
        require("pyarrow.parquet")


def write_embeddings(
    path: Path, embeddings: NDArray[np.floating], ids: Ids, reasons: Sequence[str] | None = None
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

    _write(path, EmbeddingTable(chunks, embeddings.shape[1], ids, reasons))


def _write(path: Path, table: EmbeddingTable) -> None:
    check_target(path)
    writers = {".npz": _write_npz, ".csv": _write_csv, ".parquet": _write_parquet}
    with atomic_write(path) as file:
        writers[path.suffix](file, table)


def _write_csv(file: IO[bytes], table: EmbeddingTable) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", *table.columns, *([] if table.reasons is None else ["reason"])])
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
        fields.append(("reason", pyarrow.string()))
    with parquet.ParquetWriter(file, pyarrow.schema(fields)) as writer:
        for rows, ids, embeddings in table:
            columns = {"id": [_encodable(graph_id) for graph_id in ids]} | {
                name: embeddings[:, k] for k, name in enumerate(table.columns)
            }
            if table.reasons is not None:
                columns["reason"] = list(table.reasons[rows])
            writer.write_table(pyarrow.table(columns, schema=writer.schema))


def _encodable(graph_id: int | str) -> int | str:
    """An id without lone surrogates, which UTF-8 cannot encode."""
    return graph_id.encode("utf-8", "replace").decode() if isinstance(graph_id, str) else graph_id


# Reading


Embeddings = tuple[NDArray[np.float32], list[int | str]]


def read_embeddings(path: str | Path) -> Embeddings:
    """Read a .npz, .csv or .parquet file written by `graphsc embed`.

    Returns:
        Embeddings (graphs x dimensions) and the id of each graph.

    Raises:
        DataError: The file is of another format, or a row has NaN.
    """
    source = Path(path)
    if not source.is_file():
        raise NotFoundError("there is no such file", where=str(source))
    if source.suffix not in ENDINGS:
        raise DataError(
            f"cannot read embeddings from a {source.suffix or 'nameless'} file", where=str(source),
            hint=f"give a run's folder, or a file that ends in {', '.join(ENDINGS)}",
        )  # fmt: skip
    readers = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
    try:
        embeddings, ids = readers[source.suffix](source)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            f"not a file of embeddings: {error}", where=str(source), hint="write one with graphsc embed"
        ) from error
    if embeddings.ndim != 2 or len(embeddings) != len(ids) or not embeddings.size:
        raise DataError(f"{len(ids)} ids for embeddings of shape {embeddings.shape}", where=str(source))
    if not np.isfinite(embeddings).all():
        raise DataError("an embedding holds NaN or infinity", where=str(source))
    return embeddings, ids


def _read_npz(path: Path) -> Embeddings:
    with np.load(path) as stored:
        return stored["vectors"].astype(np.float32), stored["ids"].tolist()


def _read_csv(path: Path) -> Embeddings:
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        if header[:1] != ["id"]:
            raise ValueError("its first column is not called id")
        table = [line for line in lines if line]
    embeddings = np.array([[float(cell) for cell in line[1:]] for line in table], np.float32)
    return embeddings, [_unescaped(line[0]) for line in table]


def _read_parquet(path: Path) -> Embeddings:
    table = require("pyarrow.parquet").read_table(path)
    columns = [name for name in table.column_names if name != "id"]
    embeddings = np.stack([table[name].to_numpy() for name in columns], axis=1).astype(np.float32)
    return embeddings, table["id"].to_pylist()


def _unescaped(cell: str) -> str:
    """An id without the apostrophe that `safe_cell` puts before formulas."""
    escaped = len(cell) > 1 and cell[0] == "'" and cell[1] in "=+-@\t\r"
    return cell[1:] if escaped else cell
