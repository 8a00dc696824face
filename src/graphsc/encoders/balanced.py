"""GIN whose layers, the input among them, weigh the same in a graph's vector.

A sum over nodes grows with the graph and with every layer, so that a kernel on the joined layers sees little
but size and the last one. Here each pooled layer is compressed as counts are, by a square root, and scaled so
that its total variance over the collection is one. The pooled input stands beside them: it is what a probe
without any encoder would have, and on many collections that is hard to beat.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.gin import SMALL, Gin
from graphsc.encoders.readout import pool
from graphsc.encoders.registry import ENCODERS


def compress(sums: Tensor) -> Tensor:
    """sign(x) (sqrt(1 + |x|) - 1): a square root far from zero, half the value near it, smooth between."""
    return sums.sign() * ((1 + sums.abs()).sqrt() - 1)


class BlockNorm(nn.BatchNorm1d):
    """Centre every column and divide the block by one number, so that its total variance is one.

    Its statistics are those of clean graphs (`reestimate_batchnorm`); in training it leaves rows as they are,
    because what a graph's vector is must not depend on which graphs share its batch.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width, affine=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows x width."""
        if self.training or self.running_mean is None or self.running_var is None:
            return rows
        return (rows - self.running_mean) / (self.running_var.sum() + self.eps).sqrt()


@ENCODERS.register("gin-balanced")
class BalancedGin(nn.Module):
    """GIN with compressed, balanced layers: `forward(batch)` gives one row a graph."""

    def __init__(self, features: FeatureScheme, *, depth: int = 5, width: int = 64) -> None:
        super().__init__()
        self.gin = Gin(features, depth=depth, width=width)
        self.norms = nn.ModuleList([BlockNorm(features.width), *(BlockNorm(width) for _ in range(depth))])
        self.dimensions = features.width + self.gin.dimensions
        self._again = partial(type(self), features, depth=depth, width=width)

    def fresh(self) -> BalancedGin:
        """Another encoder made like this one, with weights drawn anew; for methods that need two."""
        return self._again()

    def each(self, batches: Sequence[GraphBatch]) -> list[Tensor]:
        """`[self(batch) for batch in batches]`, in one pass where the batches are small."""
        from graphsc.data.join import join

        if sum(batch.num_nodes + batch.num_edges for batch in batches) > SMALL:
            return [self(batch) for batch in batches]
        rows = self(join(batches), [batch.num_nodes for batch in batches])
        return list(rows.split([batch.num_graphs for batch in batches]))

    def forward(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> Tensor:
        """G x dimensions: the input's block, then a block a layer."""
        with torch.no_grad():  # nothing before it learns
            blocks = [pool(batch, batch.dense_x(), "sum")]
        blocks += [pool(batch, nodes, "sum") for nodes in self.gin.node_layers(batch, parts)]
        return torch.cat(
            [norm(compress(block)) for norm, block in zip(self.norms, blocks, strict=True)], dim=1
        )
