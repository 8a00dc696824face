"""The two-class SVM on a ready-made kernel, for every C of a grid, each by the quickest of three ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.svm import SVC

from graphsc.evaluation.active_set import finish
from graphsc.evaluation.small_steps import Solution, at_bounds, descend, rescale

Matrix = NDArray[np.float64]
Vector = NDArray[np.float64]


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
