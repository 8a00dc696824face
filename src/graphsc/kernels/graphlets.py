"""Exact counts of the induced sub-graphs of three and four nodes, for every graph of a collection.

Edges are taken as undirected, without loops and duplicates. The counts of sub-graphs that need not be
induced follow from degrees, triangles on each edge, four-cycles and four-cliques; the induced counts follow
from these by subtracting the denser graphlets that contain them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.data.arrays import chunks_of_edges, gather_index, pointer
from graphsc.data.collection import GraphCollection

Ints = NDArray[np.int64]
Counts = NDArray[np.float64]

_LISTED = 4_000_000  # paths at once, to bound memory

# The columns of `graphlet_counts`: of each size, first the connected graphlets, from dense to sparse.
CONNECTED = {3: ("triangle", "wedge"), 4: ("clique", "diamond", "cycle", "paw", "claw", "path")}
DISCONNECTED = {3: ("edge3", "empty3"), 4: ("triangle4", "wedge4", "edges", "edge4", "empty4")}
GRAPHLETS = CONNECTED[3] + DISCONNECTED[3] + CONNECTED[4] + DISCONNECTED[4]

# How many copies of the column's graph the row's graph contains on the same four nodes. Rows and columns:
# clique, diamond, cycle, paw, claw, path, triangle + node, wedge + node, two edges, edge + two nodes, none.
_CONTAINED4 = np.array(
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
_CONTAINED3 = np.array([[1, 3, 3, 1], [0, 1, 2, 1], [0, 0, 1, 1], [0, 0, 0, 1]], dtype=np.float64)


def graphlet_counts(collection: GraphCollection) -> Counts:
    """The induced occurrences of each of `GRAPHLETS` in each graph: graphs x 15, exact below 2^53."""
    collection.verify_hashes()
    counts = np.zeros((len(collection), len(GRAPHLETS)))
    for graphs in chunks_of_edges(collection.edge_ptr):
        counts[graphs] = _count(RankedGraphs.of(collection, graphs))
    return counts


def graphlet_frequencies(counts: Counts, connected: bool = False) -> Counts:
    """The counts of each size divided by their sum, or zeros where there are none.

    Args:
        counts: graphs x 15, from `graphlet_counts`.
        connected: leave out the disconnected graphlets.
    """
    blocks = []
    for size in (3, 4):
        names = CONNECTED[size] + (() if connected else DISCONNECTED[size])
        block = counts[:, [GRAPHLETS.index(name) for name in names]]
        total = block.sum(axis=1, keepdims=True)
        blocks.append(np.divide(block, total, out=np.zeros_like(block), where=total > 0))
    return np.concatenate(blocks, axis=1)


def _count(ranked: RankedGraphs) -> Counts:
    triangles, cycles, cliques = _closed_counts(ranked)  # per edge, per graph, per graph
    low, high, degree = ranked.low, ranked.high, ranked.degree

    def over_edges(values: NDArray[np.int64] | Counts) -> Counts:
        return np.bincount(ranked.graph[low], values, len(n)).astype(np.float64)

    def over_nodes(values: NDArray[np.int64] | Counts) -> Counts:
        return np.bincount(ranked.graph, values, len(n)).astype(np.float64)

    n = np.diff(ranked.node_ptr).astype(np.float64)
    m = over_edges(np.ones(len(low)))
    at_ends = np.bincount(low, triangles, len(degree)) + np.bincount(high, triangles, len(degree))
    node_triangles = at_ends / 2
    triangle = over_edges(triangles) / 3
    wedge = over_nodes(_choose(degree, 2))
    three = np.stack([triangle, wedge, m * (n - 2), _choose(n, 3)], axis=1)
    four = np.stack(
        [
            cliques,
            over_edges(_choose(triangles, 2)),
            cycles,
            over_nodes(node_triangles * (degree - 2)),
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
    # The formulas are wrong for graphs with fewer nodes than the graphlet, which contain none.
    three[n < 3], four[n < 4] = 0, 0
    return np.concatenate([_induced(three, _CONTAINED3), _induced(four, _CONTAINED4)], axis=1)


def _induced(contained: Counts, table: Counts) -> Counts:
    """Solve contained = induced @ table, from the densest graphlet to the empty one."""
    induced = contained.copy()
    for k in range(1, table.shape[1]):
        induced[:, k] -= induced[:, :k] @ table[:k, k]
    return induced


def _choose(values: NDArray[np.int64] | Counts, k: int) -> Counts:
    numbers = values.astype(np.float64)
    product = np.ones(len(numbers))
    for step in range(k):
        product = product * (numbers - step) / (step + 1)  # an integer after each step, so exact
    return product


@dataclass(frozen=True)
class RankedGraphs:
    """Consecutive graphs, simple and undirected; nodes are numbered by ascending degree within each graph."""

    node_ptr: Ints  # graphs + 1
    graph: Ints  # of each node
    degree: Ints  # of each node
    low: Ints  # the end of lower rank of each edge; edges are sorted by (low, high)
    high: Ints

    @classmethod
    def of(cls, collection: GraphCollection, graphs: slice) -> RankedGraphs:
        """The graphs `graphs` of a collection."""
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
        larger, smaller = np.divmod(key, max(nodes, 1))
        graph = np.repeat(np.arange(len(node_ptr) - 1), np.diff(node_ptr))
        degree = np.bincount(smaller, minlength=nodes) + np.bincount(larger, minlength=nodes)
        order = np.lexsort((degree, graph))
        rank = np.empty(nodes, np.int64)
        rank[order] = np.arange(nodes)
        low = np.minimum(rank[smaller], rank[larger])
        high = np.maximum(rank[smaller], rank[larger])
        edges = np.argsort(low * nodes + high)
        return cls(node_ptr, graph, degree[order], low[edges], high[edges])


def _closed_counts(ranked: RankedGraphs) -> tuple[Ints, Ints, Ints]:
    """Triangles on each edge, four-cycles and four-cliques of each graph, not necessarily induced.

    Nodes are ranked by degree, so that each has few neighbours of higher rank. Sparse graphs are processed
    together, by listing paths and looking up the edge that closes them; a graph with too many paths by
    products of dense matrices.
    """
    nodes, graphs = len(ranked.graph), len(ranked.node_ptr) - 1
    up = np.bincount(ranked.low, minlength=nodes)
    edge_ptr = np.searchsorted(ranked.low, ranked.node_ptr)
    cliques_work = np.bincount(ranked.graph, up.astype(np.float64) ** 3, graphs)
    size = np.diff(ranked.node_ptr).astype(np.float64)
    # The cost of both algorithms, in look-ups of about 0.1 microseconds.
    dense = cliques_work > 100 * size + size**3 / 2500
    triangles = np.zeros(len(ranked.low), np.int64)
    cycles, cliques = np.zeros(graphs, np.int64), np.zeros(graphs, np.int64)
    for g in np.flatnonzero(dense):
        edges = slice(edge_ptr[g], edge_ptr[g + 1])
        low, high = ranked.low[edges] - ranked.node_ptr[g], ranked.high[edges] - ranked.node_ptr[g]
        triangles[edges], cycles[g], cliques[g] = _by_products(int(size[g]), low, high)
    cycles_work = np.bincount(ranked.graph[ranked.low], ranked.degree[ranked.low], graphs)
    work = pointer(np.where(dense, 0, cliques_work + cycles_work).astype(np.int64))
    for chunk in chunks_of_edges(work, _LISTED):
        listed = np.arange(edge_ptr[chunk.start], edge_ptr[chunk.stop])
        listed = listed[~dense[ranked.graph[ranked.low[listed]]]]
        if len(listed):
            base = int(ranked.node_ptr[chunk.start])
            low, high = ranked.low[listed] - base, ranked.high[listed] - base
            count = int(ranked.node_ptr[chunk.stop]) - base
            triangles[listed], at_cycle, at_clique = _by_listing(count, low, high)
            graph = ranked.graph[base : base + count]
            cycles += np.bincount(graph, at_cycle, graphs).astype(np.int64)
            cliques += np.bincount(graph, at_clique, graphs).astype(np.int64)
    return triangles, cycles, cliques


def _by_products(n: int, low: Ints, high: Ints) -> tuple[Ints, int, int]:
    """Triangles on each edge, four-cycles and four-cliques of one dense graph."""
    above = np.zeros((n, n), np.float32)  # products stay below n, so 32 bits are exact
    above[low, high] = 1
    adjacency = above + above.T
    shared = adjacency @ adjacency  # common neighbours
    triangles = shared[low, high].astype(np.int64)
    np.fill_diagonal(shared, 0)
    ways = shared.astype(np.float64)
    cycles = (ways * (ways - 1)).sum() / 8  # twice two diagonals, two orders
    cliques = sum(_triangles_among(above, np.flatnonzero(row)) for row in above)
    return triangles, round(cycles), cliques


def _triangles_among(above: NDArray[np.float32], nodes: Ints) -> int:
    """Triangles among some nodes of a graph, whose adjacency is given as an upper triangle."""
    k = len(nodes)
    if k < 3:
        return 0
    among = above[nodes].take(nodes, axis=1)
    degree = (among.sum(axis=0) + among.sum(axis=1)).astype(np.int64)
    if 2 * int(degree.sum()) < k * (k - 1):
        return round(np.vdot((among @ among).astype(np.float64), among))
    # In a nearly complete graph, the triples that lack an edge are counted, by inclusion and exclusion: one
    # per missing edge and third node, less those that lack two edges, plus those that lack all three.
    lacking = k - 1 - degree
    open_triples = int(lacking.sum()) // 2 * (k - 2) - int((lacking * (lacking - 1)).sum()) // 2
    part = np.flatnonzero(lacking > 1)
    if len(part) > 2:
        missing = np.triu(1 - among[part].take(part, axis=1), 1)
        open_triples += round(np.vdot((missing @ missing).astype(np.float64), missing))
    return k * (k - 1) * (k - 2) // 6 - open_triples


def _by_listing(nodes: int, low: Ints, high: Ints) -> tuple[Ints, Ints, Ints]:
    """Triangles on each edge of sparse graphs; four-cycles and four-cliques by their node of highest rank."""
    keys = low * nodes + high
    up_ptr = pointer(np.bincount(low, minlength=nodes))

    def edge_of(lower: Ints, higher: Ints) -> Ints:
        """The index of the edge from `lower` to `higher`, or -1."""
        key = lower * nodes + higher
        place = np.minimum(np.searchsorted(keys, key), len(keys) - 1)
        return np.where(keys[place] == key, place, -1)

    # Triangles u < v < w: an edge (u, v), then an edge (v, w), closed by (u, w).
    second, ptr = gather_index(up_ptr, high)
    first = np.repeat(np.arange(len(low)), np.diff(ptr))
    third = edge_of(low[first], high[second])
    closed = third >= 0
    first, second, third = first[closed], second[closed], third[closed]
    triangles = sum(np.bincount(side, minlength=len(low)) for side in (first, second, third))

    # Cliques u < v < w < x: a triangle, then an edge (w, x), closed by (u, x) and (v, x).
    fourth, ptr = gather_index(up_ptr, high[second])
    triangle = np.repeat(np.arange(len(first)), np.diff(ptr))
    u, v, x = low[first][triangle], high[first][triangle], high[fourth]
    complete = (edge_of(u, x) >= 0) & (edge_of(v, x) >= 0)
    cliques = np.bincount(x[complete], minlength=nodes)

    # Cycles with highest node v: two paths from v over a lower node to the same w < v.
    source, destination = np.concatenate([low, high]), np.concatenate([high, low])
    neighbours = destination[np.argsort(source, kind="stable")]
    neighbour_ptr = pointer(np.bincount(source, minlength=nodes))
    third, ptr = gather_index(neighbour_ptr, low)
    top = np.repeat(high, np.diff(ptr))
    end = neighbours[third]
    pairs, ways = np.unique((top * nodes + end)[end < top], return_counts=True)
    cycles = np.bincount(pairs // nodes, ways * (ways - 1) // 2, nodes).astype(np.int64)
    return np.asarray(triangles, np.int64), cycles, cliques
