"""The independence of factors, measured by the Hilbert-Schmidt Independence Criterion."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.losses.triplet import split_factors

# Centred kernels: how alike samples are, with what all have in common taken out.


Kernel = Literal["rbf-median", "rbf", "linear"]


def centred_kernel(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """Compare all samples with each other: HKH with H = I - 1/m, as Eq. 6 needs it of both variables.

    x: ... x m x p, m samples in p dimensions. Returns ... x m x m. "rbf" is exp(-|a - b|^2 / (2 sigma^2)),
    "rbf-median" the same with sigma^2 the median of |a - b|^2 over pairs, a constant to the gradient, and
    "linear" is a . b.
    """
    shifted = _shifted(x)
    if kernel == "linear":
        return _centre(shifted @ shifted.mT)
    variance = _variance(x, kernel, sigma)
    result: Tensor = _CentredRbf.apply(shifted, variance, kernel == "rbf-median")  # type: ignore[no-untyped-call]
    return result


def dependence(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """The inner products of the centred kernels of all ordered pairs of different variables, summed.

    x: ... x n x m x p, n variables. Returns a tensor of shape ...; tr(KHLH) is such an inner product.
    """
    if kernel == "linear":
        centred = centred_kernel(x, kernel, sigma)
        return (centred * (centred.sum(-3, keepdim=True) - centred)).sum((-3, -2, -1))
    variance = _variance(x, kernel, sigma)
    result: Tensor = _RbfDependence.apply(_shifted(x), variance, kernel == "rbf-median")  # type: ignore[no-untyped-call]
    return result


def _shifted(x: Tensor) -> Tensor:
    """No kernel, once centred, knows where zero is; around the mean the products keep their digits."""
    return x - x.detach().mean(-2, keepdim=True)


def _variance(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """The square of the kernel's width; with "rbf-median" the least allowed."""
    if kernel == "rbf":
        if sigma <= 0:
            raise ValueError(f"sigma must be above zero, not {sigma}; it is the width of the kernel")
        return x.new_full((), sigma**2)
    if kernel == "rbf-median":
        # The floor is for samples that are equal up to rounding, which else would be told apart by it.
        floor = 1e-6 * x.detach().square().sum((-2, -1), keepdim=True) / x.shape[-2]
        return floor + 1e-12
    raise ValueError(f"the kernel {kernel!r} is unknown; choose rbf-median, rbf or linear")


class _CentredRbf(torch.autograd.Function):
    """Written out because it is most of the loss: half the passes over m x m of what autograd records."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, variance: Tensor, median: bool) -> Tensor:
        k, scale = _rbf(x, variance, median)
        ctx.save_for_backward(x, k, scale)
        return _centre(k)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        x, k, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        pull = _centre(gradient).mul_(k)  # times 2 scale (a - b) the derivative by a, and by b its opposite
        degree = pull.sum(-1, keepdim=True) + pull.sum(-2, keepdim=True).mT
        return (degree * x - pull @ x - pull.mT @ x) * (2.0 * scale), None, None


class _RbfDependence(torch.autograd.Function):
    """`dependence`, whose gradient by a centred kernel is the sum of the others: centred and symmetric."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, variance: Tensor, median: bool) -> Tensor:
        k, scale = _rbf(x, variance, median)
        centred = _centre(k)
        others = centred.sum(-3, keepdim=True) - centred
        ctx.save_for_backward(x, k.mul_(others), scale)
        return centred.mul_(others).sum((-3, -2, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        x, pull, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        # 2 for the two orders of a pair, 2 for the two samples of a distance, 2 for its square.
        factor = (8.0 * scale) * gradient[..., None, None, None]
        return (pull.sum(-1, keepdim=True) * x - pull @ x).mul_(factor), None, None


def _rbf(x: Tensor, variance: Tensor, median: bool) -> tuple[Tensor, Tensor]:
    """The kernel, and what squared distances are multiplied by in its exponent."""
    distances = _squared_distances(x)
    if median:  # then the variance given is the least allowed
        variance = torch.maximum(_median(distances)[..., None, None], variance)
    scale = -0.5 / variance
    return distances.mul_(scale).exp_(), scale


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
    size = m * (m - 1) // 2
    low, high = (size - 1) // 2, size // 2
    if distances.device.type == "cpu":  # numpy selects many times faster than torch does there
        pairs = distances.flatten(-2).numpy().take(_upper(m), axis=-1)
        pairs.partition(low, axis=-1)
        return torch.from_numpy(np.asarray((pairs[..., low] + pairs[..., high:].min(-1)) / 2))
    one, other = torch.triu_indices(m, m, 1, device=distances.device)
    ordered = distances[..., one, other].sort(-1).values
    return (ordered[..., low] + ordered[..., high]) / 2


@lru_cache(maxsize=4)
def _upper(m: int) -> NDArray[np.int64]:
    """Where the pairs of different samples lie in an m x m matrix laid out flat."""
    one, other = np.triu_indices(m, 1)
    return np.asarray(one * m + other)


Samples = Literal["batch", "coordinates"]
Reduction = Literal["sum", "mean"]


def hsic(x: Tensor, y: Tensor, *, kernel: Kernel = "rbf-median", sigma: float = 1.0) -> Tensor:
    """Measure how far two variables depend on each other; near zero when they do not.

    x: m x p, y: m x q, m paired samples. Returns a scalar, the biased estimate tr(KHLH) / (m - 1)^2. Eq. 6.
    `sigma` is the width of kernel "rbf"; "rbf-median" takes its own from the samples. One sample says
    nothing: the result is then zero.
    """
    if len(x) != len(y):
        raise ValueError(
            f"HSIC needs paired samples, but there are {len(x)} of one and {len(y)} of the other"
        )
    if len(x) < 2:
        return _nothing(x) + _nothing(y)
    return (centred_kernel(x, kernel, sigma) * centred_kernel(y, kernel, sigma)).sum() / (len(x) - 1) ** 2


def factor_dependence(
    y: Tensor,
    factors: int,
    *,
    kernel: Kernel = "rbf-median",
    sigma: float = 1.0,
    samples: Samples = "batch",
    reduction: Reduction = "sum",
) -> Tensor:
    """Make the factors of each view independent: HSIC over all ordered pairs of different factors.

    y: B x d, or views x B x d, cut into n factors of d_c. Returns a scalar, summed over the views. Eq. 14.
    With samples "batch" the B graphs are the samples of one HSIC a pair; with "coordinates" each graph has
    its own, the d_c coordinates being its samples, and the mean over the graphs is taken. One sample or one
    factor says nothing: the result is then zero.
    """
    parts = split_factors(y, factors)
    if samples == "batch":
        parts = parts.transpose(-3, -2)  # (views x) n x B x d_c
    elif samples == "coordinates":
        parts = parts[..., None]  # (views x) B x n x d_c x 1
    else:
        raise ValueError(f"samples {samples!r} are unknown; choose batch or coordinates")
    if reduction not in ("sum", "mean"):
        raise ValueError(f"the reduction {reduction!r} is unknown; choose sum or mean")
    m = parts.shape[-2]
    if m < 2 or factors < 2 or not y.numel():
        return _nothing(y)
    each = dependence(parts, kernel, sigma)
    total = (each.mean(-1) if samples == "coordinates" else each).sum() / (m - 1) ** 2
    return total / (factors * (factors - 1)) if reduction == "mean" else total


def _nothing(x: Tensor) -> Tensor:
    """A zero that hangs on x, so that a loss made of it alone can still be differentiated."""
    return x.sum() * 0.0
