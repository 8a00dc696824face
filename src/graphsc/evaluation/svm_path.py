"""The two-class SVM on a ready-made kernel, for every C of a grid, each by the quickest of three ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn import config_context
from sklearn.svm import SVC

# Finish a two-class SVM exactly, from weights that are nearly right.
#
# Which weights are zero, at their bound C, or free between the two decides the rest: the free ones solve a
# linear system. Guess the three sets, solve, move every row that contradicts its set, and solve again:
# Newton's method on the optimality conditions. It needs a good first guess, and then only a few systems,
# where a method of small steps needs tens of thousands for large C.


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


# A two-class SVM by sequential minimal optimisation from weights already there.
#
# From one small C to the next few weights change sides, so that starting from the last solution takes tens of
# steps where starting from zero takes one for each row. libsvm cannot start anywhere but at zero.


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


class Machine(NamedTuple):
    """f(x) = sum_i weights_i k(x_i, x) + intercept; above zero is the second class."""

    weights: Vector
    intercept: float


def solve(kernel: Matrix, positive: NDArray[np.bool_], grid: Sequence[float]) -> list[Machine]:
    """One machine for each C of `grid`, in its order.

    kernel: m x m between the rows trained on. positive: m, true for the second class. All are within libsvm's
    tolerance (no margin wrong by more than 1e-3), whichever way they were found.
    """
    signs = np.where(positive, 1.0, -1.0)
    values = sorted(set(grid))
    machines = _upwards(kernel, signs, values)
    hard = False
    for c in values[len(machines) :]:
        machine: Machine | None = None
        if machines:
            last, before = machines[-1], values[len(machines) - 1]
            at_bound = np.abs(last.weights) >= before * (1 - 1e-9)
            if not at_bound.any():
                # The bound plays no part, and every larger C has this solution too.
                machine = last
            elif hard:
                machine = _finished(kernel, signs, c, np.where(at_bound, c * signs, last.weights))
        if machine is None:
            machine, hard = _alone(kernel, positive, signs, c)
        machines.append(machine)
    found = dict(zip(values, machines, strict=True))
    return [found[c] for c in grid]


def _upwards(kernel: Matrix, signs: Vector, values: Sequence[float]) -> list[Machine]:
    """Machines for the smallest values, each from the one before, as long as that is worth while."""
    machines: list[Machine] = []
    # A step costs about as much as libsvm's for three rows, with all it copies.
    limit = int(0.6 * len(kernel))
    # Larger values do not leave nearly all weights at their bounds.
    if values[0] * np.trace(kernel) > 30:
        return machines
    solution: Solution | None = at_bounds(kernel, signs, values[0])
    for index, c in enumerate(values):
        if index and solution:
            solution = rescale(solution, values[index - 1], c, signs)
        solution = descend(kernel, signs, c, solution, limit) if solution else None
        if solution is None:
            break
        machines.append(Machine(solution.weights, solution.intercept))
        # The next will take some times as many steps.
        if solution.steps > limit / 4:
            break
    return machines


def _alone(kernel: Matrix, positive: NDArray[np.bool_], signs: Vector, c: float) -> tuple[Machine, bool]:
    """By libsvm, which is broken off and finished exactly where it takes long; and whether it was."""
    machine, done = _libsvm(kernel, positive, c, max(5_000, 5 * len(kernel)))
    if done:
        return machine, False
    finished = _finished(kernel, signs, c, machine.weights)
    return (finished, True) if finished else (_libsvm(kernel, positive, c, -1)[0], False)


def _finished(kernel: Matrix, signs: Vector, c: float, weights: Vector) -> Machine | None:
    found = finish(kernel, signs, c, weights)
    return Machine(*found) if found else None


def _libsvm(kernel: Matrix, positive: NDArray[np.bool_], c: float, steps: int) -> tuple[Machine, bool]:
    """A machine after at most so many steps, and whether it is within libsvm's tolerance."""
    # The kernel was checked when it was made; its cache holds every row.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        svm = SVC(C=c, kernel="precomputed", cache_size=max(200, kernel.nbytes / 2**20), max_iter=steps)
        svm.fit(kernel, positive)
    weights = np.zeros(len(kernel))
    weights[svm.support_] = svm.dual_coef_[0]
    return Machine(weights, float(svm.intercept_[0])), svm.fit_status_ == 0
