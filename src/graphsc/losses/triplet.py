"""GraphSC's self-contrast: the triplet loss (Eq. 13) and its masked form (Eq. 10-11 and 15-17).

An anchor graph must be closer to its weak view than to its strong view by a margin. The masked form requires
this of views in which one factor of the embedding is set to zero.
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import relu

from graphsc.core.compiled import use_compiled

EmbeddingSpace = Literal["unit", "raw", "bn"]


def triplet(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float = 0.2) -> Tensor:
    """Triplet loss, Eq. 13: mean of max(|a - p|^2 - |a - n|^2 + margin, 0) over triplets (each B x d)."""
    if can_compile(anchor, positive, negative) and anchor.dim() == 2:
        return _triplets(anchor, positive[None], negative[None], margin, 0.0)
    return relu(squared_distance_difference(anchor, positive, negative) + margin).mean()


@torch.no_grad()
def active_triplet_fraction(anchor: Tensor, positive: Tensor, negative: Tensor, *, margin: float) -> Tensor:
    """The fraction of triplets (each B x d) with a positive hinge in Eq. 13, without gradient."""
    return (squared_distance_difference(anchor, positive, negative) + margin > 0).to(anchor.dtype).mean()


def masked_triplet(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    margin: float = 0.2,
    temperature: float = 0.1,
    keep_gradient: bool = False,
) -> Tensor:
    """Triplet loss over the n masked views of each graph, Eq. 15.

    The views (B x n x d) are compared with the anchor (B x d, not masked) and weighted by `factor_weights`.
    """
    if can_compile(anchor, positive, negative) and not keep_gradient and positive.shape[1] > 1:
        return _triplets(anchor, positive.transpose(0, 1), negative.transpose(0, 1), margin, temperature)
    weights = factor_weights(anchor, positive, negative, temperature=temperature, keep_gradient=keep_gradient)
    hinge = relu(squared_distance_difference(anchor[:, None], positive, negative) + margin)
    return (weights * hinge).sum(1).mean()


def factor_weights(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    temperature: float = 0.1,
    keep_gradient: bool = False,
) -> Tensor:
    """Larger weights for factors without which positive and negative are hard to separate, Eq. 16-17.

    The softmax of Eq. 16 is taken over the factors. By default the weights are constants: otherwise the loss
    could be lowered by moving weight away from the hard factors.

    Args:
        anchor: B x d.
        positive: B x n x d, n >= 2.
        negative: B x n x d.
        temperature: Divides e_im in the softmax; 1 in the paper.
        keep_gradient: Whether gradients flow through the weights.

    Returns:
        B x n, rows sum to one.
    """
    n = positive.shape[1]
    if n < 2:
        raise ValueError(f"weights need at least 2 factors, not {n}; choose more factors")
    with nullcontext() if keep_gradient else torch.no_grad():
        e = (positive - negative).mul(anchor[:, None]).sum(-1)
        return (1.0 - torch.softmax(e / temperature, dim=1)) / (n - 1)


def split_factors(y: Tensor, factors: int) -> Tensor:
    """Split each vector into equal factors: ... x d -> ... x n x d_c with d_c = d / n (before Eq. 10)."""
    d = y.shape[-1]
    if factors < 1 or d % factors:
        raise ValueError(
            f"{d} dimensions cannot be split into {factors} equal factors; choose a number that divides {d}"
        )
    return y.reshape(*y.shape[:-1], factors, d // factors)


def mask_factors(y: Tensor, factors: int) -> Tensor:
    """The n masked versions of each vector: B x d -> B x n x d, with factor m zeroed in row m, Eq. 10."""
    parts = split_factors(y, factors)
    hidden = torch.eye(factors, dtype=torch.bool, device=y.device)[..., None]
    return parts[:, None].masked_fill(hidden, 0.0).flatten(-2)


def masked_first_layer(y: Tensor, weight: Tensor, bias: Tensor | None, factors: int) -> Tensor:
    """Apply a linear layer to all n masked versions of each vector at the cost of one product, Eq. 10-11.

    Equal to `linear(mask_factors(y, factors), weight, bias)`, computed as W y - W_m c_m: from y (B x d),
    weight (out x d) and bias (out) to B x n x out.
    """
    blocks = split_factors(weight, factors).transpose(0, 1)  # n x out x d_c
    parts = split_factors(y, factors).transpose(0, 1)  # n x B x d_c
    result: Tensor = _AllButOne.apply(parts, blocks, bias)  # type: ignore[no-untyped-call]
    return result.transpose(0, 1)


class _AllButOne(torch.autograd.Function):
    """n x B x out: the sum of all products c_k W_k except one.

    The n versions are outermost, so that the following layers read them without a copy.
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


def can_compile(*tensors: Tensor) -> bool:
    """Whether the compiled loops support these tensors."""
    plain = all(x.is_cpu and x.dtype is torch.float32 and x.numel() > 0 for x in tensors)
    return plain and not torch.compiler.is_compiling() and use_compiled()


def _triplets(
    anchor: Tensor, positive: Tensor, negative: Tensor, margin: float, temperature: float
) -> Tensor:
    """See `compiled.triplets`."""
    result: Tensor = _Triplets.apply(anchor, positive, negative, margin, temperature)  # type: ignore[no-untyped-call]
    return result


class _Triplets(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx,
        anchor: Tensor,
        positive: Tensor,
        negative: Tensor,
        margin: float,
        temperature: float,
    ) -> Tensor:
        from graphsc.losses.compiled import triplets

        a, p, n = (x.contiguous() for x in (anchor, positive, negative))
        gradients = to_a, to_p, to_n = [torch.empty_like(x) for x in (a, p, n)]
        loss = triplets(
            a.numpy(), p.numpy(), n.numpy(), margin, temperature, to_a.numpy(), to_p.numpy(), to_n.numpy()
        )
        ctx.save_for_backward(*gradients)
        return anchor.new_tensor(loss)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *(x * gradient for x in ctx.saved_tensors), None, None  # type: ignore[attr-defined]


def squared_distance_difference(anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
    """|a - p|^2 - |a - n|^2 over the last axis; negative where the positive is closer."""
    result: Tensor = _DistanceDifference.apply(anchor, positive, negative)  # type: ignore[no-untyped-call]
    return result


class _DistanceDifference(torch.autograd.Function):
    """Written by hand for speed: the masked contrast evaluates it for n times the batch."""

    @staticmethod
    def forward(ctx: FunctionCtx, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        # The shorter form |p|^2 - |n|^2 - 2 a(p - n) loses precision for long, similar vectors.
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


def normalise_embeddings(y: Tensor, space: EmbeddingSpace, eps: float = 1e-6) -> Tensor:
    """Normalise embeddings before Eq. 13, 15 and 20, so that the margin has a fixed scale.

    Args:
        y: B x d or B x n x d.
        space: "unit" scales each vector to length one (zero if shorter than `eps`). "raw" changes nothing.
            "bn" standardises each coordinate over the batch; a batch of one becomes zeros.
        eps: Smallest length in "unit", added to the variance in "bn".

    Returns:
        A tensor of the same shape.
    """
    if space == "unit":
        return l2_normalise(y, eps=eps)
    if space == "bn":
        rows = tuple(range(y.dim() - 1))
        centred = y - y.mean(rows, keepdim=True)
        # eps is added, not a minimum: a nearly constant coordinate fades out instead of amplifying rounding.
        return centred * (centred.square().mean(rows, keepdim=True) + eps).rsqrt()
    if space == "raw":
        return y
    raise ValueError(f"the space {space!r} is unknown; choose unit, raw or bn")


def l2_normalise(y: Tensor, *, dim: int = -1, eps: float | Tensor = 1e-6) -> Tensor:
    """Scale each vector along `dim` to length one; vectors not longer than `eps` become zero.

    Their gradient is zero too. Dividing them by `eps`, as is common, would let a single graph without a
    direction dominate the gradient.
    """
    if dim == -1 and isinstance(eps, float) and can_compile(y):
        return _NormaliseRows.apply(y, eps)  # type: ignore[no-untyped-call, no-any-return]
    result: Tensor = _L2Normalise.apply(y, dim, eps)  # type: ignore[no-untyped-call]
    return result


class _NormaliseRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, y: Tensor, eps: float) -> Tensor:
        from graphsc.losses.compiled import normalise_rows

        rows = y.contiguous()
        result, scale = torch.empty_like(rows), rows.new_empty(rows.shape[:-1])
        normalise_rows(_matrix(rows), eps, _matrix(result), scale.flatten().numpy())
        ctx.save_for_backward(result, scale)
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, None]:
        from graphsc.losses.compiled import normalise_rows_backward

        result, scale = ctx.saved_tensors  # type: ignore[attr-defined]
        to_y = torch.empty_like(result)
        normalise_rows_backward(
            _matrix(gradient.contiguous()), _matrix(result), scale.flatten().numpy(), _matrix(to_y)
        )
        return to_y, None


def _matrix(rows: Tensor) -> NDArray[np.float32]:
    """A view of a contiguous tensor with all axes but the last as one."""
    return rows.view(-1, rows.shape[-1]).numpy()


class _L2Normalise(torch.autograd.Function):
    """Written by hand because every loss uses it: autograd would record three times as much."""

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
