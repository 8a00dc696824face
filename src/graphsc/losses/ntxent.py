"""NT-Xent: a graph is to be found again in the other view among the other graphs of its batch."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphsc.losses.space import unit


def nt_xent(
    anchor: Tensor,
    other: Tensor,
    *,
    temperature: float = 0.2,
    positive_in_denominator: bool = False,
    symmetric: bool = False,
    negatives: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw the two views of each graph together and away from the views of other graphs.

    anchor, other: B x d, row i of both is graph i. Returns a scalar, the mean over i of
    -log(S_ii / sum_{j != i} S_ij) with S_ij = exp(cos(anchor_i, other_j) / temperature); never below
    `nt_xent_floor`. With `positive_in_denominator` the sum is over all j, and the loss is positive.
    `symmetric` is the mean of this and of the same with the views exchanged. `negatives` graphs, drawn for
    each row without repetition, are in the sum instead of all B - 1. A row of zeros has cosine 0 with
    everything and no gradient; a batch of one has no other graph, and its loss is zero.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be above zero, not {temperature}")
    if negatives is not None and negatives < 1:
        raise ValueError(f"negatives must be at least 1, not {negatives}; leave it out to take all")
    if len(anchor) != len(other):
        raise ValueError(f"the views must have the same graphs, but have {len(anchor)} and {len(other)}")
    if len(anchor) < 2:
        # A zero that hangs on both, so that it can still be differentiated.
        return (anchor.sum() + other.sum()) * 0.0
    logits = unit(anchor) @ unit(other).mT / temperature
    found = _against_rows(logits, positive_in_denominator, negatives, generator)
    if symmetric:
        found = (found + _against_rows(logits.mT, positive_in_denominator, negatives, generator)) / 2
    return found.mean()


def nt_xent_floor(batch: int, *, temperature: float = 0.2) -> float:
    """The least value of NT-Xent without the positive in its denominator, where B = `batch` > 1.

    log(B - 1) - B / ((B - 1) temperature): the two views of a graph in one point, and the B points at the
    corners of a regular simplex, as far from each other as B directions can be.
    """
    return math.log(batch - 1) - batch / ((batch - 1) * temperature)


def _against_rows(
    logits: Tensor, positive_in_denominator: bool, negatives: int | None, generator: torch.Generator | None
) -> Tensor:
    """B: -log of each diagonal entry's share, from the logits of all pairs."""
    size = len(logits)
    out = torch.eye(size, dtype=torch.bool, device=logits.device)
    if negatives is not None and negatives < size - 1:
        keys = torch.rand(size, size, device=logits.device, generator=generator).masked_fill_(out, -1.0)
        out = torch.ones_like(out).scatter_(1, keys.topk(negatives, sorted=False).indices, False)
    if positive_in_denominator:
        out = out.fill_diagonal_(False)
    return logits.masked_fill(out, -torch.inf).logsumexp(1) - logits.diagonal()
