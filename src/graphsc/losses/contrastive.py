"""Contrastive losses on cosine similarities as single methods have them; the standard ones are in `info_nce`.

`graphcl_nt_xent` is used by GraphCL and its successors, `curriculum_contrast` by CuCo, `queue_contrast` by
GCC, `counterfactual_contrast` by CGC, `ordered_contrast` by GraphSC-plus, `independence` and
`joint_rationale_loss` by RGCL, and the losses on prototypes and masked nodes by GraphLoG.
"""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from graphsc.losses.triplet import l2_normalise

Positives = Literal["own", "hidden"]
Search = Literal["sample", "best"]
Negatives = Literal["level", "siblings"]


def graphcl_nt_xent(
    anchor: Tensor,
    other: Tensor,
    *,
    temperature: float = 0.2,
    positive_in_denominator: bool = False,
    symmetric: bool = False,
    negatives: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """NT-Xent as GraphCL has it (You et al., NeurIPS 2020, Eq. 3), without the positive in the denominator.

    The mean over i of -log(S_ii / sum_{j != i} S_ij) with S_ij = exp(cos(anchor_i, other_j) / temperature).
    A zero row has cosine 0 with all others and no gradient.

    Args:
        anchor: B x d.
        other: B x d; row i of both is graph i.
        temperature: Of the softmax.
        positive_in_denominator: Whether the sum includes j = i; the loss is then `info_nce`.
        symmetric: Average with the loss of the exchanged views.
        negatives: Number of graphs in the sum, drawn per row without replacement; None for all B - 1.
        generator: For drawing negatives.

    Returns:
        A scalar, at least `graphcl_nt_xent_floor`; zero for a batch of one graph.
    """
    _check_temperature(temperature)
    if negatives is not None and negatives < 1:
        raise ValueError(f"negatives must be at least 1, not {negatives}; leave it out to take all")
    if len(anchor) != len(other):
        raise ValueError(f"the views must have the same graphs, but have {len(anchor)} and {len(other)}")
    if len(anchor) < 2:
        # Part of the autograd graph of both, so that it can be differentiated.
        return (anchor.sum() + other.sum()) * 0.0
    logits = l2_normalise(anchor) @ l2_normalise(other).mT / temperature
    losses = _row_losses(logits, positive_in_denominator, negatives, generator)
    if symmetric:
        losses = (losses + _row_losses(logits.mT, positive_in_denominator, negatives, generator)) / 2
    return losses.mean()


def graphcl_nt_xent_floor(batch: int, *, temperature: float = 0.2) -> float:
    """The minimum of `graphcl_nt_xent` for B = `batch` > 1 graphs.

    log(B - 1) - B / ((B - 1) temperature), reached when the two views of each graph coincide and the B points
    are the corners of a regular simplex.
    """
    return math.log(batch - 1) - batch / ((batch - 1) * temperature)


def _row_losses(
    logits: Tensor, positive_in_denominator: bool, negatives: int | None, generator: torch.Generator | None
) -> Tensor:
    """B: the loss of each row of a B x B matrix of logits, with the positives on the diagonal."""
    size = len(logits)
    excluded = torch.eye(size, dtype=torch.bool, device=logits.device)
    if negatives is not None and negatives < size - 1:
        keys = torch.rand(size, size, device=logits.device, generator=generator).masked_fill_(excluded, -1.0)
        drawn = keys.topk(negatives, sorted=False).indices
        excluded = torch.ones_like(excluded).scatter_(1, drawn, False)
    if positive_in_denominator:
        excluded = excluded.fill_diagonal_(False)
    return logits.masked_fill(excluded, -torch.inf).logsumexp(1) - logits.diagonal()


def curriculum_contrast(
    anchor: Tensor,
    positive: Tensor,
    memory: Tensor,
    own: Tensor | None = None,
    *,
    share: float = 1.0,
    count: int | None = None,
    temperature: float = 0.2,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Contrast two views of each graph with the easiest vectors of a memory.

    The mean over i of -log(exp(p_i) / (exp(p_i) + sum over j in N_i of exp(s_ij))) with
    p_i = cos(anchor_i, positive_i) / temperature and s_ij = cos(anchor_i, memory_j) / temperature. N_i is
    drawn from the share of the memory that is least similar to anchor i; the memory gets no gradient.

    Args:
        anchor: B x d.
        positive: B x d; row i of both is graph i.
        memory: M x d.
        own: B, the row of the memory that is graph i itself and no negative, or -1.
        share: The share of the other graphs that may be negatives, the easiest; at least `count` of them.
        count: Negatives per row, drawn without replacement; None for the whole share.
        temperature: Of the softmax.
        generator: For drawing negatives.

    Returns:
        A scalar; zero where there are no negatives.
    """
    _check_temperature(temperature)
    if not 0 <= share <= 1 or (count is not None and count < 1):
        raise ValueError("share must lie between 0 and 1, and count must be at least 1")
    anchor, positive = l2_normalise(anchor), l2_normalise(positive)
    memory = l2_normalise(memory.detach())
    agreement = (anchor * positive).sum(1) / temperature
    candidates = len(memory) if own is None else len(memory) - 1
    easiest = min(max(math.ceil(share * candidates), count or 1), candidates)
    if easiest < 1 or not len(anchor):
        return agreement.sum() * 0.0
    with torch.no_grad():
        hardness = anchor @ memory.mT
        if own is not None:
            rows = torch.arange(len(own), device=own.device)[own >= 0]
            hardness[rows, own[rows]] = torch.inf
        if count is None or count >= easiest:
            drawn = hardness.topk(easiest, largest=False, sorted=False).indices
        else:
            # Uniform keys below the quantile: a draw from the sorted easiest without sorting.
            limit = hardness.kthvalue(easiest, dim=1, keepdim=True).values
            keys = torch.rand(hardness.shape, device=hardness.device, generator=generator)
            drawn = keys.masked_fill_(hardness > limit, -1.0).topk(count, sorted=False).indices
    negatives = torch.einsum("bd,bkd->bk", anchor, _rows(memory, drawn)) / temperature
    return (torch.cat([agreement[:, None], negatives], 1).logsumexp(1) - agreement).mean()


def queue_contrast(
    query: Tensor, key: Tensor, memory: Tensor, allowed: Tensor, *, temperature: float = 0.07
) -> Tensor:
    """Contrast each query with its own key and with the vectors of a memory.

    The mean over i of -log(exp(p_i) / (exp(p_i) + sum over allowed j of exp(s_ij))) with
    p_i = cos(query_i, key_i) / temperature and s_ij = cos(query_i, memory_j) / temperature.

    Args:
        query: B x d.
        key: B x d.
        memory: M x d.
        allowed: B x M, bool: which vectors are negatives of which query.
        temperature: Of the softmax.

    Returns:
        A scalar; zero where there are no queries or no negatives.
    """
    _check_temperature(temperature)
    query = l2_normalise(query)
    agreement = (query * l2_normalise(key)).sum(1) / temperature
    scores = (query @ l2_normalise(memory).mT / temperature).masked_fill(~allowed, -torch.inf)
    losses = torch.cat([agreement[:, None], scores], 1).logsumexp(1) - agreement
    return losses.sum() / max(len(losses), 1)


def ordered_contrast(anchor: Tensor, weak: Tensor, strong: Tensor, *, temperature: float = 0.2) -> Tensor:
    """Contrast each graph's weak view with the weak views of other graphs and with its own strong view.

    The mean over i of -log(exp(s_ii) / (sum_j exp(s_ij) + exp(t_i))) with
    s_ij = cos(anchor_i, weak_j) / temperature and t_i = cos(anchor_i, strong_i) / temperature. Row i of each
    view (B x d) is graph i.
    """
    a, w, s = l2_normalise(anchor), l2_normalise(weak), l2_normalise(strong)
    others = a @ w.mT
    own = (a * s).sum(-1, keepdim=True)
    logits = torch.cat([others, own], dim=1) / temperature
    return cross_entropy(logits, torch.arange(len(a), device=a.device))


def counterfactual_contrast(
    anchor: Tensor,
    positive: Tensor,
    counterfactuals: Tensor,
    valid: Tensor,
    *,
    temperature: float = 0.2,
    others: bool = True,
) -> Tensor:
    """Contrast each graph's view with counterfactuals of the graph, and with the views of other graphs (CGC).

    The mean over i of -log(S_ii / (S_ii + sum over valid m of exp(cos(anchor_i, counterfactuals_mi)
    / temperature) + sum_{j != i} S_ij)), with S = exp(cos(anchor, positive) / temperature).

    Args:
        anchor: B x d.
        positive: B x d; row i of both is graph i.
        counterfactuals: M x B x d.
        valid: M x B, which of them are negatives.
        temperature: Of the softmax.
        others: Whether the last sum is there.

    Returns:
        A scalar, not negative; zero for graphs without negatives.
    """
    _check_temperature(temperature)
    rows = l2_normalise(anchor) / temperature
    agreement = rows @ l2_normalise(positive).mT
    own = agreement.diagonal()[:, None]
    negative = (rows * l2_normalise(counterfactuals)).sum(2).masked_fill(~valid, -torch.inf).mT
    logits = torch.cat([agreement if others else own, negative], dim=1)
    return (logits.logsumexp(1) - own.flatten()).sum() / max(len(rows), 1)


def independence(anchor: Tensor, positive: Tensor, complement: Tensor, *, temperature: float = 0.2) -> Tensor:
    """RGCL's independence loss: contrast a graph's rationale with the complements of all graphs.

    The mean over i of -log(S_ii / (S_ii + sum_j C_ij)), where S = exp(cos(anchor, positive) / temperature),
    and C is the same for the complements. Each of the three is B x d. A zero row has cosine 0 with all others
    and no gradient.
    """
    agreement, others = _rationale_logits(anchor, positive, complement, temperature)
    return -_log_fraction(agreement.diagonal(), others).mean()


def joint_rationale_loss(
    anchor: Tensor, positive: Tensor, complement: Tensor, *, weight: float = 0.1, temperature: float = 0.2
) -> Tensor:
    """RGCL's sufficiency and independence in one logarithm, as in its published code.

    The mean over i of -log(S_ii / sum_j S_ij + weight * I_i), where I_i is the fraction inside the logarithm
    of `independence`. At least -log(1 + weight), which is negative.
    """
    agreement, others = _rationale_logits(anchor, positive, complement, temperature)
    first = agreement.diagonal() - agreement.logsumexp(1)
    if weight == 0:
        return -first.mean()
    second = _log_fraction(agreement.diagonal(), others) + math.log(weight)
    return -torch.logaddexp(first, second).mean()


def _rationale_logits(
    anchor: Tensor, positive: Tensor, complement: Tensor, temperature: float
) -> tuple[Tensor, Tensor]:
    _check_temperature(temperature)
    rows = l2_normalise(anchor) / temperature
    return rows @ l2_normalise(positive).mT, rows @ l2_normalise(complement).mT


def _log_fraction(agreement: Tensor, others: Tensor) -> Tensor:
    """B: log(S_ii / (S_ii + sum_j C_ij)) from the logits."""
    return agreement - torch.logaddexp(agreement, others.logsumexp(1))


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
    """Assign each graph a path in a tree of prototypes, from the top level down to the lowest.

    Args:
        graphs: B x d.
        prototypes: L x K x d, lowest level first.
        alive: L x K, which prototypes exist.
        parent: L x K, index of each prototype's parent one level up; unused for the top level.
        temperature: Of the softmax.
        search: "sample" draws in proportion to exp(cos / temperature) from torch's default generator; "best"
            takes the most similar prototype.

    Returns:
        B x L, the prototype of each graph on each level.
    """
    logits = l2_normalise(graphs) @ l2_normalise(prototypes).mT / temperature  # L x B x K
    levels = len(prototypes)
    path = torch.empty(len(graphs), levels, dtype=torch.int64, device=graphs.device)
    allowed = alive[-1].expand(len(graphs), -1)
    for level in range(levels - 1, -1, -1):
        if level < levels - 1:
            allowed = alive[level] & (parent[level] == path[:, level + 1, None])
        scores = logits[level].masked_fill(~allowed, -torch.inf)
        if search == "sample":  # with Gumbel noise, the maximum is a sample from the softmax
            noise = torch.empty_like(scores).exponential_()
            scores = scores - noise.clamp_(min=torch.finfo(noise.dtype).tiny).log_()
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
    negatives: Negatives = "level",
) -> Tensor:
    """Contrast each graph with the prototypes of its path, and each of these with its parent.

    The mean over graphs of the sum over levels of -log softmax(cos(graph, c) / temperature) at the path's
    prototype c, and over all but the top level of the same for c among the prototypes one level up.

    Args:
        graphs: B x d.
        prototypes: L x K x d, as in `search_path`.
        alive: L x K, as in `search_path`.
        parent: L x K, as in `search_path`.
        path: B x L, from `search_path`.
        temperature: Of the softmax.
        negatives: Prototypes that a graph's own is contrasted with: all of its "level", or only its
            "siblings", the children of the same parent.
    """
    rows, centres = l2_normalise(graphs), l2_normalise(prototypes)
    total = graphs.new_zeros(len(graphs))
    for level in range(len(prototypes)):
        candidates = alive[level]
        if negatives == "siblings" and level + 1 < len(prototypes):
            candidates = candidates & (parent[level] == path[:, level + 1, None])
        total = total + _prototype_nll(rows @ centres[level].mT, candidates, path[:, level], temperature)
        if level + 1 < len(prototypes):
            own = centres[level].index_select(0, path[:, level])
            up = own @ centres[level + 1].mT
            total = total + _prototype_nll(up, alive[level + 1], path[:, level + 1], temperature)
    return total.sum() / max(len(graphs), 1)


def _prototype_nll(cosines: Tensor, candidates: Tensor, target: Tensor, temperature: float) -> Tensor:
    """B: negative log-likelihood of the target column among the candidates (K or B x K)."""
    logits = (cosines / temperature).masked_fill(~candidates, -torch.inf)
    return logits.logsumexp(1) - logits.gather(1, target[:, None]).flatten()


def masked_node_contrast(
    nodes: Tensor,
    hidden: Tensor,
    which: Tensor,
    ptr: Tensor,
    *,
    temperature: float = 0.04,
    positives: Positives = "own",
) -> Tensor:
    """Contrast each masked node with the unmasked nodes of its own graph.

    Args:
        nodes: N x d, nodes of the unmasked graphs; those of graph g are ptr[g]:ptr[g + 1].
        hidden: M x d, the masked nodes, encoded in the masked graphs.
        which: M, sorted; the index among the N of each masked node.
        ptr: G + 1.
        temperature: Of the softmax.
        positives: "own": only the node itself is positive. "hidden": all masked nodes of its graph are.

    Returns:
        M losses -log(S_jj / sum over i in the graph of j of S_ij), with
        S_ij = exp(cos(nodes_i, hidden_j) / temperature).
    """
    _check_temperature(temperature)
    if not len(which):
        return hidden.sum(1)
    nodes, hidden = l2_normalise(nodes), l2_normalise(hidden) / temperature
    is_hidden = torch.zeros(len(nodes), dtype=torch.bool, device=nodes.device)
    is_hidden[which] = True
    hidden_ptr = torch.searchsorted(which, ptr)
    parts, places = [], []
    for graphs in _size_groups(ptr.diff(), hidden_ptr.diff()):
        index, is_node = _padded(ptr, graphs)
        place, is_real = _padded(hidden_ptr, graphs)
        scores = torch.bmm(_rows(hidden, place), _rows(nodes, index).mT)  # graphs x hidden x nodes
        losses = scores.masked_fill(~is_node[:, None], -torch.inf).logsumexp(2)[is_real]
        if positives == "hidden":
            is_positive = (is_node & is_hidden[index])[:, None]
            losses = losses - scores.masked_fill(~is_positive, -torch.inf).logsumexp(2)[is_real]
        parts.append(losses)
        places.append(place[is_real])
    result = torch.cat(parts)[torch.cat(places).argsort()]
    return result if positives == "hidden" else result - (nodes[which] * hidden).sum(1)


def _size_groups(sizes: Tensor, counts: Tensor) -> list[Tensor]:
    """The graphs with a masked node, grouped by size so that padding at most doubles a group."""
    graphs = (counts > 0).nonzero().flatten()
    scale = sizes[graphs].double().log2().ceil().long()
    return [graphs[scale == value] for value in sorted(set(scale.tolist()))]


def _padded(ptr: Tensor, graphs: Tensor) -> tuple[Tensor, Tensor]:
    """Positions ptr[g] ... ptr[g + 1] - 1 of each graph as a padded row, and a mask of the real entries."""
    starts, sizes = ptr[graphs], ptr[graphs + 1] - ptr[graphs]
    steps = torch.arange(int(sizes.max()), device=ptr.device)
    return torch.minimum(starts[:, None] + steps, ptr[-1] - 1), steps < sizes[:, None]


def _rows(values: Tensor, index: Tensor) -> Tensor:
    return values.index_select(0, index.flatten()).view(*index.shape, -1)


def _check_temperature(temperature: float) -> None:
    if temperature <= 0:
        raise ValueError(f"temperature must be above zero, not {temperature}")
