"""A hidden node is to be found again among the nodes of its own graph: GraphLoG's contrast within graphs."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from graphsc.losses.space import unit

Positives = Literal["own", "hidden"]


def within_graphs(
    nodes: Tensor,
    hidden: Tensor,
    which: Tensor,
    ptr: Tensor,
    *,
    temperature: float = 0.04,
    positives: Positives = "own",
) -> Tensor:
    """For each hidden node, the cross-entropy of finding it among the nodes of its graph as they were.

    nodes: N x d, of the graphs as they were, those of graph g at ptr[g]:ptr[g + 1]. hidden: M x d, of the
    same nodes once some are hidden. which: M, rising, the position among the N of each. Returns M losses
    -log(S_jj / sum over i in the graph of j of S_ij), S_ij = exp(cos(nodes_i, hidden_j) / temperature).
    With "hidden" the numerator is the sum of S_ij over all hidden nodes i of the graph.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be above zero, not {temperature}")
    if not len(which):
        return hidden.sum(1)
    nodes, hidden = unit(nodes), unit(hidden) / temperature
    is_hidden = torch.zeros(len(nodes), dtype=torch.bool, device=nodes.device)
    is_hidden[which] = True
    first = torch.searchsorted(which, ptr)  # the first hidden node of each graph
    parts, places = [], []
    for graphs in _alike(ptr.diff(), first.diff()):
        index, there = _padded(ptr, graphs)
        place, real = _padded(first, graphs)
        scores = torch.bmm(_rows(hidden, place), _rows(nodes, index).mT)  # graphs x hidden x nodes
        every = scores.masked_fill(~there[:, None], -torch.inf).logsumexp(2)[real]
        if positives == "hidden":
            right = (there & is_hidden[index])[:, None]
            every = every - scores.masked_fill(~right, -torch.inf).logsumexp(2)[real]
        parts.append(every)
        places.append(place[real])
    found = torch.cat(parts)[torch.cat(places).argsort()]
    return found if positives == "hidden" else found - (nodes[which] * hidden).sum(1)


def _alike(sizes: Tensor, counts: Tensor) -> list[Tensor]:
    """The graphs with a hidden node, in groups of like size: padding a group at most doubles it."""
    graphs = (counts > 0).nonzero().flatten()
    scale = sizes[graphs].double().log2().ceil().long()
    return [graphs[scale == value] for value in sorted(set(scale.tolist()))]


def _padded(ptr: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Positions ptr[g] ... ptr[g + 1] - 1 of each graph as a row, and which of its entries are such."""
    starts, sizes = ptr[graphs], ptr[graphs + 1] - ptr[graphs]
    steps = torch.arange(int(sizes.max()), device=ptr.device)
    return torch.minimum(starts[:, None] + steps, ptr[-1] - 1), steps < sizes[:, None]


def _rows(values: Tensor, index: Tensor) -> Tensor:
    return values.index_select(0, index.flatten()).view(*index.shape, -1)
