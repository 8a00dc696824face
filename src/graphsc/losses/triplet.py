"""The self-contrast: a graph is to lie nearer to its weak view than to its strong one, by a margin."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import relu


def triplet(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 0.2) -> Tensor:
    """Pull the positive nearer to its anchor than the negative is, by the margin, in squared distance.

    anchor, positive, negative: B x d. Returns a scalar, the mean over the batch. Eq. 13.
    """
    return relu(gap(anchor, positive, negative) + margin).mean()


@torch.no_grad()
def active_share(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float) -> Tensor:
    """Tell how many triplets still teach something: the share whose hinge in Eq. 13 is above zero.

    anchor, positive, negative: B x d. Returns a scalar in [0, 1], without gradient.
    """
    return (gap(anchor, positive, negative) + margin > 0).to(anchor.dtype).mean()


def gap(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """|a - p|^2 - |a - n|^2 over the last axis: below zero where the positive is the nearer one."""
    result: Tensor = _Gap.apply(anchor, positive, negative)  # type: ignore[no-untyped-call]
    return result


class _Gap(torch.autograd.Function):
    """Written out because the masked contrast asks it of n times the batch."""

    @staticmethod
    def forward(ctx: FunctionCtx, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        # The shorter |p|^2 - |n|^2 - 2 a(p - n) loses its digits where both are long and alike.
        near, far = anchor - positive, anchor - negative
        ctx.save_for_backward(near, far)
        ctx.shapes = anchor.shape, positive.shape, negative.shape  # type: ignore[attr-defined]
        return near.square().sum(-1) - far.square().sum(-1)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        near, far = ctx.saved_tensors  # type: ignore[attr-defined]
        double = (2.0 * gradient)[..., None]
        to_negative = far * double
        to_positive = near * -double
        anchor, positive, negative = ctx.shapes  # type: ignore[attr-defined]
        return (
            (to_positive + to_negative).neg_().sum_to_size(anchor),
            to_positive.sum_to_size(positive),
            to_negative.sum_to_size(negative),
        )


# A vector as a row of equal factors, the parts that are masked one by one and kept independent.


def split_factors(y: Tensor, factors: int) -> Tensor:
    """Cut each vector into its factors: B x d -> B x n x d_c where d_c = d / n. Before Eq. 10."""
    d = y.shape[-1]
    if factors < 1 or d % factors:
        raise ValueError(
            f"{d} dimensions cannot be cut into {factors} equal factors; choose a number that divides {d}"
        )
    return y.reshape(*y.shape[:-1], factors, d // factors)


# The masked self-contrast: the triplet must hold with any one factor of the views hidden.


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


# The space in which distances are taken: on the unit sphere, as they come, or standardised.


Space = Literal["unit", "raw", "bn"]


def to_space(y: Tensor, space: Space, eps: float = 1e-6) -> Tensor:
    """Bring vectors into the space where a margin has a meaning, before Eq. 13, 15 and 20.

    y: B x d or B x n x d; the result has the same shape. "unit" gives each vector length one, "raw" leaves
    it as it is, "bn" gives each coordinate mean zero and variance one over the batch. A vector shorter than
    `eps` has no direction and becomes zero, with a zero gradient; a batch of one becomes zeros in "bn".
    """
    if space == "unit":
        return unit(y, eps=eps)
    if space == "bn":
        rows = tuple(range(y.dim() - 1))
        centred = y - y.mean(rows, keepdim=True)
        # Added, not a floor: a coordinate that hardly varies fades out instead of showing its rounding.
        return centred * (centred.square().mean(rows, keepdim=True) + eps).rsqrt()
    if space == "raw":
        return y
    raise ValueError(f"the space {space!r} is unknown; choose unit, raw or bn")


def unit(y: Tensor, *, dim: int = -1, eps: float | Tensor = 1e-6) -> Tensor:
    """Give each vector along `dim` length one; those not longer than `eps` become zero.

    Their gradient is zero as well. Divided by `eps`, as is often done, one graph without a direction would
    outweigh all others in the gradient.
    """
    result: Tensor = _Unit.apply(y, dim, eps)  # type: ignore[no-untyped-call]
    return result


class _Unit(torch.autograd.Function):
    """Written out because every vector of every loss passes here: a third of what autograd would record."""

    @staticmethod
    def forward(ctx: FunctionCtx, y: Tensor, dim: int, eps: float | Tensor) -> Tensor:
        squared = y.square().sum(dim, keepdim=True)
        scale = squared.rsqrt().masked_fill_(squared <= eps * eps, 0.0)
        result = y * scale
        ctx.dim = dim  # type: ignore[attr-defined]
        ctx.save_for_backward(result, scale)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None, None]:
        result, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        along = (gradient * result).sum(ctx.dim, keepdim=True)  # type: ignore[attr-defined]
        return torch.addcmul(gradient, result, along, value=-1).mul_(scale), None, None
