"""The self-contrast: a graph is to lie nearer to its weak view than to its strong one, by a margin."""

from __future__ import annotations

import torch
from torch import Tensor
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
    # The shorter |p|^2 - |n|^2 - 2 a(p - n) loses its digits where positive and negative are long and alike.
    return (anchor - positive).square().sum(-1) - (anchor - negative).square().sum(-1)
