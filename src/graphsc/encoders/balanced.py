"""A readout in which all layers, the input among them, weigh the same.

A sum over nodes grows with the graph and with every layer, so that a kernel on the joined layers sees little
but size and the last one. Here each pooled layer is compressed as counts are, by a square root, and scaled so
that its total variance over the collection is one. The pooled input stands beside them: it is what a probe
without any encoder would have, and on many collections that is hard to beat.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.gin import Gin
from graphsc.encoders.readout import pool


def compress(sums: Tensor) -> Tensor:
    """sign(x) (sqrt(1 + |x|) - 1): a square root far from zero, half the value near it, smooth between."""
    return sums.sign() * ((1 + sums.abs()).sqrt() - 1)


class BlockNorm(nn.BatchNorm1d):
    """Centre every column and divide the block by one number, so that its total variance is one.

    Its statistics are those of clean graphs (`reestimate_batchnorm`); it takes no part in training.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width, affine=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows x width."""
        assert self.running_mean is not None  # noqa: S101 - tracked, as ever without other arguments
        assert self.running_var is not None  # noqa: S101
        return (rows - self.running_mean) / (self.running_var.sum() + self.eps).sqrt()


class BalancedReadout(nn.Module):
    """From an encoder's layers to one row a graph: the input's block, then a block a layer."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        if not isinstance(encoder, Gin):
            raise ConfigError(
                f"a balanced readout reads the layers of the encoder gin, not of {type(encoder).__name__}",
                hint="use --encoder gin, or a method without it",
            )
        widths = [encoder.features.width, *[encoder.width] * len(encoder.blocks)]
        self.norms = nn.ModuleList(BlockNorm(width) for width in widths)
        self.dimensions = sum(widths)

    def forward(self, batch: GraphBatch, layers: list[Tensor]) -> Tensor:
        """G x dimensions from N x width after each layer."""
        with torch.no_grad():  # nothing before it learns
            blocks = [pool(batch, batch.dense_x(), "sum")]
        blocks += [pool(batch, nodes, "sum") for nodes in layers]
        return torch.cat(
            [norm(compress(block)) for norm, block in zip(self.norms, blocks, strict=True)], dim=1
        )
