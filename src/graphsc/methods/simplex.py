"""Points brought onto the simplex: numbers that may be probabilities."""

from __future__ import annotations

import torch
from torch import Tensor


def project(point: Tensor) -> Tensor:
    """The nearest probabilities: n numbers, none negative, that sum to one.

    point: n. All entries are lowered by one number and cut at zero; sorting finds that number exactly.
    """
    falling = point.sort(descending=True).values
    surplus = falling.cumsum(0) - 1.0
    counts = torch.arange(1, len(point) + 1, dtype=point.dtype, device=point.device)
    positive = int((falling * counts > surplus).sum())  # how many entries stay above zero
    return (point - surplus[positive - 1] / positive).clamp_(min=0.0)


def project_by_bisection(point: Tensor, tolerance: float = 1e-2) -> Tensor:
    """The same by halving an interval until the sum is one to the tolerance, then divided by the sum."""
    low, high = float(point.min()) - 1.0 / len(point), float(point.max()) - 1.0 / len(point)
    while True:
        middle = (low + high) / 2
        found = (point - middle).clamp(min=0.0)
        total = float(found.sum())
        if abs(total - 1.0) <= tolerance:
            return found / total
        low, high = (middle, high) if total > 1.0 else (low, middle)
