"""BatchNorm whose batch is that of all ranks; torch's own refuses tensors on a CPU."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.encoders.counted_norm import CountedBatchNorm


class SharedBatchNorm(CountedBatchNorm):
    """In training, mean and variance over the nodes of all ranks; in evaluation, as ever."""

    def forward(
        self, rows: Tensor, counts: Tensor | None = None, parts: Sequence[int] | None = None
    ) -> Tensor:
        """R x width; every rank must call it equally often, with as many parts."""
        if not self.training or counts is not None:
            return super().forward(rows, counts, parts)
        rows = rows.to(self.weight.dtype)  # statistics in full precision where the products are not
        sizes = [len(rows)] if parts is None else list(parts)
        with torch.autocast(rows.device.type, enabled=False):
            result: Tensor = _Normalise.apply(rows, self.weight, self.bias, self, sizes)  # type: ignore[no-untyped-call]
        return result

    def total(self, sums: Tensor) -> Tensor:
        """Over the rows of all ranks."""
        sums = sums.contiguous()
        dist.all_reduce(sums)
        return sums


class _Normalise(torch.autograd.Function):
    """y = w (x - m) / s + b for every part, the moments of all parts in one exchange between ranks."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        rows: Tensor,
        weight: Tensor,
        bias: Tensor,
        norm: SharedBatchNorm,
        parts: list[int],
    ) -> Tensor:
        pieces = torch.split(rows, parts)
        nodes, mean, variance = _merged(torch.stack([_moments(piece) for piece in pieces]))
        scale = (variance + norm.eps).rsqrt_()
        slope = scale * weight
        result = torch.empty_like(rows)
        for number, (piece, out) in enumerate(zip(pieces, torch.split(result, parts), strict=True)):
            torch.addcmul(bias - mean[number] * slope[number], piece, slope[number], out=out)
            norm.move(mean[number], variance[number], nodes[number])
        ctx.save_for_backward(rows, weight, nodes, mean, variance, scale)
        ctx.parts, ctx.norm = parts, norm  # type: ignore[attr-defined]
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        rows, weight, nodes, mean, variance, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        parts, norm = ctx.parts, ctx.norm  # type: ignore[attr-defined]
        given, pieces = torch.split(gradient, parts), torch.split(rows, parts)
        # As if mean and variance were constants: to the rows, to the weight, to the bias.
        fixed = [
            torch.ops.aten.native_batch_norm_backward(
                g, x, weight, m, v, None, None, False, norm.eps, [True, True, True]
            )
            for g, x, m, v in zip(given, pieces, mean, variance, strict=True)
        ]
        local = torch.stack([torch.stack([of_weight, of_bias]) for _, of_weight, of_bias in fixed])
        of_deviation, of_mean = (norm.total(local.clone()) / nodes[:, None, None]).unbind(1)
        # But a node moves the mean and the deviation of its part, over all ranks, by its share of them.
        slope = scale * weight
        pull = slope * scale * of_deviation
        shift = slope * of_mean - pull * mean
        to_rows = torch.cat(
            [
                out.addcmul_(x, pull[number], value=-1).sub_(shift[number])
                for number, ((out, _, _), x) in enumerate(zip(fixed, pieces, strict=True))
            ]
        )
        to_weight, to_bias = local.sum(0).unbind()
        return to_rows, to_weight, to_bias, None, None


def _moments(rows: Tensor) -> Tensor:
    """Number, mean and variance of this rank's rows, as one vector."""
    if not len(rows):
        return rows.new_zeros(1 + 2 * rows.shape[1])
    mean, variance = torch.batch_norm_update_stats(rows, None, None, 0.0)
    return torch.cat([rows.new_tensor([len(rows)]), mean, variance])


def _merged(own: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Moments of all ranks' rows from those of each (Chan et al.), a row a part."""
    found = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.all_gather(found, own)
    each = torch.stack(found)  # ranks x parts x (1 + 2 width)
    width = (own.shape[1] - 1) // 2
    counts, means, variances = each[..., :1], each[..., 1 : 1 + width], each[..., 1 + width :]
    nodes = counts.sum(0)
    mean = (counts * means).sum(0) / nodes
    variance = (counts * (variances + (means - mean).square())).sum(0) / nodes
    return nodes[:, 0], mean, variance


def share_batchnorm(module: nn.Module) -> None:
    """Let every BatchNorm of the module see the whole batch; weights and statistics stay."""
    for part in module.modules():
        if isinstance(part, nn.BatchNorm1d) and part.affine:  # without weights it takes no part in training
            part.__class__ = SharedBatchNorm
