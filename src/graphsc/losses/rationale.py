"""RGCL's losses: a graph agrees with its rationale, and not with what the rationale left out."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from graphsc.losses.space import unit


def independence(anchor: Tensor, positive: Tensor, complement: Tensor, *, temperature: float = 0.2) -> Tensor:
    """Tell a graph's rationale from the complements of all graphs, its own included.

    anchor, positive, complement: B x d. Returns a scalar, the mean over i of
    -log(S_ii / (S_ii + sum_j C_ij)), where S = exp(cos(anchor, positive) / temperature) and C is the same
    with the complements. A row of zeros has cosine 0 with everything and no gradient.
    """
    agreement, others = _logits(anchor, positive, complement, temperature)
    return -_share(agreement.diagonal(), others).mean()


def log_of_sum(
    anchor: Tensor, positive: Tensor, complement: Tensor, *, weight: float = 0.1, temperature: float = 0.2
) -> Tensor:
    """Both contrasts in one logarithm: the mean over i of -log(S_ii / sum_j S_ij + weight * I_i).

    anchor, positive, complement: B x d; I_i is the fraction whose logarithm `independence` takes. At least
    -log(1 + weight), which is below zero.
    """
    agreement, others = _logits(anchor, positive, complement, temperature)
    first = agreement.diagonal() - agreement.logsumexp(1)
    if weight == 0:
        return -first.mean()
    second = _share(agreement.diagonal(), others) + math.log(weight)
    return -torch.logaddexp(first, second).mean()


def _logits(
    anchor: Tensor, positive: Tensor, complement: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    if temperature <= 0:
        raise ValueError(f"temperature must be above zero, not {temperature}")
    rows = unit(anchor) / temperature
    return rows @ unit(positive).mT, rows @ unit(complement).mT


def _share(agreement: Tensor, others: Tensor) -> Tensor:
    """B: log(S_ii / (S_ii + sum_j C_ij)) from the logits."""
    return agreement - torch.logaddexp(agreement, others.logsumexp(1))
