"""GraphSC's absolute distance term: Barlow Twins (Eq. 18-19), or mean squared distance (Eq. 20)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from graphsc.losses.triplet import l2_normalise

BarlowForm = Literal["original", "paper"]

# A column whose standard deviation is this small relative to its norm is constant up to rounding.
_CONSTANT = 1e-5


def barlow_twins(
    z: Tensor, z_positive: Tensor, *, beta: float = 0.013, form: BarlowForm = "original"
) -> Tensor:
    """Barlow Twins loss: sum_i (1 - C_ii)^2 + beta sum_{i != j} C_ij^2, Eq. 18-19.

    C is the cross-correlation of the coordinates of the two views over the batch. A constant column (in
    "paper": a zero column) has correlation zero with every column, and zero gradient.

    Args:
        z: B x d.
        z_positive: B x d.
        beta: Weight of the off-diagonal terms.
        form: "original" centres the columns and does not divide the diagonal sum. "paper" is the form as
            printed: columns not centred, the diagonal sum divided by B.
    """
    if form == "original":
        one, other = _standardise_columns(torch.stack([z, z_positive])).unbind()
        correlation = one.mT @ other
    elif form == "paper":
        correlation = l2_normalise(z, dim=0).mT @ l2_normalise(z_positive, dim=0)
    else:
        raise ValueError(f"the form {form!r} of the Barlow Twins loss is unknown; choose original or paper")
    diagonal = correlation.diagonal()
    agreement = (1.0 - diagonal).square().sum()
    if form == "paper":
        agreement = agreement / len(z)
    redundancy = correlation.square().sum() - diagonal.square().sum()
    return agreement + beta * redundancy


def mean_squared_distance(y: Tensor, y_positive: Tensor) -> Tensor:
    """The mean over the batch of |y - y+|^2, Eq. 20; y, y_positive: B x d."""
    return (y - y_positive).square().sum(-1).mean()


def _standardise_columns(z: Tensor) -> Tensor:
    """Centred columns of length one, whose products are correlations over the batch."""
    minimum = _CONSTANT * z.detach().square().sum(-2, keepdim=True).sqrt()
    return l2_normalise(z - z.mean(-2, keepdim=True), dim=-2, eps=minimum)
