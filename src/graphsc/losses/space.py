"""The space in which distances are taken: on the unit sphere, as they come, or standardised."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

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
