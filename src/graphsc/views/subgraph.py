"""A connected part of each graph, grown from a random root."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import fast
from graphsc.views.base import VIEWS, Operation, Order, nodes_per_graph
from graphsc.views.change import Change
from graphsc.views.choose import smallest
from graphsc.views.fast import positions
from graphsc.views.reach import SMALL, components, reach


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
        _firsts(batch, order, roots) if fast.numpy_serves(order) else torch.arange(size, device=order.device)
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
