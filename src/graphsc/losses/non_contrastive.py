"""Losses between two views without negatives: VICReg and BYOL's. Barlow Twins has its own module."""

from __future__ import annotations

from torch import Tensor
from torch.nn.functional import mse_loss, relu

from graphsc.losses.triplet import l2_normalise


def vicreg(
    first: Tensor,
    second: Tensor,
    *,
    invariance: float = 25.0,
    variance: float = 25.0,
    covariance: float = 1.0,
) -> Tensor:
    """VICReg (Bardes et al., ICLR 2022, Eq. 1-6), with the scales of its published code.

    invariance * mean |z - z'|^2 / d + variance * (v(z) + v(z')) / 2 + covariance * (c(z) + c(z')), where v is
    the mean over columns of max(0, 1 - sqrt(Var + 0.0001)), and c the sum of the squared covariances of
    different columns divided by d. One row alone has variance 0.

    Args:
        first: B x d.
        second: B x d; row i of both belongs together.
        invariance: Weight of the distance.
        variance: Weight of the variance term, halved between the views as in the published code.
        covariance: Weight of the covariance term.
    """
    if first.shape != second.shape:
        raise ValueError(
            f"the views must have one shape, but have {tuple(first.shape)} and {tuple(second.shape)}"
        )
    if not len(first):
        return first.sum() + second.sum()
    spread, redundancy = first.new_zeros(()), first.new_zeros(())
    for rows in (first, second):
        centred = rows - rows.mean(0)
        products = centred.mT @ centred / max(len(rows) - 1, 1)
        of_columns = products.diagonal()
        spread = spread + relu(1 - (of_columns + 1e-4).sqrt()).mean() / 2
        redundancy = redundancy + (products.square().sum() - of_columns.square().sum()) / rows.shape[1]
    return invariance * mse_loss(first, second) + variance * spread + covariance * redundancy


def byol_cosine(prediction: Tensor, target: Tensor) -> Tensor:
    """BYOL's loss (Grill et al., NeurIPS 2020, Eq. 2): mean of 2 - 2 cos(prediction, target).

    From 0 to 4. A zero row has cosine 0.

    Args:
        prediction: B x d, from the online network.
        target: B x d, from the target network; no gradient flows to it.
    """
    if prediction.shape != target.shape:
        raise ValueError(
            f"prediction and target must have one shape, but have {tuple(prediction.shape)} and "
            f"{tuple(target.shape)}"
        )
    cosines = (l2_normalise(prediction) * l2_normalise(target.detach())).sum(-1)
    return (2 - 2 * cosines).sum() / max(len(cosines), 1)
