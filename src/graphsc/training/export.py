"""Vectors as files that other tools read, with the ids they belong to; written a chunk at a time."""

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

from graphsc.core.cells import safe_cell
from graphsc.core.errors import ConfigError
from graphsc.core.extras import require
from graphsc.core.files import atomic_write
from graphsc.data.collection import Ids
from graphsc.data.strings import Strings

ENDINGS = (".npz", ".csv", ".parquet")
CHUNK = 8192  # rows; a few megabytes at any usual width

Vectors = Iterator[NDArray[np.floating]]


@dataclass(frozen=True)
class Rows:
    """All rows to be written: `vectors` begins anew at each call and gives `CHUNK` of them at a time."""

    vectors: Callable[[], Vectors]
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

    def vectors() -> Vectors:
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
