"""Vectors as files that other tools read, with the ids they belong to; written a chunk at a time."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import CannotWriteError, ConfigError, DamagedFileError, DataError, NotFoundError
from graphsc.core.files import (
    InUseError,
    StopRequest,
    atomic_write,
    cannot_write,
    file_lock,
    remove_stray_files,
    stop_requests,
    write_atomic,
)
from graphsc.core.registry import require
from graphsc.core.tables import safe_cell
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.molecules.rejected import every_row
from graphsc.training.model_io import Model

ENDINGS = (".npz", ".csv", ".parquet")
CHUNK = 8192  # rows; a few megabytes at any usual width

VectorChunks = Iterator[NDArray[np.floating]]


@dataclass(frozen=True)
class Rows:
    """All rows to be written: `vectors` begins anew at each call and gives `CHUNK` of them at a time."""

    vectors: Callable[[], VectorChunks]
    dimensions: int
    ids: Ids
    reasons: Sequence[str] | None = None  # why a row has no vector, or "" where it has one

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def names(self) -> list[str]:
        return [f"v{index}" for index in range(self.dimensions)]


def check_target(path: Path) -> None:
    """Refuse a file we could not write before any work is done."""
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write vectors to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(ENDINGS)}",
        )  # fmt: skip
    if path.suffix == ".parquet":
        require("pyarrow.parquet")


def write_vectors(
    path: Path, rows: NDArray[np.floating], ids: Ids, reasons: Sequence[str] | None = None
) -> None:
    """One row a graph: its id, then its vector, then why it has none where `reasons` are given."""

    def vectors() -> VectorChunks:
        yield from (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))

    write_rows(path, Rows(vectors, rows.shape[1], ids, reasons))


def write_rows(path: Path, rows: Rows) -> None:
    """The same from rows that need not be in memory; whole or not at all."""
    check_target(path)
    writers = {".npz": _to_npz, ".csv": _to_csv, ".parquet": _to_parquet}
    with atomic_write(path) as file:
        writers[path.suffix](file, rows)


def _chunks(rows: Rows) -> Iterator[tuple[int, list[int] | list[str], NDArray[np.floating]]]:
    """Where a chunk starts, its ids, its vectors."""
    start = 0
    for vectors in rows.vectors():
        yield start, _ids(rows.ids, start, start + len(vectors)), vectors
        start += len(vectors)


def _ids(ids: Ids, start: int, stop: int) -> list[int] | list[str]:
    part = ids.take(np.arange(start, min(stop, len(ids))))
    return list(part) if isinstance(part, Strings) else part.tolist()


def _to_csv(file: IO[bytes], rows: Rows) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", errors="replace", newline="", write_through=False)
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["id", *rows.names, *([] if rows.reasons is None else ["reason"])])
    for start, ids, vectors in _chunks(rows):
        said = None if rows.reasons is None else rows.reasons[start : start + len(ids)]
        for k, (identity, vector) in enumerate(zip(ids, vectors.tolist(), strict=True)):
            writer.writerow([safe_cell(identity), *vector, *([] if said is None else [safe_cell(said[k])])])
    text.detach()  # flushes; the file stays open for whoever opened it


def _to_npz(file: IO[bytes], rows: Rows) -> None:
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        _member(archive, "vectors", np.dtype(np.float32), (len(rows), rows.dimensions), rows.vectors())
        if isinstance(rows.ids, Strings):
            _texts(archive, "ids", rows.ids)
        else:
            _member(archive, "ids", np.dtype(np.int64), (len(rows),), iter([rows.ids]))
        if rows.reasons is not None:
            _texts(archive, "reasons", rows.reasons)


def _texts(archive: zipfile.ZipFile, name: str, texts: Strings | Sequence[str]) -> None:
    """An array of texts, as wide as the widest of them."""
    dtype = np.dtype(f"U{max(1, max(map(len, texts), default=1))}")
    each = iter(texts)
    parts = (np.array(part, dtype) for part in iter(lambda: list(islice(each, CHUNK)), []))
    _member(archive, name, dtype, (len(texts),), parts)


def _member(
    archive: zipfile.ZipFile,
    name: str,
    dtype: np.dtype[np.generic],
    shape: tuple[int, ...],
    parts: Iterator[NDArray[np.generic]],
) -> None:
    """One array of an .npz, with a date that is always the same, so that equal rows are equal files."""
    about = zipfile.ZipInfo(f"{name}.npy")
    about.compress_type = zipfile.ZIP_DEFLATED
    with archive.open(about, "w", force_zip64=True) as member:
        np.lib.format.write_array_header_2_0(
            member, {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
        )
        for part in parts:
            member.write(np.ascontiguousarray(part, dtype).tobytes())


def _to_parquet(file: IO[bytes], rows: Rows) -> None:
    pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    kind = pyarrow.string() if isinstance(rows.ids, Strings) else pyarrow.int64()
    fields = [("id", kind), *((name, pyarrow.float32()) for name in rows.names)]
    if rows.reasons is not None:
        fields.append(("reason", pyarrow.string()))
    with parquet.ParquetWriter(file, pyarrow.schema(fields)) as writer:
        for start, ids, vectors in _chunks(rows):
            columns = {"id": [_whole(identity) for identity in ids]} | {
                name: vectors[:, k] for k, name in enumerate(rows.names)
            }
            if rows.reasons is not None:
                columns["reason"] = list(rows.reasons[start : start + len(ids)])
            writer.write_table(pyarrow.table(columns, schema=writer.schema))


def _whole(identity: int | str) -> int | str:
    """An id without halves of characters, which no other tool would read."""
    return identity.encode("utf-8", "replace").decode() if isinstance(identity, str) else identity


# Vectors back from the files that `graphsc embed` writes, with the ids they belong to.


Vectors = tuple[NDArray[np.float32], list[int | str]]


def read_vectors(path: str | Path) -> Vectors:
    """Rows and ids of an .npz, .csv or .parquet file, as `write_vectors` wrote them."""
    source = Path(path)
    if not source.is_file():
        raise NotFoundError("there is no such file", where=str(source))
    if source.suffix not in ENDINGS:
        raise DataError(
            f"vectors are not read from a {source.suffix or 'nameless'} file", where=str(source),
            hint=f"give a run's folder, or a file that ends in {', '.join(ENDINGS)}",
        )  # fmt: skip
    readers = {".npz": _from_npz, ".csv": _from_csv, ".parquet": _from_parquet}
    try:
        rows, ids = readers[source.suffix](source)
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(
            f"this is not a file of vectors: {error}", where=str(source), hint="write one with graphsc embed"
        ) from error
    if rows.ndim != 2 or len(rows) != len(ids) or not rows.size:
        raise DataError(f"{len(ids)} ids for vectors of shape {rows.shape}", where=str(source))
    if not np.isfinite(rows).all():
        raise DataError("a vector holds NaN or infinity", where=str(source))
    return rows, ids


def _from_npz(path: Path) -> Vectors:
    with np.load(path) as stored:
        return stored["vectors"].astype(np.float32), stored["ids"].tolist()


def _from_csv(path: Path) -> Vectors:
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(file)
        header = next(lines, [])
        if header[:1] != ["id"]:
            raise ValueError("its first column is not called id")
        table = [line for line in lines if line]
    rows = np.array([[float(cell) for cell in line[1:]] for line in table], np.float32)
    return rows, [_unquoted(line[0]) for line in table]


def _from_parquet(path: Path) -> Vectors:
    table = require("pyarrow.parquet").read_table(path)
    names = [name for name in table.column_names if name != "id"]
    rows = np.stack([table[name].to_numpy() for name in names], axis=1).astype(np.float32)
    return rows, table["id"].to_pylist()


def _unquoted(cell: str) -> str:
    """An id without the apostrophe that keeps spreadsheets from taking it for a formula."""
    guarded = len(cell) > 1 and cell[0] == "'" and cell[1] in "=+-@\t\r"
    return cell[1:] if guarded else cell


# Rows of a long embedding on their way to a file: kept chunk by chunk, so that a kill loses one of them.
#
# Beside the target lies a folder with one flat file of numbers and a note that holds the hash of every
# chunk in it. The note is written after its chunk has reached the disk; whatever stands behind what it
# vouches for is cut off at the next start. So every row is there exactly once, however often the work was
# stopped.


class EmbeddingStore:
    """Chunks of rows, each of `chunk` rows but the last, of one embedding that `identity` names."""

    def __init__(self, target: Path, identity: dict[str, object], dimensions: int, chunk: int) -> None:
        self.folder = target.with_name(f".{target.name}.rows")
        self.identity = json.loads(json.dumps(identity))
        self.shape = (chunk, dimensions)
        self.hashes: list[str] = []
        self._rows, self._note = self.folder / "rows", self.folder / "done.json"

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder and find out what is done; the folder goes once the work inside ends well."""
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.folder / "lock"))
                remove_stray_files(self.folder)
                self._rows.touch()
                self._recover()
            except InUseError as error:
                raise CannotWriteError(
                    f"this file is being written by process {error.owner}", where=str(self.folder)
                ) from error
            except OSError as error:
                raise cannot_write(self.folder, error) from error
            yield
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def done(self) -> int:
        """How many chunks are kept."""
        return len(self.hashes)

    def append(self, rows: NDArray[np.float32]) -> None:
        """Keep the next chunk."""
        content = np.ascontiguousarray(rows, "<f4").tobytes()
        try:
            with open(self._rows, "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise cannot_write(self._rows, error) from error
        self.hashes.append(hashlib.sha256(content).hexdigest())
        write_atomic(self._note, json.dumps({"identity": self.identity, "sha256": self.hashes}))

    def chunks(self) -> Iterator[NDArray[np.float32]]:
        """What is kept, in order, each chunk verified."""
        with open(self._rows, "rb") as file:
            for expected in self.hashes:
                content = file.read(self._bytes)
                if hashlib.sha256(content).hexdigest() != expected:
                    raise DamagedFileError(
                        "rows kept on the way are damaged", where=str(self._rows),
                        hint="run the same command to make them again",
                    )  # fmt: skip
                yield np.frombuffer(content, "<f4").reshape(-1, self.shape[1])

    @property
    def _bytes(self) -> int:
        return 4 * self.shape[0] * self.shape[1]

    def _recover(self) -> None:
        """Take what the note vouches for, up to the first chunk that is not what it says."""
        try:
            note = json.loads(self._note.read_bytes())
            if note["identity"] == self.identity:
                self.hashes = [str(one) for one in note["sha256"]]
        except (OSError, ValueError, TypeError, KeyError):
            self.hashes = []
        good, size = 0, 0
        try:
            for rows in self.chunks():
                good, size = good + 1, size + rows.nbytes
        except (DamagedFileError, ValueError):
            self.hashes = self.hashes[:good]
        os.truncate(self._rows, size)


# Embed any number of graphs into a file, with memory for a few thousand; a stop or a kill loses little.


Progress = Callable[[int, int], None]  # graphs done, graphs in all


def embed_to_file(
    model: Model,
    collection: GraphCollection,
    target: Path,
    *,
    identity: str = "",
    progress: Progress = lambda done, total: None,
    chunk: int = CHUNK,
) -> int:
    """Write one row a graph; gives how many rows there are.

    Rows of the source that held no molecule are rows here, too, without a vector but with the reason.
    `identity` names the model; together with the graphs it decides whether what an interrupted call has left
    beside the target is gone on with. Few graphs are embedded in one go and leave nothing on the way.
    """
    check_target(target)
    remove_stray_files(target.parent)
    known = model.fit_features(collection)
    width = model.dimensions
    if len(known) <= chunk:
        rows = model.embed(known)
        return _write(target, collection, width, lambda: iter([rows]), StopRequest())
    said: dict[str, object] = {"model": identity, "graphs": collection.content_hash, "chunk": chunk}
    store = EmbeddingStore(target, said, width, chunk)
    with store.opened(), stop_requests() as request:
        for start in range(store.done * chunk, len(known), chunk):
            progress(start, len(known))
            store.append(model.embed(known[start : start + chunk]))
            request.check(f"{min(start + chunk, len(known)):,} of {len(known):,} graphs are embedded")
        progress(len(known), len(known))
        return _write(target, collection, width, store.chunks, request)


def _write(
    target: Path,
    collection: GraphCollection,
    width: int,
    vectors: Callable[[], Iterator[NDArray[np.float32]]],
    request: StopRequest,
) -> int:
    """All rows of the source, those without a molecule among them."""

    def checked() -> VectorChunks:
        for chunk in vectors():
            request.check("all graphs are embedded, the file is not written yet")
            yield chunk

    if not collection.rejected:
        write_rows(target, Rows(checked, width, collection.ids))
        return len(collection)
    nothing = np.empty((len(collection), 0), np.float32)
    _, ids, reasons = every_row(nothing, collection.ids, collection.rejected)
    lost = np.zeros(len(ids), dtype=bool)
    lost[[one.row for one in collection.rejected]] = True
    write_rows(target, Rows(lambda: _with_gaps(checked(), lost, width), width, ids, reasons))
    return len(ids)


def _with_gaps(chunks: VectorChunks, lost: NDArray[np.bool_], width: int) -> VectorChunks:
    """The rows of `chunks` in the places that are not `lost`, NaN in the others; a chunk for each given."""
    kept = np.flatnonzero(~lost)
    first, taken = 0, 0
    for rows in chunks:
        taken += len(rows)
        last = int(kept[taken]) if taken < len(kept) else len(lost)
        full = np.full((last - first, width), np.nan, dtype=np.float32)
        full[~lost[first:last]] = rows
        yield full
        first = last
