"""Signs of collapse in a set of vectors: how many directions they use and how alike they are.

Every measure takes N x d, returns a scalar in double precision and leaves no gradient. None is an equation of
the paper; they watch whether the hinge of Eq. 13 is met by vectors that say nothing.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.losses.triplet import gap, unit

_ROWS = 1000


@torch.no_grad()
def effective_rank(h: Tensor) -> Tensor:
    """Count the directions in use: exp of the entropy of the centred matrix's normalised singular values.

    h: N x d. Between 1 (a line) and min(N - 1, d); 0 for fewer than two rows and for equal rows, which use
    no direction at all; nan where a value is not finite.
    """
    h = h.double()
    if len(h) < 2:
        return h.new_zeros(())
    centred = h - h.mean(0)
    # Singular values from the small product of the two: 10,000 x 96 then costs a 96 x 96 problem.
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
    """Say how near positives lie to their anchors: the mean squared distance of unit vectors.

    h, h_positive: N x d. Between 0 (together) and 4 (opposite).
    """
    return (_directions(h) - _directions(h_positive)).square().sum(1).mean()


@torch.no_grad()
def uniformity(h: Tensor) -> Tensor:
    """Say how evenly directions fill the sphere: log of the mean of exp(-2 d^2) over pairs of unit vectors.

    h: N x d, of which at most 1,000 rows are used, evenly taken. 0 for one single point (and for fewer than
    two rows), towards -4 for an even spread.
    """
    if len(h) < 2:
        return h.new_zeros((), dtype=torch.float64)
    if len(h) > _ROWS:
        h = h[torch.linspace(0, len(h) - 1, _ROWS, dtype=torch.float64, device=h.device).round().long()]
    squared = torch.pdist(_directions(h)).square()
    return (-2.0 * squared).exp().mean().log()


@torch.no_grad()
def mean_cosine(h: Tensor) -> Tensor:
    """Say whether all vectors point the same way: the mean cosine over pairs of different rows.

    h: N x d. 1 for one direction (and for fewer than two rows); a zero row has cosine 0 with every other.
    """
    n = len(h)
    if n < 2:
        return h.new_ones((), dtype=torch.float64)
    u = _directions(h)
    # The sum over all pairs is the squared length of the sum; the diagonal is taken out again.
    return (u.sum(0).square().sum() - u.square().sum()) / (n * (n - 1))


def _directions(h: Tensor) -> Tensor:
    return unit(h.double(), eps=1e-12)


# How well a contrastive task is done: shares and areas beside which chance is known, without gradients.


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
