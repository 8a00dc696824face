"""A search over random points of a space, with two ways of choosing from them.

Nested: every candidate is trained without labels and evaluated on the same outer folds. The predictions of
an outer fold are those of the candidate with the best accuracy on that fold's inner folds. No test fold is
used to choose. Doubly leaky: the point and the epoch with the best test accuracy, as parts of the literature
do.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.evaluation.significance import Summary, summarise
from graphsc.experiments.comparison import Cell, Comparison
from graphsc.experiments.published import published
from graphsc.experiments.result import Result
from graphsc.paper.gather import CompletedTrial, RecipeResults
from graphsc.paper.recipe import SEARCH

ENOUGH = 0.9  # of the candidates; training at some points may diverge
DOUBLY_LEAKY = "doubly leaky"


def choose_by_inner_folds(candidates: Sequence[Result], drawn: int | None = None) -> Result:
    """Combine candidates that share outer folds into one result; ties go to the first candidate.

    Args:
        candidates: Results of the points that have one.
        drawn: The number of points, with those that have no result.
    """
    first = candidates[0]
    for other in candidates:
        if not np.array_equal(other.fold, first.fold) or len(other.inner_folds) != len(first.accuracies):
            raise DataError("candidates of a search must keep inner accuracies of the same folds")
    inner = np.array([result.inner_folds for result in candidates])  # candidates x folds
    best = inner.argmax(axis=0)
    predictions = np.stack([result.predictions for result in candidates])  # candidates x graphs
    left = "" if drawn in (None, len(candidates)) else f" of {drawn} drawn"
    return replace(
        first,
        predictions=predictions[best[first.fold], np.arange(len(first.fold))],
        chosen=tuple(candidates[k].chosen[fold] for fold, k in enumerate(best)),
        inner_folds=tuple(inner.max(axis=0).tolist()),
        inner_accuracy=float(inner.max(axis=0).mean()),
        words=f"{first.words} Settings are chosen for each outer fold by its inner folds, from "
        f"{len(candidates)} candidates{left}.",
    )


def search_results(results: RecipeResults) -> list[Result]:
    """One result per method, data set and seed for which nearly all candidates have run."""
    return [
        choose_by_inner_folds([c.result for c in completed], planned)
        for seeds in finished_searches(results).values()
        for planned, completed in seeds
    ]


def finished_searches(
    results: RecipeResults,
) -> dict[tuple[str, str], list[tuple[int, list[CompletedTrial]]]]:
    """By method and column, for each seed of which nearly all candidates have run.

    Returns:
        The number of planned candidates, and those that have run.
    """
    planned: dict[tuple[str, str], dict[int, int]] = defaultdict(lambda: defaultdict(int))
    completed: dict[tuple[str, str, int], list[CompletedTrial]] = defaultdict(list)
    for cell in results.planned:
        if cell.part == SEARCH:
            planned[cell.trial.method, cell.column][cell.trial.folds_from] += 1
    for done in results.completed:
        if done.planned.part == SEARCH:
            trial = done.planned.trial
            completed[trial.method, done.planned.column, trial.folds_from].append(done)
    finished = {
        place: [
            (count, completed[*place, seed])
            for seed, count in seeds.items()
            if len(completed[*place, seed]) >= ENOUGH * count
        ]
        for place, seeds in planned.items()
    }
    return {place: seeds for place, seeds in finished.items() if seeds}


@dataclass(frozen=True)
class Maximum:
    """The point and epoch of a search with the best mean test accuracy over seeds.

    Args:
        point: Its settings.
        epoch: None for a method that does not train.
        accuracies: seeds x folds, in per cent.
        points: The number of points that were compared.
        epochs: The epochs that were compared at each of them.
    """

    point: Mapping[str, object]
    epoch: int | None
    accuracies: NDArray[np.float64]
    points: int
    epochs: tuple[int, ...]

    @property
    def summary(self) -> Summary:
        return summarise(self.accuracies)


def maxima(results: RecipeResults) -> dict[tuple[str, str], Maximum]:
    """The maximum of each method and column, over the seeds of which nearly all candidates have run."""
    return {
        place: _maximum([completed for _, completed in seeds])
        for place, seeds in finished_searches(results).items()
    }


def _maximum(seeds: Sequence[Sequence[CompletedTrial]]) -> Maximum:
    """Over the points and epochs that all seeds have; the first of equally good ones."""
    points: dict[str, Mapping[str, object]] = {}
    by_seed: list[dict[tuple[str, int | None], NDArray[np.float64]]] = []
    for candidates in seeds:
        accuracies: dict[tuple[str, int | None], NDArray[np.float64]] = {}
        for candidate in candidates:
            key, result = repr((candidate.planned.again, candidate.planned.point)), candidate.result
            points[key] = candidate.planned.point
            if result.curve is None:
                accuracies[key, None] = 100 * result.accuracies
            else:
                for epoch, right in zip(result.curve.epochs, result.curve.right, strict=True):
                    accuracies[key, epoch] = 100 * right / result.curve.sizes
        by_seed.append(accuracies)
    common = [place for place in by_seed[0] if all(place in other for other in by_seed)]
    if not common:
        raise DataError("the seeds of a search have no point in common")
    best = max(common, key=lambda place: np.mean([accuracies[place].mean() for accuracies in by_seed]))
    epochs = sorted({epoch for _, epoch in common if epoch is not None})
    return Maximum(
        points[best[0]], best[1], np.stack([accuracies[best] for accuracies in by_seed]),
        len({key for key, _ in common}), tuple(epochs),
    )  # fmt: skip


def compare_maxima(results: RecipeResults) -> Comparison:
    """The maxima as a comparison, every cell of which is leaky. Nothing is tested: these are not results."""
    found = maxima(results)
    cells = {
        (method, column): Cell(
            maximum.summary, published=published().get(method, {}).get(column.partition(" (")[0]), leaky=True
        )
        for (method, column), maximum in found.items()
    }
    words = () if not found else (maxima_words(list(found.values())),)
    return Comparison(tuple(results.methods), tuple(results.columns), cells, {}, words, control="")


def maxima_words(found: Sequence[Maximum]) -> str:
    """How the maxima were chosen, as a sentence."""
    counts = sorted({maximum.points for maximum in found})
    epochs = sorted({epoch for maximum in found for epoch in maximum.epochs})
    looked_at = f" and of the epochs {', '.join(map(str, epochs))}" if epochs else ""
    return (
        f"LEAKY twice: the best of {' or '.join(map(str, counts))} points{looked_at}, by mean TEST accuracy "
        "over the seeds, for each method and data set. These numbers show what such a choice gives; they "
        "are not results."
    )
