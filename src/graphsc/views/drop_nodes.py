"""Nodes taken away with their edges: what is left is the induced sub-graph."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.base import VIEWS, Operation, Order, nodes_per_graph
from graphsc.views.change import Change
from graphsc.views.choose import smallest


@VIEWS.register("drop-nodes")
class DropNodes(Operation):
    """Drop a fraction of each graph's nodes, uniformly drawn; one node always stays."""

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def capacity(self, batch: GraphBatch) -> Tensor:
        return (nodes_per_graph(batch) - 1).clamp_(min=0)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        return lambda counts: Change(nodes=smallest(keys, batch.ptr, counts).logical_not_())
