"""Places for the nodes of many small graphs at once, as far apart on paper as in the graph where that can be.

Stress majorisation (Gansner, Koren and North, 2004) over padded batches of graphs of like size. With d the
shortest paths and weights 1 / d^2, each step solves, for all graphs together,

    L_w X' = L_X X,   L_X[i, j] = -1 / (d_ij |x_i - x_j|)

which never raises the stress sum_ij (|x_i - x_j| - d_ij)^2 / d_ij^2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.integer]  # 2 x edges, local ids
_STEPS = 60
_ENTRIES = 400_000  # of a batch's distance matrices: they stay in the processor's cache
_NEAR = 1e-3  # of an edge: how close two nodes count as being, at least


def stress_layout(
    sizes: Sequence[int], edges: Sequence[Edges], *, steps: int = _STEPS
) -> list[NDArray[np.float32]]:
    """One nodes x 2 array a graph, an edge about 1 long; directions and loops of edges do not count."""
    found: list[NDArray[np.float32]] = [np.zeros((size, 2), np.float32) for size in sizes]
    order = [index for index in np.argsort(sizes, kind="stable").tolist() if sizes[index] > 1]
    start = 0
    while start < len(order):
        # Sorted by size, so that the last graph of a batch is its largest and little is padding.
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * sizes[order[stop]] ** 2 <= _ENTRIES:
            stop += 1
        batch = order[start:stop]
        places = _batch([sizes[index] for index in batch], [edges[index] for index in batch], steps)
        for row, index in enumerate(batch):
            found[index] = places[row, : sizes[index]]
        start = stop
    return found


def graph_distances(sizes: Sequence[int], edges: Sequence[Edges]) -> NDArray[np.float32]:
    """Graphs x n x n: shortest paths, n the largest size; infinite where there is no path, as to padding."""
    width = max(sizes)
    near = np.zeros((len(sizes), width, width), np.float32)
    for row, pairs in enumerate(edges):
        near[row, pairs[0], pairs[1]] = near[row, pairs[1], pairs[0]] = 1.0
    index = np.arange(width)
    near[:, index, index] = 1.0
    distance = np.where(near > 0, 1.0, np.inf).astype(np.float32)
    distance[:, index, index] = 0.0
    reached = near
    for length in range(2, width):
        further = np.minimum(reached @ near, 1.0)
        fresh = (further > 0) & np.isinf(distance)
        if not fresh.any():
            break
        distance[fresh] = length
        reached = further
    return distance


def _batch(sizes: Sequence[int], edges: Sequence[Edges], steps: int) -> NDArray[np.float32]:
    distance = graph_distances(sizes, edges)
    width = distance.shape[1]
    there = np.arange(width) < np.array(sizes)[:, None]
    both = there[:, :, None] & there[:, None, :]
    # Parts that no path joins stand apart, but not so far that they leave no room for themselves.
    longest = np.where(np.isinf(distance), 0.0, distance).max(axis=(1, 2), keepdims=True)
    distance = np.where(np.isinf(distance), 0.5 * longest + 1.5, distance)
    wanted = np.where(both, distance, 0.0)
    weight = np.zeros_like(wanted)
    np.divide(1.0, wanted**2, out=weight, where=wanted > 0)
    laplacian = -weight
    index = np.arange(width)
    laplacian[:, index, index] = weight.sum(axis=2)
    # Shifting all nodes changes no distance: adding the constant makes the matrix one that can be inverted.
    ones = np.where(both, 1.0 / np.array(sizes)[:, None, None], 0.0)
    padding = np.zeros_like(laplacian)
    padding[:, index, index] = ~there
    inverse = np.linalg.inv((laplacian + ones + padding).astype(np.float64)).astype(np.float32)
    pull: NDArray[np.float32] = (weight * wanted).astype(np.float32)  # 1 / d
    places = _start(wanted, there)
    for _ in range(steps):
        x, y = places[:, :, 0], places[:, :, 1]
        length = np.sqrt((x[:, :, None] - x[:, None, :]) ** 2 + (y[:, :, None] - y[:, None, :]) ** 2)
        between = (-pull / np.maximum(length, _NEAR)).astype(np.float32, copy=False)
        between[:, index, index] = 0.0
        between[:, index, index] = -between.sum(axis=2)
        places = inverse @ (between @ places)
    return places


def _start(wanted: NDArray[np.floating], there: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Classical scaling: the two largest directions of the centred squared distances, the largest across."""
    counts = there.sum(axis=1)[:, None, None]
    square = wanted.astype(np.float64) ** 2
    rows = square.sum(axis=2, keepdims=True) / counts
    total = rows.sum(axis=1, keepdims=True) / counts
    both = there[:, :, None] & there[:, None, :]
    centred = np.where(both, -0.5 * (square - rows - rows.transpose(0, 2, 1) + total), 0.0)
    values, vectors = np.linalg.eigh(centred)
    scale = np.sqrt(np.maximum(values[:, None, :-3:-1], 0.0))
    places = (vectors[:, :, :-3:-1] * scale).astype(np.float32)
    # Nodes that look alike from everywhere would start, and stay, in one place.
    nudge = np.random.default_rng(0).normal(0.0, 0.05, places.shape[1:]).astype(np.float32)
    return np.where(there[:, :, None], places + nudge, 0.0).astype(np.float32)
