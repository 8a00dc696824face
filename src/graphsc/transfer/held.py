"""Molecules that were held out: judged, and written with what was predicted for them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.cells import safe_cell
from graphsc.core.files import write_atomic
from graphsc.data.collection import GraphCollection
from graphsc.evaluation.tasks import Kind, tasks_of
from graphsc.transfer.labelled import Labelled
from graphsc.transfer.predictor import load_predictor
from graphsc.transfer.result import Judged
from graphsc.transfer.split import NAMES, TEST, TRAIN, VALID, Parts

MOST_TASKS = 60  # beyond which a table of predictions is too wide to be read


def held_out(molecules: Labelled, parts: Parts) -> tuple[GraphCollection, Parts]:
    """Validation and test molecules with their labels, and which is which."""
    rows = np.flatnonzero(parts != TRAIN)
    return replace(molecules.collection.take(rows), rejected=()), parts[rows]


def judge(
    scores: NDArray[np.floating],
    held: GraphCollection,
    parts: Parts,
    kind: Kind,
    epoch: int | None = None,
    learning_rate: float | None = None,
) -> Judged:
    """Scores of held-out molecules beside their labels, as a result keeps them."""
    labels = held.labels
    assert labels is not None  # noqa: S101 - held-out molecules are labelled
    test, valid = (tasks_of(labels[parts == part], scores[parts == part]) for part in (TEST, VALID))
    return Judged.of(test, valid, kind, epoch, learning_rate)


def column_names(tasks: Sequence[str], kind: Kind, taken: Sequence[str] = ()) -> list[tuple[str, str]]:
    """What a table calls the prediction of each task and its spread; never by a name it already has."""
    what = "probability" if kind == "classification" else "predicted"
    used = set(taken)
    found = []
    for task in tasks:
        pair = []
        for ending in (what, "spread"):
            name = f"{task}_{ending}"
            while name in used:
                name += "_new"
            used.add(name)
            pair.append(name)
        found.append((pair[0], pair[1]))
    return found


def mean_and_spread(
    predictions: Sequence[NDArray[np.floating]],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Over the seeds: the mean, and the deviation (ddof 0) as a measure of doubt; zero for one seed."""
    stacked = np.stack(predictions).astype(np.float64)
    return stacked.mean(axis=0), stacked.std(axis=0)


def write_predictions(path: Path, molecules: Labelled, parts: Parts, files: Sequence[Path]) -> None:
    """A row for each molecule that was held out: what it is, what is known of it, what was predicted."""
    if len(molecules.tasks) > MOST_TASKS:
        return
    held, sides = held_out(molecules, parts)
    mean, spread = mean_and_spread([load_predictor(file).predict(held) for file in files])
    names = column_names(molecules.tasks, molecules.kind, molecules.tasks)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    header = ["row", "smiles", "part"]
    for task, pair in zip(molecules.tasks, names, strict=True):
        header += [task, *pair]
    writer.writerow([safe_cell(cell) for cell in header])
    labels = molecules.labels
    for place, position in enumerate(np.flatnonzero(parts != TRAIN).tolist()):
        cells: list[object] = [
            int(molecules.rows[position]),
            safe_cell(molecules.smiles[position]),
            NAMES[sides[place]],
        ]
        for k in range(len(molecules.tasks)):
            label = labels[position, k]
            cells += [
                "" if np.isnan(label) else f"{label:g}", f"{mean[place, k]:.6g}", f"{spread[place, k]:.6g}"
            ]  # fmt: skip
        writer.writerow(cells)
    write_atomic(path, text.getvalue())
