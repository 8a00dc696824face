"""Settings chosen inside each outer fold: what an honest search reports.

Every candidate is trained without labels and judged on the same outer folds. For each outer fold the
candidate with the best accuracy on that fold's inner folds gives the predictions; no test fold has a say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphsc.core.errors import DataError
from graphsc.experiments.result import Result
from graphsc.paper.gather import Found
from graphsc.paper.recipe import SEARCH, PlannedTrial


def choose(candidates: Sequence[Result]) -> Result:
    """One result out of several of the same folds; of equally good candidates the first."""
    first = candidates[0]
    for other in candidates:
        if not np.array_equal(other.fold, first.fold) or len(other.inner_folds) != len(first.accuracies):
            raise DataError("candidates of a search must keep inner accuracies of the same folds")
    inner = np.array([one.inner_folds for one in candidates])  # candidates x folds
    picked = inner.argmax(axis=0)
    predictions = np.stack([one.predictions for one in candidates])[
        picked[first.fold], np.arange(len(first.fold))
    ]
    folds = range(len(picked))
    return replace(
        first,
        predictions=predictions,
        chosen=tuple(candidates[picked[fold]].chosen[fold] for fold in folds),
        inner_folds=tuple(inner.max(axis=0).tolist()),
        inner_accuracy=float(inner.max(axis=0).mean()),
        words=f"{first.words} Settings are chosen for each outer fold by its inner folds, from "
        f"{len(candidates)} candidates.",
    )


def searched(cells: Sequence[PlannedTrial], found: Sequence[Found]) -> list[Result]:
    """A result for each method, data set and seed all of whose candidates have run."""
    asked: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for cell in cells:
        if cell.part == SEARCH:
            asked[_place(cell)].append(cell.trial.key())
    kept = {one.cell.trial.key(): one.result for one in found if one.cell.part == SEARCH}
    return [
        choose([kept[key] for key in keys]) for keys in asked.values() if all(key in kept for key in keys)
    ]


def _place(cell: PlannedTrial) -> tuple[str, ...]:
    trial = cell.trial
    return (trial.data_name, trial.features, trial.method, str(trial.seed))
