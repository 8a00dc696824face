"""Soft k-means on unit vectors, shared by the methods that use clusters as pseudo-classes."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.losses.triplet import l2_normalise


@torch.no_grad()
def soft_kmeans(unit: Tensor, centres: Tensor, sharpness: float, steps: int) -> Tensor:
    """Move centres (K x d) to the means of the rows (N x d, of length one) that are assigned to them."""
    for _ in range(steps):
        centres = weighted_means(unit, soft_assignment(unit, centres, sharpness))
    return centres


def soft_assignment(unit: Tensor, centres: Tensor, sharpness: float) -> Tensor:
    """N x K: the softmax of the cosines with the centres, times the sharpness."""
    return (unit @ l2_normalise(centres).mT).mul(sharpness).softmax(1)


def weighted_means(unit: Tensor, assignment: Tensor) -> Tensor:
    """K x d: the means of the rows, weighted by their assignment (N x K)."""
    total = assignment.sum(0).clamp(min=torch.finfo(unit.dtype).tiny)
    return (assignment.mT @ unit) / total[:, None]
