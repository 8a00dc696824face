"""When each node is reached from the starting nodes, if entering a node takes its own delay.

Node-weighted shortest paths for a whole batch at once: labels are corrected round by round until none
improves. Only the nodes that just improved are looked at, or only those that still can improve,
whichever have fewer edges; a dense graph is settled at a small part of its edges that way. Where there
are too few edges to be worth a round, SciPy goes node by node.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import fast
from graphsc.views.fast import order_by, take
from graphsc.views.memo import once_per_batch

SMALL = 32_768  # edges below which rounds cost more than nodes

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


def reach(batch: GraphBatch, begin: Tensor, delay: Tensor, start: Tensor) -> Tensor:
    """N: the time at which each node is reached, infinite where it is not.

    `begin` (N) is when a node's delay begins: given for the nodes of `start`, for others infinite or an
    outcome of an earlier call. Edges are followed from source to destination.
    """
    if not fast.numpy_serves(batch.source):
        return _reach_all(batch, begin, delay)
    rowptr, other = batch.rowptr, batch.source
    if not batch.undirected:
        order, rowptr = order_by(batch.source, batch.num_nodes)
        other = take(batch.destination, order)
    if batch.num_edges < SMALL:
        return _by_node(rowptr, other, begin, delay, start)
    result = begin.numpy().copy()
    _settle(batch, rowptr.numpy(), other.numpy(), result, delay.numpy(), start.numpy())
    return torch.from_numpy(result) + delay


@once_per_batch
def components(batch: GraphBatch) -> Tensor:
    """N, int32: the connected component of each node of an undirected batch, on a CPU."""
    from scipy.sparse import csr_array  # here, because its import takes long
    from scipy.sparse.csgraph import connected_components

    size = batch.num_nodes
    entries = (np.ones(batch.num_edges), batch.source.numpy(), batch.rowptr.numpy())
    graph = csr_array(entries, shape=(size, size))
    # Not "strong", which is the same here and faster: scipy's search for it never ends on a repeated edge.
    return torch.from_numpy(connected_components(graph, connection="weak")[1])


def _settle(
    batch: GraphBatch, rowptr: Ints, other: Ints, begin: Floats, delay: Floats, changed: Ints
) -> None:
    """Correct `begin` in place; `rowptr` and `other` are the edges that leave each node."""
    out_degree = np.diff(rowptr)
    into, source = batch.rowptr.numpy(), batch.source.numpy()
    in_degree, graph = batch.in_degree.numpy(), batch.batch.numpy()
    last = np.empty(len(begin), dtype=np.int32)
    while len(changed):
        time = begin.take(changed) + delay.take(changed)
        leaving = int(out_degree.take(changed).sum())
        if leaving > len(source) // 8:
            # A delay that begins before anything changed in its graph cannot begin earlier.
            earliest = np.full(batch.num_graphs, np.inf, dtype=begin.dtype)
            np.minimum.at(earliest, graph.take(changed), time)
            open_nodes = np.flatnonzero((begin > earliest.take(graph)) & (in_degree > 0))
            if int(in_degree.take(open_nodes).sum()) < leaving:
                changed = _pull(into, source, in_degree, begin, delay, open_nodes)
                continue
        where, degrees, _ = _rows(rowptr, out_degree, changed)
        node, time = other.take(where), np.repeat(time, degrees)
        better = time < begin.take(node)
        node, time = node.compress(better), time.compress(better)
        np.minimum.at(begin, node, time)
        # A node improved by several others must be listed once, or its copies would multiply.
        place = np.arange(len(node), dtype=np.int32)
        last[node] = place
        changed = node.compress(last.take(node) == place)


def _pull(into: Ints, source: Ints, in_degree: Ints, begin: Floats, delay: Floats, nodes: Ints) -> Ints:
    """Let each of the nodes (all with edges) look at its sources; those that improved."""
    if len(nodes) == 0:
        return nodes
    where, _, firsts = _rows(into, in_degree, nodes)
    time = (begin + delay).take(source.take(where))
    earliest = np.minimum.reduceat(time, firsts)
    better = earliest < begin.take(nodes)
    nodes = nodes.compress(better)
    begin[nodes] = earliest.compress(better)
    return nodes


def _rows(rowptr: Ints, degree: Ints, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """Positions of the entries in the nodes' rows, the rows' lengths, and where each row begins."""
    degrees = degree.take(nodes)
    ends = np.cumsum(degrees)
    firsts = ends - degrees
    where = np.arange(ends[-1], dtype=np.int32)
    where += np.repeat((rowptr.take(nodes) - firsts).astype(np.int32), degrees)
    return where, degrees, firsts


def _by_node(rowptr: Tensor, other: Tensor, begin: Tensor, delay: Tensor, start: Tensor) -> Tensor:
    """The same by Dijkstra's algorithm, from one more node that leads to all starting nodes."""
    from scipy.sparse import csr_array  # here, because its import takes long
    from scipy.sparse.csgraph import dijkstra

    size = len(begin)
    times = begin + delay
    ends = torch.cat([other, start.int()])
    weights = torch.cat([take(delay, other), take(times, start)]).double()
    rows = torch.cat([rowptr, rowptr.new_full((1,), len(ends))])
    graph = csr_array((weights.numpy(), ends.numpy(), rows.numpy()), shape=(size + 1, size + 1))
    found = torch.from_numpy(dijkstra(graph, indices=size)[:size])
    return torch.minimum(found.to(times.dtype), times)


def _reach_all(batch: GraphBatch, begin: Tensor, delay: Tensor) -> Tensor:
    """The same in plain torch, every edge in every round, for devices NumPy does not reach."""
    destination = batch.destination.long()
    while True:
        time = take(begin + delay, batch.source)
        after = begin.scatter_reduce(0, destination, time, "amin")
        if torch.equal(after, begin):
            return begin + delay
        begin = after
