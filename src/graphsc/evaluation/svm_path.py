"""Two-class kernel SVMs for every C of a grid, faster than one libsvm call per C.

Two kinds of steps lead to the solution:

- Sequential minimal optimisation (`exchange`) starts from weights of zero and chooses rows as libsvm does.
  Compiled, its steps take a fraction of libsvm's time. Their number grows with C.
- Where they are many, a Newton step (`newton_step`) now and then determines all weights between their bounds
  at once, by a linear system; SMO is left to find out which weights are at a bound. The next larger C then
  starts from this solution.

Both lower the same objective, and the result is within libsvm's tolerance: no margin is wrong by more than
1e-3. The kernel is in single precision, as it is inside libsvm; all sums are in double precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import LinAlgError
from scipy.linalg.blas import dtrsm
from scipy.linalg.lapack import dpotrf
from sklearn import config_context
from sklearn.svm import SVC

from graphsc.core.compiled import use_compiled

Kernel = NDArray[np.float32]
Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]
Rows = NDArray[np.int64]
Mask = NDArray[np.bool_]

_TOLERANCE = 1e-3  # libsvm's
_EXACT = 2e-4  # where Newton steps are taken, for which it is little more work
_TAU = 1e-12  # libsvm's smallest curvature
_LIMIT = 10_000_000  # steps after which libsvm gives up, too
_SHORT = 1000  # SMO steps that take less time than a Newton step of few rows
_PATIENCE = 16  # SMO steps per row until the first Newton step
_CHUNK = 1000  # SMO steps until rows are left out, as in libsvm
_ROUNDS = 25  # of linear systems in one Newton step
_SMALL = 200  # rows that are factorised faster than bordered


class Problem(NamedTuple):
    """The state of an optimisation: arrays that are changed in place, and their bounds.

    Args:
        kernel: m x m.
        weights: m, signed, within the bounds and with sum zero.
        gradient: m, signs - kernel @ weights.
        lower: m.
        upper: m.
    """

    kernel: Kernel
    weights: Vector
    gradient: Vector
    lower: Vector
    upper: Vector

    def part(self, rows: Rows) -> Problem:
        """A copy with only some rows."""
        kernel = submatrix(self.kernel, rows)
        return Problem(kernel, self.weights[rows], self.gradient[rows], self.lower[rows], self.upper[rows])


class BinarySvm(NamedTuple):
    """f(x) = sum_i weights_i k(x_i, x) + intercept; f(x) >= 0 predicts the second class."""

    weights: Vector
    intercept: float


def solve_path(kernel: Kernel, positive: Mask, grid: Sequence[float]) -> list[BinarySvm]:
    """Train one SVM for each C of `grid`, in its order.

    Args:
        kernel: m x m, between the training rows. Rows of the first class before those of the second are the
            order in which libsvm takes them, and lead to the same steps.
        positive: m, true for rows of the second class.
        grid: values of C, in any order.
    """
    kernel = np.ascontiguousarray(kernel, dtype=np.float32)
    signs = np.where(positive, -1.0, 1.0)  # as in libsvm, where the first class is the positive one
    systems = LinearSystems(kernel)
    patience = max(_SHORT, _PATIENCE * len(kernel))
    # About as many SMO steps as take the time of a Newton step; not none, because `solve` doubles it.
    burst = max(_SHORT, len(kernel)) if use_compiled() else max(_SHORT // 10, len(kernel) // 4, 1)
    svms: dict[float, BinarySvm] = {}
    weights, gradient, previous, slow = np.zeros(len(signs)), signs.copy(), 0.0, False
    for c in sorted(set(grid)):
        if svms and (np.abs(weights) < previous).all():
            svms[c] = svms[previous]  # no weight is limited by C, so every larger C has the same solution
            continue
        if slow:
            weights, gradient = rescale(weights, gradient, signs, previous, c)
        else:
            weights, gradient = np.zeros(len(signs)), signs.copy()
        problem = Problem(kernel, weights, gradient, np.minimum(c * signs, 0.0), np.maximum(c * signs, 0.0))
        if slow:
            steps = solve(problem, systems, burst, burst)
        elif use_compiled():
            steps = solve(problem, systems, patience, burst)
        else:
            steps = libsvm_steps(problem, c, patience) + solve(problem, systems, burst, burst)
        svms[c] = BinarySvm(-weights, -_intercept(problem))
        # The next C takes several times as many.
        previous, slow = c, slow or steps > patience // 4
    return [svms[c] for c in grid]


def rescale(
    weights: Vector, gradient: Vector, signs: Vector, old: float, new: float
) -> tuple[Vector, Vector]:
    """A start for another C: every weight keeps its ratio to C."""
    scaled = weights * (new / old)
    # Weights at the bound stay exactly there.
    scaled = np.where(np.abs(scaled) >= new * (1 - 1e-12), new * signs, scaled)
    return scaled, signs - (signs - gradient) * (new / old)


def libsvm_steps(problem: Problem, c: float, limit: int) -> int:
    """Take at most `limit` steps from weights of zero by libsvm; returns their number.

    Without compilation libsvm is faster than `exchange`.
    """
    kernel, weights, gradient, _, upper = problem
    # The kernel has been checked already; the cache holds all its rows.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        cache = max(200, kernel.nbytes / 2**20)
        svc = SVC(C=c, kernel="precomputed", tol=_TOLERANCE, cache_size=cache, max_iter=limit)
        svc.fit(kernel, upper == 0)
    weights[svc.support_] = -svc.dual_coef_[0]
    gradient -= product(kernel, svc.support_.astype(np.int64), weights[svc.support_])
    return int(svc.n_iter_[0])


def solve(problem: Problem, systems: LinearSystems, limit: int, burst: int) -> int:
    """Solve by SMO and Newton steps in turn.

    Args:
        problem: changed in place.
        systems: of the same kernel.
        limit: SMO steps before the first Newton step.
        burst: SMO steps between two Newton steps.

    Returns:
        The number of SMO steps.
    """
    kernel, weights, gradient, lower, upper = problem
    taken, tolerance = 0, _TOLERANCE
    while True:
        steps, gap = optimise(problem, tolerance, limit)
        taken += steps
        if gap < tolerance or taken >= _LIMIT:
            return taken
        limit = burst
        free = np.flatnonzero((weights > lower) & (weights < upper))
        low, high = lower[free], upper[free]
        step = newton_step(systems, free, gradient[free], low - weights[free], high - weights[free])
        values = product(kernel, free, step)
        gain, curvature = float(gradient[free] @ step), float(values[free] @ step)
        if gain <= 0:
            burst, tolerance = 2 * burst, _TOLERANCE  # where Newton steps do not help, SMO does the work
            continue
        tolerance = _EXACT
        length = min(1.0, gain / curvature) if curvature > 0 else 1.0
        moved = weights[free] + length * step
        near = 1e-12 * (high - low)
        weights[free] = np.where(moved <= low + near, low, np.where(moved >= high - near, high, moved))
        gradient -= length * values


def optimise(problem: Problem, tolerance: float, limit: int) -> tuple[int, float]:
    """`exchange`, but after a while without rows that it would not choose for now.

    These are at a bound, with a gradient beyond those of all rows they could be exchanged with. libsvm leaves
    out the same rows. They are checked in the end. Arguments and results are those of `exchange`.
    """
    kernel, weights, gradient, _, _ = problem
    everything = rows = np.arange(len(kernel))
    part, taken = problem, 0
    known = weights  # the weights to which the gradient of the rows left out belongs
    while True:
        steps, gap = exchange(part, tolerance, min(_CHUNK, limit - taken))
        taken += steps
        finished = taken == limit or gap < tolerance
        if part is problem:
            if finished:
                return taken, gap
        else:
            weights[rows] = part.weights
        if finished:
            change = weights - known
            moved = np.flatnonzero(change)
            gradient -= product(kernel, moved, change[moved])
            gradient[rows] = part.gradient
            rows, part = everything, problem
            continue
        may_grow, may_shrink = part.weights < part.upper, part.weights > part.lower
        smallest, largest = part.gradient[may_shrink].min(), part.gradient[may_grow].max()
        chosen = (may_grow | (part.gradient <= largest)) & (may_shrink | (part.gradient >= smallest))
        chosen_rows = np.flatnonzero(chosen)
        # A copy of the kernel pays if as many steps follow as were taken.
        saved = (len(chosen) - len(chosen_rows)) * min(taken, limit - taken)
        if len(chosen_rows) ** 2 < saved:
            if part is problem:
                known = weights.copy()
            rows, part = rows[chosen_rows], part.part(chosen_rows)


def exchange(problem: Problem, tolerance: float, limit: int) -> tuple[int, float]:
    """Sequential minimal optimisation: exchange weight between two rows until the tolerance is met.

    The pair is chosen as in libsvm: the row whose weight should grow most, and the row whose exchange with
    it lowers the objective most.

    Args:
        problem: changed in place.
        tolerance: the gap at which to stop: the largest gradient of the weights that may grow, less the
            smallest of those that may shrink.
        limit: the largest number of steps.

    Returns:
        The number of steps taken, and the gap.
    """
    kernel, weights, gradient, lower, upper = problem
    if use_compiled():
        from graphsc.evaluation import compiled

        return compiled.exchange(*problem, tolerance, limit)
    diagonal = np.diagonal(kernel).astype(np.float64)
    # Added to the gradient, they exclude rows at their upper or lower bound from the choice.
    at_upper = np.where(weights < upper, 0.0, -np.inf)
    at_lower = np.where(weights > lower, 0.0, np.inf)
    steps = 0
    while True:
        i = _last_largest(gradient + at_upper)
        gain = np.maximum(gradient[i] - (gradient + at_lower), 0.0)
        curvature = (diagonal[i] + diagonal) - 2.0 * kernel[i].astype(np.float64)
        curvature[curvature <= 0] = _TAU
        score = gain * gain / curvature
        j = _last_largest(score)
        if score[j] == 0 or steps == limit or gradient[i] - gradient[j] < tolerance:
            gap = float(gradient[i] - (gradient + at_lower).min())
            if score[j] == 0 or steps == limit or gap < tolerance:
                return steps, gap
        change = (gradient[i] - gradient[j]) / curvature[j]
        old_i, old_j, total = weights[i], weights[j], weights[i] + weights[j]
        if change >= upper[i] - old_i and upper[i] - old_i <= old_j - lower[j]:
            weights[i], weights[j] = upper[i], max(total - upper[i], lower[j])
        elif change >= old_j - lower[j]:
            weights[i], weights[j] = min(total - lower[j], upper[i]), lower[j]
        else:
            weights[i], weights[j] = old_i + change, old_j - change
        at_upper[i] = -np.inf if weights[i] >= upper[i] else 0.0
        at_lower[j] = np.inf if weights[j] <= lower[j] else 0.0
        at_lower[i] = at_upper[j] = 0.0
        changes = kernel[i].astype(np.float64) * (weights[i] - old_i)
        gradient -= changes + kernel[j].astype(np.float64) * (weights[j] - old_j)
        steps += 1


def _last_largest(values: Vector) -> int:
    """The last of equally large values, as in libsvm."""
    return len(values) - 1 - int(values[::-1].argmax())


def product(kernel: Kernel, rows: Rows, factors: Vector) -> Vector:
    """The sum of factors_i kernel[rows_i], in double precision."""
    if use_compiled():
        from graphsc.evaluation import compiled

        return compiled.product(kernel, rows, factors)
    total = np.zeros(kernel.shape[1])
    for row, factor in zip(rows, factors, strict=True):
        total += factor * kernel[row].astype(np.float64)
    return total


def submatrix(kernel: Kernel, rows: Rows) -> Kernel:
    """kernel[rows, rows]."""
    if use_compiled():
        from graphsc.evaluation import compiled

        return compiled.submatrix(kernel, rows)
    return kernel[np.ix_(rows, rows)]


def _intercept(problem: Problem) -> float:
    """The mean over free rows; without any, the middle of the interval that the others allow."""
    _, weights, gradient, lower, upper = problem
    free = (weights > lower) & (weights < upper)
    if free.any():
        return float(gradient[free].mean())
    largest = gradient[weights < upper].max()
    return float(largest + gradient[weights > lower].min()) / 2


def newton_step(systems: LinearSystems, free: Rows, gradient: Vector, low: Vector, high: Vector) -> Vector:
    """The step of the free weights (f) to the minimum of the objective, with all other weights unchanged.

    Rows whose step exceeds a bound are fixed there, and the others solved again, until none does.

    Args:
        systems: solves the linear systems.
        free: f rows.
        gradient: f.
        low: f, the smallest step of each row.
        high: f, the largest step of each row.

    Returns:
        The step, with sum zero and within the bounds; zero if no linear system leads to one.
    """
    step, active, rest = np.zeros(len(free)), np.ones(len(free), dtype=bool), gradient
    for _ in range(_ROUNDS):
        rows = np.flatnonzero(active)
        if len(rows) < 2:
            return np.zeros(len(free))
        right = np.empty((len(rows), 2), order="F")
        right[:, 0], right[:, 1] = rest[rows], 1.0
        try:
            # The step for intercept 0, and its slope in the intercept, which follows from the sum of zero.
            change, slope = systems.solve(free[rows], right).T
        except LinAlgError:
            return np.zeros(len(free))
        step[rows] = 0.0
        step[rows] = change - (change.sum() + step.sum()) / slope.sum() * slope
        if not np.isfinite(step).all():
            return np.zeros(len(free))
        wrong = np.flatnonzero((step < low) | (step > high))
        if len(wrong) == 0:
            return step
        step[wrong] = np.where(step[wrong] < low[wrong], low[wrong], high[wrong])
        active[wrong] = False
        rest = rest - product(systems.kernel, free[wrong], step[wrong])[free]
    return np.zeros(len(free))


class LinearSystems:
    """Solves (K_FF + ridge) x = y for changing sets F; the factor of one set serves similar ones.

    With the factorised set P, and K_PP + ridge = L L^T, the rows added to P and the condition x = 0 for
    those removed from it border the system by columns U:

        [L L^T  U] [x]   [y      ]
        [U^T    D] [z] = [y_added]
    """

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self.mean_diagonal = float(np.diagonal(kernel).mean(dtype=np.float64))
        self.ridge = 0.0
        self.rows: Rows = np.empty(0, dtype=np.int64)  # P
        self.factor: Matrix | None = None  # L
        self.position = np.full(len(kernel), -1)  # of each row in P

    def solve(self, rows: Rows, right: Matrix) -> Matrix:
        """Solve for the set `rows` (f) and right-hand sides f x 2."""
        inside = self.position[rows]
        added = np.flatnonzero(inside < 0)
        changes = 2 * len(added) + len(self.rows) - len(rows)
        if self.factor is None or changes > len(rows) // 8 or (changes and len(rows) < _SMALL):
            self._factorise(rows)
            return self._second_half(self._first_half(right))
        if changes == 0:
            return self._second_half(self._first_half(right))
        return self._solve_bordered(rows, right, inside, added)

    def _solve_bordered(self, rows: Rows, right: Matrix, inside: Rows, added: Rows) -> Matrix:
        known = np.flatnonzero(inside >= 0)
        kept = np.zeros(len(self.rows), dtype=bool)
        kept[inside[known]] = True
        removed = np.flatnonzero(~kept)
        a, m = len(added), len(added) + len(removed)
        # U, and the right-hand sides.
        columns = np.zeros((len(self.rows), m + 2), order="F")
        columns[:, :a] = self.kernel[np.ix_(rows[added], self.rows)].T
        columns[removed, np.arange(a, m)] = 1.0
        columns[inside[known], m:] = right[known]
        columns = self._first_half(columns)
        border, first = columns[:, :m], columns[:, m:]
        schur = -border.T @ border
        schur[:a, :a] += self.kernel[np.ix_(rows[added], rows[added])]
        schur[np.arange(a), np.arange(a)] += self.ridge
        rest = -border.T @ first
        rest[:a] += right[added]
        extra = np.linalg.solve(schur, rest)
        solution = np.empty_like(right)
        solution[known] = self._second_half(np.asfortranarray(first - border @ extra))[inside[known]]
        solution[added] = extra[:a]
        return solution

    def _factorise(self, rows: Rows) -> None:
        block = submatrix(self.kernel, rows).astype(np.float64)
        # Rounded to single precision, the kernel may have eigenvalues of minus this order.
        ridge = 4e-8 * np.sqrt(len(rows)) * self.mean_diagonal
        block[np.diag_indices(len(rows))] += ridge
        # The transpose of the symmetric block has LAPACK's memory order and saves a copy.
        factor, info = dpotrf(block.T, lower=1, clean=0, overwrite_a=1)
        self.position[self.rows] = -1
        if info != 0:
            self.rows, self.factor = np.empty(0, dtype=np.int64), None
            raise LinAlgError("the kernel is not positive definite")
        self.rows, self.factor, self.ridge = rows, factor, ridge
        self.position[rows] = np.arange(len(rows))

    def _first_half(self, right: Matrix) -> Matrix:
        """L^-1 right."""
        solution: Matrix = dtrsm(1.0, self.factor, right, lower=1, overwrite_b=1)
        return solution

    def _second_half(self, right: Matrix) -> Matrix:
        """L^-T right."""
        solution: Matrix = dtrsm(1.0, self.factor, right, lower=1, trans_a=1, overwrite_b=1)
        return solution
