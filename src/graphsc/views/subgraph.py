"""A connected part of each graph, grown from a random root."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import array_ops
from graphsc.views.array_ops import compress, mark, order_by, pointer, positions, take
from graphsc.views.base import VIEWS, Change, Operation, Order, materialise, nodes_per_graph, once_per_batch
from graphsc.views.sampling import smallest

# When each node is reached from the starting nodes, if entering a node takes its own delay.
#
# Node-weighted shortest paths for a whole batch at once: labels are corrected round by round until none
# improves. Only the nodes that just improved are looked at, or only those that still can improve,
# whichever have fewer edges; a dense graph is settled at a small part of its edges that way. Where there
# are too few edges to be worth a round, SciPy goes node by node.


SMALL = 32_768  # edges below which rounds cost more than nodes

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


def reach(batch: GraphBatch, begin: Tensor, delay: Tensor, start: Tensor) -> Tensor:
    """N: the time at which each node is reached, infinite where it is not.

    `begin` (N) is when a node's delay begins: given for the nodes of `start`, for others infinite or an
    outcome of an earlier call. Edges are followed from source to destination.
    """
    if not array_ops.numpy_serves(batch.source):
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


@VIEWS.register("subgraph")
class Subgraph(Operation):
    """Keep all but a fraction of each graph's nodes: those that a random growth reaches first.

    From a uniform root, a uniformly drawn neighbour of what is already there joins, again and again;
    where none is left, growth restarts at a uniformly drawn unused node. In a directed graph growth
    follows edges from source to destination.
    """

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def capacity(self, batch: GraphBatch) -> Tensor:
        return (nodes_per_graph(batch) - 1).clamp_(min=0)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        times = growth(batch, most > 0, generator)
        sizes = nodes_per_graph(batch)
        return lambda counts: Change(nodes=smallest(times, batch.ptr, sizes - counts))


def growth(batch: GraphBatch, wanted: Tensor, generator: torch.Generator) -> Tensor:
    """N: when a random growth reaches each node of the wanted graphs (G, bool); 0 in the others.

    Each node waits an Exp(1) delay from the moment it has a neighbour inside. Delays have no memory,
    so the next node to join is always a uniform one of those that wait.
    """
    sizes = nodes_per_graph(batch)
    uniform = torch.rand(batch.num_graphs, generator=generator, device=batch.device, dtype=torch.float64)
    roots = (batch.ptr[:-1] + uniform.mul_(sizes).long())[wanted]
    if batch.undirected and batch.num_edges < SMALL:
        return _at_once(batch, wanted, roots, generator)
    delay = torch.empty(batch.num_nodes, device=batch.device).exponential_(generator=generator)
    begin = torch.full_like(delay, torch.inf)
    begin[roots] = 0.0
    times = reach(batch, begin, delay, roots)
    missing = times.isinf()
    if not bool(wanted.all()):
        inside = wanted[batch.batch]
        times.masked_fill_(~inside, 0.0)
        missing &= inside
    if not bool(missing.any()):
        return times
    return _restarted(batch, times, delay, positions(missing), generator)


def _at_once(batch: GraphBatch, wanted: Tensor, roots: Tensor, generator: torch.Generator) -> Tensor:
    """Growth and restarts together: where the latter may happen is said before it is known who is missing."""
    size, graph = batch.num_nodes, batch.batch
    delay = torch.empty(size, dtype=torch.float64, device=batch.device).exponential_(generator=generator)
    order = torch.randperm(size, generator=generator, device=batch.device)
    if size == 0:
        return delay
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(size, device=batch.device))
    start = (
        _firsts(batch, order, roots)
        if array_ops.numpy_serves(order)
        else torch.arange(size, device=order.device)
    )
    start = start[wanted[graph[start]]]
    begin = torch.full_like(delay, torch.inf)
    begin[start] = (rank[start] + 1) * (torch.bincount(graph, delay).max() + 1)
    begin[roots] = 0.0
    times = reach(batch, begin, delay, start)
    return times.masked_fill_(times.isinf(), 0.0)


def _firsts(batch: GraphBatch, order: Tensor, roots: Tensor) -> Tensor:
    """The root of each component, or else the node that comes first in the order."""
    component, backwards = components(batch).numpy(), order.numpy()[::-1]
    firsts = np.empty(component.max() + 1, dtype=np.int64)
    firsts[component.take(backwards)] = backwards  # what is written last stays
    firsts[component.take(roots.numpy())] = roots.numpy()
    return torch.from_numpy(firsts)


def _restarted(
    batch: GraphBatch, times: Tensor, delay: Tensor, missing: Tensor, generator: torch.Generator
) -> Tensor:
    """Times of the missing nodes too, later than all others.

    Their own random order says where growth restarts: at the first of them, then at the first that this
    has not reached, and so on. All may start at once, because levels lie too far apart for a later
    start to overtake an earlier one.
    """
    delay = delay.double()
    rank = torch.randperm(len(missing), generator=generator, device=times.device)
    waiting = torch.zeros(batch.num_graphs, dtype=torch.float64, device=times.device)
    waiting.index_add_(0, batch.batch[missing], delay[missing])
    begin = times.double() - delay
    latest = times[times.isfinite()].max()
    begin[missing] = latest + 1 + rank * (waiting.max() + 1)
    return reach(batch, begin, delay, missing)


# Around one node of each graph: how far every other is from it, and the parts at given distances.


def random_nodes(batch: GraphBatch, generator: torch.Generator) -> Tensor:
    """One uniformly drawn node of each graph that has any, int64."""
    sizes = nodes_per_graph(batch)
    uniform = torch.rand(batch.num_graphs, generator=generator, device=batch.device, dtype=torch.float64)
    return (batch.ptr[:-1] + uniform.mul_(sizes).long())[sizes > 0]


def hops(batch: GraphBatch, start: Tensor, most: int) -> Tensor:
    """N, int64: over how many edges each node is reached from the nodes of `start`; most + 1 if over more.

    Edges are followed from source to destination. All graphs take a step at once, and there are `most`.
    """
    found = torch.full((batch.num_nodes,), most + 1, dtype=torch.int64, device=batch.device)
    found[start] = 0
    # Every edge is looked at once: where its source was reached, it is done with.
    source, destination = batch.source, batch.destination
    for step in range(1, most + 1):
        leaves = take(found, source) < step
        ends = compress(destination, leaves).long()
        new = ends[take(found, ends) > step]
        if not len(new):
            break
        found[new] = step
        waiting = ~leaves
        source, destination = compress(source, waiting), compress(destination, waiting)
    return found


def parts_of(batch: GraphBatch, nodes: Tensor, graphs: Tensor) -> GraphBatch:
    """The sub-graphs on the nodes (N, bool) of the chosen graphs (G, bool); the other graphs are gone."""
    kept = materialise(batch, Change(nodes=nodes & take(graphs, batch.batch)))
    sizes = compress(kept.ptr.diff(), graphs)
    rows = positions(graphs)
    return replace(
        kept,
        ptr=pointer(sizes),
        y=None if batch.y is None else batch.y.index_select(0, rows),
        index=None if batch.index is None else batch.index.index_select(0, rows),
    )


def mask_of(batch: GraphBatch, nodes: Tensor) -> Tensor:
    """N, bool: true at these positions."""
    return mark(torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device), nodes, True)
