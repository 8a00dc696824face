"""The masked self-contrast: the triplet must hold with any one factor of the views hidden."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import relu

from graphsc.losses.factors import split_factors
from graphsc.losses.triplet import gap


def mask_factors(y: Tensor, factors: int) -> Tensor:
    """Make the n masked versions of each vector: B x d -> B x n x d, factor m zeroed in row m. Eq. 10."""
    parts = split_factors(y, factors)
    hidden = torch.eye(factors, dtype=torch.bool, device=y.device)[..., None]
    return parts[:, None].masked_fill(hidden, 0.0).flatten(-2)


def masked_first_layer(y: Tensor, weight: Tensor, bias: Tensor | None, factors: int) -> Tensor:
    """Apply a linear layer to all n masked versions of each vector for the price of one product. Eq. 10-11.

    y: B x d, weight: out x d, bias: out. Returns B x n x out, equal to
    `linear(mask_factors(y, factors), weight, bias)`: what is left without factor m is W y - W_m c_m.
    """
    blocks = split_factors(weight, factors).transpose(0, 1)  # n x out x d_c
    parts = split_factors(y, factors).transpose(0, 1)  # n x B x d_c
    result: Tensor = _AllButOne.apply(parts, blocks, bias)  # type: ignore[no-untyped-call]
    return result.transpose(0, 1)


class _AllButOne(torch.autograd.Function):
    """n x B x out: the sum of all products c_k W_k but one. The n versions lie one after the other, because
    the layers that follow then read them without a copy.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, parts: Tensor, blocks: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(parts, blocks)
        products = parts @ blocks.mT
        whole = products.sum(0)
        if bias is not None:
            whole += bias
        return torch.sub(whole, products, out=products)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor | None]:
        parts, blocks = ctx.saved_tensors  # type: ignore[attr-defined]
        whole = gradient.sum(0)
        others = whole - gradient
        to_bias = whole.sum(0) if ctx.needs_input_grad[2] else None  # type: ignore[attr-defined]
        return others @ blocks, others.mT @ parts, to_bias


def factor_weights(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    temperature: float = 0.1,
    keep_gradient: bool = False,
) -> Tensor:
    """Give more weight to a factor without which positive and negative are hard to tell apart.

    anchor: B x d, positive and negative: B x n x d, n >= 2. Returns B x n with rows that sum to one.
    Eq. 16-17, the softmax taken over the factors. Without `keep_gradient` the weights are constants: through
    them the loss could fall by moving weight off the very factors that need it.
    """
    n = positive.shape[1]
    if n < 2:
        raise ValueError(f"weights need at least 2 factors, not {n}; choose more factors")
    with nullcontext() if keep_gradient else torch.no_grad():
        e = (positive - negative).mul(anchor[:, None]).sum(-1)
        return (1.0 - torch.softmax(e / temperature, dim=1)) / (n - 1)


def masked_triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 0.2,
    temperature: float = 0.1,
    keep_gradient: bool = False,
) -> Tensor:
    """Ask the triplet's margin of every masked view, most of the hardest.

    anchor: B x d (not masked), positive and negative: B x n x d. Returns a scalar: the weighted sum over the
    factors, the mean over the batch. Eq. 15.
    """
    weights = factor_weights(anchor, positive, negative, temperature=temperature, keep_gradient=keep_gradient)
    hinge = relu(gap(anchor[:, None], positive, negative) + margin)
    return (weights * hinge).sum(1).mean()
