"""Prototypes in levels, the upper ones parents of the lower: where a graph belongs, and how well it does."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from graphsc.losses.space import unit

Search = Literal["sample", "best"]
Rivals = Literal["level", "siblings"]


@torch.no_grad()
def search_path(
    graphs: Tensor,
    prototypes: Tensor,
    alive: Tensor,
    parent: Tensor,
    *,
    temperature: float = 0.04,
    search: Search = "sample",
) -> Tensor:
    """Walk down the tree: one prototype of the top level, then of its children, to the lowest level.

    graphs: B x d. prototypes: L x K x d, lowest level first. alive: L x K, which of them are there. parent:
    L x K, of each prototype the position of its parent one level up; the top level's are not read. Returns
    B x L. "sample" draws in proportion to exp(cos / temperature), from torch's own generator; "best" takes
    the most similar.
    """
    logits = unit(graphs) @ unit(prototypes).mT / temperature  # L x B x K
    levels = len(prototypes)
    path = torch.empty(len(graphs), levels, dtype=torch.int64, device=graphs.device)
    allowed = alive[-1].expand(len(graphs), -1)
    for level in range(levels - 1, -1, -1):
        if level < levels - 1:
            allowed = alive[level] & (parent[level] == path[:, level + 1, None])
        scores = logits[level].masked_fill(~allowed, -torch.inf)
        if search == "sample":  # with Gumbel noise, the largest is a draw from the softmax
            waits = torch.empty_like(scores).exponential_()
            scores = scores - waits.clamp_(min=torch.finfo(waits.dtype).tiny).log_()
        path[:, level] = scores.argmax(1)
    return path


def path_contrast(
    graphs: Tensor,
    prototypes: Tensor,
    alive: Tensor,
    parent: Tensor,
    path: Tensor,
    *,
    temperature: float = 0.04,
    rivals: Rivals = "level",
) -> Tensor:
    """Draw each graph to the prototypes of its path, and each of these to its parent, from all others.

    graphs: B x d, prototypes: L x K x d, alive and parent: L x K, path: B x L. Returns a scalar, the mean
    over graphs of the sum over levels of -log softmax(cos(graph, c) / temperature) at the path's c, and over
    all but the top level of the same for the path's prototype among those one level up. With "siblings" a
    graph tells the path's c only from the children of the same parent.
    """
    rows, centres = unit(graphs), unit(prototypes)
    total = graphs.new_zeros(len(graphs))
    for level in range(len(prototypes)):
        among = alive[level]
        if rivals == "siblings" and level + 1 < len(prototypes):
            among = among & (parent[level] == path[:, level + 1, None])
        total = total + _surprise(rows @ centres[level].mT, among, path[:, level], temperature)
        if level + 1 < len(prototypes):
            own = centres[level].index_select(0, path[:, level])
            up = own @ centres[level + 1].mT
            total = total + _surprise(up, alive[level + 1], path[:, level + 1], temperature)
    return total.sum() / max(len(graphs), 1)


def _surprise(cosines: Tensor, among: Tensor, chosen: Tensor, temperature: float) -> Tensor:
    """B: -log of the share of the chosen column among those (K or B x K) that count."""
    logits = (cosines / temperature).masked_fill(~among, -torch.inf)
    return logits.logsumexp(1) - logits.gather(1, chosen[:, None]).flatten()
