"""Predictions of fine-tuned models for every row of a table of molecules, or of many tables.

Rows are predicted in chunks, which are stored beside the target. A second pass over the source writes its
columns with the predictions appended. Neither pass needs more memory than one chunk.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import ModuleType, TracebackType
from typing import IO, Any, cast

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.chunks import ChunkStore
from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.files import StopRequest, atomic_write
from graphsc.core.parallel import Sendable, Shared
from graphsc.core.parts import (
    Answer,
    Part,
    Progress,
    check_ending,
    compute_file,
    compute_files,
    find_parts,
    name_targets,
)
from graphsc.core.registry import require
from graphsc.core.tables import safe_cell
from graphsc.data.molecules.conversion import Plan, chunk_to_collection
from graphsc.data.molecules.featurize import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.rejected import common_reasons
from graphsc.data.molecules.rows import (
    Packed,
    Row,
    RowsTask,
    Source,
    hash_of_rows,
    is_smiles_file,
    open_rows,
    unpack,
)
from graphsc.data.molecules.sdf import is_sdf
from graphsc.data.readers.csv import NUMBER, table_suffix
from graphsc.finetuning.delivered import NEAREST, column_names, read_held_out, spread_relation
from graphsc.finetuning.property_model import PropertyModel, load_property_model
from graphsc.training.distributed import driver_device
from graphsc.training.embed_io import part_name
from graphsc.training.model_files import fraction_folders, trained_column

ENDINGS = (".csv", ".parquet")
CHUNK = 2_000  # rows
FAR = 0.3  # Tanimoto similarity below which a molecule is called unlike every training molecule


@dataclass(frozen=True)
class Predicted:
    """Summary of a table of predictions."""

    path: Path
    rows: int
    rejected: int  # rows without a usable molecule
    models: int
    tasks: tuple[str, ...]
    reasons: tuple[tuple[str, int], ...] = ()  # the most frequent ones, and the rows of each
    reason_column: str = "reason"
    spread: str | None = None  # whether the spread went with the error on validation, in words
    classes: tuple[tuple[str, str], ...] = ()  # task and the class that its probability is of
    far: int | None = None  # molecules unlike every training molecule; None where those are not known
    columns: tuple[str, ...] = ()  # those of predictions and spreads, and of the similarity if there is one
    smiles_column: str | None = None


def predict_table(
    model: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    smiles_column: str | None = None,
    separator: str | None = None,
    rule: str = "best",
    jobs: int | None = 1,
    cluster: str | None = None,
    device: str = "auto",
    chunk: int = CHUNK,
    progress: Progress = lambda done, total: None,
) -> Predicted:
    """Write a table with a prediction for each of its rows.

    All columns and cells of the source are kept. Each task gets two columns: the probability (or the value,
    for a regression) of the run's ensemble, or averaged over the seeds of the run, and the spread, the
    standard deviation of its parts or seeds. Whether the spread went with the error on validation molecules
    is in the summary. Two more columns have the most similar training molecule and its similarity. A
    column of several classes also gets its most probable class. Rows without a usable molecule have no
    prediction but the reason. After a stop or a kill, the same call resumes from the chunks that were
    finished.

    Args:
        model: The folder of a fine-tuning run, or one model file in it.
        source: A CSV, TSV or Parquet file with a column of SMILES, a .smi or .sdf file, or the name of a
            data set.
        out: FILE.csv or FILE.parquet.
        smiles_column: The column that holds the SMILES; by default that of the training table, if there is
            such a column, or one with a usual name.
        separator: The character between cells, or `tab`; detected by default.
        rule: Which models to use: those of the `best` epoch on the validation set, or of the `last`.
        jobs: Local processes; 1 predicts in this process, None uses one per core.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`, which is used instead of `jobs`.
        device: `auto`, `cpu`, `cuda` or `mps`, where the models run. Local processes share all GPUs.
        chunk: Rows per chunk.
        progress: Called with the rows done and the rows in total.

    Raises:
        DataError: The source cannot be read, is empty, or was replaced while it was read.
        CannotWriteError: Another process writes this target, or the disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished chunks are kept.
    """
    target = Path(out)
    check_ending(target, ENDINGS, "predictions")
    here = driver_device(device, jobs, cluster)
    prediction = _load(model, rule, smiles_column, separator, chunk, device, here)
    task = _PredictRows(_table_path(source), target, prediction, model)
    compute_file(task, _predict_piece, prediction.sendable, jobs=jobs, cluster=cluster, progress=progress)
    first = prediction.model
    rejected = cast(int, task.summary["rejected"])
    return Predicted(
        target, task.rows, rejected, first.count, first.tasks,
        tuple(common_reasons(task.reasons)), task.reason_column, _spread_sentence(model, first),
        tuple((name, first.classes[name][1]) for name in first.tasks if name in first.classes),
        task.far, task.columns, task.smiles_column,
    )  # fmt: skip


def _spread_sentence(model: str | Path, predictor: PropertyModel) -> str | None:
    """What the spread over seeds or parts says, measured on the validation molecules of the run."""
    folder = next(reversed(fraction_folders(Path(model)).values()), Path(model))
    if not folder.is_dir():
        return None
    held_out = read_held_out(folder, predictor.tasks, predictor.kind)
    if predictor.members is None:
        return "A single linear or boosted model has no spread; its column is empty."
    relation = None if held_out is None else spread_relation(held_out, predictor.members)
    return None if relation is None else relation.sentence()


def predict_files(
    model: str | Path,
    source: str | Path,
    out: str | Path,
    *,
    format: str | None = None,  # noqa: A002 - the name of the option
    smiles_column: str | None = None,
    separator: str | None = None,
    rule: str = "best",
    jobs: int | None = 1,
    cluster: str | None = None,
    device: str = "auto",
    chunk: int = CHUNK,
    progress: Progress = lambda done, total: None,
    log: Callable[[str], None] = lambda message: None,
) -> list[Part]:
    """Predict many tables into a folder: one table per source, with its stem, rows and columns.

    A table that is finished is not predicted again, unless its source, the models, the settings or the
    version has changed. A source that cannot be read is named, and the others finish.

    Args:
        model: The folder of a fine-tuning run, or one model file in it.
        source: A pattern such as `parts/*.csv`, or a folder of tables and .smi files.
        out: The folder of the predictions; other files in it are left alone.
        format: `csv` or `parquet`; by default that of each source, csv for .tsv and .smi files.
        smiles_column: The column that holds the SMILES; by default that of the training table, if there is
            such a column, or one with a usual name.
        separator: The character between cells, or `tab`; detected by default.
        rule: Which models to use: those of the `best` epoch on the validation set, or of the `last`.
        jobs: Local processes; 1 predicts in this process, None uses one per core.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`, which is used instead of `jobs`.
        device: `auto`, `cpu`, `cuda` or `mps`, where the models run. Local processes share all GPUs.
        chunk: Rows per chunk.
        progress: Called with the files done and the files in total.
        log: Receives one sentence per file that fails.

    Returns:
        One part per source, sorted by name; see `check_parts`.

    Raises:
        ConfigError: Two sources have one target, or the sources are in the folder of the targets.
        CannotWriteError: The disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished tables and chunks are kept.
    """
    ending = None if format is None else f".{format}"
    parts = find_parts(source, _is_part)
    targets = name_targets(parts, Path(out), partial(part_name, ending=ending), ENDINGS, "predictions")
    here = driver_device(device, jobs, cluster)
    prediction = _load(model, rule, smiles_column, separator, chunk, device, here)
    tasks = [_PredictRows(part, target, prediction, model) for part, target in targets.items()]
    return compute_files(
        tasks, _predict_piece, prediction.sendable, jobs=jobs, cluster=cluster, progress=progress, log=log
    )


@dataclass(frozen=True)
class _Prediction:
    """What all tables of a call share."""

    model: PropertyModel
    smiles_column: str | None
    separator: str | None
    chunk: int
    device: str

    @property
    def sendable(self) -> Sendable[PropertyModel]:
        return Sendable(self.model, _save_into, partial(_load_from, device=self.device))


def _save_into(model: PropertyModel, folder: Path) -> None:
    model.save(folder)


def _load_from(folder: Path, device: str) -> PropertyModel:
    return PropertyModel.read(folder, device)


def _load(
    model: str | Path,
    rule: str,
    smiles_column: str | None,
    separator: str | None,
    chunk: int,
    device: str,
    here: str,
) -> _Prediction:
    """The models of a call, on the device `here`; workers put them on `device`."""
    if chunk < 1 or rule not in ("best", "last"):
        raise ConfigError("chunk must be at least 1 and rule best or last")
    return _Prediction(load_property_model(model, rule, here), smiles_column, separator, chunk, device)


def _is_part(path: Path) -> bool:
    return bool(table_suffix(path)) or is_smiles_file(path) or is_sdf(path)


def _table_path(source: str | Path) -> Path:
    """The file of a table, or of a data set by name."""
    path = Path(source)
    if path.exists():
        return path
    from graphsc.data.datasets.catalog import NAMED, locate

    entry = NAMED.get(str(source).lower())
    if entry is None or entry.reader != "smiles":
        raise NotFoundError("there is no such table", where=str(source), hint="check the path")
    return locate(entry)


class _PredictRows(RowsTask[Packed]):
    """The molecules of a table; workers get the SMILES of their chunk."""

    def __init__(self, path: Path, target: Path, prediction: _Prediction, model: str | Path) -> None:
        super().__init__(path, target)
        self.chunk = prediction.chunk
        self.smiles_column = prediction.smiles_column or trained_column(model, path, "smiles_column")
        self.separator = prediction.separator
        self.predictor = prediction.model
        self.settings = {
            "verb": "predict",
            "version": __version__,
            "rdkit": require("rdkit").__version__,
            "smiles_column": self.smiles_column,
            "separator": prediction.separator,
            "models": list(prediction.model.hashes),
        }

    def open(self) -> None:
        self.table = open_rows(
            self.path, smiles_column=self.smiles_column, separator=self.separator, keep_cells=True
        )
        self.rows = self.width = 0
        for row in self.table.rows():
            self.rows += 1
            self.width = max(self.width, len(row.cells))
        if not self.rows:
            raise DataError("there is no molecule in this source", where=self.source)

    def piece(self, rows: Packed) -> Packed:
        return rows

    def write(self, chunks: ChunkStore, request: StopRequest) -> None:
        tasks, domain = self.predictor.tasks, self.predictor.domain
        self.reasons: list[str] = []
        self.far = None if domain is None else 0
        with PredictionWriter(self.target, self.table, self.width, self.predictor) as writer:
            self.reason_column, self.columns = writer.reason_column, writer.number_columns
            for index, rows in self.stored_rows(chunks):
                request.check("all rows are predicted, the file is not written yet")
                stored = np.frombuffer(chunks.read(index), "<f8").reshape(len(rows), -1)
                values = stored[:, : 2 * len(tasks)].reshape(len(rows), 2, -1)
                near = None
                if domain is not None and self.far is not None:
                    places, similarity = stored[:, -2], stored[:, -1]
                    named = [domain.names[int(place)] if place >= 0 else "" for place in places]
                    near = (named, similarity)
                    self.far += int((similarity < FAR).sum())
                reason_of = cast(dict[str, str], chunks.facts(index)["reasons"])
                reasons = [reason_of.get(str(row), "") for row in range(len(rows))]
                writer.write(rows, values[:, 0], values[:, 1], reasons, near)
                self.reasons += reason_of.values()
            self.check_source()
        self.summary = {"rows": self.rows, "rejected": len(self.reasons)}


PLAN = Plan("molecules", "auto", (), {}, False, MAX_ATOMS, MAX_LENGTH)


def _predict_piece(model: Shared[PropertyModel], piece: Packed) -> Answer:
    """Mean and spread of a chunk, and the reasons of rows without them; runs in a worker."""
    predicted = predict_rows(unpack(piece), model.get(), PLAN)
    facts = {
        "reasons": {str(row): reason for row, reason in enumerate(predicted.reasons) if reason},
        "sha256": hash_of_rows(piece),
    }
    columns = [predicted.mean, predicted.spread]
    if predicted.nearest is not None and predicted.similarity is not None:
        columns += [predicted.nearest[:, None].astype(np.float64), predicted.similarity[:, None]]
    return np.concatenate(columns, axis=1).astype("<f8").tobytes(), facts


@dataclass(frozen=True)
class RowPredictions:
    """Predictions of the rows of a chunk; NaN, and -1 for the nearest, for rows without a molecule."""

    mean: NDArray[np.float64]  # rows x tasks
    spread: NDArray[np.float64]  # rows x tasks
    reasons: list[str]  # why a row has no prediction; "" if it has one
    nearest: NDArray[np.int64] | None = None  # position of the most similar training molecule
    similarity: NDArray[np.float64] | None = None  # to it, by Tanimoto


def predict_rows(rows: Sequence[Row], model: PropertyModel, plan: Plan) -> RowPredictions:
    """Predict the rows of a chunk."""
    collection, outcome = chunk_to_collection(rows, plan)
    shape = (len(rows), len(model.tasks))
    mean, spread = np.full(shape, np.nan), np.full(shape, np.nan)
    reasons = [""] * len(rows)
    for rejected in outcome.rejected:
        reasons[rejected.row - rows[0].number] = rejected.reason
    nearest = similarity = None
    if model.domain is not None:
        nearest, similarity = np.full(len(rows), -1, np.int64), np.full(len(rows), np.nan)
    if collection is not None:
        valid = np.array([not reason for reason in reasons])
        smiles = [row.smiles for row, reason in zip(rows, reasons, strict=True) if not reason]
        mean[valid], spread[valid] = model.predict(collection, smiles)
        if model.members is None:
            spread[valid] = np.nan
        if model.domain is not None and nearest is not None and similarity is not None:
            nearest[valid], similarity[valid] = model.domain.nearest(smiles)
    return RowPredictions(mean, spread, reasons, nearest, similarity)


class PredictionWriter:
    """Writes a table chunk by chunk; the file appears when the `with` block ends without an exception.

    The columns are those of the source, then a prediction and its standard deviation per task, then, where
    the training molecules are known, the most similar of them and its similarity, then the reason why a row
    has no prediction. New columns whose name is taken get a suffix. Cells beyond the header
    are in columns `extra_1`, `extra_2`, ... A column without a name has none in a CSV file either; in a
    Parquet file it is `column_` and its position, from 1.

    Args:
        path: The file to write.
        source: The table or .smi file, opened with all its cells.
        width: Cells of its longest row.
        predictor: Its tasks and kind decide the names of the new columns.
    """

    def __init__(self, path: Path, source: Source, width: int, predictor: PropertyModel) -> None:
        self.path = path
        tasks = predictor.tasks
        # Of each column of several classes: the positions of its tasks, and the names of the classes.
        self._groups = [
            ([tasks.index(task) for task in own], [predictor.classes[task][1] for task in own])
            for own in predictor.groups.values()
        ]
        taken = set(source.columns)

        def fresh(name: str) -> str:
            while name in taken:
                name += "_new"
            taken.add(name)
            return name

        extra = [f"extra_{k}" for k in range(1, width - len(source.columns) + 1)]
        self._source_columns = [
            # Columns of a Parquet file are found by name.
            name if name or path.suffix == ".csv" else fresh(f"column_{place}")
            for place, name in enumerate(source.columns, start=1)
        ] + list(map(fresh, extra))
        pairs = column_names(tasks, predictor.kind, self._source_columns)
        self._task_columns = [name for pair in pairs for name in pair]
        taken |= set(self._source_columns) | set(self._task_columns)
        self._class_columns = [fresh(f"{column}_class") for column in predictor.groups]
        self._near_columns = [] if predictor.domain is None else list(map(fresh, NEAREST))
        self.reason_column = fresh("reason")
        self._stack = ExitStack()

    @property
    def number_columns(self) -> tuple[str, ...]:
        """The columns of predictions and spreads, and of the similarity if there is one."""
        return (*self._task_columns, *self._near_columns[1:])

    def __enter__(self) -> PredictionWriter:
        self._file: IO[bytes] = self._stack.enter_context(atomic_write(self.path))
        if self.path.suffix == ".csv":
            columns = (
                *self._source_columns, *self._task_columns, *self._class_columns, *self._near_columns,
                self.reason_column,
            )  # fmt: skip
            self._write_lines([[safe_cell(name) for name in columns]])
        else:
            self._arrow: ModuleType = require("pyarrow")
            fields: list[tuple[str, Any]] = [(name, self._arrow.string()) for name in self._source_columns]
            fields += [(name, self._arrow.float64()) for name in self._task_columns]
            fields += [(name, self._arrow.string()) for name in self._class_columns]
            kinds = (self._arrow.string(), self._arrow.float64())
            fields += list(zip(self._near_columns, kinds, strict=False))
            fields.append((self.reason_column, self._arrow.string()))
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
        near: tuple[Sequence[str], NDArray[np.float64]] | None = None,
    ) -> None:
        """Append rows in the order of the source; `mean` and `spread` are rows x tasks.

        `near` are the names of the most similar training molecules and their similarities.
        """
        numbers = np.stack([mean, spread], axis=2).reshape(len(rows), -1)
        classes = [self._chosen(values) for values in mean]
        if self.path.suffix == ".csv":
            self._write_lines(
                [
                    *map(_safe, self._cells(row)),
                    *("" if np.isnan(number) else f"{number:.6g}" for number in values),
                    *map(safe_cell, chosen),
                    *(
                        ()
                        if near is None
                        else (safe_cell(near[0][place]), f"{near[1][place]:.3f}" if near[0][place] else "")
                    ),
                    safe_cell(reason),
                ]
                for place, (row, values, chosen, reason) in enumerate(
                    zip(rows, numbers, classes, reasons, strict=True)
                )
            )
            return
        cells = [self._cells(row) for row in rows]
        columns: list[object] = [list(column) for column in zip(*cells, strict=True)]
        # from_pandas: NaN becomes null, which Parquet distinguishes.
        columns += [self._arrow.array(column, from_pandas=True) for column in numbers.T]
        columns += [[name or None for name in names] for names in zip(*classes, strict=True)]
        if near is not None:
            columns.append([name or None for name in near[0]])
            columns.append(self._arrow.array(near[1], from_pandas=True))
        columns.append([reason or None for reason in reasons])
        self._parquet.write_table(self._arrow.table(columns, schema=self._schema))

    def _chosen(self, mean: NDArray[np.float64]) -> list[str]:
        """The most probable class of each column of several classes; empty without a prediction."""
        if np.isnan(mean).any():
            return [""] * len(self._groups)
        return [names[int(mean[places].argmax())] for places, names in self._groups]

    def _cells(self, row: Row) -> list[str]:
        return [*row.cells, *[""] * (len(self._source_columns) - len(row.cells))]

    def _write_lines(self, lines: Iterable[Sequence[str]]) -> None:
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows(lines)
        self._file.write(text.getvalue().encode("utf-8", "replace"))


def _safe(cell: str) -> str:
    """A cell that no spreadsheet runs as a formula; numbers stay as they are, also negative ones."""
    return cell if NUMBER.fullmatch(cell) else safe_cell(cell)


MOST_READ = 100_000  # rows of a table of predictions that are read back


@dataclass(frozen=True)
class PredictionRows:
    """The molecules of a written table of predictions."""

    smiles: list[str]
    ids: list[str]
    predicted: NDArray[np.float64]  # molecules x tasks
    spread: NDArray[np.float64]  # 0 where the model has none
    similarity: NDArray[np.float64] | None

    @property
    def shown(self) -> int:
        return len(self.smiles)


def read_predictions(
    done: Predicted, model: PropertyModel, id_column: str | None = None, most: int = MOST_READ
) -> PredictionRows:
    """Read the first molecules of a table that `predict_table` wrote, for a page."""
    smiles: list[str] = []
    ids: list[str] = []
    numbers: list[list[float]] = []
    source = open_rows(done.path, smiles_column=done.smiles_column, id_column=id_column, keep_cells=True)
    places = [source.columns.index(name) for name in done.columns]
    reason = source.columns.index(done.reason_column)
    for row in source.rows():
        if len(smiles) == most:
            break
        if row.problem is None and row.smiles and not row.cells[reason]:
            smiles.append(row.smiles)
            ids.append(str(row.number) if row.id is None else row.id)
            numbers.append([float(row.cells[place] or "nan") for place in places])
    tasks = len(model.tasks)
    values = np.array(numbers, dtype=np.float64).reshape(len(smiles), len(places))
    pairs = values[:, : 2 * tasks].reshape(len(smiles), tasks, 2)
    similarity = values[:, -1] if len(places) > 2 * tasks else None
    return PredictionRows(smiles, ids, pairs[:, :, 0], np.nan_to_num(pairs[:, :, 1]), similarity)
