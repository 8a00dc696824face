"""Loops of the losses that take many small passes in torch (see `core.compiled`).

Arrays are float32 and contiguous, sums over rows float64. A loss comes with its gradients, which the backward
pass only has to scale.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.compiled import compiled

Rows = NDArray[np.float32]
Sums = NDArray[np.float64]


@compiled(reorder=True)
def normalise_rows(y: Rows, eps: float, out: Rows, scale: Rows) -> None:
    """`out` (R x d): the rows of y at length one; `scale` (R): one over their length. Zero below `eps`."""
    for i in range(len(y)):
        squared = np.float32(0)
        for j in range(y.shape[1]):
            squared += y[i, j] * y[i, j]
        scale[i] = 1 / np.sqrt(squared) if squared > eps * eps else np.float32(0)
        for j in range(y.shape[1]):
            out[i, j] = y[i, j] * scale[i]


@compiled(reorder=True)
def normalise_rows_backward(gradient: Rows, result: Rows, scale: Rows, out: Rows) -> None:
    """The gradient of y in `normalise_rows`."""
    for i in range(len(result)):
        along = np.float32(0)
        for j in range(result.shape[1]):
            along += gradient[i, j] * result[i, j]
        for j in range(result.shape[1]):
            out[i, j] = (gradient[i, j] - along * result[i, j]) * scale[i]


@compiled(reorder=True)
def triplets(
    anchor: Rows, positive: Rows, negative: Rows, margin: float, temperature: float, to_anchor: Rows,
    to_positive: Rows, to_negative: Rows,
) -> float:  # fmt: skip
    """Eq. 13 and 15: the mean over graphs of weighted hinges, with its gradients.

    Args:
        anchor: B x d.
        positive: n x B x d.
        negative: n x B x d.
        margin: Of the hinge.
        temperature: Of the weights (Eq. 16-17), which are constants. Zero for weights of one.
        to_anchor: B x d, set to the gradient. The same for the last two.
        to_positive: n x B x d.
        to_negative: n x B x d.
    """
    factors, graphs, width = positive.shape
    hinge, weight = np.empty(factors), np.ones(factors)
    loss = np.float64(0)
    for i in range(graphs):
        for m in range(factors):
            near, far, along = np.float32(0), np.float32(0), np.float32(0)
            for j in range(width):
                a, p, n = anchor[i, j], positive[m, i, j], negative[m, i, j]
                near += (a - p) * (a - p)
                far += (a - n) * (a - n)
                along += a * (p - n)
            hinge[m] = near - far + margin
            if temperature > 0:
                weight[m] = along / temperature
        if temperature > 0:
            exponentials = np.exp(weight - weight.max())
            weight[:] = (1 - exponentials / exponentials.sum()) / (factors - 1)
        for j in range(width):
            to_anchor[i, j] = 0
        for m in range(factors):
            factor = np.float32(0)
            if hinge[m] > 0:
                loss += weight[m] * hinge[m]
                factor = np.float32(2 * weight[m] / graphs)
            for j in range(width):
                a, p, n = anchor[i, j], positive[m, i, j], negative[m, i, j]
                to_anchor[i, j] += factor * (n - p)
                to_positive[m, i, j] = factor * (p - a)
                to_negative[m, i, j] = factor * (a - n)
    return float(loss / graphs)


@compiled(reorder=True)
def squared_distances(products: Rows, medians: Rows) -> None:
    """Turn products a . b into squared distances, in place, and find their median over pairs.

    Args:
        products: K x m x m, m >= 2; becomes |a - b|^2.
        medians: K.
    """
    size = products.shape[1]
    length = np.empty(size, np.float32)
    pairs = np.empty(size * (size - 1) // 2, np.float32)
    for k in range(len(products)):
        longest = np.float32(0)
        for i in range(size):
            length[i] = products[k, i, i]
            longest = max(longest, length[i])
        position = 0
        for i in range(size):
            for j in range(size):
                distance = length[i] + length[j] - 2 * products[k, i, j]
                products[k, i, j] = max(distance, np.float32(0))
            products[k, i, i] = 0
            count = size - i - 1
            for j in range(count):
                pairs[position + j] = products[k, i, i + 1 + j]
            position += count
        medians[k] = median(pairs, 4 * np.float64(longest))  # |a - b| <= |a| + |b|


BUCKETS = 4096


@compiled
def _bucket(value: np.float32, step: np.float32) -> np.int64:
    """The bucket of a value; the last one for NaN and beyond the bound, so never outside the array."""
    place = value * step
    return np.int64(place) if place < BUCKETS - 1 else np.int64(BUCKETS - 1)


@compiled
def median(values: Rows, bound: float) -> float:
    """The median, by counting values in buckets and sorting the middle ones only; faster than a partition.

    Args:
        values: At least one, none of them negative; those above the bound are counted in the last bucket.
        bound: Where it is not finite, the result is NaN.
    """
    if not np.isfinite(bound):
        return np.nan
    step = np.float32((BUCKETS - 1) / bound) if bound > 0 else np.float32(0)
    if not np.isfinite(step):  # all values are almost zero
        step = np.float32(0)
    counts = np.zeros(BUCKETS, np.int64)
    for i in range(len(values)):
        counts[_bucket(values[i], step)] += 1
    # The order statistics that the median is the mean of, and the buckets that they are in.
    first, second = (len(values) - 1) // 2, len(values) // 2
    bucket = before = 0
    while before + counts[bucket] <= first:
        before += counts[bucket]
        bucket += 1
    last, through = bucket, before + counts[bucket]
    while through <= second:
        last += 1
        through += counts[last]
    middle = np.empty(through - before, np.float32)
    position = 0
    for i in range(len(values)):
        place = _bucket(values[i], step)
        if bucket <= place <= last:
            middle[position] = values[i]
            position += 1
    middle.sort()
    return float((middle[first - before] + middle[second - before]) / 2)


@compiled(reorder=True)
def dependence(kernel: Rows, pull: Rows) -> Sums:
    """The sum of tr(UHSH) over all ordered pairs of different variables, and its derivative by each kernel.

    Args:
        kernel: V x n x m x m, symmetric; n variables of m samples, V times.
        pull: V x n x m x m, set to the kernel times the sum of the other centred kernels.

    Returns:
        V.
    """
    times, variables, size, _ = kernel.shape
    result = np.zeros(times)
    means = np.empty((variables, size), np.float32)
    total = np.empty(size, np.float32)
    for v in range(times):
        for u in range(variables):
            whole = np.float64(0)
            for i in range(size):
                row = np.float32(0)
                for j in range(size):
                    row += kernel[v, u, i, j]
                means[u, i] = row / size
                whole += row
            half = np.float32(whole / size / size / 2)
            for i in range(size):
                means[u, i] -= half
        for i in range(size):
            for j in range(size):
                total[j] = 0
            for u in range(variables):
                for j in range(size):
                    total[j] += kernel[v, u, i, j] - means[u, i] - means[u, j]
            value = np.float32(0)
            for u in range(variables):
                for j in range(size):
                    centred = kernel[v, u, i, j] - means[u, i] - means[u, j]
                    others = total[j] - centred
                    pull[v, u, i, j] = kernel[v, u, i, j] * others
                    value += centred * others
            result[v] += value
    return result
