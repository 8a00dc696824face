"""Predictions of fine-tuned models for every row of a table of molecules.

Rows are predicted in chunks, which are stored beside the target. A second pass over the source writes its
columns with the predictions appended. Neither pass needs more memory than one chunk.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.chunks import ChunkStore, open_chunks
from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.files import StopRequest, atomic_write, stop_requests
from graphsc.core.registry import require
from graphsc.core.tables import safe_cell
from graphsc.data.molecules.conversion import Plan, chunk_to_collection
from graphsc.data.molecules.featurize import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.rows import ALL, Row, Source, chunks_of, hash_of, open_rows
from graphsc.data.readers.csv import NUMBER, read_header, table_suffix
from graphsc.evaluation.metrics import Kind
from graphsc.finetuning.model import Predictor, load_predictor, predictors_of
from graphsc.finetuning.result import column_names, mean_and_spread

ENDINGS = (".csv", ".parquet")
CHUNK = 2_000  # rows


@dataclass(frozen=True)
class Predicted:
    """Summary of a table of predictions."""

    path: Path
    rows: int
    rejected: int  # rows without a usable molecule
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
    """Write a table with a prediction for each of its rows.

    All columns of the source are kept. Each task gets two columns: the probability (or the value, for a
    regression), averaged over the seeds of the run, and the standard deviation over the seeds as a measure of
    uncertainty. Rows without a usable molecule have no prediction but the reason. After a stop or a kill, the
    same call resumes from the chunks that were finished.

    Args:
        model: The folder of a fine-tuning run, or one model file in it.
        source: A CSV or TSV file with a column of SMILES, a .smi file, or the name of a data set.
        out: FILE.csv or FILE.parquet.
        smiles_column: The column that holds the SMILES, if its name is not a usual one.
        rule: Which models to use: those of the `best` epoch on the validation set, or of the `last`.
        chunk: Rows per chunk.
        progress: Called with the rows done and the rows in total.

    Raises:
        DataError: The source cannot be read, or is empty.
        CannotWriteError: Another process writes this target, or the disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished chunks are kept.
    """
    if chunk < 1 or rule not in ("best", "last"):
        raise ConfigError("chunk must be at least 1 and rule best or last")
    target = Path(out)
    check_table(target)
    files = predictors_of(model, rule)
    predictors = [load_predictor(file) for file in files]
    _check_same_tasks(predictors, files)
    rows = _open_source(source, smiles_column)
    total = sum(1 for _ in rows.rows())
    if not total:
        raise DataError("there is no molecule in this source", where=rows.where)
    identity = {
        "verb": "predict",
        "version": __version__,
        "source": rows.fingerprint(),
        "smiles_column": smiles_column,
        "chunk": chunk,
        "models": [hash_of(file) for file in files],
    }
    with open_chunks(target, identity) as chunks, stop_requests() as request:
        _predict_chunks(chunks, rows, predictors, total, chunk, progress, request)
        rejected = _write_table(target, chunks, rows, predictors[0], total, chunk, request)
    return Predicted(target, total, rejected, len(predictors), predictors[0].tasks)


def _open_source(source: str | Path, smiles_column: str | None) -> Source:
    """Open a table with all its columns; those besides the SMILES are read as labels."""
    path = Path(source)
    if not path.exists():
        from graphsc.data.datasets.catalog import NAMED, locate

        entry = NAMED.get(str(source).lower())
        if entry is None or entry.reader != "smiles":
            raise NotFoundError("there is no such table", where=str(source), hint="check the path")
        path = locate(entry)
    is_table = table_suffix(path) in (".csv", ".tsv")
    return open_rows(path, smiles_column=smiles_column, label_columns=ALL if is_table else None)


def _check_same_tasks(predictors: Sequence[Predictor], files: Sequence[Path]) -> None:
    first = predictors[0]
    for predictor, file in zip(predictors, files, strict=True):
        if (predictor.tasks, predictor.kind) != (first.tasks, first.kind):
            raise ConfigError("the models of this run predict different tasks", where=str(file))


def _predict_chunks(
    chunks: ChunkStore,
    source: Source,
    predictors: Sequence[Predictor],
    total: int,
    size: int,
    progress: Callable[[int, int], None],
    request: StopRequest,
) -> None:
    """Predict and store every chunk that is not stored yet."""
    plan = Plan(source.name, "auto", (), {}, False, MAX_ATOMS, MAX_LENGTH)
    first = True
    for index, rows in enumerate(chunks_of(source.rows(), size)):
        done = rows[-1].number + 1
        if index not in chunks:
            if first:
                progress(rows[0].number, total)  # the time that is left is estimated from here on
                first = False
            mean, spread, reasons = predict_rows(rows, predictors, plan)
            facts = {"reasons": {str(row): reason for row, reason in enumerate(reasons) if reason}}
            chunks.write(index, np.stack([mean, spread]).astype("<f8").tobytes(), facts)
            progress(done, total)
        request.check(f"{done:,} of {total:,} rows are predicted")
    progress(total, total)


def predict_rows(
    rows: Sequence[Row], predictors: Sequence[Predictor], plan: Plan
) -> tuple[NDArray[np.float64], NDArray[np.float64], list[str]]:
    """Predict the rows of a chunk.

    Returns:
        Mean and standard deviation over the predictors (rows x tasks each, NaN without a molecule), and for
        each row the reason why it has no prediction ("" if it has one).
    """
    unlabelled = [row._replace(labels=(), id=None) for row in rows]
    collection, outcome = chunk_to_collection(unlabelled, plan)
    shape = (len(rows), len(predictors[0].tasks))
    mean, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    reasons = [""] * len(rows)
    for rejected in outcome.rejected:
        reasons[rejected.row - rows[0].number] = rejected.reason
    if collection is not None:
        valid = np.array([not reason for reason in reasons])
        predictions = [predictor.predict(collection) for predictor in predictors]
        mean[valid], spread[valid] = mean_and_spread(predictions)
    return mean, spread, reasons


def _write_table(
    target: Path,
    chunks: ChunkStore,
    source: Source,
    predictor: Predictor,
    total: int,
    size: int,
    request: StopRequest,
) -> int:
    """Write the columns of the source and the stored predictions; return how many rows have none."""
    changed = DataError(
        "the source changed while it was predicted", where=source.where, hint="run the same command again"
    )
    written = rejected = 0
    with PredictionWriter(target, source, predictor.tasks, predictor.kind) as writer:
        for index, rows in enumerate(chunks_of(source.rows(), size)):
            if index not in chunks:
                raise changed
            values = np.frombuffer(chunks.read(index), "<f8").reshape(2, -1, len(predictor.tasks))
            if values.shape[1] != len(rows):
                raise changed
            reason_of = cast(dict[str, str], chunks.facts(index)["reasons"])
            reasons = [reason_of.get(str(row), "") for row in range(len(rows))]
            writer.write(rows, values[0], values[1], reasons)
            written += len(rows)
            rejected += len(reason_of)
            request.check("all rows are predicted, the file is not written yet")
        if written != total:
            raise changed
    return rejected


def check_table(path: Path) -> None:
    """Refuse a file name of an unknown format, or one whose extra is not installed."""
    if path.suffix not in ENDINGS:
        raise ConfigError(
            f"cannot write predictions to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {' or '.join(ENDINGS)}",
        )  # fmt: skip
    if path.suffix == ".parquet":
        require("pyarrow.parquet")


class PredictionWriter:
    """Writes a table chunk by chunk; the file appears when the `with` block ends without an exception.

    The columns are those of the source, then a prediction and its standard deviation per task, then the
    reason why a row has no prediction. New columns whose name is taken get a suffix.
    """

    def __init__(self, path: Path, source: Source, tasks: Sequence[str], kind: Kind) -> None:
        self.path = path
        where = Path(source.where)
        is_table = table_suffix(where) in (".csv", ".tsv")
        # Columns without a name cannot be asked for, so the source does not read them.
        header = [name for name in read_header(where) if name] if is_table else ["smiles"]
        self._source_columns = header + (["id"] if source.has_ids and not is_table else [])
        smiles = next((name for name in header if name not in source.tasks), header[0])
        # For each column its position among the labels of a row, None for the SMILES.
        self._label_positions = [
            None if name == smiles or not is_table else source.tasks.index(name) for name in header
        ]
        pairs = column_names(tasks, kind, self._source_columns)
        self._task_columns = [name for pair in pairs for name in pair]
        self._reason_column = "reason"
        while self._reason_column in (*self._source_columns, *self._task_columns):
            self._reason_column += "_new"
        self._stack = ExitStack()

    def __enter__(self) -> PredictionWriter:
        self._file: IO[bytes] = self._stack.enter_context(atomic_write(self.path))
        if self.path.suffix == ".csv":
            columns = (*self._source_columns, *self._task_columns, self._reason_column)
            self._write_lines([[safe_cell(name) for name in columns]])
        else:
            self._arrow: ModuleType = require("pyarrow")
            fields: list[tuple[str, Any]] = [(name, self._arrow.string()) for name in self._source_columns]
            fields += [(name, self._arrow.float64()) for name in self._task_columns]
            fields.append((self._reason_column, self._arrow.string()))
            self._schema = self._arrow.schema(fields)
            writer = require("pyarrow.parquet").ParquetWriter(self._file, self._schema)
            self._parquet = self._stack.enter_context(writer)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def write(
        self,
        rows: Sequence[Row],
        mean: NDArray[np.float64],
        spread: NDArray[np.float64],
        reasons: Sequence[str],
    ) -> None:
        """Append rows in the order of the source; `mean` and `spread` are rows x tasks."""
        numbers = np.stack([mean, spread], axis=2).reshape(len(rows), -1)
        if self.path.suffix == ".csv":
            self._write_lines(
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
        # from_pandas: NaN becomes null, which Parquet distinguishes.
        columns += [self._arrow.array(column, from_pandas=True) for column in numbers.T]
        columns.append([reason or None for reason in reasons])
        self._parquet.write_table(self._arrow.table(columns, schema=self._schema))

    def _cells(self, row: Row) -> list[str]:
        cells = [
            row.smiles if position is None else row.labels[position] for position in self._label_positions
        ]
        return cells if len(cells) == len(self._source_columns) else [*cells, row.id or ""]

    def _write_lines(self, lines: Iterable[Sequence[str]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        self._file.write(text.getvalue().encode("utf-8", "replace"))


def _safe(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula; numbers stay as they are, also negative ones."""
    return cell if NUMBER.fullmatch(cell) else safe_cell(cell)
