"""Files of embeddings, read without torch: the whole table, or only its ids.

`graphsc.training.embed_io` writes them.
"""

from __future__ import annotations

import csv
import hashlib
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.registry import require
from graphsc.core.serialization import check_memory

ENDINGS = (".npz", ".csv", ".parquet")
LINE_CAP = 2**24  # characters of a line of embeddings
REASON = "reason"  # column of a file in which some rows have no embedding
HASH = "graphsc_sha256"  # of ids and embeddings, because Parquet has no check of its header


class ContentHash:
    """A hash of ids and embeddings that does not depend on how the rows are divided."""

    def __init__(self) -> None:
        self._ids, self._rows, self._width = hashlib.sha256(), hashlib.sha256(), 0

    def update(self, ids: Sequence[int | str], embeddings: NDArray[np.floating]) -> None:
        self._ids.update("".join(f"{graph_id!r}\n" for graph_id in ids).encode())
        self._rows.update(np.ascontiguousarray(embeddings, "<f4").tobytes())
        self._width = embeddings.shape[1]

    def hexdigest(self) -> str:
        text = f"{self._width} {self._ids.hexdigest()} {self._rows.hexdigest()}"
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class StoredEmbeddings:
    """The rows of a file that have an embedding, and how many have none."""

    rows: NDArray[np.float32]  # graphs x dimensions
    ids: list[int | str]
    left_out: int = 0  # rows of the file without an embedding, such as those without a molecule
    reasons: tuple[str, ...] = ()  # of these rows, if the file has them


def read_embeddings(path: str | Path, *, keep_empty: bool = False) -> StoredEmbeddings:
    """Read a .npz, .csv or .parquet file written by `graphsc embed`; rows of NaN are left out and counted.

    With `keep_empty` they are kept, so that rows have the positions that they have in the file.

    Raises:
        DataError: The file is of another format, or no row has an embedding.
    """
    source = _checked(path)
    readers = {".npz": _read_npz, ".csv": _read_csv, ".parquet": _read_parquet}
    with _format_errors(source):
        embeddings, ids, reasons = readers[source.suffix](source)
    if embeddings.ndim != 2 or len(embeddings) != len(ids) or not embeddings.size:
        raise DataError(f"{len(ids)} ids for embeddings of shape {embeddings.shape}", where=str(source))
    if len(reasons) not in (0, len(ids)):
        raise DataError(f"{len(reasons)} reasons for {len(ids)} rows", where=str(source))
    # `embed` writes a row without an embedding as NaN throughout; any other NaN or infinity is damage.
    empty = np.isnan(embeddings).all(axis=1)
    if not np.isfinite(embeddings[~empty]).all():
        raise DataError("an embedding holds NaN or infinity", where=str(source))
    if empty.all():
        raise DataError(f"none of {len(ids):,} rows has an embedding", where=str(source))
    if keep_empty or not empty.any():
        return StoredEmbeddings(embeddings, ids)
    kept = np.flatnonzero(~empty).tolist()
    lost = np.flatnonzero(empty).tolist()
    return StoredEmbeddings(
        embeddings[kept], [ids[k] for k in kept], len(lost), tuple(reasons[k] for k in lost if reasons)
    )


def _checked(path: str | Path) -> Path:
    source = Path(path)
    if not source.is_file():
        raise NotFoundError("there is no such file", where=str(source))
    if source.suffix not in ENDINGS:
        raise DataError(
            f"cannot read embeddings from a {source.suffix or 'nameless'} file", where=str(source),
            hint=f"give a run's folder, or a file that ends in {', '.join(ENDINGS)}",
        )  # fmt: skip
    return source


@contextmanager
def _format_errors(source: Path) -> Iterator[None]:
    """Say that a file is no file of embeddings, whatever its reader has met."""
    try:
        yield
    except (
        OSError, ValueError, KeyError, MemoryError, EOFError, RuntimeError, csv.Error, zipfile.BadZipFile,
        zlib.error,
    ) as error:  # fmt: skip
        raise DataError(
            f"not a file of embeddings: {error}", where=str(source), hint="write one with graphsc embed"
        ) from error


_Columns = tuple[NDArray[np.float32], list[int | str], list[str]]  # rows, ids, reasons if there are any


def _read_npz(path: Path) -> _Columns:
    with zipfile.ZipFile(path) as archive:  # a small archive may claim to hold any number of zeros
        check_memory(sum(member.file_size for member in archive.infolist()), str(path))
    with np.load(path) as stored:
        reasons = stored["reasons"].tolist() if "reasons" in stored else []
        return stored["vectors"].astype(np.float32), stored["ids"].tolist(), reasons


def _read_csv(path: Path) -> _Columns:
    with open(path, newline="", encoding="utf-8") as file:
        lines = csv.reader(_short_lines(file))
        header = next(lines, [])
        if header[:1] != ["id"]:
            raise ValueError("its first column is not called id")
        table = [line for line in lines if line]
    last = len(header) - (header[-1] == REASON)
    if any(len(line) != len(header) for line in table):
        raise ValueError("a line has another number of cells than the header")
    embeddings = np.array([[float(cell) for cell in line[1:last]] for line in table], np.float32)
    reasons = [line[last] for line in table] if last < len(header) else []
    return embeddings, [_unescaped(line[0]) for line in table], reasons


def _short_lines(file: IO[str]) -> Iterator[str]:
    """The lines of a text file; a file without line ends would be one line of any length."""
    while line := file.readline(LINE_CAP):
        if len(line) == LINE_CAP:
            raise ValueError(f"a line has more than {LINE_CAP:,} characters")
        yield line


def _read_parquet(path: Path) -> _Columns:
    with require("pyarrow.parquet").ParquetFile(path) as file:
        table, written = file.read(), (file.metadata.metadata or {}).get(HASH.encode())
    columns = [name for name in table.column_names if name not in ("id", REASON)]
    embeddings = np.stack([table[name].to_numpy() for name in columns], axis=1).astype(np.float32)
    ids = table["id"].to_pylist()
    content = ContentHash()
    content.update(ids, embeddings)
    if written is not None and written != content.hexdigest().encode():  # older versions wrote none
        raise ValueError("the rows do not match their hash")
    return embeddings, ids, table[REASON].to_pylist() if REASON in table.column_names else []


def _unescaped(cell: str) -> str:
    """An id without the apostrophe that `safe_cell` puts before formulas."""
    escaped = len(cell) > 1 and cell[0] == "'" and cell[1] in "=+-@\t\r"
    return cell[1:] if escaped else cell


def read_embedding_ids(path: str | Path) -> list[str]:
    """Only the ids of a file of embeddings, as text and in the order of its rows, also of rows without one.

    The rest of the file is not checked.

    Raises:
        DataError: The file is of another format.
    """
    source = _checked(path)
    readers = {".npz": _npz_ids, ".csv": _csv_ids, ".parquet": _parquet_ids}
    with _format_errors(source):
        return list(map(str, readers[source.suffix](source)))


def _npz_ids(path: Path) -> list[int | str]:
    with zipfile.ZipFile(path) as archive:
        check_memory(archive.getinfo("ids.npy").file_size, str(path))
    with np.load(path) as stored:
        ids: list[int | str] = stored["ids"].tolist()
    return ids


def _csv_ids(path: Path) -> list[int | str]:
    with open(path, newline="", encoding="utf-8") as file:
        lines = list(_first_cells(_short_lines(file)))
    if lines[:1] != ["id"]:
        raise ValueError("its first column is not called id")
    return [_unescaped(cell) for cell in lines[1:]]


def _first_cells(lines: Iterator[str]) -> Iterator[str]:
    """The first cell of each row; the others are not divided, because a row may have thousands."""
    for line in lines:
        if '"' in line:
            yield from (cells[0] for cells in csv.reader(chain([line], lines)) if cells)
            return
        if cell := line.rstrip("\r\n"):
            yield cell.partition(",")[0]


def _parquet_ids(path: Path) -> list[int | str]:
    with require("pyarrow.parquet").ParquetFile(path) as file:
        ids: list[int | str] = file.read(["id"])["id"].to_pylist()
    return ids
