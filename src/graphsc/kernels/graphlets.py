"""Exact counts of the induced sub-graphs of three and four nodes, for every graph of a collection.

Edges are taken as undirected, loops and repeated edges left out. Everything follows from degrees,
triangles on each edge, four-cycles and four-cliques: counts of sub-graphs that need not be induced, from
which the denser graphlets that hold them are taken away one after another.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.data.arrays import chunks_of_edges, gather_index, pointer
from graphsc.data.collection import GraphCollection

# The parts of graphlet counts that need more than degrees: triangles, four-cycles, four-cliques.
#
# Nodes are ranked by degree, so that a node has few neighbours above it. Sparse graphs are done all at
# once, by listing paths and looking up the edge that would close them; a graph in which the lists would
# be long is done by products of dense matrices.


Ints = NDArray[np.int64]
_LISTED = 4_000_000  # paths at once, to bound memory


@dataclass(frozen=True)
class Ranked:
    """A run of graphs, simple and undirected, whose nodes are numbered by rising degree in each graph."""

    node_ptr: Ints  # graphs + 1
    graph: Ints  # of each node
    degree: Ints  # of each node
    low: Ints  # of each edge, sorted by (low, high): the end of lower rank
    high: Ints

    @classmethod
    def of(cls, collection: GraphCollection, graphs: slice) -> Ranked:
        """The chosen graphs of a collection."""
        node_ptr = collection.node_ptr[graphs.start : graphs.stop + 1]
        edge_ptr = collection.edge_ptr[graphs.start : graphs.stop + 1]
        node_ptr = node_ptr - node_ptr[0]
        nodes = int(node_ptr[-1])
        first = np.repeat(node_ptr[:-1], np.diff(edge_ptr))
        ends = first + collection.edge_index[:, int(edge_ptr[0]) : int(edge_ptr[-1])]
        source, destination = ends[:, ends[0] != ends[1]]
        if collection.undirected:
            once = source < destination
            source, destination = source[once], destination[once]
        key = np.sort(np.maximum(source, destination) * nodes + np.minimum(source, destination))
        key = key[np.diff(key, prepend=-1) > 0]
        two, one = np.divmod(key, max(nodes, 1))
        graph = np.repeat(np.arange(len(node_ptr) - 1), np.diff(node_ptr))
        degree = np.bincount(one, minlength=nodes) + np.bincount(two, minlength=nodes)
        order = np.lexsort((degree, graph))
        rank = np.empty(nodes, np.int64)
        rank[order] = np.arange(nodes)
        low, high = np.minimum(rank[one], rank[two]), np.maximum(rank[one], rank[two])
        order_of_edges = np.argsort(low * nodes + high)
        return cls(node_ptr, graph, degree[order], low[order_of_edges], high[order_of_edges])


def closed_parts(ranked: Ranked) -> tuple[Ints, Ints, Ints]:
    """Triangles on each edge, four-cycles and four-cliques of each graph (none need be induced)."""
    nodes, graphs = len(ranked.graph), len(ranked.node_ptr) - 1
    up = np.bincount(ranked.low, minlength=nodes)
    edge_ptr = np.searchsorted(ranked.low, ranked.node_ptr)
    cliques_work = np.bincount(ranked.graph, up.astype(np.float64) ** 3, graphs)
    size = np.diff(ranked.node_ptr).astype(np.float64)
    # Cost of the two ways, in look-ups of about 0.1 microseconds.
    dense = cliques_work > 100 * size + size**3 / 2500
    triangles = np.zeros(len(ranked.low), np.int64)
    cycles, cliques = np.zeros(graphs, np.int64), np.zeros(graphs, np.int64)
    for g in np.flatnonzero(dense):
        own = slice(edge_ptr[g], edge_ptr[g + 1])
        low, high = ranked.low[own] - ranked.node_ptr[g], ranked.high[own] - ranked.node_ptr[g]
        triangles[own], cycles[g], cliques[g] = _by_products(int(size[g]), low, high)
    cycles_work = np.bincount(ranked.graph[ranked.low], ranked.degree[ranked.low], graphs)
    work = pointer(np.where(dense, 0, cliques_work + cycles_work).astype(np.int64))
    for run in chunks_of_edges(work, _LISTED):
        edges = np.arange(edge_ptr[run.start], edge_ptr[run.stop])
        edges = edges[~dense[ranked.graph[ranked.low[edges]]]]
        if len(edges):
            base = int(ranked.node_ptr[run.start])
            low, high = ranked.low[edges] - base, ranked.high[edges] - base
            count = int(ranked.node_ptr[run.stop]) - base
            triangles[edges], at_cycle, at_clique = _by_listing(count, low, high)
            graph = ranked.graph[base : base + count]
            cycles += np.bincount(graph, at_cycle, graphs).astype(np.int64)
            cliques += np.bincount(graph, at_clique, graphs).astype(np.int64)
    return triangles, cycles, cliques


def _by_products(n: int, low: Ints, high: Ints) -> tuple[Ints, int, int]:
    """One dense graph: triangles on each edge, four-cycles, four-cliques."""
    above = np.zeros((n, n), np.float32)  # entries of products stay below n: exact in 32 bits
    above[low, high] = 1
    both = above + above.T
    shared = both @ both  # common neighbours
    triangles = shared[low, high].astype(np.int64)
    np.fill_diagonal(shared, 0)
    ways = shared.astype(np.float64)
    cycles = (ways * (ways - 1)).sum() / 8  # each cycle has two diagonals, seen twice, and two orders
    cliques = sum(_triangles_among(above, np.flatnonzero(row)) for row in above)
    return triangles, round(cycles), cliques


def _triangles_among(above: NDArray[np.float32], nodes: Ints) -> int:
    """Triangles among the chosen nodes of a graph, given as an upper triangle."""
    k = len(nodes)
    if k < 3:
        return 0
    among = above[nodes].take(nodes, axis=1)
    degree = (among.sum(axis=0) + among.sum(axis=1)).astype(np.int64)
    if 2 * int(degree.sum()) < k * (k - 1):
        return round(np.vdot((among @ among).astype(np.float64), among))
    # Among nodes that nearly all know each other, triples are counted by the edges they miss: triples of
    # a missing edge, less those that miss two, plus those that miss all three.
    misses = k - 1 - degree
    missed = int(misses.sum()) // 2 * (k - 2) - int((misses * (misses - 1)).sum()) // 2
    part = np.flatnonzero(misses > 1)
    if len(part) > 2:
        missing = np.triu(1 - among[part].take(part, axis=1), 1)
        missed += round(np.vdot((missing @ missing).astype(np.float64), missing))
    return k * (k - 1) * (k - 2) // 6 - missed


def _by_listing(nodes: int, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """Many sparse graphs: triangles on each edge; four-cycles and four-cliques at their top node."""
    keys = low * nodes + high
    up_ptr = pointer(np.bincount(low, minlength=nodes))

    def edge_of(one: Ints, two: Ints) -> Ints:
        """The edge from `one` up to `two`, or -1."""
        key = one * nodes + two
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(keys[place] == key, place, -1)

    # Triangles u < v < w: an edge (u, v), then one up from v, closed by (u, w).
    second, ptr = gather_index(up_ptr, high)
    first = np.repeat(np.arange(len(low)), np.diff(ptr))
    third = edge_of(low[first], high[second])
    closed = third >= 0
    first, second, third = first[closed], second[closed], third[closed]
    triangles = sum(np.bincount(side, minlength=len(low)) for side in (first, second, third))

    # Cliques u < v < w < x: a triangle, then one up from w, closed by (u, x) and (v, x).
    fourth, ptr = gather_index(up_ptr, high[second])
    triangle = np.repeat(np.arange(len(first)), np.diff(ptr))
    u, v, x = low[first][triangle], high[first][triangle], high[fourth]
    whole = (edge_of(u, x) >= 0) & (edge_of(v, x) >= 0)
    cliques = np.bincount(x[whole], minlength=nodes)

    # Cycles with top node v: two ways from v down to x and on to one w, both below v.
    one, two = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(one, kind="stable")
    around = two[order]
    around_ptr = pointer(np.bincount(one, minlength=nodes))
    third, ptr = gather_index(around_ptr, low)
    top = np.repeat(high, np.diff(ptr))
    end = around[third]
    pairs, ways = np.unique((top * nodes + end)[end < top], return_counts=True)
    cycles = np.bincount(pairs // nodes, ways * (ways - 1) // 2, nodes).astype(np.int64)
    return np.asarray(triangles, np.int64), cycles, cliques


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
    collection.verify_hashes()
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
