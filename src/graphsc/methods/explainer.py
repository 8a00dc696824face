"""RGCL's explainer: how much each node says about which graph it is part of."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.gin import GinLayer, linear
from graphsc.encoders.input import FeatureLinear
from graphsc.encoders.readout import pool
from graphsc.encoders.sparse import Adjacency


class Explainer(nn.Module):
    """GIN layers down to one number a node, BatchNorm after each; then a softmax over each graph.

    `scores` are chances that sum to one over a graph, `importance` the same with the largest of each graph
    at one, brought into the interval from `least` to 1.
    """

    def __init__(
        self, features: FeatureScheme, *, depth: int, width: int, temperature: float, least: float
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.least = least
        self.blocks = nn.ModuleList(
            GinLayer(
                FeatureLinear(features, width) if layer == 0 else linear(width, width, bias=False),
                width,
                norm="before",
                activate=layer < depth - 1,
                eps=0.0,
                outputs=width if layer < depth - 1 else 1,
            )
            for layer in range(depth)
        )

    def scores(self, batch: GraphBatch) -> Tensor:
        """N: each node's share of its graph."""
        relative = self._relative(batch, None)
        return (relative / pool(batch, relative, "sum")[batch.batch])[:, 0]

    def importance(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> Tensor:
        """N: from `least` to 1, which is the highest score of each graph. `parts` as for a `GinLayer`."""
        return self.least + (1 - self.least) * self._relative(batch, parts)[:, 0]

    def _relative(self, batch: GraphBatch, parts: Sequence[int] | None) -> Tensor:
        """N x 1: the softmax over the largest of its graph, in (0, 1]; the sum below it cancels."""
        adjacency = Adjacency.of(batch)
        x: Tensor | GraphBatch = batch
        for block in self.blocks:
            x = block(x, adjacency, batch.edge_weight, parts)
        assert isinstance(x, Tensor)  # noqa: S101 - there is at least one layer
        logits = x.float() / self.temperature
        return (logits - pool(batch, logits, "max")[batch.batch]).exp()
