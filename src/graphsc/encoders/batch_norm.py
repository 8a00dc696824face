"""BatchNorm where a row may stand for several nodes, and parts of a batch are normalised by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable


class WeightedBatchNorm(nn.BatchNorm1d):
    """BatchNorm of N nodes given as R rows, of which row r stands for `counts[r]` nodes.

    In training, mean and variance are those of the nodes; in evaluation, a row is a row.
    """

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """R x width. `parts` are numbers of rows that lie together and share their statistics."""
        if not self.training:
            return super().forward(rows)
        sizes = [len(rows)] if parts is None else list(parts)
        if counts is None:
            if len(sizes) == 1:
                return super().forward(rows)
            forward = super().forward
            return torch.cat([forward(part) for part in torch.split(rows, sizes)])
        return self.normalise(rows, counts, sizes)

    def normalise(self, rows: Tensor, counts: Tensor | None, parts: list[int]) -> Tensor:
        """By the moments of each part, in full precision where the products are not."""
        rows = rows.to(self.weight.dtype)
        with torch.autocast(rows.device.type, enabled=False):
            result: Tensor = _Normalise.apply(rows, self.weight, self.bias, counts, self, parts)  # type: ignore[no-untyped-call]
        return result

    def merged(self, moments: Tensor) -> Tensor:
        """What these moments, a row a part, are over the whole batch; other where others have a share."""
        return moments

    def total(self, sums: Tensor) -> Tensor:
        """What sums over these rows are over the whole batch; more where others have a share of it."""
        return sums

    def move(self, mean: Tensor, variance: Tensor, nodes: Tensor) -> None:
        """Bring the running statistics nearer to those of so many nodes."""
        if self.running_mean is None or self.running_var is None or self.num_batches_tracked is None:
            return
        self.num_batches_tracked.add_(1)
        share = self.momentum if self.momentum is not None else 1 / float(self.num_batches_tracked)
        self.running_mean.lerp_(mean, share)
        self.running_var.lerp_(variance * (nodes / (nodes - 1).clamp(min=1)), share)


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
        own = torch.stack([moments_of(piece, share) for piece, share in zip(pieces, shares, strict=True)])
        nodes, mean, variance = parted(norm.merged(own))
        scale = (variance + norm.eps).rsqrt_()
        slope = scale * weight
        intercept = bias - mean * slope
        result = torch.empty_like(rows)
        for number, (piece, out) in enumerate(zip(pieces, torch.split(result, parts), strict=True)):
            torch.addcmul(intercept[number], piece, slope[number], out=out)
            norm.move(mean[number], variance[number], nodes[number, 0])
        ctx.save_for_backward(rows, weight, nodes, mean, variance, scale)
        ctx.shares, ctx.parts, ctx.norm = shares, parts, norm  # type: ignore[attr-defined]
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        rows, weight, nodes, mean, variance, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        shares, parts, norm = ctx.shares, ctx.parts, ctx.norm  # type: ignore[attr-defined]
        pieces = torch.split(rows, parts)
        # As if mean and variance were constants: to the rows, to the weight, to the bias.
        fixed = [
            torch.ops.aten.native_batch_norm_backward(
                given, piece, weight, m, v, None, None, False, norm.eps, [True, True, True]
            )
            for given, piece, m, v in zip(torch.split(gradient, parts), pieces, mean, variance, strict=True)
        ]
        local = torch.stack([torch.stack([of_weight, of_bias]) for _, of_weight, of_bias in fixed])
        of_deviation, of_mean = (norm.total(local.clone()) / nodes[:, None]).unbind(1)
        # But each node moves the mean and the deviation of its part by its share of them.
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


def moments_of(rows: Tensor, counts: Tensor | None) -> Tensor:
    """Number, mean and variance of the nodes, as one vector of 1 + 2 width."""
    if not len(rows):
        return rows.new_zeros(1 + 2 * rows.shape[1])
    if counts is None:
        mean, variance = torch.batch_norm_update_stats(rows, None, None, 0.0)
        return torch.cat([rows.new_tensor([len(rows)]), mean, variance])
    nodes = counts.sum()
    share = counts / nodes
    mean = share @ rows
    return torch.cat([nodes[None], mean, share @ torch.sub(rows, mean).square_()])


def parted(moments: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Numbers of nodes (a column), means and variances."""
    width = moments.shape[-1] // 2
    return moments[..., :1], moments[..., 1 : 1 + width], moments[..., 1 + width :]
