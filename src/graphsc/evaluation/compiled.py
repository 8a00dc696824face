"""Sequential minimal optimisation, compiled; `svm_path` has the same steps in NumPy.

Most of the time of a step is the search for the largest of many numbers. Compilers vectorise it for integers
only, so candidates are found by the bits of numbers in single precision, which as integers have the same
order (after a flip of the negative ones). Among the few candidates, double precision decides.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled

_BLOCK = 128  # rows compared at once; the search for the row itself is then limited to one block
_SMALLEST = np.int32(-0x80000000)
_POSITIVE = np.int32(0x7FFFFFFF)
_CLOSE = np.float32(1 - 1e-6)  # single precision may confuse scores that are closer
_TAU = 1e-12  # libsvm's smallest curvature


@compiled
def exchange(
    kernel: NDArray[np.float32],
    weights: NDArray[np.float64],
    gradient: NDArray[np.float64],
    lower: NDArray[np.float64],
    upper: NDArray[np.float64],
    tolerance: float,
    limit: int,
) -> tuple[int, float]:
    """`svm_path.exchange`: changes `weights` and `gradient`; returns the number of steps and the gap."""
    rows = len(weights)
    diagonal = np.empty(rows)
    # Added to the gradient, they exclude rows at their upper or lower bound from the choice.
    at_upper, at_lower = np.zeros(rows), np.zeros(rows)
    for k in range(rows):
        diagonal[k] = kernel[k, k]
        if weights[k] >= upper[k]:
            at_upper[k] = -np.inf
        if weights[k] <= lower[k]:
            at_lower[k] = np.inf
    scores = np.empty(rows, np.float32)
    bits = scores.view(np.int32)
    candidate = np.empty(1, np.int32)
    largest = np.empty((rows + _BLOCK - 1) // _BLOCK, np.int32)  # of each block
    i, j, change_i, change_j, steps = 0, 0, 0.0, 0.0, 0
    while True:
        row_i, row_j = kernel[i], kernel[j]
        _update(gradient, at_upper, row_i, row_j, change_i, change_j, scores)
        best = _largest_of_blocks(bits, largest)
        value = -np.inf
        for block in range(len(largest)):
            if largest[block] == best:
                for k in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, rows)):
                    if _ordered(bits[k]) == best and gradient[k] + at_upper[k] >= value:
                        i, value = k, gradient[k] + at_upper[k]
        row_i = kernel[i]
        _score(gradient, at_lower, diagonal, row_i, gradient[i], diagonal[i], scores)
        # Scores are not negative, so that their bits need no flip.
        candidate[0] = _largest_of_blocks(bits, largest)
        close = candidate.view(np.float32)[0] * _CLOSE
        candidate.view(np.float32)[0] = close
        best, value = candidate[0], -1.0
        for block in range(len(largest)):
            if largest[block] >= best:
                for k in range(block * _BLOCK, min(block * _BLOCK + _BLOCK, rows)):
                    if bits[k] >= best:
                        score = _exact_score(
                            gradient[k] + at_lower[k], diagonal[k], row_i[k], gradient[i], diagonal[i]
                        )
                        if score >= value:
                            j, value = k, score
        if value == 0 or steps == limit or gradient[i] - gradient[j] < tolerance:
            gap = gradient[i] - (gradient + at_lower).min()
            if value == 0 or steps == limit or gap < tolerance:
                return steps, gap
        curvature = (diagonal[i] + diagonal[j]) - 2.0 * np.float64(row_i[j])
        change = (gradient[i] - gradient[j]) / (curvature if curvature > 0 else _TAU)
        old_i, old_j, total = weights[i], weights[j], weights[i] + weights[j]
        if change >= upper[i] - old_i and upper[i] - old_i <= old_j - lower[j]:
            weights[i], weights[j] = upper[i], max(total - upper[i], lower[j])
        elif change >= old_j - lower[j]:
            weights[i], weights[j] = min(total - lower[j], upper[i]), lower[j]
        else:
            weights[i], weights[j] = old_i + change, old_j - change
        change_i, change_j = weights[i] - old_i, weights[j] - old_j
        at_upper[i] = -np.inf if weights[i] >= upper[i] else 0.0
        at_lower[j] = np.inf if weights[j] <= lower[j] else 0.0
        at_lower[i] = at_upper[j] = 0.0
        steps += 1


@compiled
def product(
    kernel: NDArray[np.float32], rows: NDArray[np.int64], factors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """`svm_path.product`: the sum of factors_i kernel[rows_i], in double precision."""
    total = np.zeros(kernel.shape[1])
    for index in range(len(rows)):
        row, factor = kernel[rows[index]], factors[index]
        for k in range(len(row)):
            total[k] += factor * np.float64(row[k])
    return total


@compiled
def submatrix(kernel: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """`svm_path.submatrix`: kernel[rows, rows]."""
    block = np.empty((len(rows), len(rows)), np.float32)
    for i in range(len(rows)):
        source, target = kernel[rows[i]], block[i]
        for j in range(len(rows)):
            target[j] = source[rows[j]]
    return block


@compiled
def _update(
    gradient: NDArray[np.float64],
    at_upper: NDArray[np.float64],
    row_i: NDArray[np.float32],
    row_j: NDArray[np.float32],
    change_i: float,
    change_j: float,
    scores: NDArray[np.float32],
) -> None:
    for k in range(len(gradient)):
        gradient[k] -= np.float64(row_i[k]) * change_i + np.float64(row_j[k]) * change_j
        scores[k] = np.float32(gradient[k] + at_upper[k])


@compiled
def _score(
    gradient: NDArray[np.float64],
    at_lower: NDArray[np.float64],
    diagonal: NDArray[np.float64],
    row: NDArray[np.float32],
    best: float,
    own: float,
    scores: NDArray[np.float32],
) -> None:
    zero, tau = np.float32(0), np.float32(_TAU)
    for k in range(len(gradient)):
        gain = np.float32(best - (gradient[k] + at_lower[k]))
        gain = gain if gain > zero else zero
        curvature = np.float32((own + diagonal[k]) - 2.0 * np.float64(row[k]))
        curvature = curvature if curvature > zero else tau
        scores[k] = gain * gain / curvature


@compiled
def _exact_score(gradient: float, diagonal: float, kernel: float, best: float, own: float) -> float:
    gain = max(best - gradient, 0.0)
    curvature = (own + diagonal) - 2.0 * np.float64(kernel)
    return gain * gain / (curvature if curvature > 0.0 else _TAU)


@compiled
def _largest_of_blocks(bits: NDArray[np.int32], largest: NDArray[np.int32]) -> np.int32:
    best = _SMALLEST
    for block in range(len(largest)):
        largest[block] = _largest(bits[block * _BLOCK : (block + 1) * _BLOCK])
        best = max(best, largest[block])
    return best


@compiled
def _largest(bits: NDArray[np.int32]) -> np.int32:
    best = _SMALLEST
    for k in range(len(bits)):
        best = max(best, _ordered(bits[k]))
    return best


@compiled
def _ordered(bits: np.int32) -> np.int32:
    return bits ^ ((bits >> np.int32(31)) & _POSITIVE)
