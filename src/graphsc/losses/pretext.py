"""How well a contrastive task is done: shares and areas beside which chance is known, without gradients."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.losses.space import unit
from graphsc.losses.triplet import gap


@torch.no_grad()
def retrieved_share(anchor: Tensor, other: Tensor) -> float:
    """The share of rows whose own row in `other` is the most alike of all, by cosine; chance is 1 / B.

    anchor, other: B x d, row i of both is graph i. Where k rows are equally near, their own counts 1 / k.
    """
    likeness = unit(anchor) @ unit(other).mT
    best = likeness == likeness.amax(1, keepdim=True)
    return float((best.diagonal() / best.sum(1)).mean())


@torch.no_grad()
def nearer_share(anchor: Tensor, positive: Tensor, negative: Tensor) -> float:
    """The share of triplets whose positive is nearer to the anchor than the negative; chance is 1 / 2.

    anchor, positive, negative: B x d. A tie counts half.
    """
    apart = gap(anchor, positive, negative)
    return float((apart < 0).double().mean() + (apart == 0).double().mean() / 2)
