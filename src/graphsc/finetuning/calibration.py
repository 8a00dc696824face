"""Probabilities that mean what they say: fitted on validation molecules, measured on test molecules."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.evaluation.metrics import Task

BINS = 10
PRIOR = 10.0  # labels that the prior of no change is worth
_LIMIT = 30.0  # of log-odds


def log_odds(probabilities: NDArray[np.floating]) -> NDArray[np.float64]:
    """Of probabilities, which are kept a little away from 0 and 1."""
    inside = np.clip(np.asarray(probabilities, np.float64), 1e-6, 1 - 1e-6)
    odds: NDArray[np.float64] = np.log(inside / (1 - inside))
    return odds


def sigmoid(scores: NDArray[np.floating]) -> NDArray[np.float64]:
    """Probabilities of log-odds."""
    values: NDArray[np.float64] = 1 / (1 + np.exp(-np.clip(np.asarray(scores, np.float64), -_LIMIT, _LIMIT)))
    return values


@dataclass(frozen=True)
class Calibration:
    """Platt scaling of log-odds: slope times score plus shift. The slope is positive, so ranks stay."""

    slope: float = 1.0
    shift: float = 0.0

    def apply(self, scores: NDArray[np.floating]) -> NDArray[np.float64]:
        """Calibrated log-odds."""
        scaled: NDArray[np.float64] = self.slope * np.asarray(scores, np.float64) + self.shift
        return scaled


def fit_platt(task: Task, *, with_shift: bool = True, prior: float = PRIOR) -> Calibration:
    """The slope and shift of the log-odds `task.scores` that make the labels most probable.

    Both are drawn towards no change (slope 1, shift 0) by a normal prior that is worth `prior` labels, so
    that a few validation molecules change little. Nothing changes where all labels are equal.
    """
    from scipy.optimize import minimize

    labels, scores = np.asarray(task.labels, np.float64), np.asarray(task.scores, np.float64)
    if len(np.unique(labels > 0.5)) < 2:
        return Calibration()

    def loss(parameters: NDArray[np.float64]) -> float:
        slope, shift = np.exp(parameters[0]), parameters[1] if with_shift else 0.0
        values = slope * scores + shift
        fit = np.logaddexp(0, values) - labels * values
        return float(fit.sum() + prior / 2 * (parameters[0] ** 2 + shift**2))

    found = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"maxiter": 400})
    log_slope, shift = found.x
    return Calibration(float(np.exp(np.clip(log_slope, -4, 4))), float(shift) if with_shift else 0.0)


def expected_calibration_error(task: Task, bins: int = BINS) -> float:
    """The mean distance of probability and share of positives over equal bins, weighted by their molecules.

    `task.scores` are probabilities. NaN without labels.
    """
    rows = reliability(task, bins)
    total = sum(row.molecules for row in rows)
    if not total:
        return np.nan
    return float(sum(row.molecules * abs(row.probability - row.share) for row in rows) / total)


@dataclass(frozen=True)
class ReliabilityBin:
    """Molecules whose probability is in one bin: their mean probability and their share of positives."""

    probability: float
    share: float
    molecules: int


def reliability(task: Task, bins: int = BINS) -> list[ReliabilityBin]:
    """The bins of [0, 1] of equal width that have molecules."""
    labels, scores = np.asarray(task.labels, np.float64), np.asarray(task.scores, np.float64)
    place = np.clip((scores * bins).astype(np.int64), 0, bins - 1)
    return [
        ReliabilityBin(float(scores[inside].mean()), float(labels[inside].mean()), int(inside.sum()))
        for inside in (place == number for number in range(bins))
        if inside.any()
    ]
