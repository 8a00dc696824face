"""Positions for the nodes of many small graphs at once, by stress majorisation.

After Gansner, Koren and North (2004), over padded batches of graphs of similar size. With d the shortest-path
distances and weights 1 / d^2, each step solves, for all graphs of a batch together,

    L_w X' = L_X X,   L_X[i, j] = -1 / (d_ij |x_i - x_j|)

which never increases the stress sum_ij (|x_i - x_j| - d_ij)^2 / d_ij^2.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Edges = NDArray[np.integer]  # 2 x edges, node indices within the graph
_STEPS = 60
_BATCH_ENTRIES = 400_000  # of a batch's distance matrices, so that they fit into the CPU cache
_MIN_LENGTH = 1e-3  # lower bound of the distance between two nodes, to avoid dividing by zero


def stress_layout(
    sizes: Sequence[int], edges: Sequence[Edges], *, steps: int = _STEPS
) -> list[NDArray[np.float32]]:
    """Lay out graphs of these sizes so that an edge is about 1 long; directions and self-loops are ignored.

    Returns:
        nodes x 2 positions per graph.
    """
    layouts: list[NDArray[np.float32]] = [np.zeros((size, 2), np.float32) for size in sizes]
    order = [index for index in np.argsort(sizes, kind="stable").tolist() if sizes[index] > 1]
    start = 0
    while start < len(order):
        # Sorted by size: the last graph of a batch is its largest, so there is little padding.
        stop = start + 1
        while stop < len(order) and (stop + 1 - start) * sizes[order[stop]] ** 2 <= _BATCH_ENTRIES:
            stop += 1
        batch = order[start:stop]
        positions = _layout_batch([sizes[index] for index in batch], [edges[index] for index in batch], steps)
        for row, index in enumerate(batch):
            layouts[index] = positions[row, : sizes[index]]
        start = stop
    return layouts


def graph_distances(sizes: Sequence[int], edges: Sequence[Edges]) -> NDArray[np.float32]:
    """Shortest-path distances, graphs x n x n with n the largest size; infinite where there is no path."""
    width = max(sizes)
    adjacency = np.zeros((len(sizes), width, width), np.float32)
    for row, pairs in enumerate(edges):
        adjacency[row, pairs[0], pairs[1]] = adjacency[row, pairs[1], pairs[0]] = 1.0
    diagonal = np.arange(width)
    adjacency[:, diagonal, diagonal] = 1.0
    distance = np.where(adjacency > 0, 1.0, np.inf).astype(np.float32)
    distance[:, diagonal, diagonal] = 0.0
    reached = adjacency
    for length in range(2, width):
        further = np.minimum(reached @ adjacency, 1.0)
        new = (further > 0) & np.isinf(distance)
        if not new.any():
            break
        distance[new] = length
        reached = further
    return distance


def _layout_batch(sizes: Sequence[int], edges: Sequence[Edges], steps: int) -> NDArray[np.float32]:
    distance = graph_distances(sizes, edges)
    width = distance.shape[1]
    is_node = np.arange(width) < np.array(sizes)[:, None]
    is_pair = is_node[:, :, None] & is_node[:, None, :]
    # Components are kept apart, but not so far that little space is left for each.
    longest = np.where(np.isinf(distance), 0.0, distance).max(axis=(1, 2), keepdims=True)
    distance = np.where(np.isinf(distance), 0.5 * longest + 1.5, distance)
    target = np.where(is_pair, distance, 0.0)
    weight = np.zeros_like(target)
    np.divide(1.0, target**2, out=weight, where=target > 0)
    laplacian = -weight
    diagonal = np.arange(width)
    laplacian[:, diagonal, diagonal] = weight.sum(axis=2)
    # Stress does not depend on translation, so the Laplacian is singular; adding a constant makes it regular.
    constant = np.where(is_pair, 1.0 / np.array(sizes)[:, None, None], 0.0)
    padding = np.zeros_like(laplacian)
    padding[:, diagonal, diagonal] = ~is_node
    inverse = np.linalg.inv((laplacian + constant + padding).astype(np.float64)).astype(np.float32)
    inverse_distance: NDArray[np.float32] = (weight * target).astype(np.float32)
    positions = _classical_scaling(target, is_node)
    for _ in range(steps):
        x, y = positions[:, :, 0], positions[:, :, 1]
        length = np.sqrt((x[:, :, None] - x[:, None, :]) ** 2 + (y[:, :, None] - y[:, None, :]) ** 2)
        step = (-inverse_distance / np.maximum(length, _MIN_LENGTH)).astype(np.float32, copy=False)
        step[:, diagonal, diagonal] = 0.0
        step[:, diagonal, diagonal] = -step.sum(axis=2)
        positions = inverse @ (step @ positions)
    return positions


def _classical_scaling(target: NDArray[np.floating], is_node: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Initial positions: the two leading eigenvectors of the centred squared distances, the first along x."""
    counts = is_node.sum(axis=1)[:, None, None]
    square = target.astype(np.float64) ** 2
    rows = square.sum(axis=2, keepdims=True) / counts
    total = rows.sum(axis=1, keepdims=True) / counts
    is_pair = is_node[:, :, None] & is_node[:, None, :]
    centred = np.where(is_pair, -0.5 * (square - rows - rows.transpose(0, 2, 1) + total), 0.0)
    values, vectors = np.linalg.eigh(centred)
    scale = np.sqrt(np.maximum(values[:, None, :-3:-1], 0.0))
    positions = (vectors[:, :, :-3:-1] * scale).astype(np.float32)
    # Structurally equivalent nodes would start, and stay, at one position.
    noise = np.random.default_rng(0).normal(0.0, 0.05, positions.shape[1:]).astype(np.float32)
    return np.where(is_node[:, :, None], positions + noise, 0.0).astype(np.float32)
