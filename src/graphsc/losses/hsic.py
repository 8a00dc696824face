"""The independence of factors, measured by the Hilbert-Schmidt Independence Criterion."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from graphsc.losses.factors import split_factors
from graphsc.losses.kernel import Kernel, centred_kernel, dependence

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
