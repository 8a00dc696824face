"""Vectors as files that other tools read, with the ids they belong to."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.cells import safe_cell
from graphsc.core.errors import ConfigError
from graphsc.core.extras import require
from graphsc.core.files import atomic_write, write_atomic
from graphsc.data.collection import Ids

ENDINGS = (".npz", ".csv", ".parquet")


def check_target(path: Path) -> None:
    """Refuse a file we could not write before any work is done."""
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write vectors to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(ENDINGS)}",
        )  # fmt: skip
    if path.suffix == ".parquet":
        require("pyarrow.parquet")


def write_vectors(path: Path, rows: NDArray[np.float32], ids: Ids) -> None:
    """One row a graph: its id, then its vector."""
    check_target(path)
    names = [f"v{index}" for index in range(rows.shape[1])]
    if path.suffix == ".npz":
        with atomic_write(path) as file:
            np.savez_compressed(file, vectors=rows, ids=np.array(list(ids)))
    elif path.suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["id", *names])
        for identity, row in zip(ids, rows.tolist(), strict=True):
            writer.writerow([safe_cell(identity), *row])
        write_atomic(path, text.getvalue())
    else:
        pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
        columns = {"id": list(ids)} | {name: rows[:, k] for k, name in enumerate(names)}
        with atomic_write(path) as file:
            parquet.write_table(pyarrow.table(columns), file)
