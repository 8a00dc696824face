"""Predictions for any table of molecules, row for row: in chunks, and going on after a stop.

Chunks are predicted one after the other and kept in a hidden folder beside the target. The last step goes
through the source once more and writes its cells with the predictions beside them. Neither needs more memory
than a chunk.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.errors import ConfigError, DamagedFileError, DataError, NotFoundError
from graphsc.core.files import InUseError, StopRequest, atomic_write, file_lock, stop_requests
from graphsc.core.registry import require
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.core.tables import safe_cell
from graphsc.data.molecules.conversion import Plan, begin, chunk_to_collection
from graphsc.data.molecules.featurize import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.rows import ALL, Row, Source, chunks_of, hash_of, open_rows
from graphsc.data.readers.csv import NUMBER, kind_of, peek_header
from graphsc.evaluation.metrics import Kind
from graphsc.finetuning.model import Predictor, load_predictor, predictors_of
from graphsc.finetuning.result import column_names, mean_and_spread

# Predicted chunks on disk, each whole or not there at all.


Chunk = tuple[NDArray[np.float64], NDArray[np.float64], list[str]]  # mean, spread, reasons


class PredictedParts:
    """The folder of the chunks that are done."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, index: int) -> Path:
        return self.folder / f"part-{index:06d}.safetensors"

    def keep(
        self, index: int, mean: NDArray[np.float64], spread: NDArray[np.float64], reasons: list[str]
    ) -> None:
        """Store a chunk; reasons only of the rows that have one."""
        lost = {str(place): reason for place, reason in enumerate(reasons) if reason}
        tensors = {"mean": torch.from_numpy(mean), "spread": torch.from_numpy(spread)}
        save_tensors(self.path(index), "predictions", tensors, {"reasons": json.dumps(lost)})

    def done(self, index: int, rows: int) -> bool:
        """Whether this chunk is there, whole and of so many rows."""
        if not self.path(index).exists():
            return False
        try:
            return len(self.load(index)[0]) == rows
        except (DamagedFileError, NotFoundError):
            return False

    def load(self, index: int) -> Chunk:
        """What `keep` kept."""
        tensors, facts = load_tensors(self.path(index), "predictions")
        reasons = [""] * len(tensors["mean"])
        for place, reason in json.loads(cast(str, facts["reasons"])).items():
            reasons[int(place)] = reason
        return tensors["mean"].numpy(), tensors["spread"].numpy(), reasons


# The table that predictions leave in: the source's own columns, then a prediction and its spread a task.


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


CHUNK = 2_000  # rows; a stop or a kill loses so many at most


@dataclass(frozen=True)
class Predicted:
    """What a prediction has written."""

    path: Path
    rows: int
    rejected: int
    models: int
    tasks: tuple[str, ...]


def predict_table(
    model: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    smiles_column: str | None = None,
    rule: str = "best",
    chunk: int = CHUNK,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Predicted:
    """Write the rows of a table with a prediction for each; the same call goes on after a stop or a kill.

    All columns of the source are kept. Each task gets its probability (a number, for a regression) averaged
    over the seeds of the run, and the deviation over them as a measure of doubt. Rows without a molecule
    are kept too, without a prediction but with the reason.
    """
    if chunk < 1 or rule not in ("best", "last"):
        raise ConfigError("chunk must be at least 1 and rule best or last")
    target = Path(out)
    check_table(target)
    files = predictors_of(model, rule)
    predictors = [load_predictor(file) for file in files]
    _check_alike(predictors, files)
    rows = _rows_of(source, smiles_column)
    total = sum(1 for _ in rows.rows())
    if not total:
        raise DataError("there is no molecule in this source", where=rows.where)
    parts = PredictedParts(target.with_name(f".{target.name}.parts"))
    wanted = [__version__, rows.fingerprint(), smiles_column, chunk, [hash_of(file) for file in files]]
    try:
        with file_lock(parts.folder / "lock"):
            begin(parts.folder, json.dumps(wanted))
            with stop_requests() as request:
                _fill(parts, rows, predictors, total, chunk, progress, request)
                lost = _write(target, parts, rows, predictors[0], chunk, request)
            shutil.rmtree(parts.folder, ignore_errors=True)
    except InUseError as error:
        raise DataError(f"this file is being written by process {error.owner}", where=str(out)) from error
    except OSError as error:
        raise DataError(f"cannot write: {error.strerror}", where=str(out)) from error
    return Predicted(target, total, lost, len(predictors), predictors[0].tasks)


def _rows_of(source: str | Path, smiles_column: str | None) -> Source:
    """Rows with all their cells: whatever is not the SMILES comes along as text."""
    path = Path(source)
    if not path.exists():
        from graphsc.data.datasets.catalog import NAMED, locate

        entry = NAMED.get(str(source).lower())
        if entry is None or entry.door != "smiles":
            raise NotFoundError("there is no such table", where=str(source), hint="check the path")
        path = locate(entry)
    table = kind_of(path) in (".csv", ".tsv")
    return open_rows(path, smiles_column=smiles_column, label_columns=ALL if table else None)


def _fill(
    parts: PredictedParts,
    rows: Source,
    predictors: Sequence[Predictor],
    total: int,
    chunk: int,
    progress: Callable[[int, int], None],
    request: StopRequest,
) -> None:
    """Predict every chunk that is not there yet."""
    plan = Plan(rows.name, "auto", (), {}, False, MAX_ATOMS, MAX_LENGTH)
    told = False
    for index, some in enumerate(chunks_of(rows.rows(), chunk)):
        if not parts.done(index, len(some)):
            if not told:
                progress(some[0].number, total)  # where this call begins says how fast it is
                told = True
            mean, spread, reasons = predict_rows(some, predictors, plan)
            parts.keep(index, mean, spread, reasons)
            progress(some[-1].number + 1, total)
        request.check(f"{some[-1].number + 1:,} of {total:,} rows are predicted")
    progress(total, total)


def predict_rows(
    rows: Sequence[Row], predictors: Sequence[Predictor], plan: Plan
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Mean, spread and reason for every row of a chunk; NaN where there is no molecule."""
    bare = [row._replace(labels=(), id=None) for row in rows]
    collection, outcome = chunk_to_collection(bare, plan)
    shape = (len(rows), len(predictors[0].tasks))
    mean, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    reasons = [""] * len(rows)
    for one in outcome.rejected:
        reasons[one.row - rows[0].number] = one.reason
    if collection is not None:
        there = np.array([not reason for reason in reasons])
        mean[there], spread[there] = mean_and_spread([each.predict(collection) for each in predictors])
    return mean, spread, reasons


def _write(
    target: Path, parts: PredictedParts, rows: Source, predictor: Predictor, chunk: int, request: StopRequest
) -> int:
    """The source's cells with what was predicted beside them; how many rows have no prediction."""
    lost = 0
    with TableWriter(target, rows, predictor.tasks, predictor.kind) as writer:
        for index, some in enumerate(chunks_of(rows.rows(), chunk)):
            mean, spread, reasons = parts.load(index)
            writer.add(some, mean, spread, reasons)
            lost += sum(map(bool, reasons))
            request.check("all rows are predicted, the file is not written yet")
    return lost


def _check_alike(predictors: Sequence[Predictor], files: Sequence[Path]) -> None:
    first = predictors[0]
    for one, file in zip(predictors, files, strict=True):
        if (one.tasks, one.kind) != (first.tasks, first.kind):
            raise ConfigError("the models of this run predict different things", where=str(file))
