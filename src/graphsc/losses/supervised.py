"""Supervised losses with missing labels: the mean over the labels that are present."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import binary_cross_entropy_with_logits


def masked_bce(logits: Tensor, labels: Tensor, weights: Tensor | None = None) -> Tensor:
    """Binary cross-entropy over all labels that are not NaN; zero, with zero gradient, if there are none.

    Args:
        logits: Graphs x tasks.
        labels: Graphs x tasks; 0, 1 or NaN.
        weights: Graphs x tasks, by which the losses are multiplied; the mean is over the number of labels.
    """
    losses = binary_cross_entropy_with_logits(logits, labels.nan_to_num(0.0), reduction="none")
    if weights is not None:
        losses = losses * weights
    return _masked_mean(losses, ~labels.isnan())


def masked_mse(values: Tensor, targets: Tensor) -> Tensor:
    """Mean squared error over all targets that are not NaN; zero, with zero gradient, if there are none."""
    return _masked_mean((values - targets.nan_to_num(0.0)).square(), ~targets.isnan())


def _masked_mean(losses: Tensor, present: Tensor) -> Tensor:
    return torch.where(present, losses, 0.0).sum() / present.sum().clamp(min=1)
