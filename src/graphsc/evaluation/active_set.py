"""Finish a two-class SVM exactly, from weights that are nearly right.

Which weights are zero, at their bound C, or free between the two decides the rest: the free ones solve a
linear system. Guess the three sets, solve, move every row that contradicts its set, and solve again:
Newton's method on the optimality conditions. It needs a good first guess, and then only a few systems, where
a method of small steps needs tens of thousands for large C.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

_STEPS = 25
# Only rows that contradict their set nearly as much as the worst are moved; all at once would overshoot.
_WRONG_MARGIN, _WRONG_WEIGHT = 0.2, 0.1
# libsvm stops when no margin is wrong by more than 1e-3.
_MARGIN = 1e-4
# Against equal rows, whose kernel is singular; far below what single-precision kernels of libsvm round off.
_RIDGE = 1e-9


def finish(kernel: Matrix, signs: Vector, c: float, weights: Vector) -> tuple[Vector, float] | None:
    """Weights and intercept that meet the optimality conditions; none where 25 guesses did not.

    kernel: m x m. signs: m of -1 and 1. weights: m, signed, sum zero, as in f(x) = sum_i weights_i k(x_i, x)
    + intercept. With a_i = signs_i weights_i the conditions are signs_i f(x_i) >= 1 where a_i = 0, = 1 where
    0 < a_i < c, <= 1 where a_i = c.
    """
    alpha = weights * signs
    zero, bound = alpha <= 0, alpha >= c * (1 - 1e-9)
    system = _System(kernel, _RIDGE * float(np.diagonal(kernel).mean()))
    weights = weights.copy()
    values = kernel @ weights
    for _ in range(_STEPS):
        free = np.flatnonzero(~(zero | bound))
        if len(free) == 0:
            return None
        try:
            # The change of the free weights, and how it moves with the intercept; their sum settles that.
            change, slope = system.solve(
                free, np.stack([signs[free] - values[free], np.ones(len(free))], axis=1)
            ).T
        except LinAlgError:
            return None
        intercept = (change.sum() + weights.sum()) / slope.sum()
        step = np.zeros(len(signs))
        step[free] = change - intercept * slope
        weights += step
        values += kernel @ step
        alpha, margin = weights * signs, signs * (values + intercept) - 1
        # How far a free weight is outside its bounds, and how wrong the margin of any other row is.
        outside = np.where(zero | bound, 0.0, np.maximum(-alpha, alpha - c) / c)
        wrong = np.where(zero, -margin, np.where(bound, margin, 0.0))
        # The ridge leaves free margins a little off where the kernel is large; the next step mends that.
        settled = np.abs(margin[free]).max() <= _MARGIN
        if settled and outside.max() <= 1e-9 and wrong.max() <= _MARGIN:
            return np.clip(alpha, 0, c) * signs, float(intercept)
        fixed = (outside > 1e-9) & (outside >= _WRONG_WEIGHT * outside.max())
        freed = (wrong > _MARGIN) & (wrong >= _WRONG_MARGIN * wrong.max())
        zero, bound = zero & ~freed | fixed & (alpha < 0), bound & ~freed | fixed & (alpha > c)
        moved = np.flatnonzero(fixed)
        back = np.where(bound[moved], c, 0.0) * signs[moved]
        values += (back - weights[moved]) @ kernel[moved]
        weights[moved] = back
    return None


class _System:
    """(K_FF + ridge) x = y for sets F that change little: the factor of one set serves those near it."""

    def __init__(self, kernel: Matrix, ridge: float) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.rows: Rows = np.empty(0, dtype=np.int64)
        self.factor: tuple[Matrix, bool] | None = None

    def solve(self, rows: Rows, right: Matrix) -> Matrix:
        """Solve for F = `rows` (f) and right sides of f x 2."""
        added = np.setdiff1d(rows, self.rows, assume_unique=True)
        removed = np.flatnonzero(~np.isin(self.rows, rows, assume_unique=True))
        if self.factor is None or len(added) + len(removed) > len(rows) // 8:
            block = self.kernel[np.ix_(rows, rows)]
            block[np.diag_indices(len(rows))] += self.ridge
            # Its transpose is itself, and in the order LAPACK works in without a copy.
            self.factor = cho_factor(block.T, lower=True, overwrite_a=True, check_finite=False)
            self.rows = rows
            return self._old(right)
        return self._bordered(rows, right, added, removed)

    def _bordered(self, rows: Rows, right: Matrix, added: Rows, removed: Rows) -> Matrix:
        """The old system with the added rows as a border, and for each removed one the condition x = 0."""
        full = np.zeros((len(self.kernel), right.shape[1]))
        full[rows] = right
        a, m = len(added), len(added) + len(removed)
        border = np.zeros((len(self.rows), m))
        border[:, :a] = self.kernel[np.ix_(added, self.rows)].T
        border[removed, np.arange(a, m)] = 1.0
        solved = self._old(np.hstack([border, full[self.rows]]))
        small = -border.T @ solved[:, :m]
        small[:a, :a] += self.kernel[np.ix_(added, added)] + self.ridge * np.eye(a)
        rest = -border.T @ solved[:, m:]
        rest[:a] += full[added]
        extra = np.linalg.solve(small, rest) if m else rest
        full[self.rows] = solved[:, m:] - solved[:, :m] @ extra
        full[added] = extra[:a]
        return full[rows]

    def _old(self, right: Matrix) -> Matrix:
        solution: Matrix = cho_solve(self.factor, right, check_finite=False)
        return solution
