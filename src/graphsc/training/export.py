"""Vectors as files that other tools read, with the ids they belong to."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
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


def write_vectors(
    path: Path, rows: NDArray[np.floating], ids: Ids, reasons: Sequence[str] | None = None
) -> None:
    """One row a graph: its id, then its vector, then why it has none where `reasons` are given."""
    check_target(path)
    names = [f"v{index}" for index in range(rows.shape[1])]
    if path.suffix == ".npz":
        arrays = {"vectors": rows, "ids": np.array(list(ids))}
        if reasons is not None:
            arrays["reasons"] = np.array(reasons)
        with atomic_write(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]
    elif path.suffix == ".csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        said = [[]] * len(rows) if reasons is None else [[safe_cell(reason)] for reason in reasons]
        writer.writerow(["id", *names, *([] if reasons is None else ["reason"])])
        for identity, row, reason in zip(ids, rows.tolist(), said, strict=True):
            writer.writerow([safe_cell(identity), *row, *reason])
        write_atomic(path, text.getvalue())
    else:
        pyarrow, parquet = require("pyarrow"), require("pyarrow.parquet")
        columns = {"id": list(ids)} | {name: rows[:, k] for k, name in enumerate(names)}
        if reasons is not None:
            columns["reason"] = list(reasons)
        with atomic_write(path) as file:
            parquet.write_table(pyarrow.table(columns), file)
