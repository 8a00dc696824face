"""GraphCL's augmentations as in its published code, bugs included, to reproduce published results.

Counts are int(rate * size), often 0 on small graphs, and a strong view may change no more than a weak one.
The only difference from that code is that no graph becomes empty.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.data.features import DEGREE
from graphsc.views.array_ops import flatnonzero, repeat, take
from graphsc.views.base import (
    VIEWS,
    AddedEdges,
    Operation,
    Order,
    Perturbation,
    apply_perturbation,
    nodes_per_graph,
)
from graphsc.views.operations import DropNodes, MaskAttributes
from graphsc.views.sampling import smallest_per_segment


class GraphCLOperation(Operation):
    """An operation whose counts are rounded down, possibly to 0."""

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        return torch.minimum((self.size(batch).double() * rate).long(), self.capacity(batch))


@VIEWS.register("graphcl-drop-nodes")
class GraphCLDropNodes(GraphCLOperation, DropNodes):
    """Drop int(rate * n) nodes."""


@VIEWS.register("graphcl-mask-attributes")
class GraphCLMaskAttributes(GraphCLOperation, MaskAttributes):
    """Replace the features of int(rate * n) nodes by draws from N(mean, std)."""

    def __init__(self, *, mean: float = 0.5, std: float = 0.5) -> None:
        super().__init__(value="noise", mean=mean, std=std)


@VIEWS.register("graphcl-perturb-edges")
class GraphCLPerturbEdges(GraphCLOperation):
    """Delete int(rate * E) directed edges and add none, so the graph becomes directed."""

    def size(self, batch: GraphBatch) -> Tensor:
        return batch.edge_ptr.diff()

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_edges, generator=generator, device=batch.device)
        return lambda counts: Perturbation(
            edges=smallest_per_segment(keys, batch.edge_ptr, counts).logical_not_(), directed=True
        )


@VIEWS.register("graphcl-subgraph")
class GraphCLSubgraph(GraphCLOperation):
    """Keep one node and some of its neighbours, at most int(rate * n) + 1 nodes: the rate is the part *kept*.

    Neighbours are drawn with replacement, at most n times; neighbours of neighbours never join. A rate of 0
    means no change, as for every view.
    """

    nests = False
    grows_with_rate = False

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        """G: the maximum number of nodes kept; at least 1 in a graph with nodes."""
        size = self.size(batch)
        return torch.minimum((size.double() * rate).long() + 1, size)

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        sizes, device = nodes_per_graph(batch), batch.device
        uniform = torch.rand(
            batch.num_graphs + batch.num_nodes, generator=generator, device=device, dtype=torch.float64
        )
        root_draw, neighbour_draw = uniform[: batch.num_graphs], uniform[batch.num_graphs :]
        root = batch.ptr[:-1] + torch.minimum((root_draw * sizes).long(), (sizes - 1).clamp(min=0))
        never = batch.num_nodes + 1
        arrival = torch.full((batch.num_nodes,), never, device=device)
        non_empty = sizes > 0
        # The i-th of a graph's n draws is stored at its i-th node. A neighbour arrives when it is first
        # drawn. Neighbours are the sources in the root's row, which is the same in undirected graphs.
        own_root = repeat(torch.where(non_empty, root, 0), sizes, batch.num_nodes)
        degree = batch.in_degree[own_root]
        entry = batch.rowptr[own_root] + torch.minimum((neighbour_draw * degree).long(), degree - 1)
        has_neighbours = degree > 0
        turn = torch.arange(batch.num_nodes, device=device)[has_neighbours]
        arrival.scatter_reduce_(0, take(batch.source, entry[has_neighbours]).long(), turn, "amin")
        arrival[root[non_empty]] = -1

        def first(counts: Tensor) -> Perturbation:
            keep = smallest_per_segment(arrival, batch.ptr, counts) & (arrival < never)
            return Perturbation(nodes=keep | (counts == 0)[batch.batch])

        return first


def add_self_loops(batch: GraphBatch) -> GraphBatch:
    """The graphs as GraphCL's loader gives them: with a self-loop at each node but the last of its graph.

    Degrees among the features count the loops. Edges lose their attributes, because loops have none.
    """
    has_loop = torch.ones(batch.num_nodes, dtype=torch.bool, device=batch.device)
    has_loop[batch.ptr[1:][nodes_per_graph(batch) > 0] - 1] = False
    nodes = flatnonzero(has_loop)
    codes = batch.codes.clone()
    for k, column in enumerate(batch.features.columns):
        if column.name == DEGREE:
            codes[nodes, k] = (codes[nodes, k] + 1).clamp_(max=column.cardinality - 1)
    loops = AddedEdges(nodes.int(), nodes.int())
    plain = replace(batch, codes=codes, edge_codes=None, edge_floats=None)
    return apply_perturbation(plain, Perturbation(added=loops))
