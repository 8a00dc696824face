"""The table that predictions leave in: the source's own columns, then a prediction and its spread a task."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from graphsc.core.cells import safe_cell
from graphsc.core.errors import ConfigError
from graphsc.core.extras import require
from graphsc.core.files import atomic_write
from graphsc.data.molecules.rows import Row, Source
from graphsc.data.sheet import kind_of, peek_header
from graphsc.data.sheet_columns import NUMBER
from graphsc.evaluation.tasks import Kind
from graphsc.transfer.held import column_names

ENDINGS = (".csv", ".parquet")


def check_table(path: Path) -> None:
    """Refuse a file we could not write before any work is done."""
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write predictions to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {' or '.join(ENDINGS)}",
        )  # fmt: skip
    if path.suffix == ".parquet":
        require("pyarrow.parquet")


class TableWriter:
    """Writes rows chunk by chunk; the file appears when the last one is in it."""

    def __init__(self, path: Path, source: Source, tasks: Sequence[str], kind: Kind) -> None:
        self.path = path
        where = Path(source.where)
        # As the source has its columns; one without a name is not among those that can be named.
        table = kind_of(where) in (".csv", ".tsv")
        header = [name for name in peek_header(where) if name] if table else ["smiles"]
        self.own = header + (["id"] if source.has_ids and not table else [])
        smiles = next((name for name in header if name not in source.tasks), header[0])
        self.at = (
            [None if name == smiles else source.tasks.index(name) for name in header] if table else [None]
        )
        pairs = column_names(tasks, kind, self.own)
        self.names = [name for pair in pairs for name in pair]
        self.reason = "reason"
        while self.reason in self.own or self.reason in self.names:
            self.reason += "_new"
        self._stack = ExitStack()

    def __enter__(self) -> TableWriter:
        self._file: IO[bytes] = self._stack.enter_context(atomic_write(self.path))
        if self.path.suffix == ".csv":
            self._lines([[*map(safe_cell, (*self.own, *self.names, self.reason))]])
        else:
            self._arrow: ModuleType = require("pyarrow")
            fields: list[tuple[str, Any]] = [(name, self._arrow.string()) for name in self.own]
            fields += [(name, self._arrow.float64()) for name in self.names]
            fields.append((self.reason, self._arrow.string()))
            self._schema = self._arrow.schema(fields)
            writer = require("pyarrow.parquet").ParquetWriter(self._file, self._schema)
            self._writer = self._stack.enter_context(writer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def add(
        self,
        rows: Sequence[Row],
        mean: NDArray[np.float64],
        spread: NDArray[np.float64],
        reasons: Sequence[str],
    ) -> None:
        """The next rows, in the order of the source."""
        numbers = np.stack([mean, spread], axis=2).reshape(len(rows), -1)
        if self.path.suffix == ".csv":
            self._lines(
                [
                    *map(_safe, self._cells(row)),
                    *("" if np.isnan(number) else f"{number:.6g}" for number in values),
                    safe_cell(reason),
                ]
                for row, values, reason in zip(rows, numbers, reasons, strict=True)
            )
            return
        cells = [self._cells(row) for row in rows]
        columns: list[object] = [list(column) for column in zip(*cells, strict=True)]
        # Missing, not NaN: a reader of Parquet knows the difference.
        columns += [self._arrow.array(column, from_pandas=True) for column in numbers.T]
        columns.append([reason or None for reason in reasons])
        self._writer.write_table(self._arrow.table(columns, schema=self._schema))

    def _cells(self, row: Row) -> list[str]:
        found = [row.smiles if place is None else row.labels[place] for place in self.at]
        return found if len(found) == len(self.own) else [*found, row.id or ""]

    def _lines(self, lines: Any) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        self._file.write(text.getvalue().encode("utf-8", "replace"))


def _safe(cell: str) -> str:
    """A cell that no spreadsheet takes for a formula; a number stays one, also below zero."""
    return cell if NUMBER.fullmatch(cell) else safe_cell(cell)
