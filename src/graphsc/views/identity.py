"""Graphs as they are: one of JOAO's five operations, and a useful control."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.base import VIEWS, Operation, Order, nodes_per_graph
from graphsc.views.change import Change


@VIEWS.register("identity")
class Identity(Operation):
    """The same graph at every rate."""

    def size(self, batch: GraphBatch) -> Tensor:
        return torch.zeros_like(nodes_per_graph(batch))

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        return lambda counts: Change()
