"""The absolute distance: an anchor and its positive are drawn together, however far the negative is."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from graphsc.losses.triplet import unit

BarlowForm = Literal["original", "paper"]

# A column whose spread is this small beside its length is constant up to rounding.
_CONSTANT = 1e-5


def barlow_twins(
    z: Tensor, z_positive: Tensor, *, beta: float = 0.013, form: BarlowForm = "original"
) -> Tensor:
    """Make each coordinate agree between the two views and differ from all other coordinates.

    z, z_positive: B x d. Returns a scalar. Eq. 18-19. "original" correlates columns centred over the batch
    and sums (1 - C_ii)^2 undivided; "paper" is the printed form: columns not centred, 1/B on that sum only.
    A column without spread ("paper": of zeros) correlates with nothing, so C is zero there, its gradient too.
    """
    if form == "original":
        one, other = _centred_unit(torch.stack([z, z_positive])).unbind()
        correlation = one.mT @ other
    elif form == "paper":
        correlation = unit(z, dim=0).mT @ unit(z_positive, dim=0)
    else:
        raise ValueError(f"the form {form!r} of the Barlow Twins loss is unknown; choose original or paper")
    diagonal = correlation.diagonal()
    agreement = (1.0 - diagonal).square().sum()
    if form == "paper":
        agreement = agreement / len(z)
    redundancy = correlation.square().sum() - diagonal.square().sum()
    return agreement + beta * redundancy


def mean_square(y: Tensor, y_positive: Tensor) -> Tensor:
    """Draw each positive to its anchor: the mean over the batch of |y - y+|^2.

    y, y_positive: B x d. Returns a scalar. Eq. 20.
    """
    return (y - y_positive).square().sum(-1).mean()


def _centred_unit(z: Tensor) -> Tensor:
    """Columns of length one around zero; their products are correlations over the batch."""
    floor = _CONSTANT * z.detach().square().sum(-2, keepdim=True).sqrt()
    return unit(z - z.mean(-2, keepdim=True), dim=-2, eps=floor)
