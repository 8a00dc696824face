"""The weak view before the strong one, and the strong one before every other graph."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graphsc.losses.space import unit


def ordered_contrast(anchor: Tensor, weak: Tensor, strong: Tensor, *, temperature: float = 0.2) -> Tensor:
    """Find each graph's weak view among the weak views of all graphs and its own strong view.

    anchor, weak, strong: B x d, row i of each is graph i. Returns the mean over i of
    -log(exp(s_ii) / (sum_j exp(s_ij) + exp(t_i))) with s_ij = cos(anchor_i, weak_j) / temperature and
    t_i = cos(anchor_i, strong_i) / temperature. A batch of one graph still has its strong view.
    """
    a, w, s = unit(anchor), unit(weak), unit(strong)
    others = a @ w.mT
    own = (a * s).sum(-1, keepdim=True)
    logits = torch.cat([others, own], dim=1) / temperature
    return cross_entropy(logits, torch.arange(len(a), device=a.device))
