"""Centred kernels: how alike samples are, with what all have in common taken out."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

Kernel = Literal["rbf-median", "rbf", "linear"]


def centred_kernel(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """Compare all samples with each other: HKH with H = I - 1/m, as Eq. 6 needs it of both variables.

    x: ... x m x p, m samples in p dimensions. Returns ... x m x m. "rbf" is exp(-|a - b|^2 / (2 sigma^2)),
    "rbf-median" the same with sigma^2 the median of |a - b|^2 over pairs, a constant to the gradient, and
    "linear" is a . b.
    """
    # No kernel, once centred, knows where zero is; around the mean the products keep their digits.
    shifted = x - x.detach().mean(-2, keepdim=True)
    if kernel == "linear":
        return _centre(shifted @ shifted.mT)
    if kernel == "rbf":
        if sigma <= 0:
            raise ValueError(f"sigma must be above zero, not {sigma}; it is the width of the kernel")
        return _rbf(shifted, x.new_full((), sigma**2))
    if kernel == "rbf-median":
        # The floor is for samples that are equal up to rounding, which else would be told apart by it.
        floor = 1e-6 * x.detach().square().sum(-1).mean(-1) + 1e-12
        return _rbf(shifted, floor[..., None, None], median=True)
    raise ValueError(f"the kernel {kernel!r} is unknown; choose rbf-median, rbf or linear")


def _rbf(x: Tensor, variance: Tensor, *, median: bool = False) -> Tensor:
    result: Tensor = _CentredRbf.apply(x, variance, median)  # type: ignore[no-untyped-call]
    return result


class _CentredRbf(torch.autograd.Function):
    """Written out because it is most of the loss: half the passes over m x m of what autograd records."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, variance: Tensor, median: bool) -> Tensor:
        distances = _squared_distances(x)
        if median:  # then the variance given is the least allowed
            variance = torch.maximum(_median(distances)[..., None, None], variance)
        scale = -0.5 / variance
        k = distances.mul_(scale).exp_()
        ctx.save_for_backward(x, k, scale)
        return _centre(k)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        x, k, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        pull = _centre(gradient).mul_(k)  # times 2 scale (a - b) the derivative by a, and by b its opposite
        degree = pull.sum(-1, keepdim=True) + pull.sum(-2, keepdim=True).mT
        return (degree * x - pull @ x - pull.mT @ x) * (2.0 * scale), None, None


def _squared_distances(x: Tensor) -> Tensor:
    if x.shape[-1] == 1:
        return (x - x.mT).square_()
    lengths = x.square().sum(-1, keepdim=True)
    return (x @ x.mT).mul_(-2.0).add_(lengths).add_(lengths.mT).clamp_(min=0.0)


def _centre(k: Tensor) -> Tensor:
    """HKH."""
    rows = k - k.mean(-1, keepdim=True)
    return rows.sub_(rows.mean(-2, keepdim=True))


def _median(distances: Tensor) -> Tensor:
    """The median over pairs of different samples: ... x m x m -> ..."""
    m = distances.shape[-1]
    one, other = torch.triu_indices(m, m, 1, device=distances.device)
    pairs = distances.flatten(-2).index_select(-1, one * m + other)
    low, high = (pairs.shape[-1] - 1) // 2, pairs.shape[-1] // 2
    if pairs.device.type == "cpu":  # numpy selects many times faster than torch does there
        parted = torch.from_numpy(np.partition(pairs.numpy(), low, axis=-1))
        return (parted[..., low] + parted[..., high:].amin(-1)) / 2
    return (pairs.kthvalue(low + 1, dim=-1).values + pairs.kthvalue(high + 1, dim=-1).values) / 2
