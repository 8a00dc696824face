"""Connected subgraphs: the `Subgraph` view, and node distances for methods that cut out neighbourhoods."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import array_ops
from graphsc.views.array_ops import flatnonzero, pointer, repeat, take
from graphsc.views.base import (
    VIEWS,
    Operation,
    Order,
    Perturbation,
    apply_perturbation,
    nodes_per_graph,
    removable_nodes,
)
from graphsc.views.sampling import smallest_per_segment

# Above the longest delay: a uniform double below one is at most 1 - 2**-53, and -log(2**-53) is 36.7.
MAX_DELAY = 37.0


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
        return removable_nodes(batch)

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        growth, sizes = Growth(batch, generator), nodes_per_graph(batch)
        return lambda counts: Perturbation(nodes=growth.first(sizes - counts))


class Growth:
    """A random growth in every graph of a batch.

    Each node joins an Exp(1) delay after its first neighbour. Exponential delays are memoryless, so the next
    node to join is uniform among all that have a neighbour inside. A random order of the nodes decides where
    growth starts and restarts: at the first node of a graph in this order, then at the first one not reached
    from there, and so on.
    """

    def __init__(self, batch: GraphBatch, generator: torch.Generator) -> None:
        size, device = batch.num_nodes, batch.device
        uniform = torch.rand(size, generator=generator, device=device, dtype=torch.float64)
        self.delay = uniform.neg_().log1p_().neg_()
        self.order = torch.randperm(size, generator=generator, device=device)
        self.batch = batch

    def first(self, counts: Tensor) -> Tensor:
        """N, bool: the first `counts[g]` nodes of each graph; larger counts give supersets."""
        if not array_ops.use_loops(self.delay):
            return smallest_per_segment(self.times(), self.batch.ptr, counts)
        from graphsc.views.compiled import grow

        ptr = self.batch.ptr.numpy()
        arrays = (*_out_edges(self.batch), ptr, self.order.numpy(), self.delay.numpy())
        return torch.from_numpy(grow(*arrays, MAX_DELAY, counts.numpy()))

    def times(self) -> Tensor:
        """N, float64: when each node is reached; in torch, for any device.

        All nodes of a graph start at once, with begin times so far apart that a later start cannot overtake
        an earlier one. Then times are corrected along all edges until none improves.
        """
        batch, delay = self.batch, self.delay
        ptr, sizes = batch.ptr, nodes_per_graph(batch)
        in_graph_order = self.order[batch.batch[self.order].argsort(stable=True)]
        rank = torch.empty_like(self.order)
        rank[in_graph_order] = torch.arange(len(rank), device=rank.device)
        rank -= repeat(ptr[:-1], sizes, len(rank))
        begin = rank * repeat(sizes.double() * MAX_DELAY, sizes, len(rank))
        destination = batch.destination.long()
        while True:
            earlier = begin.scatter_reduce(0, destination, take(begin + delay, batch.source), "amin")
            if torch.equal(earlier, begin):
                return begin + delay
            begin = earlier


def _out_edges(batch: GraphBatch) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Row pointer and destinations of the edges that leave each node, for the compiled loops."""
    rowptr, source = batch.rowptr.numpy(), batch.source.numpy()
    if batch.undirected:
        return rowptr, source
    from graphsc.views.compiled import out_edges

    return out_edges(rowptr, source)


def random_nodes(batch: GraphBatch, generator: torch.Generator) -> Tensor:
    """One uniformly drawn node of each non-empty graph, int64."""
    sizes = nodes_per_graph(batch)
    uniform = torch.rand(batch.num_graphs, generator=generator, device=batch.device, dtype=torch.float64)
    return (batch.ptr[:-1] + uniform.mul_(sizes).long())[sizes > 0]


def walks_with_restart(
    batch: GraphBatch, start: Tensor, steps: int, restart: float, generator: torch.Generator
) -> Tensor:
    """Random walks that often return to where they began, all at the same time.

    In each step a walk returns to its start with probability `restart`, or else moves to a uniformly drawn
    neighbour: a source of an edge that ends at its node. From a node without one it returns too.

    Args:
        batch: N nodes.
        start: W, int64: the node at which each walk begins.
        steps: Per walk.
        restart: A probability.
        generator: Source of all randomness.

    Returns:
        (steps + 1) x W, int64: the nodes of each walk.
    """
    shape = (2, steps, len(start))
    uniform = torch.rand(shape, generator=generator, device=batch.device, dtype=torch.float64)
    returns, uniform = uniform[0] < restart, uniform[1]
    if array_ops.use_loops(start):
        from graphsc.views import compiled

        arrays = (batch.rowptr, batch.source, start, returns, uniform)
        return torch.from_numpy(compiled.walks_with_restart(*(array.numpy() for array in arrays)))
    walks = start.new_empty(steps + 1, len(start))
    walks[0] = node = start
    for step in range(steps):
        degree = take(batch.in_degree, node)
        stays = returns[step] | (degree == 0)
        edge = take(batch.rowptr, node) + (uniform[step] * degree).long()
        if batch.num_edges:  # the edge of a node without one is not used
            node = take(batch.source, edge.clamp_(max=batch.num_edges - 1)).long()
        node = torch.where(stays, start, node)
        walks[step + 1] = node
    return walks


def hop_distances(batch: GraphBatch, start: Tensor, max_hops: int) -> Tensor:
    """N, int64: the number of edges from the start nodes to each node; max_hops + 1 for all farther nodes.

    Edges are followed from source to destination.
    """
    if array_ops.use_loops(start):
        from graphsc.views import compiled

        return torch.from_numpy(compiled.hop_distances(*_out_edges(batch), start.numpy(), max_hops))
    distances = torch.full((batch.num_nodes,), max_hops + 1, dtype=torch.int64, device=batch.device)
    distances[start] = 0
    destination = batch.destination.long()
    for _ in range(max_hops):
        nearer = distances.scatter_reduce(0, destination, take(distances, batch.source) + 1, "amin")
        if torch.equal(nearer, distances):
            break
        distances = nearer
    return distances


def induced_subgraphs(batch: GraphBatch, nodes: Tensor, graphs: Tensor) -> GraphBatch:
    """The subgraphs on the nodes (N, bool) of the selected graphs (G, bool), without the other graphs."""
    result = apply_perturbation(batch, Perturbation(nodes=nodes & take(graphs, batch.batch)))
    sizes = result.ptr.diff()[graphs]
    rows = flatnonzero(graphs)
    return replace(
        result,
        ptr=pointer(sizes),
        y=None if batch.y is None else batch.y.index_select(0, rows),
        descriptors=None if batch.descriptors is None else batch.descriptors.index_select(0, rows),
        index=None if batch.index is None else batch.index.index_select(0, rows),
    )


def node_mask(batch: GraphBatch, nodes: Tensor) -> Tensor:
    """N, bool: true at these positions."""
    mask = torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device)
    return mask.index_fill_(0, nodes, True)
