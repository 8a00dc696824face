"""Connected subgraphs: the `Subgraph` view, and node distances for methods that cut out neighbourhoods.

`Subgraph` keeps the nodes that a random growth process reaches first. The process is computed for a whole
batch at once as node-weighted shortest paths (`arrival_times`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import array_ops
from graphsc.views.array_ops import compress, counting_sort, flatnonzero, pointer, set_flags, take
from graphsc.views.base import (
    VIEWS,
    Operation,
    Order,
    Perturbation,
    apply_perturbation,
    cache_per_batch,
    nodes_per_graph,
)
from graphsc.views.sampling import smallest_per_segment

DIJKSTRA_MAX_EDGES = 32_768  # with fewer edges, SciPy's Dijkstra is faster than vectorised rounds

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


@VIEWS.register("subgraph")
class Subgraph(Operation):
    """Remove a fraction of each graph's nodes and keep those that a random growth reaches first.

    Growth starts at a uniform root. At each step a uniformly drawn neighbour of the nodes reached so far
    joins. If there is none, growth restarts at a uniformly drawn unused node. In a directed graph, growth
    follows edges from source to destination.
    """

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def capacity(self, batch: GraphBatch) -> Tensor:
        return (nodes_per_graph(batch) - 1).clamp_(min=0)

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        times = growth_times(batch, max_counts > 0, generator)
        sizes = nodes_per_graph(batch)
        return lambda counts: Perturbation(nodes=smallest_per_segment(times, batch.ptr, sizes - counts))


def growth_times(batch: GraphBatch, selected: Tensor, generator: torch.Generator) -> Tensor:
    """N: the time at which a random growth reaches each node of the selected graphs (G, bool), else 0.

    Each node joins an Exp(1) delay after its first neighbour. Exponential delays are memoryless, so the next
    node to join is uniform among all that have a neighbour inside.
    """
    sizes = nodes_per_graph(batch)
    uniform = torch.rand(batch.num_graphs, generator=generator, device=batch.device, dtype=torch.float64)
    roots = (batch.ptr[:-1] + uniform.mul_(sizes).long())[selected]
    if batch.undirected and batch.num_edges < DIJKSTRA_MAX_EDGES:
        return _growth_with_restarts(batch, selected, roots, generator)
    delay = torch.empty(batch.num_nodes, device=batch.device).exponential_(generator=generator)
    begin = torch.full_like(delay, torch.inf)
    begin[roots] = 0.0
    times = arrival_times(batch, begin, delay, roots)
    missing = times.isinf()
    if not bool(selected.all()):
        inside = selected[batch.batch]
        times.masked_fill_(~inside, 0.0)
        missing &= inside
    if not bool(missing.any()):
        return times
    return _restart(batch, times, delay, flatnonzero(missing), generator)


def _growth_with_restarts(
    batch: GraphBatch, selected: Tensor, roots: Tensor, generator: torch.Generator
) -> Tensor:
    """Growth and restarts in one pass: the restart nodes are drawn before it is known which are needed."""
    size, graph = batch.num_nodes, batch.batch
    delay = torch.empty(size, dtype=torch.float64, device=batch.device).exponential_(generator=generator)
    order = torch.randperm(size, generator=generator, device=batch.device)
    if size == 0:
        return delay
    rank = torch.empty_like(order).scatter_(0, order, torch.arange(size, device=batch.device))
    start = (
        _component_starts(batch, order, roots)
        if array_ops.use_numpy(order)
        else torch.arange(size, device=order.device)
    )
    start = start[selected[graph[start]]]
    begin = torch.full_like(delay, torch.inf)
    begin[start] = (rank[start] + 1) * (torch.bincount(graph, delay).max() + 1)
    begin[roots] = 0.0
    times = arrival_times(batch, begin, delay, start)
    return times.masked_fill_(times.isinf(), 0.0)


def _component_starts(batch: GraphBatch, order: Tensor, roots: Tensor) -> Tensor:
    """Per connected component: its root, or else its first node in the order."""
    component, backwards = _component_labels(batch).numpy(), order.numpy()[::-1]
    starts = np.empty(component.max() + 1, dtype=np.int64)
    starts[component.take(backwards)] = backwards  # the last write wins
    starts[component.take(roots.numpy())] = roots.numpy()
    return torch.from_numpy(starts)


@cache_per_batch
def _component_labels(batch: GraphBatch) -> Tensor:
    """N, int32: the connected component of each node of an undirected batch, on a CPU."""
    from scipy.sparse import csr_array  # imported here because it is slow to import
    from scipy.sparse.csgraph import connected_components

    size = batch.num_nodes
    entries = (np.ones(batch.num_edges), batch.source.numpy(), batch.rowptr.numpy())
    graph = csr_array(entries, shape=(size, size))
    # "strong" gives the same and is faster, but SciPy's search for it does not terminate on duplicate edges.
    return torch.from_numpy(connected_components(graph, connection="weak")[1])


def _restart(
    batch: GraphBatch, times: Tensor, delay: Tensor, missing: Tensor, generator: torch.Generator
) -> Tensor:
    """The times with those of the missing nodes, later than all others.

    A random order of the missing nodes decides where growth restarts: at the first of them, then at the first
    one not reached from there, and so on. All start at once, with begin times so far apart that a later start
    cannot overtake an earlier one.
    """
    delay = delay.double()
    rank = torch.randperm(len(missing), generator=generator, device=times.device)
    waiting = torch.zeros(batch.num_graphs, dtype=torch.float64, device=times.device)
    waiting.index_add_(0, batch.batch[missing], delay[missing])
    begin = times.double() - delay
    latest = times[times.isfinite()].max()
    begin[missing] = latest + 1 + rank * (waiting.max() + 1)
    return arrival_times(batch, begin, delay, missing)


def arrival_times(batch: GraphBatch, begin: Tensor, delay: Tensor, start: Tensor) -> Tensor:
    """Node-weighted shortest paths from the start nodes, for a whole batch at once.

    Edges are followed from source to destination. Small batches use Dijkstra's algorithm. Larger ones correct
    labels in rounds until none improves; a round looks only at the nodes that just improved, or only at those
    that still can, whichever have fewer edges, so a dense graph is solved at a fraction of its edges.

    Args:
        batch: N nodes.
        begin: N, the time at which a node's delay begins: set for the start nodes, and for the others
            infinite or the result of an earlier call.
        delay: N, the time it takes to enter a node.
        start: Indices of the start nodes.

    Returns:
        N, the time at which each node is reached; infinite for nodes that are not.
    """
    if not array_ops.use_numpy(batch.source):
        return _arrival_times_torch(batch, begin, delay)
    rowptr, other = batch.rowptr, batch.source
    if not batch.undirected:
        order, rowptr = counting_sort(batch.source, batch.num_nodes)
        other = take(batch.destination, order)
    if batch.num_edges < DIJKSTRA_MAX_EDGES:
        return _dijkstra(rowptr, other, begin, delay, start)
    result = begin.numpy().copy()
    _correct_labels(batch, rowptr.numpy(), other.numpy(), result, delay.numpy(), start.numpy())
    return torch.from_numpy(result) + delay


def _dijkstra(rowptr: Tensor, other: Tensor, begin: Tensor, delay: Tensor, start: Tensor) -> Tensor:
    """From an additional node with an edge to every start node."""
    from scipy.sparse import csr_array  # imported here because it is slow to import
    from scipy.sparse.csgraph import dijkstra

    size = len(begin)
    times = begin + delay
    ends = torch.cat([other, start.int()])
    weights = torch.cat([take(delay, other), take(times, start)]).double()
    rows = torch.cat([rowptr, rowptr.new_full((1,), len(ends))])
    graph = csr_array((weights.numpy(), ends.numpy(), rows.numpy()), shape=(size + 1, size + 1))
    lengths = torch.from_numpy(dijkstra(graph, indices=size)[:size])
    return torch.minimum(lengths.to(times.dtype), times)


def _correct_labels(
    batch: GraphBatch, rowptr: Ints, other: Ints, begin: Floats, delay: Floats, changed: Ints
) -> None:
    """Correct `begin` in place; `rowptr` and `other` list the edges that leave each node."""
    out_degree = np.diff(rowptr)
    in_rowptr, source = batch.rowptr.numpy(), batch.source.numpy()
    in_degree, graph = batch.in_degree.numpy(), batch.batch.numpy()
    last = np.empty(len(begin), dtype=np.int32)
    while len(changed):
        time = begin.take(changed) + delay.take(changed)
        out_edges = int(out_degree.take(changed).sum())
        if out_edges > len(source) // 8:
            # A label below the earliest change of its graph cannot improve.
            earliest = np.full(batch.num_graphs, np.inf, dtype=begin.dtype)
            np.minimum.at(earliest, graph.take(changed), time)
            open_nodes = np.flatnonzero((begin > earliest.take(graph)) & (in_degree > 0))
            if int(in_degree.take(open_nodes).sum()) < out_edges:
                changed = _pull(in_rowptr, source, in_degree, begin, delay, open_nodes)
                continue
        entries, degrees, _ = _row_entries(rowptr, out_degree, changed)
        node, time = other.take(entries), np.repeat(time, degrees)
        better = time < begin.take(node)
        node, time = node.compress(better), time.compress(better)
        np.minimum.at(begin, node, time)
        # List a node improved by several others only once, or its copies would multiply.
        place = np.arange(len(node), dtype=np.int32)
        last[node] = place
        changed = node.compress(last.take(node) == place)


def _pull(rowptr: Ints, source: Ints, in_degree: Ints, begin: Floats, delay: Floats, nodes: Ints) -> Ints:
    """Update the labels of the nodes (all with in-edges) from their sources; returns those that improved."""
    if len(nodes) == 0:
        return nodes
    entries, _, firsts = _row_entries(rowptr, in_degree, nodes)
    time = (begin + delay).take(source.take(entries))
    earliest = np.minimum.reduceat(time, firsts)
    better = earliest < begin.take(nodes)
    nodes = nodes.compress(better)
    begin[nodes] = earliest.compress(better)
    return nodes


def _row_entries(rowptr: Ints, degree: Ints, nodes: Ints) -> tuple[Ints, Ints, Ints]:
    """Positions of the entries in the nodes' CSR rows, the rows' lengths, and where each row begins."""
    degrees = degree.take(nodes)
    ends = np.cumsum(degrees)
    firsts = ends - degrees
    entries = np.arange(ends[-1], dtype=np.int32)
    entries += np.repeat((rowptr.take(nodes) - firsts).astype(np.int32), degrees)
    return entries, degrees, firsts


def _arrival_times_torch(batch: GraphBatch, begin: Tensor, delay: Tensor) -> Tensor:
    """Label correction in torch over all edges in every round, for devices without NumPy."""
    destination = batch.destination.long()
    while True:
        time = take(begin + delay, batch.source)
        after = begin.scatter_reduce(0, destination, time, "amin")
        if torch.equal(after, begin):
            return begin + delay
        begin = after


def random_nodes(batch: GraphBatch, generator: torch.Generator) -> Tensor:
    """One uniformly drawn node of each non-empty graph, int64."""
    sizes = nodes_per_graph(batch)
    uniform = torch.rand(batch.num_graphs, generator=generator, device=batch.device, dtype=torch.float64)
    return (batch.ptr[:-1] + uniform.mul_(sizes).long())[sizes > 0]


def hop_distances(batch: GraphBatch, start: Tensor, max_hops: int) -> Tensor:
    """N, int64: the number of edges from the start nodes to each node; max_hops + 1 for all farther nodes.

    Edges are followed from source to destination.
    """
    distances = torch.full((batch.num_nodes,), max_hops + 1, dtype=torch.int64, device=batch.device)
    distances[start] = 0
    # Each edge is used once: when its source is reached it leaves the list.
    source, destination = batch.source, batch.destination
    for step in range(1, max_hops + 1):
        reached = take(distances, source) < step
        ends = compress(destination, reached).long()
        new = ends[take(distances, ends) > step]
        if not len(new):
            break
        distances[new] = step
        waiting = ~reached
        source, destination = compress(source, waiting), compress(destination, waiting)
    return distances


def induced_subgraphs(batch: GraphBatch, nodes: Tensor, graphs: Tensor) -> GraphBatch:
    """The subgraphs on the nodes (N, bool) of the selected graphs (G, bool), without the other graphs."""
    result = apply_perturbation(batch, Perturbation(nodes=nodes & take(graphs, batch.batch)))
    sizes = compress(result.ptr.diff(), graphs)
    rows = flatnonzero(graphs)
    return replace(
        result,
        ptr=pointer(sizes),
        y=None if batch.y is None else batch.y.index_select(0, rows),
        index=None if batch.index is None else batch.index.index_select(0, rows),
    )


def node_mask(batch: GraphBatch, nodes: Tensor) -> Tensor:
    """N, bool: true at these positions."""
    return set_flags(torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device), nodes, True)
