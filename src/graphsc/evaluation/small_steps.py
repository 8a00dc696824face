"""A two-class SVM by sequential minimal optimisation from weights already there.

From one small C to the next few weights change sides, so that starting from the last solution takes tens of
steps where starting from zero takes one for each row. libsvm cannot start anywhere but at zero.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]

_TOLERANCE = 1e-3


class Solution(NamedTuple):
    """Signed weights (m), kernel @ weights (m), the intercept, and the number of steps it took."""

    weights: Vector
    values: Vector
    intercept: float
    steps: int


def at_bounds(kernel: Matrix, signs: Vector, c: float) -> Solution:
    """Where a small C ends up, or nearly: weights at C, for as many rows of one class as of the other."""
    weights = np.zeros(len(signs))
    few = int(min((signs > 0).sum(), (signs < 0).sum()))
    for sign in (1.0, -1.0):
        weights[np.flatnonzero(signs == sign)[:few]] = sign * c
    return Solution(weights, kernel @ weights, 0.0, 0)


def rescale(solution: Solution, old: float, new: float, signs: Vector) -> Solution:
    """A start for another C: every weight keeps its share of it."""
    weights = solution.weights * (new / old)
    # Weights at the bound stay exactly there.
    weights = np.where(np.abs(weights) >= new * (1 - 1e-12), new * signs, weights)
    return Solution(weights, solution.values * (new / old), solution.intercept, 0)


def descend(kernel: Matrix, signs: Vector, c: float, start: Solution, limit: int) -> Solution | None:
    """Move weight between two rows at a time until no margin is wrong by more than libsvm allows.

    kernel: m x m. signs: m of -1 and 1. The pair is chosen as in libsvm: the row that wants more weight most,
    and with it the row whose exchange lowers the objective most. None after `limit` steps.
    """
    upper = np.where(signs > 0, c, 0.0)
    lower = upper - c
    weights = start.weights.copy()
    wish = signs - start.values
    diagonal = np.diagonal(kernel).copy()
    # Added to a wish, they take rows at their bound out of the choice.
    full = np.where(weights < upper, 0.0, -np.inf)
    empty = np.where(weights > lower, 0.0, np.inf)
    for step in range(limit + 1):
        one = int((wish + full).argmax())
        gain = wish[one] - (wish + empty)
        if gain.max() < _TOLERANCE:
            return Solution(weights, signs - wish, _intercept(wish, full, empty), step)
        np.maximum(gain, 0.0, out=gain)
        curvature = np.maximum(diagonal + (diagonal[one] - 2.0 * kernel[one]), 1e-12)
        other = int((gain * gain / curvature).argmax())
        room, stock = upper[one] - weights[one], weights[other] - lower[other]
        change = min(gain[other] / curvature[other], room, stock)
        weights[one] = upper[one] if change == room else weights[one] + change
        weights[other] = lower[other] if change == stock else weights[other] - change
        full[one] = -np.inf if change == room else 0.0
        empty[other] = np.inf if change == stock else 0.0
        empty[one] = full[other] = 0.0
        wish -= change * (kernel[one] - kernel[other])
    return None


def _intercept(wish: Vector, full: Vector, empty: Vector) -> float:
    """The mean over free rows; without any, the middle of what the others allow."""
    free = (full == 0) & (empty == 0)
    if free.any():
        return float(wish[free].mean())
    return float((wish + full).max() + (wish + empty).min()) / 2
