"""Losses against labels of which some are missing: the mean over the entries that are there."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def masked_bce(logits: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy over the labels that are not NaN, each entry counting the same.

    logits, labels: graphs x tasks; labels are 0, 1 or NaN. Zero, gradient and all, where none is there.
    """
    there = ~labels.isnan()
    each = binary_cross_entropy_with_logits(logits, labels.nan_to_num(0.0), reduction="none")
    return _mean(each, there)


def masked_mse(values: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error over the targets that are not NaN; zero where none is there."""
    there = ~targets.isnan()
    return _mean((values - targets.nan_to_num(0.0)).square(), there)


def _mean(each: Tensor, there: Tensor) -> Tensor:
    return torch.where(there, each, 0.0).sum() / there.sum().clamp(min=1)
