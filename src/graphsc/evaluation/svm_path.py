"""Two-class kernel SVMs for every C of a grid, faster than one libsvm call per C.

Three solvers share the work:

- For small C, nearly all weights are at their bound and few leave it from one C to the next: sequential
  minimal optimisation (`smo`) from the previous solution takes tens of steps, where libsvm, which always
  starts from zero, takes one step per row.
- libsvm itself, stopped early where it takes long.
- For large C, an active-set method (`solve_active_set`) finishes from a nearly correct solution with a few
  linear systems, where SMO needs tens of thousands of steps.

Every solution is within libsvm's tolerance: no margin is wrong by more than 1e-3.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from sklearn import config_context
from sklearn.svm import SVC

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]

_TOLERANCE = 1e-3  # libsvm's, for SMO

_ACTIVE_SET_STEPS = 25
_MARGIN = 1e-4  # tolerance of the active-set method
# Only rows that violate their set nearly as much as the worst change sets; all at once would overshoot.
_WRONG_MARGIN, _WRONG_WEIGHT = 0.2, 0.1
# For equal rows, whose kernel is singular; far below the rounding of libsvm's single-precision kernel.
_RIDGE = 1e-9


class BinarySvm(NamedTuple):
    """f(x) = sum_i weights_i k(x_i, x) + intercept; f(x) >= 0 predicts the second class."""

    weights: Vector
    intercept: float


def solve_path(kernel: Matrix, positive: NDArray[np.bool_], grid: Sequence[float]) -> list[BinarySvm]:
    """Train one SVM for each C of `grid`, in its order.

    Args:
        kernel: m x m, between the training rows.
        positive: m, true for rows of the second class.
        grid: values of C, in any order.
    """
    signs = np.where(positive, 1.0, -1.0)
    values = sorted(set(grid))
    svms = _warm_started(kernel, signs, values)
    was_slow = False
    for c in values[len(svms) :]:
        svm: BinarySvm | None = None
        if svms:
            previous, previous_c = svms[-1], values[len(svms) - 1]
            at_bound = np.abs(previous.weights) >= previous_c * (1 - 1e-9)
            if not at_bound.any():
                svm = previous  # no weight is limited by C, so every larger C has the same solution
            elif was_slow:
                svm = solve_active_set(kernel, signs, c, np.where(at_bound, c * signs, previous.weights))
        if svm is None:
            svm, was_slow = _cold_started(kernel, positive, signs, c)
        svms.append(svm)
    by_c = dict(zip(values, svms, strict=True))
    return [by_c[c] for c in grid]


def _warm_started(kernel: Matrix, signs: Vector, values: Sequence[float]) -> list[BinarySvm]:
    """SVMs for the smallest values of C by SMO, each from the one before, for as long as that is faster."""
    svms: list[BinarySvm] = []
    # A step costs about as much as three rows of a libsvm call, including its copies.
    limit = int(0.6 * len(kernel))
    # A larger first C does not leave nearly all weights at their bounds.
    if values[0] * np.trace(kernel) > 30:
        return svms
    state: SmoState | None = initial_state(kernel, signs, values[0])
    for index, c in enumerate(values):
        if index and state:
            state = rescale(state, values[index - 1], c, signs)
        state = smo(kernel, signs, c, state, limit) if state else None
        if state is None:
            break
        svms.append(BinarySvm(state.weights, state.intercept))
        # The next C takes several times as many steps.
        if state.steps > limit / 4:
            break
    return svms


def _cold_started(
    kernel: Matrix, positive: NDArray[np.bool_], signs: Vector, c: float
) -> tuple[BinarySvm, bool]:
    """Train by libsvm, or by the active-set method where libsvm is slow; and whether the latter was used."""
    svm, converged = _libsvm(kernel, positive, c, max(5_000, 5 * len(kernel)))
    if converged:
        return svm, False
    refined = solve_active_set(kernel, signs, c, svm.weights)
    return (refined, True) if refined else (_libsvm(kernel, positive, c, -1)[0], False)


def _libsvm(kernel: Matrix, positive: NDArray[np.bool_], c: float, steps: int) -> tuple[BinarySvm, bool]:
    """Train by libsvm with at most `steps` steps (-1: no limit), and whether it converged."""
    # The kernel has been checked already; the cache holds all its rows.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        svc = SVC(C=c, kernel="precomputed", cache_size=max(200, kernel.nbytes / 2**20), max_iter=steps)
        svc.fit(kernel, positive)
    weights = np.zeros(len(kernel))
    weights[svc.support_] = svc.dual_coef_[0]
    return BinarySvm(weights, float(svc.intercept_[0])), svc.fit_status_ == 0


class SmoState(NamedTuple):
    """Signed weights (m), kernel @ weights (m), the intercept, and the number of steps taken."""

    weights: Vector
    values: Vector
    intercept: float
    steps: int


def initial_state(kernel: Matrix, signs: Vector, c: float) -> SmoState:
    """A start for a small C: weights at the bound, for equally many rows of both classes."""
    weights = np.zeros(len(signs))
    count = int(min((signs > 0).sum(), (signs < 0).sum()))
    for sign in (1.0, -1.0):
        weights[np.flatnonzero(signs == sign)[:count]] = sign * c
    return SmoState(weights, kernel @ weights, 0.0, 0)


def rescale(state: SmoState, old: float, new: float, signs: Vector) -> SmoState:
    """A start for another C: every weight keeps its ratio to C."""
    weights = state.weights * (new / old)
    # Weights at the bound stay exactly there.
    weights = np.where(np.abs(weights) >= new * (1 - 1e-12), new * signs, weights)
    return SmoState(weights, state.values * (new / old), state.intercept, 0)


def smo(kernel: Matrix, signs: Vector, c: float, start: SmoState, limit: int) -> SmoState | None:
    """Sequential minimal optimisation: exchange weight between two rows until libsvm's tolerance is met.

    The pair is chosen as in libsvm: the row whose weight should grow most, and the row whose exchange with
    it lowers the objective most.

    Args:
        kernel: m x m.
        signs: m, -1 or 1.
        c: the bound of the weights.
        start: weights within the bounds and with sum zero.
        limit: the largest number of steps; beyond, the result is None.
    """
    upper = np.where(signs > 0, c, 0.0)
    lower = upper - c
    weights = start.weights.copy()
    gradient = signs - start.values
    diagonal = np.diagonal(kernel).copy()
    # Added to the gradient, they exclude rows at their upper or lower bound from the choice.
    at_upper = np.where(weights < upper, 0.0, -np.inf)
    at_lower = np.where(weights > lower, 0.0, np.inf)
    for step in range(limit + 1):
        i = int((gradient + at_upper).argmax())
        gain = gradient[i] - (gradient + at_lower)
        if gain.max() < _TOLERANCE:
            return SmoState(weights, signs - gradient, _intercept(gradient, at_upper, at_lower), step)
        np.maximum(gain, 0.0, out=gain)
        curvature = np.maximum(diagonal + (diagonal[i] - 2.0 * kernel[i]), 1e-12)
        j = int((gain * gain / curvature).argmax())
        room_above, room_below = upper[i] - weights[i], weights[j] - lower[j]
        change = min(gain[j] / curvature[j], room_above, room_below)
        weights[i] = upper[i] if change == room_above else weights[i] + change
        weights[j] = lower[j] if change == room_below else weights[j] - change
        at_upper[i] = -np.inf if change == room_above else 0.0
        at_lower[j] = np.inf if change == room_below else 0.0
        at_lower[i] = at_upper[j] = 0.0
        gradient -= change * (kernel[i] - kernel[j])
    return None


def _intercept(gradient: Vector, at_upper: Vector, at_lower: Vector) -> float:
    """The mean over free rows; without any, the middle of the interval that the others allow."""
    free = (at_upper == 0) & (at_lower == 0)
    if free.any():
        return float(gradient[free].mean())
    return float((gradient + at_upper).max() + (gradient + at_lower).min()) / 2


def solve_active_set(kernel: Matrix, signs: Vector, c: float, weights: Vector) -> BinarySvm | None:
    """Finish an SVM from nearly correct weights, by Newton's method on the optimality conditions.

    The sets of weights at zero, at the bound C and between them (free) determine the solution: the free
    weights solve a linear system. From the sets of the given weights, solve the system, move every row that
    violates the condition of its set, and repeat. With a_i = signs_i weights_i the conditions are
    signs_i f(x_i) >= 1 where a_i = 0, = 1 where 0 < a_i < C, <= 1 where a_i = C.

    Args:
        kernel: m x m.
        signs: m, -1 or 1.
        c: the bound of the weights.
        weights: m, signed, with sum zero.

    Returns:
        The solution, or None if it is not reached with 25 systems.
    """
    alpha = weights * signs
    zero, bound = alpha <= 0, alpha >= c * (1 - 1e-9)
    system = _System(kernel, _RIDGE * float(np.diagonal(kernel).mean()))
    weights = weights.copy()
    values = kernel @ weights
    for _ in range(_ACTIVE_SET_STEPS):
        free = np.flatnonzero(~(zero | bound))
        if len(free) == 0:
            return None
        try:
            # The change of the free weights for intercept 0, and its slope in the intercept, which follows
            # from the condition that the weights sum to zero.
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
        # By how much a free weight exceeds its bounds, and how wrong the margin of any other row is.
        outside = np.where(zero | bound, 0.0, np.maximum(-alpha, alpha - c) / c)
        wrong = np.where(zero, -margin, np.where(bound, margin, 0.0))
        # Where the kernel is large, the ridge leaves free margins slightly off; the next step corrects them.
        settled = np.abs(margin[free]).max() <= _MARGIN
        if settled and outside.max() <= 1e-9 and wrong.max() <= _MARGIN:
            return BinarySvm(np.clip(alpha, 0, c) * signs, float(intercept))
        fixed = (outside > 1e-9) & (outside >= _WRONG_WEIGHT * outside.max())
        freed = (wrong > _MARGIN) & (wrong >= _WRONG_MARGIN * wrong.max())
        zero, bound = zero & ~freed | fixed & (alpha < 0), bound & ~freed | fixed & (alpha > c)
        moved = np.flatnonzero(fixed)
        clipped = np.where(bound[moved], c, 0.0) * signs[moved]
        values += (clipped - weights[moved]) @ kernel[moved]
        weights[moved] = clipped
    return None


class _System:
    """Solves (K_FF + ridge) x = y for changing sets F; the factor of one set serves similar ones."""

    def __init__(self, kernel: Matrix, ridge: float) -> None:
        self.kernel = kernel
        self.ridge = ridge
        self.rows: Rows = np.empty(0, dtype=np.int64)  # the factorised set
        self.factor: tuple[Matrix, bool] | None = None

    def solve(self, rows: Rows, right: Matrix) -> Matrix:
        """Solve for the set `rows` (f) and right-hand sides f x 2."""
        added = np.setdiff1d(rows, self.rows, assume_unique=True)
        removed = np.flatnonzero(~np.isin(self.rows, rows, assume_unique=True))
        if self.factor is None or len(added) + len(removed) > len(rows) // 8:
            block = self.kernel[np.ix_(rows, rows)]
            block[np.diag_indices(len(rows))] += self.ridge
            # The transpose of the symmetric block has LAPACK's memory order and saves a copy.
            self.factor = cho_factor(block.T, lower=True, overwrite_a=True, check_finite=False)
            self.rows = rows
            return self._solve_factorised(right)
        return self._solve_bordered(rows, right, added, removed)

    def _solve_bordered(self, rows: Rows, right: Matrix, added: Rows, removed: Rows) -> Matrix:
        """Solve the factorised system bordered by the added rows, with x = 0 for the removed ones."""
        full = np.zeros((len(self.kernel), right.shape[1]))
        full[rows] = right
        a, m = len(added), len(added) + len(removed)
        border = np.zeros((len(self.rows), m))
        border[:, :a] = self.kernel[np.ix_(added, self.rows)].T
        border[removed, np.arange(a, m)] = 1.0
        solved = self._solve_factorised(np.hstack([border, full[self.rows]]))
        schur = -border.T @ solved[:, :m]
        schur[:a, :a] += self.kernel[np.ix_(added, added)] + self.ridge * np.eye(a)
        rest = -border.T @ solved[:, m:]
        rest[:a] += full[added]
        extra = np.linalg.solve(schur, rest) if m else rest
        full[self.rows] = solved[:, m:] - solved[:, :m] @ extra
        full[added] = extra[:a]
        return full[rows]

    def _solve_factorised(self, right: Matrix) -> Matrix:
        solution: Matrix = cho_solve(self.factor, right, check_finite=False)
        return solution
