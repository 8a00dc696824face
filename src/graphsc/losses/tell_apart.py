"""Pairs that belong together told from pairs that do not: by a score each, and how well the scores do it."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import softplus


def tell_apart(positive: Tensor, negative: Tensor, *, weight: float = 1.0) -> Tensor:
    """The mean of -log sigmoid(positive), and, weighted, that of -log sigmoid(-negative).

    positive: P, negative: Q, any shape. Returns a scalar, 2 log 2 at scores of 0 and a weight of 1. A mean
    over nothing is 0, so that a batch without a negative still has a loss.
    """
    return _mean(softplus(-positive)) + weight * _mean(softplus(negative))


def area_under_curve(positive: Tensor, negative: Tensor) -> float:
    """The chance that a positive scores above a negative, one of each drawn at random; a tie counts half.

    positive: P, negative: Q. 0.5 where either is empty: nothing was told from nothing.
    """
    count = len(positive) * len(negative)
    if count == 0:
        return 0.5
    ordered = negative.sort().values
    below = torch.searchsorted(ordered, positive.contiguous())
    not_above = torch.searchsorted(ordered, positive.contiguous(), right=True)
    return float((below + not_above).double().sum()) / (2 * count)


def _mean(values: Tensor) -> Tensor:
    return values.sum() / max(values.numel(), 1)
