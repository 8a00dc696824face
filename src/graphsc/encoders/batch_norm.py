"""BatchNorm for a single row, for deduplicated rows, and for batches with parts normalised separately."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn import functional


class BatchNorm(nn.BatchNorm1d):
    """`torch.nn.BatchNorm1d` that also takes a single row, or none, in training mode.

    One row has no variance, and torch raises an error for it. Here it is normalised by the running
    statistics, as in evaluation mode, and does not change them. A batch of one graph with one node is such a
    row, and so is a view that leaves a small graph one node.
    """

    def forward(self, rows: Tensor) -> Tensor:
        """Normalise R x width rows."""
        if self.training and len(rows) < 2:
            return functional.batch_norm(
                rows, self.running_mean, self.running_var, self.weight, self.bias, eps=self.eps
            )
        return super().forward(rows)

    @staticmethod
    def convert(module: nn.Module) -> None:
        """Turn every plain BatchNorm of a module into this one, in place; weights and statistics stay."""
        for part in module.modules():
            if type(part) is nn.BatchNorm1d:
                part.__class__ = BatchNorm


class WeightedBatchNorm(BatchNorm):
    """BatchNorm over N nodes given as R rows, where row r stands for `counts[r]` nodes.

    In training mode mean and variance are those of the nodes. In evaluation mode counts have no effect.
    """

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """Normalise the rows.

        Args:
            rows: R x width.
            counts: R, the number of nodes per row; None for one each.
            parts: Numbers of consecutive rows that are normalised together; None for all.
        """
        if not self.training:
            return super().forward(rows)
        sizes = [len(rows)] if parts is None else list(parts)
        if counts is None:
            if len(sizes) == 1:
                return super().forward(rows)
            forward = super().forward
            return torch.cat([forward(part) for part in torch.split(rows, sizes)])
        if len(sizes) > 1 and min(sizes) < 2:
            pairs = zip(torch.split(rows, sizes), torch.split(counts, sizes), strict=True)
            return torch.cat([self(part, own) for part, own in pairs])
        if len(rows) < 2 and float(counts.sum()) < 2:
            return super().forward(rows)
        return self.normalise(rows, counts, sizes)

    def normalise(self, rows: Tensor, counts: Tensor | None, parts: list[int]) -> Tensor:
        """Normalise each part by its own moments, in full precision even under autocast."""
        rows = rows.to(self.weight.dtype)
        with torch.autocast(rows.device.type, enabled=False):
            result: Tensor = _Normalise.apply(rows, self.weight, self.bias, counts, self, parts)  # type: ignore[no-untyped-call]
        return result

    def reduce_moments(self, moments: Tensor) -> Tensor:
        """Moments over the whole batch, one row per part; overridden where ranks share a batch."""
        return moments

    def reduce_sums(self, sums: Tensor) -> Tensor:
        """Sums over the whole batch; overridden where ranks share a batch."""
        return sums

    def update_running_stats(self, mean: Tensor, variance: Tensor, nodes: Tensor) -> None:
        """Update the running statistics with the moments of this many nodes."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
        # Through `data`: torch's own BatchNorm, in an earlier pass of a step, would refuse to go backward if
        # they had changed since, although it does not use them.
        self.running_mean.data.lerp_(mean, share)
        self.running_var.data.lerp_(variance * (nodes / (nodes - 1).clamp(min=1)), share)


class _Normalise(torch.autograd.Function):
    """y = w (x - m) / s + b, with m = sum of c x / n and s^2 = sum of c (x - m)^2 / n + eps."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        counts: Tensor | None,
        norm: WeightedBatchNorm,
        parts: list[int],
    ) -> Tensor:
        pieces = torch.split(rows, parts)
        shares = [None] * len(parts) if counts is None else torch.split(counts.to(rows.dtype), parts)
        own = torch.stack([_moments(piece, share) for piece, share in zip(pieces, shares, strict=True)])
        nodes, mean, variance = split_moments(norm.reduce_moments(own))
        scale = (variance + norm.eps).rsqrt_()
        slope = scale * weight
        intercept = bias - mean * slope
        result = torch.empty_like(rows)
        for number, (piece, out) in enumerate(zip(pieces, torch.split(result, parts), strict=True)):
            torch.addcmul(intercept[number], piece, slope[number], out=out)
            norm.update_running_stats(mean[number], variance[number], nodes[number, 0])
        ctx.save_for_backward(rows, weight, nodes, mean, variance, scale)
        ctx.shares, ctx.parts, ctx.norm = shares, parts, norm  # type: ignore[attr-defined]
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        rows, weight, nodes, mean, variance, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        shares, parts, norm = ctx.shares, ctx.parts, ctx.norm  # type: ignore[attr-defined]
        pieces = torch.split(rows, parts)
        # Gradients of rows, weight and bias with mean and variance held constant.
        fixed = [
            torch.ops.aten.native_batch_norm_backward(
                upstream, piece, weight, m, v, None, None, False, norm.eps, [True, True, True]
            )
            for upstream, piece, m, v in zip(
                torch.split(gradient, parts), pieces, mean, variance, strict=True
            )
        ]
        local = torch.stack([torch.stack([of_weight, of_bias]) for _, of_weight, of_bias in fixed])
        of_deviation, of_mean = (norm.reduce_sums(local.clone()) / nodes[:, None]).unbind(1)
        # Each node also contributes to the mean and the deviation of its part.
        slope = scale * weight
        pull = slope * scale * of_deviation
        shift = slope * of_mean - pull * mean
        for number, (piece, share) in enumerate(zip(pieces, shares, strict=True)):
            to_piece = fixed[number][0]
            if share is None:
                to_piece.addcmul_(piece, pull[number], value=-1).sub_(shift[number])
            else:
                moved = torch.addcmul(shift[number], piece, pull[number])
                to_piece.addcmul_(moved, share[:, None], value=-1)
        to_rows = fixed[0][0] if len(fixed) == 1 else torch.cat([to_piece for to_piece, _, _ in fixed])
        to_weight, to_bias = local.sum(0).unbind()
        return to_rows, to_weight, to_bias, None, None, None


def _moments(rows: Tensor, counts: Tensor | None) -> Tensor:
    """Number, mean and variance of the nodes, concatenated to 1 + 2 width."""
    if not len(rows):
        return rows.new_zeros(1 + 2 * rows.shape[1])
    if counts is None:
        mean, variance = torch.batch_norm_update_stats(rows, None, None, 0.0)
        return torch.cat([rows.new_tensor([len(rows)]), mean, variance])
    nodes = counts.sum()
    share = counts / nodes
    mean = share @ rows
    return torch.cat([nodes[None], mean, share @ torch.sub(rows, mean).square_()])


def split_moments(moments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers of nodes (... x 1), means and variances (... x width) from ... x (1 + 2 width)."""
    width = moments.shape[-1] // 2
    return moments[..., :1], moments[..., 1 : 1 + width], moments[..., 1 + width :]
