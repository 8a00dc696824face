"""Exact counts of the induced sub-graphs of three and four nodes, for every graph of a collection.

Edges are taken as undirected, loops and repeated edges left out. Everything follows from degrees,
triangles on each edge, four-cycles and four-cliques: counts of sub-graphs that need not be induced, from
which the denser graphlets that hold them are taken away one after another.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection
from graphsc.data.ragged import chunks_of_edges
from graphsc.kernels.graphlet_parts import Ranked, closed_parts

Counts = NDArray[np.float64]

# Columns of `graphlet_counts`; the connected ones of each size first.
CONNECTED = {3: ("triangle", "wedge"), 4: ("clique", "diamond", "cycle", "paw", "claw", "path")}
DISCONNECTED = {3: ("edge3", "empty3"), 4: ("triangle4", "wedge4", "edges", "edge4", "empty4")}
NAMES = CONNECTED[3] + DISCONNECTED[3] + CONNECTED[4] + DISCONNECTED[4]

# Four-node graphlets from dense to sparse: how many copies of the column's graph the row's graph holds
# among its sub-graphs on the same four nodes. Columns and rows: clique, diamond, cycle, paw, claw, path,
# triangle + node, wedge + node, two edges, edge + two nodes, no edge.
_HELD = np.array(
    [
        [1, 6, 3, 12, 4, 12, 4, 12, 3, 6, 1],
        [0, 1, 1, 4, 2, 6, 2, 8, 2, 5, 1],
        [0, 0, 1, 0, 0, 4, 0, 4, 2, 4, 1],
        [0, 0, 0, 1, 1, 2, 1, 5, 1, 4, 1],
        [0, 0, 0, 0, 1, 0, 0, 3, 0, 3, 1],
        [0, 0, 0, 0, 0, 1, 0, 2, 1, 3, 1],
        [0, 0, 0, 0, 0, 0, 1, 3, 0, 3, 1],
        [0, 0, 0, 0, 0, 0, 0, 1, 0, 2, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1],
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1],
    ],
    dtype=np.float64,
)
_HELD3 = np.array([[1, 3, 3, 1], [0, 1, 2, 1], [0, 0, 1, 1], [0, 0, 0, 1]], dtype=np.float64)


def graphlet_counts(collection: GraphCollection) -> Counts:
    """How often each graphlet of `NAMES` is induced in each graph: graphs x 15, exact below 2^53."""
    collection.touch(np.arange(len(collection)))
    counts = np.zeros((len(collection), len(NAMES)))
    for graphs in chunks_of_edges(collection.edge_ptr):
        counts[graphs] = _count(Ranked.of(collection, graphs))
    return counts


def graphlet_frequencies(counts: Counts, connected: bool = True) -> Counts:
    """Shares of the graphlets among those of their size, each size by itself; zeros where there are none."""
    blocks = []
    for size in (3, 4):
        names = CONNECTED[size] + (() if connected else DISCONNECTED[size])
        block = counts[:, [NAMES.index(name) for name in names]]
        total = block.sum(axis=1, keepdims=True)
        blocks.append(np.divide(block, total, out=np.zeros_like(block), where=total > 0))
    return np.concatenate(blocks, axis=1)


def _count(ranked: Ranked) -> Counts:
    triangles, cycles, cliques = closed_parts(ranked)  # per edge, per graph, per graph
    low, high, degree = ranked.low, ranked.high, ranked.degree

    def over_edges(values: NDArray[np.int64] | Counts) -> Counts:
        return np.bincount(ranked.graph[low], values, len(n)).astype(np.float64)

    def over_nodes(values: NDArray[np.int64] | Counts) -> Counts:
        return np.bincount(ranked.graph, values, len(n)).astype(np.float64)

    n = np.diff(ranked.node_ptr).astype(np.float64)
    m = over_edges(np.ones(len(low)))
    ends = np.bincount(low, triangles, len(degree)) + np.bincount(high, triangles, len(degree))
    at_node = ends / 2
    triangle = over_edges(triangles) / 3
    wedge = over_nodes(_choose(degree, 2))
    three = np.stack([triangle, wedge, m * (n - 2), _choose(n, 3)], axis=1)
    four = np.stack(
        [
            cliques,
            over_edges(_choose(triangles, 2)),
            cycles,
            over_nodes(at_node * (degree - 2)),
            over_nodes(_choose(degree, 3)),
            over_edges((degree[low] - 1) * (degree[high] - 1)) - 3 * triangle,
            triangle * (n - 3),
            wedge * (n - 3),
            _choose(m, 2) - wedge,
            m * _choose(n - 2, 2),
            _choose(n, 4),
        ],
        axis=1,
    )
    # A column too few nodes make negative or meaningless belongs to a graph that has no such graphlets.
    three[n < 3], four[n < 4] = 0, 0
    return np.concatenate([_induced(three, _HELD3), _induced(four, _HELD)], axis=1)


def _induced(held: Counts, table: Counts) -> Counts:
    """Solve held = induced @ table, from the densest graphlet to the empty one."""
    induced = held.copy()
    for k in range(1, table.shape[1]):
        induced[:, k] -= induced[:, :k] @ table[:k, k]
    return induced


def _choose(values: NDArray[np.int64] | Counts, k: int) -> Counts:
    numbers = values.astype(np.float64)
    product = np.ones(len(numbers))
    for step in range(k):
        product = product * (numbers - step) / (step + 1)  # whole at each step, so exact
    return product
