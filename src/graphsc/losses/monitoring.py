"""Training diagnostics without gradients: signs of collapse, and accuracies of the pretext task.

None of these is an equation of the paper. The measures of collapse show whether embeddings satisfy the hinge
of Eq. 13 without carrying information; they return a scalar in double precision.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.losses.triplet import l2_normalise, squared_distance_difference

_MAX_ROWS = 1000


@torch.no_grad()
def effective_rank(h: Tensor) -> Tensor:
    """Exponential of the entropy of the normalised singular values of the centred matrix.

    Args:
        h: N x d.

    Returns:
        Between 1 (all rows on a line) and min(N - 1, d); 0 for fewer than two rows or equal rows; NaN if a
        value is not finite.
    """
    h = h.double()
    if len(h) < 2:
        return h.new_zeros(())
    centred = h - h.mean(0)
    # Singular values from the smaller Gram matrix: 10,000 x 96 costs a 96 x 96 eigenproblem.
    product = centred.mT @ centred if h.shape[1] < len(h) else centred @ centred.mT
    if not product.isfinite().all():
        return h.new_full((), torch.nan)
    squares: Tensor = torch.linalg.eigvalsh(product)
    total = squares.sum()
    if total <= 1e-24 * h.square().sum():
        return h.new_zeros(())
    singular = squares.where(squares > 1e-14 * total, 0.0).sqrt()
    share = singular / singular.sum()
    return torch.exp(-torch.xlogy(share, share).sum())


@torch.no_grad()
def alignment(h: Tensor, h_positive: Tensor) -> Tensor:
    """Mean squared distance of the unit vectors of positive pairs (N x d): 0 (equal) to 4 (opposite)."""
    return (_directions(h) - _directions(h_positive)).square().sum(1).mean()


@torch.no_grad()
def uniformity(h: Tensor) -> Tensor:
    """Log of the mean of exp(-2 d^2) over pairs of unit vectors.

    Args:
        h: N x d; at most 1,000 evenly spaced rows are used.

    Returns:
        0 if all directions are equal or there are fewer than two rows; towards -4 for a uniform spread.
    """
    if len(h) < 2:
        return h.new_zeros((), dtype=torch.float64)
    if len(h) > _MAX_ROWS:
        h = h[torch.linspace(0, len(h) - 1, _MAX_ROWS, dtype=torch.float64, device=h.device).round().long()]
    squared = torch.pdist(_directions(h)).square()
    return (-2.0 * squared).exp().mean().log()


@torch.no_grad()
def mean_cosine(h: Tensor) -> Tensor:
    """Mean cosine similarity over pairs of different rows of h (N x d).

    1 if all directions are equal or there are fewer than two rows. A zero row has cosine 0 with all others.
    """
    n = len(h)
    if n < 2:
        return h.new_ones((), dtype=torch.float64)
    u = _directions(h)
    # The sum over all pairs is the squared norm of the sum, without the diagonal.
    return (u.sum(0).square().sum() - u.square().sum()) / (n * (n - 1))


def _directions(h: Tensor) -> Tensor:
    return l2_normalise(h.double(), eps=1e-12)


@torch.no_grad()
def retrieval_accuracy(anchor: Tensor, other: Tensor) -> float:
    """The fraction of anchors whose own row in `other` has the highest cosine similarity; chance is 1 / B.

    Row i of both (B x d) is graph i. If k rows tie, the own row counts 1 / k.
    """
    similarity = l2_normalise(anchor) @ l2_normalise(other).mT
    best = similarity == similarity.amax(1, keepdim=True)
    return float((best.diagonal() / best.sum(1)).mean())


@torch.no_grad()
def triplet_accuracy(anchor: Tensor, positive: Tensor, negative: Tensor) -> float:
    """The fraction of triplets (each B x d) whose positive is closer than the negative; chance is 1 / 2.

    A tie counts half.
    """
    difference = squared_distance_difference(anchor, positive, negative)
    return float((difference < 0).double().mean() + (difference == 0).double().mean() / 2)
