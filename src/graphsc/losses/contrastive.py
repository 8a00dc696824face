"""NT-Xent: a graph is to be found again in the other view among the other graphs of its batch."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graphsc.losses.triplet import unit


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


# The weak view before the strong one, and the strong one before every other graph.


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


# RGCL's losses: a graph agrees with its rationale, and not with what the rationale left out.


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


# Prototypes in levels, the upper ones parents of the lower: where a graph belongs, and how well it does.


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


# A hidden node is to be found again among the nodes of its own graph: GraphLoG's contrast within graphs.


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
