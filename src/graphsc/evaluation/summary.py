"""One number for many runs, and the two deviations that papers mix up."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from graphsc.core.errors import DataError


@dataclass(frozen=True)
class Summary:
    """Accuracy of a method on one data set, over seeds (whole repetitions) and the folds within each.

    `over_seeds` is the deviation of the run means; papers print the one with ddof 0 (numpy's default),
    inference wants ddof 1. `over_folds` is the deviation of the folds of a run, averaged over the runs;
    it is larger, because a fold has few graphs, and says little about the method. The deviations with ddof 1
    are nan where there is one value only.
    """

    mean: float
    over_seeds_ddof0: float
    over_seeds_ddof1: float
    over_folds_ddof0: float
    over_folds_ddof1: float
    seeds: int
    folds: int


def run_means(accuracy: ArrayLike) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Average seeds x folds over the folds: one accuracy a seed."""
    means: np.ndarray[tuple[int], np.dtype[np.float64]] = _seeds_by_folds(accuracy).mean(axis=1)
    return means


def summarise(accuracy: ArrayLike) -> Summary:
    """Take seeds x folds together: the mean of the run means, and each deviation under its own name."""
    values = _seeds_by_folds(accuracy)
    seeds, folds = values.shape
    means = values.mean(axis=1)
    return Summary(
        mean=float(means.mean()),
        over_seeds_ddof0=float(means.std()),
        over_seeds_ddof1=float(means.std(ddof=1)) if seeds > 1 else np.nan,
        over_folds_ddof0=float(values.std(axis=1).mean()),
        over_folds_ddof1=float(values.std(axis=1, ddof=1).mean()) if folds > 1 else np.nan,
        seeds=seeds,
        folds=folds,
    )


def _seeds_by_folds(accuracy: ArrayLike) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    values = np.asarray(accuracy, dtype=np.float64)
    if values.ndim != 2 or not values.size:
        raise DataError(f"accuracies of shape {values.shape} are not seeds x folds")
    if not np.isfinite(values).all():
        raise DataError("an accuracy is not a number", hint="summarise only runs that are complete")
    return values
