"""The Hilbert-Schmidt Independence Criterion (HSIC), Eq. 6, and the independence of factors, Eq. 14."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.losses.triplet import can_compile, split_factors

Kernel = Literal["rbf-median", "rbf", "linear"]
Samples = Literal["batch", "coordinates"]
Reduction = Literal["sum", "mean"]


def hsic(x: Tensor, y: Tensor, *, kernel: Kernel = "rbf-median", sigma: float = 1.0) -> Tensor:
    """Biased HSIC estimate tr(UHSH) / (m - 1)^2, Eq. 6; near zero for independent variables.

    Args:
        x: m x p, samples paired with those of `y`.
        y: m x q.
        kernel: See `centred_kernel`.
        sigma: Bandwidth of kernel "rbf".

    Returns:
        A scalar; zero for a single sample.
    """
    if len(x) != len(y):
        raise ValueError(f"HSIC needs paired samples, but there are {len(x)} of x and {len(y)} of y")
    if len(x) < 2:
        return _zero(x) + _zero(y)
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
    """HSIC over all ordered pairs of different factors, Eq. 14.

    Args:
        y: B x d, or views x B x d; split into n factors of d_c dimensions.
        factors: n.
        kernel: See `centred_kernel`.
        sigma: Bandwidth of kernel "rbf".
        samples: "batch": the B graphs are the samples of one HSIC per pair. "coordinates": each graph has
            its own HSIC with its d_c coordinates as samples, averaged over the graphs.
        reduction: "sum" or "mean" over the pairs.

    Returns:
        A scalar, summed over the views; zero for a single sample or factor.
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
        return _zero(y)
    values = dependence(parts, kernel, sigma)
    total = (values.mean(-1) if samples == "coordinates" else values).sum() / (m - 1) ** 2
    return total / (factors * (factors - 1)) if reduction == "mean" else total


def _zero(x: Tensor) -> Tensor:
    """A zero in the autograd graph of x, so that it can be differentiated as a loss of its own."""
    return x.sum() * 0.0


def centred_kernel(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """Centred kernel matrix HKH with H = I - 1/m, as in Eq. 6.

    Args:
        x: ... x m x p, m samples in p dimensions.
        kernel: "rbf" is exp(-|a - b|^2 / (2 sigma^2)). "rbf-median" is the same with sigma^2 the median of
            |a - b|^2 over pairs, without gradient through the median. "linear" is a . b.
        sigma: Bandwidth of "rbf".

    Returns:
        ... x m x m.
    """
    shifted = _shifted(x)
    if kernel == "linear":
        return _centre(shifted @ shifted.mT)
    variance = _variance(x, kernel, sigma)
    result: Tensor = _CentredRbf.apply(shifted, variance, kernel == "rbf-median")  # type: ignore[no-untyped-call]
    return result


def dependence(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """Sum of tr(UHSH) over all ordered pairs of n different variables: ... x n x m x p -> ..."""
    if kernel == "linear":
        centred = centred_kernel(x, kernel, sigma)
        return (centred * (centred.sum(-3, keepdim=True) - centred)).sum((-3, -2, -1))
    variance = _variance(x, kernel, sigma)
    result: Tensor = _RbfDependence.apply(_shifted(x), variance, kernel == "rbf-median")  # type: ignore[no-untyped-call]
    return result


def _shifted(x: Tensor) -> Tensor:
    """Centred samples: the kernels do not depend on the origin, and products lose less precision."""
    return x - x.detach().mean(-2, keepdim=True)


def _variance(x: Tensor, kernel: Kernel, sigma: float) -> Tensor:
    """sigma^2; with "rbf-median" its minimum."""
    if kernel == "rbf":
        if sigma <= 0:
            raise ValueError(f"sigma must be above zero, not {sigma}; it is the bandwidth of the kernel")
        return x.new_full((), sigma**2)
    if kernel == "rbf-median":
        # Without a minimum, samples that are equal up to rounding would be separated by their rounding.
        minimum = 1e-6 * x.detach().square().sum((-2, -1), keepdim=True) / x.shape[-2]
        return minimum + 1e-12
    raise ValueError(f"the kernel {kernel!r} is unknown; choose rbf-median, rbf or linear")


class _CentredRbf(torch.autograd.Function):
    """Written by hand because it dominates the loss: half as many passes over m x m as with autograd."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, variance: Tensor, median: bool) -> Tensor:
        k, scale = _rbf(x, variance, median)
        ctx.save_for_backward(x, k, scale)
        return _centre(k)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        x, k, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        pull = _centre(gradient).mul_(k)  # times 2 scale (a - b): derivative by a, its negative by b
        degree = pull.sum(-1, keepdim=True) + pull.sum(-2, keepdim=True).mT
        return (degree * x - pull @ x - pull.mT @ x) * (2.0 * scale), None, None


class _RbfDependence(torch.autograd.Function):
    """`dependence`; its gradient by a centred kernel is the sum of the others, centred and symmetric."""

    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, variance: Tensor, median: bool) -> Tensor:
        k, scale = _rbf(x, variance, median)
        if can_compile(k):
            from graphsc.losses.compiled import dependence as compiled_dependence

            pull = torch.empty_like(k)
            shape = (-1, *k.shape[-3:])
            values = compiled_dependence(k.view(shape).numpy(), pull.view(shape).numpy())
            ctx.save_for_backward(x, pull, scale)
            return torch.from_numpy(values).to(k.dtype).view(k.shape[:-3])
        centred = _centre(k)
        others = centred.sum(-3, keepdim=True) - centred
        ctx.save_for_backward(x, k.mul_(others), scale)
        return centred.mul_(others).sum((-3, -2, -1))

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        x, pull, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        # A factor of 2 each for the two orders of a pair, the two samples of a distance, and its square.
        factor = (8.0 * scale) * gradient[..., None, None, None]
        return (pull.sum(-1, keepdim=True) * x - pull @ x).mul_(factor), None, None


def _rbf(x: Tensor, variance: Tensor, median: bool) -> tuple[Tensor, Tensor]:
    """The kernel, and the factor of the squared distances in its exponent."""
    if median and can_compile(x) and x.shape[-1] > 1:
        distances, middle = _distances_and_median(x)
        variance = torch.maximum(middle[..., None, None], variance)
    else:
        distances = _squared_distances(x)
        if median:  # `variance` is then the minimum
            variance = torch.maximum(_median(distances)[..., None, None], variance)
    scale = -0.5 / variance
    return distances.mul_(scale).exp_(), scale


def _squared_distances(x: Tensor) -> Tensor:
    if x.shape[-1] == 1:
        return (x - x.mT).square_()
    lengths = x.square().sum(-1, keepdim=True)
    return (x @ x.mT).mul_(-2.0).add_(lengths).add_(lengths.mT).clamp_(min=0.0)


def _distances_and_median(x: Tensor) -> tuple[Tensor, Tensor]:
    """`_squared_distances(x)` and their `_median`, in one pass."""
    from graphsc.losses.compiled import squared_distances

    distances = x @ x.mT
    medians = distances.new_empty(x.shape[:-2])
    squared_distances(distances.view(-1, *distances.shape[-2:]).numpy(), medians.view(-1).numpy())
    return distances, medians


def _centre(k: Tensor) -> Tensor:
    """HKH."""
    rows = k - k.mean(-1, keepdim=True)
    return rows.sub_(rows.mean(-2, keepdim=True))


def _median(distances: Tensor) -> Tensor:
    """The median over pairs of different samples: ... x m x m -> ..."""
    m = distances.shape[-1]
    size = m * (m - 1) // 2
    low, high = (size - 1) // 2, size // 2
    if distances.device.type == "cpu":  # NumPy selects much faster than torch
        pairs = distances.flatten(-2).numpy().take(_upper(m), axis=-1)
        pairs.partition(low, axis=-1)
        return torch.from_numpy(np.asarray((pairs[..., low] + pairs[..., high:].min(-1)) / 2))
    one, other = torch.triu_indices(m, m, 1, device=distances.device)
    ordered = distances[..., one, other].sort(-1).values
    return (ordered[..., low] + ordered[..., high]) / 2


@lru_cache(maxsize=4)
def _upper(m: int) -> NDArray[np.int64]:
    """Flat indices of the pairs of different samples in an m x m matrix."""
    one, other = np.triu_indices(m, 1)
    return np.asarray(one * m + other)
