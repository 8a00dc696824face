"""Nested search: settings chosen inside each outer fold.

Every candidate is trained without labels and evaluated on the same outer folds. The predictions of an outer
fold are those of the candidate with the best accuracy on that fold's inner folds. No test fold is used to
choose.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphsc.core.errors import DataError
from graphsc.experiments.result import Result
from graphsc.paper.gather import RecipeResults
from graphsc.paper.recipe import SEARCH


def choose_by_inner_folds(candidates: Sequence[Result]) -> Result:
    """Combine candidates that share outer folds into one result; ties go to the first candidate."""
    first = candidates[0]
    for other in candidates:
        if not np.array_equal(other.fold, first.fold) or len(other.inner_folds) != len(first.accuracies):
            raise DataError("candidates of a search must keep inner accuracies of the same folds")
    inner = np.array([result.inner_folds for result in candidates])  # candidates x folds
    best = inner.argmax(axis=0)
    predictions = np.stack([result.predictions for result in candidates])  # candidates x graphs
    return replace(
        first,
        predictions=predictions[best[first.fold], np.arange(len(first.fold))],
        chosen=tuple(candidates[k].chosen[fold] for fold, k in enumerate(best)),
        inner_folds=tuple(inner.max(axis=0).tolist()),
        inner_accuracy=float(inner.max(axis=0).mean()),
        words=f"{first.words} Settings are chosen for each outer fold by its inner folds, from "
        f"{len(candidates)} candidates.",
    )


def search_results(results: RecipeResults) -> list[Result]:
    """One result per method, data set and seed for which all candidates have run."""
    groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
    for planned in results.planned:
        if planned.part == SEARCH:
            trial = planned.trial
            groups[trial.data_name, trial.features, trial.method, trial.seed].append(trial.key())
    stored = {c.planned.trial.key(): c.result for c in results.completed if c.planned.part == SEARCH}
    return [
        choose_by_inner_folds([stored[key] for key in keys])
        for keys in groups.values()
        if all(key in stored for key in keys)
    ]
