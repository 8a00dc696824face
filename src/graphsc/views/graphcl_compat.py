"""GraphCL's augmentations as its published code has them, faults included; only for reruns.

Counts are int(rate * size), which is often 0 on small graphs, and a strong view need not change more
than a weak one. The one rule added is that no graph is emptied.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import repeat, take
from graphsc.views.base import VIEWS, Change, Operation, Order, nodes_per_graph
from graphsc.views.operations import DropNodes, MaskAttributes
from graphsc.views.sampling import smallest


class GraphCLOperation(Operation):
    """An operation whose counts are cut off instead of rounded, and may be 0."""

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        return torch.minimum((self.size(batch).double() * rate).long(), self.capacity(batch))


@VIEWS.register("graphcl-drop-nodes")
class GraphCLDropNodes(GraphCLOperation, DropNodes):
    """Drop int(rate * n) nodes."""


@VIEWS.register("graphcl-mask-attributes")
class GraphCLMaskAttributes(GraphCLOperation, MaskAttributes):
    """Give int(rate * n) nodes features from N(mean, std)."""

    def __init__(self, *, mean: float = 0.5, std: float = 0.5) -> None:
        super().__init__(value="noise", mean=mean, std=std)


@VIEWS.register("graphcl-perturb-edges")
class GraphCLPerturbEdges(GraphCLOperation):
    """Delete int(rate * E) directed entries and add none: the graph becomes a directed one."""

    def size(self, batch: GraphBatch) -> Tensor:
        return batch.edge_ptr.diff()

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_edges, generator=generator, device=batch.device)
        return lambda counts: Change(
            edges=smallest(keys, batch.edge_ptr, counts).logical_not_(), directed=True
        )


@VIEWS.register("graphcl-subgraph")
class GraphCLSubgraph(GraphCLOperation):
    """Keep one node and some of its neighbours: the rate is what is *kept*, at most int(rate * n) + 1.

    Neighbours of neighbours never join. The code draws a neighbour with repetition, at most n times.
    Rate 0 still means no change, as for every view.
    """

    nests = False
    grows_with_rate = False

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        """G: how many nodes are kept at most; never 0 for a graph with nodes."""
        size = self.size(batch)
        return torch.minimum((size.double() * rate).long() + 1, size)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        sizes, device = nodes_per_graph(batch), batch.device
        uniform = torch.rand(
            batch.num_graphs + batch.num_nodes, generator=generator, device=device, dtype=torch.float64
        )
        of_graph, of_draw = uniform[: batch.num_graphs], uniform[batch.num_graphs :]
        seed = batch.ptr[:-1] + torch.minimum((of_graph * sizes).long(), (sizes - 1).clamp(min=0))
        never = batch.num_nodes + 1
        arrival = torch.full((batch.num_nodes,), never, device=device)
        there = sizes > 0
        # The i-th of a graph's n draws belongs to its i-th node; what counts is the first time a
        # neighbour is drawn. Neighbours are sources of the seed's row: the same in undirected graphs.
        own = repeat(torch.where(there, seed, 0), sizes, batch.num_nodes)
        degree = batch.in_degree[own]
        entry = batch.rowptr[own] + torch.minimum((of_draw * degree).long(), degree - 1)
        drawn = degree > 0
        turn = torch.arange(batch.num_nodes, device=device)[drawn]
        arrival.scatter_reduce_(0, take(batch.source, entry[drawn]).long(), turn, "amin")
        arrival[seed[there]] = -1

        def first(counts: Tensor) -> Change:
            keep = smallest(arrival, batch.ptr, counts) & (arrival < never)
            return Change(nodes=keep | (counts == 0)[batch.batch])

        return first
