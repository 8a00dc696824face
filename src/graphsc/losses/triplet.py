"""The self-contrast: a graph is to lie nearer to its weak view than to its strong one, by a margin."""

from __future__ import annotations

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
