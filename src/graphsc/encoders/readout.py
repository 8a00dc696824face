"""From node vectors to one vector a graph; graphs without nodes get zeros."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding_bag

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch

Readout = Literal["sum", "mean", "max"]


def pool(batch: GraphBatch, nodes: Tensor, how: Readout) -> Tensor:
    """G x d from N x d: sum, mean or largest value over each graph's nodes."""
    if how == "max":
        empty = nodes.new_zeros(batch.num_graphs, nodes.shape[1])
        index = batch.batch[:, None].expand_as(nodes)
        return empty.scatter_reduce(0, index, nodes, "amax", include_self=False)
    total: Tensor = _SegmentSum.apply(nodes, batch)  # type: ignore[no-untyped-call]
    if how == "mean":
        return total / batch.ptr.diff().clamp(min=1)[:, None]
    return total


class _SegmentSum(torch.autograd.Function):
    """Nodes of a graph lie together, so its sum is a run of rows, and its gradient a repetition."""

    @staticmethod
    def forward(ctx: FunctionCtx, nodes: Tensor, batch: GraphBatch) -> Tensor:
        ctx.batch = batch  # type: ignore[attr-defined]
        if not nodes.numel():
            return nodes.new_zeros(batch.num_graphs, nodes.shape[1])
        rows = torch.arange(len(nodes), device=nodes.device)
        return embedding_bag(rows, nodes, batch.ptr, mode="sum", include_last_offset=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        # A layer's part of the joined vectors does not lie together, and is read eight times slower so.
        return gradient.contiguous().index_select(0, ctx.batch.batch), None  # type: ignore[attr-defined]


# A readout in which all layers, the input among them, weigh the same.
#
# A sum over nodes grows with the graph and with every layer, so that a kernel on the joined layers sees
# little but size and the last one. Here each pooled layer is compressed as counts are, by a square root,
# and scaled so that its total variance over the collection is one. The pooled input stands beside them: it
# is what a probe without any encoder would have, and on many collections that is hard to beat.


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


class MultiScaleReadout(nn.Module):
    """From an encoder's layers to one row a graph: the input's block, then a block a layer."""

    def __init__(self, encoder: nn.Module) -> None:
        from graphsc.encoders.gin import Gin  # here, because gin itself pools with this module

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
