"""Predictions for any table of molecules, row for row: in chunks, and going on after a stop.

Chunks are predicted one after the other and kept in a hidden folder beside the target. The last step goes
through the source once more and writes its cells with the predictions beside them. Neither needs more memory
than a chunk.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.errors import ConfigError, DataError, NotFoundError
from graphsc.core.lock import InUseError, hold
from graphsc.core.signals import StopRequest, stop_requests
from graphsc.data.molecules.chunk import Plan, chunk_to_collection
from graphsc.data.molecules.featurise import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.lines import hash_of
from graphsc.data.molecules.parts import begin
from graphsc.data.molecules.rows import Row, Source, chunks_of
from graphsc.data.molecules.source import open_rows
from graphsc.data.molecules.table_rows import ALL
from graphsc.data.sheet import kind_of
from graphsc.transfer.held import mean_and_spread
from graphsc.transfer.parts import PredictedParts
from graphsc.transfer.predictor import Predictor, load_predictor, predictors_of
from graphsc.transfer.table import TableWriter, check_table

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
        with hold(parts.folder / "lock"):
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
        from graphsc.data.names import NAMED, locate

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
