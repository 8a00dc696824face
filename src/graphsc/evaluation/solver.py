"""The two-class SVM on a ready-made kernel, for every C of a grid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context
from sklearn.svm import SVC

from graphsc.evaluation.active_set import finish


class Machine(NamedTuple):
    """f(x) = sum_i weights_i k(x_i, x) + intercept; above zero is the second class."""

    weights: NDArray[np.float64]
    intercept: float


def solve(kernel: NDArray[np.float64], positive: NDArray[np.bool_], grid: Sequence[float]) -> list[Machine]:
    """One machine for each C of `grid`, in its order.

    kernel: m x m between the rows trained on. positive: m, true for the second class.
    """
    machines: dict[float, Machine] = {}
    free: Machine | None = None
    for c in sorted(set(grid)):
        # No weight at its bound: the bound plays no part, and every larger C has this solution too.
        machine = free or _solve(kernel, positive, c)
        machines[c] = machine
        if free is None and np.abs(machine.weights).max() < c:
            free = machine
    return [machines[c] for c in grid]


def _solve(kernel: NDArray[np.float64], positive: NDArray[np.bool_], c: float) -> Machine:
    """libsvm, which is quick for small C; a long search is broken off and finished exactly."""
    machine, done = _libsvm(kernel, positive, c, max(10_000, 5 * len(kernel)))
    if not done:
        finished = finish(kernel, np.where(positive, 1.0, -1.0), c, machine.weights)
        machine = Machine(*finished) if finished else _libsvm(kernel, positive, c, -1)[0]
    return machine


def _libsvm(
    kernel: NDArray[np.float64], positive: NDArray[np.bool_], c: float, steps: int
) -> tuple[Machine, bool]:
    """A machine after at most so many steps, and whether it is within libsvm's tolerance."""
    # The kernel was checked when it was made; its cache holds every row.
    with config_context(assume_finite=True, skip_parameter_validation=True):
        svm = SVC(C=c, kernel="precomputed", cache_size=max(200, kernel.nbytes / 2**20), max_iter=steps)
        svm.fit(kernel, positive)
    weights = np.zeros(len(kernel))
    weights[svm.support_] = svm.dual_coef_[0]
    return Machine(weights, float(svm.intercept_[0])), svm.fit_status_ == 0
