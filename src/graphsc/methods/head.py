"""A projection head: the small network between an encoder and a contrastive loss."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def projection(inputs: int, outputs: int | None = None) -> nn.Sequential:
    """Linear - ReLU - Linear, Xavier-uniform weights and zero biases."""
    head = nn.Sequential(nn.Linear(inputs, inputs), nn.ReLU(), nn.Linear(inputs, outputs or inputs))
    for layer in head:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return head


def through_own_head(heads: nn.ModuleList, rows: Tensor, which: Tensor) -> Tensor:
    """Each row through the head that is named for it: B x d, and B positions in `heads`.

    Rows are sorted by head and back again, so that the price is that of one head. A head that no row names
    gets a gradient of zero.
    """
    if len(heads) == 1:
        result: Tensor = heads[0](rows)
        return result
    order = which.argsort(stable=True)
    counts = torch.bincount(which, minlength=len(heads)).tolist()
    parts = torch.split(rows[order], counts)
    done = torch.cat([head(part) for head, part in zip(heads, parts, strict=True)])
    return done[order.argsort()]
