"""Vectors back from the files that `graphsc embed` writes, with the ids they belong to."""

from __future__ import annotations

import csv
import zipfile
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError, NotFoundError
from graphsc.core.extras import require
from graphsc.training.export import ENDINGS

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
