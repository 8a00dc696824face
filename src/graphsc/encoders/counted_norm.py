"""BatchNorm where a row may stand for several nodes, and parts of a batch are normalised by themselves."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable


class CountedBatchNorm(nn.BatchNorm1d):
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
        rows = rows.to(self.weight.dtype)  # statistics in full precision where the products are not
        with torch.autocast(rows.device.type, enabled=False):
            result: Tensor = _Normalise.apply(rows, self.weight, self.bias, counts, self, sizes)  # type: ignore[no-untyped-call]
        return result

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
        counts: Tensor,
        norm: CountedBatchNorm,
        parts: list[int],
    ) -> Tensor:
        centred, result = torch.empty_like(rows), torch.empty_like(rows)
        shares, scales = counts.to(rows.dtype), []
        for part, share, out, y in _split(parts, rows, shares, centred, result):
            nodes = norm.total(share.sum())
            share /= nodes
            mean = norm.total(share @ part)
            torch.sub(part, mean, out=out)
            variance = norm.total(share @ torch.square(out, out=y))
            scale = (variance + norm.eps).rsqrt_()
            torch.addcmul(bias, out, scale * weight, out=y)
            norm.move(mean, variance, nodes)
            scales.append(scale)
        ctx.save_for_backward(centred, weight, shares, *scales)
        ctx.parts, ctx.total = parts, norm.total  # type: ignore[attr-defined]
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None, None]:
        centred, weight, shares, *scales = ctx.saved_tensors  # type: ignore[attr-defined]
        to_rows = torch.empty_like(centred)
        to_weight, to_bias = torch.zeros_like(weight), torch.zeros_like(weight)
        parts = _split(ctx.parts, gradient, centred, shares, to_rows)  # type: ignore[attr-defined]
        for (given, part, share, out), scale in zip(parts, scales, strict=True):
            of_bias = given.sum(0)
            of_weight = torch.mul(given, part, out=out).sum(0) * scale
            # Each node moves the mean and the deviation of its part by its share of them.
            of_mean, of_deviation = ctx.total(torch.stack([of_bias, of_weight])).unbind()  # type: ignore[attr-defined]
            torch.addcmul(of_mean, part, scale * of_deviation, out=out)
            out.mul_(-share[:, None]).add_(given).mul_(scale * weight)
            to_weight += of_weight
            to_bias += of_bias
        return to_rows, to_weight, to_bias, None, None, None


def _split(parts: list[int], *tensors: Tensor) -> zip[tuple[Tensor, ...]]:
    return zip(*(torch.split(tensor, parts) for tensor in tensors), strict=True)
