"""Readouts: from node embeddings to one embedding per graph; graphs without nodes get zeros."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding_bag

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch

Readout = Literal["sum", "mean", "max"]


def pool(batch: GraphBatch, nodes: Tensor, how: Readout) -> Tensor:
    """Pool node embeddings (N x d) to G x d by sum, mean or max."""
    if how == "max":
        empty = nodes.new_zeros(batch.num_graphs, nodes.shape[1])
        index = batch.batch[:, None].expand_as(nodes)
        return empty.scatter_reduce(0, index, nodes, "amax", include_self=False)
    total: Tensor = _SegmentSum.apply(nodes, batch)  # type: ignore[no-untyped-call]
    if how == "mean":
        return total / batch.ptr.diff().clamp(min=1)[:, None]
    return total


class _SegmentSum(torch.autograd.Function):
    """Nodes of a graph are consecutive rows, so the backward pass repeats the gradient."""

    @staticmethod
    def forward(ctx: FunctionCtx, nodes: Tensor, batch: GraphBatch) -> Tensor:
        ctx.batch = batch  # type: ignore[attr-defined]
        if not nodes.numel():
            return nodes.new_zeros(batch.num_graphs, nodes.shape[1])
        rows = torch.arange(nodes.shape[0], device=nodes.device)
        return embedding_bag(rows, nodes, batch.ptr, mode="sum", include_last_offset=True)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        # A slice of the joined layers is not contiguous, and gathering from it is eight times slower.
        return gradient.contiguous().index_select(0, ctx.batch.batch), None  # type: ignore[attr-defined]


def signed_sqrt(sums: Tensor) -> Tensor:
    """sign(x) (sqrt(1 + |x|) - 1): about a square root for large values, x / 2 near zero, smooth."""
    return sums.sign() * ((1 + sums.abs()).sqrt() - 1)


class BlockNorm(nn.BatchNorm1d):
    """Centre every column and divide the block by one number, so that its total variance is one.

    The statistics are set by `reestimate_batchnorm`; the layer is not used in training.
    """

    def __init__(self, width: int) -> None:
        super().__init__(width, affine=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows x width."""
        assert self.running_mean is not None  # noqa: S101 - tracked by default
        assert self.running_var is not None  # noqa: S101
        return (rows - self.running_mean) / (self.running_var.sum() + self.eps).sqrt()


class MultiScaleReadout(nn.Module):
    """A readout in which the input and all layers of an encoder have equal weight.

    A sum over nodes grows with graph size and depth, so a kernel on joined layers is dominated by size and by
    the last layer. Here each pooled layer is compressed by a square root, as is usual for counts, and scaled
    to a total variance of one over the collection. The pooled input is the first block: it is a baseline
    without encoder that is hard to beat on many collections.
    """

    def __init__(self, encoder: nn.Module) -> None:
        from graphsc.encoders.base import JoinedLayers  # imported here because base imports this module

        super().__init__()
        if not isinstance(encoder, JoinedLayers):
            raise ConfigError(
                f"a multi-scale readout needs an encoder with layers of equal width, such as gin, not "
                f"{type(encoder).__name__}",
                hint="use --encoder gin, or for molecules the preset molecules, or a method without it",
            )
        widths = [encoder.features.width, *[encoder.width] * len(encoder.blocks)]
        self.norms = nn.ModuleList(BlockNorm(width) for width in widths)
        self.dimensions = sum(widths)

    def forward(self, batch: GraphBatch, layers: list[Tensor]) -> Tensor:
        """G x dimensions from the layers' outputs, N x width each."""
        with torch.no_grad():  # there are no parameters before it
            blocks = [pool(batch, batch.dense_x(), "sum")]
        blocks += [pool(batch, nodes, "sum") for nodes in layers]
        return torch.cat(
            [norm(signed_sqrt(block)) for norm, block in zip(self.norms, blocks, strict=True)], dim=1
        )


class BalancedNorm(nn.BatchNorm1d):
    """Centre every column, and divide each block of columns by one number, so that all have equal variance.

    The total variance of a block becomes the mean width of a block. So columns have a variance of one on
    average, at which the layers after it learn at the usual rate.

    Unlike `BlockNorm` it is used in training too, with the statistics of the batch, through which no gradient
    passes. A single row is normalised by the running statistics.
    """

    block: Tensor

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__(sum(widths), affine=False)
        self.blocks = len(widths)
        self.variance = sum(widths) / len(widths)
        number = torch.arange(len(widths)).repeat_interleave(torch.tensor(list(widths)))
        self.register_buffer("block", number, persistent=False)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows x the sum of all widths."""
        assert self.running_mean is not None  # noqa: S101 - tracked by default
        assert self.running_var is not None  # noqa: S101
        mean, variance = self.running_mean, self.running_var
        if self.training and len(rows) > 1:
            with torch.no_grad():
                values = rows.detach().float()
                variance, mean = torch.var_mean(values, dim=0)
                self._update(mean, variance)
        total = variance.new_zeros(self.blocks).index_add(0, self.block, variance)
        return (rows - mean) * (self.variance / (total + self.eps)).sqrt()[self.block]

    def _update(self, mean: Tensor, variance: Tensor) -> None:
        assert self.num_batches_tracked is not None  # noqa: S101 - tracked by default
        self.num_batches_tracked.add_(1)
        # A mean of the first ones, until they are enough for a moving average.
        share = max(self.momentum or 0.0, 1 / int(self.num_batches_tracked))
        self.running_mean.lerp_(mean, share)  # type: ignore[union-attr]
        self.running_var.lerp_(variance, share)  # type: ignore[union-attr]


class BalancedReadout(nn.Module):
    """The input and all layers of an encoder, each pooled by sum and by mean, with equal weights.

    As in `MultiScaleReadout` sums are compressed by a square root. The means tell what a graph is made of
    whatever its size. It is part of an encoder, so that frozen vectors and fine-tuning both have it.

    Args:
        widths: Columns of the input and of each layer.
        summed: Columns of further blocks that are pooled by sum alone, such as hidden units of layers.
    """

    def __init__(self, widths: Sequence[int], summed: Sequence[int] = ()) -> None:
        super().__init__()
        self.norm = BalancedNorm([*(width for width in widths for _ in ("sum", "mean")), *summed])
        self.dimensions = 2 * sum(widths) + sum(summed)

    def forward(self, batch: GraphBatch, blocks: Sequence[Tensor], summed: Sequence[Tensor] = ()) -> Tensor:
        """G x dimensions from the nodes' rows in the input and in each layer, N x width each."""
        nodes = batch.ptr.diff().clamp(min=1)[:, None]
        parts: list[Tensor] = []
        for block in blocks:
            total = pool(batch, block, "sum")
            parts += [signed_sqrt(total), total / nodes]
        parts += [signed_sqrt(pool(batch, block, "sum")) for block in summed]
        normed: Tensor = self.norm(torch.cat(parts, dim=1))
        return normed
