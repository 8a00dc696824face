"""InfoNCE in its standard forms, and the contrast modes that choose its pairs.

`info_nce` and `nt_xent` are the field's: the positive is part of the denominator. GraphCL's form, without it,
is `graphsc.losses.contrastive.graphcl_nt_xent`.

A contrast mode (`graph_graph`, `node_graph`, `node_node`) makes `Pairs`; `contrast` is the loss of any pairs.
Similarities are cosines. A zero row has cosine 0 with all others and no gradient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from graphsc.losses.triplet import l2_normalise


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which rows are alike and which are not, for a loss on pairs.

    Args:
        anchor: R x d.
        sample: C x d.
        positive: R x C, bool; the samples that an anchor is to agree with.
        negative: R x C, bool; the samples that it is contrasted with. A pair may be neither.
    """

    anchor: Tensor
    sample: Tensor
    positive: Tensor
    negative: Tensor

    def scores(self) -> tuple[Tensor, Tensor]:
        """Inner products of the positive and of the negative pairs, flat, as `pair_bce` takes them."""
        products = self.anchor @ self.sample.mT
        return products[self.positive], products[self.negative]


def graph_graph(first: Tensor, second: Tensor, *, within_view: bool = False) -> Pairs:
    """Pairs of two views of each graph, B x d each: a graph's other view against all other graphs.

    Args:
        first: B x d.
        second: B x d; row i of both is graph i.
        within_view: Both views are anchors, and the other graphs of the anchor's own view are negatives too,
            as in SimCLR.
    """
    if len(first) != len(second):
        raise ValueError(f"the views must have the same rows, but have {len(first)} and {len(second)}")
    size, device = len(first), first.device
    positive = torch.eye(size, dtype=torch.bool, device=device)
    if not within_view:
        return Pairs(first, second, positive, ~positive)
    rows = torch.cat([first, second])
    other_view = positive.repeat(2, 2).fill_diagonal_(False)
    return Pairs(rows, rows, other_view, ~positive.repeat(2, 2))


def node_node(
    first: Tensor, second: Tensor, *, batch: Tensor | None = None, within_view: bool = False
) -> Pairs:
    """Pairs of two views of each node, N x d each.

    Args:
        first: N x d.
        second: N x d; row i of both is node i.
        batch: N, the graph of each node; only nodes of the same graph are then negatives.
        within_view: As in `graph_graph`; the pairs of GRACE.
    """
    pairs = graph_graph(first, second, within_view=within_view)
    if batch is None:
        return pairs
    graph = torch.cat([batch, batch]) if within_view else batch
    return Pairs(pairs.anchor, pairs.sample, pairs.positive, pairs.negative & (graph[:, None] == graph))


def node_graph(nodes: Tensor, graphs: Tensor, batch: Tensor) -> Pairs:
    """Pairs of nodes and graphs: a node belongs to its own graph and not to the others.

    Args:
        nodes: N x d.
        graphs: B x d, of the same or of another view.
        batch: N, the graph of each node.
    """
    own = batch[:, None] == torch.arange(len(graphs), device=batch.device)
    return Pairs(nodes, graphs, own, ~own)


def contrast(
    pairs: Pairs, *, temperature: float = 0.2, positive_share: float = 0.0, concentration: float = 0.0
) -> Tensor:
    """InfoNCE of any pairs, with or without corrections of its negatives.

    With s = exp(cos / temperature), P and N the positives and negatives of an anchor, the mean over anchors
    and their positives p of -log(s_p / (sum_P s + G)), where G is the sum of s over N. The corrections
    replace G as `hard_negative_info_nce` says. An anchor without a positive is left out.

    Args:
        pairs: From a contrast mode.
        temperature: Of the softmax.
        positive_share: Of the debiased loss; 0 for none.
        concentration: Of the hard-negative loss; 0 for none.

    Returns:
        A scalar; zero if no anchor has a positive.
    """
    _check_settings(temperature, positive_share, concentration)
    kept = pairs.positive.any(1)
    positive, negative = pairs.positive[kept], pairs.negative[kept]
    logits = l2_normalise(pairs.anchor)[kept] @ l2_normalise(pairs.sample).mT / temperature
    if not len(logits):
        return logits.sum()
    if positive_share == 0 and concentration == 0:
        denominator = logits.masked_fill(~(positive | negative), -torch.inf).logsumexp(1)
    else:
        denominator = _corrected(logits, positive, negative, temperature, positive_share, concentration)
    of_positives = logits.masked_fill(~positive, 0.0).sum(1) / positive.sum(1)
    return (denominator - of_positives).mean()


def _corrected(
    logits: Tensor,
    positive: Tensor,
    negative: Tensor,
    temperature: float,
    positive_share: float,
    concentration: float,
) -> Tensor:
    """R: log(sum_P s + G) with the corrected G, relative to a row's largest term so that none overflows."""
    count = negative.sum(1, dtype=logits.dtype)
    alone = count == 0  # no negatives: G is 0
    hidden = ~(negative | alone[:, None])
    masked = logits.masked_fill(hidden, -torch.inf)
    weights = (concentration * logits).masked_fill(hidden, -torch.inf).logsumexp(1) - count.clamp(min=1).log()
    of_negatives = ((1 + concentration) * masked).logsumexp(1) - weights
    of_negatives = of_negatives.masked_fill(alone, -torch.inf)
    of_positives = logits.masked_fill(~positive, -torch.inf).logsumexp(1)
    largest = torch.maximum(of_negatives, of_positives).detach()
    positives = (of_positives - largest).exp()
    expected = positive_share * count * positives / positive.sum(1)
    corrected = ((of_negatives - largest).exp() - expected) / (1 - positive_share)
    # The smallest value that the sum can take, where all cosines are -1.
    least = count * (-1 / temperature - largest).exp()
    return (positives + torch.maximum(corrected, least)).log() + largest


def info_nce(
    anchor: Tensor, positive: Tensor, *, temperature: float = 0.2, symmetric: bool = False
) -> Tensor:
    """InfoNCE between two views: mean_i -log(S_ii / sum_j S_ij), S_ij = exp(cos(a_i, p_j) / temperature).

    Args:
        anchor: B x d.
        positive: B x d; row i of both belongs together.
        temperature: Of the softmax.
        symmetric: Average with the loss of the exchanged views, as in CLIP.

    Returns:
        A scalar, never negative; zero for one row.
    """
    _check_settings(temperature)
    if len(anchor) != len(positive):
        raise ValueError(f"the views must have the same rows, but have {len(anchor)} and {len(positive)}")
    if not len(anchor):
        return anchor.sum() + positive.sum()
    logits = l2_normalise(anchor) @ l2_normalise(positive).mT / temperature
    losses = logits.logsumexp(1) - logits.diagonal()
    if symmetric:
        losses = (losses + logits.logsumexp(0) - logits.diagonal()) / 2
    return losses.mean()


def nt_xent(first: Tensor, second: Tensor, *, temperature: float = 0.2) -> Tensor:
    """NT-Xent of SimCLR (Chen et al., ICML 2020, Eq. 1), which is also the loss of GRACE.

    Each of the 2B rows is contrasted with the other 2B - 1, of which its other view is the positive.

    Args:
        first: B x d.
        second: B x d; row i of both belongs together.
        temperature: Of the softmax.

    Returns:
        A scalar, never negative; zero for one row.
    """
    return contrast(graph_graph(first, second, within_view=True), temperature=temperature)


def supervised_contrastive(embeddings: Tensor, labels: Tensor, *, temperature: float = 0.2) -> Tensor:
    """Supervised contrastive loss (Khosla et al., NeurIPS 2020, Eq. 2).

    The positives of a row are the other rows of its class. Views of one graph are rows of equal label. A row
    that is alone in its class is left out.

    Args:
        embeddings: B x d.
        labels: B, one class per row.
        temperature: Of the softmax.
    """
    if labels.shape != embeddings.shape[:1]:
        raise ValueError(f"labels must be one per row, but have the shape {tuple(labels.shape)}")
    same = labels[:, None] == labels
    positive = same.clone().fill_diagonal_(False)
    return contrast(Pairs(embeddings, embeddings, positive, ~same), temperature=temperature)


def debiased_info_nce(
    first: Tensor, second: Tensor, *, positive_share: float = 0.1, temperature: float = 0.2
) -> Tensor:
    """Debiased contrastive loss (Chuang et al., NeurIPS 2020, Eq. 7-8), for negatives that may be positives.

    The sum over the n = 2B - 2 negatives is corrected by the share of positives among them:
    G = max((sum_N s - positive_share n s_p) / (1 - positive_share), n exp(-1 / temperature)).

    Args:
        first: B x d.
        second: B x d; row i of both belongs together.
        positive_share: Probability that a negative has the class of its anchor, such as one over the number
            of classes; 0 gives `nt_xent`.
        temperature: Of the softmax.
    """
    pairs = graph_graph(first, second, within_view=True)
    return contrast(pairs, temperature=temperature, positive_share=positive_share)


def hard_negative_info_nce(
    first: Tensor,
    second: Tensor,
    *,
    concentration: float = 1.0,
    positive_share: float = 0.1,
    temperature: float = 0.2,
) -> Tensor:
    """Contrastive loss with hard negatives (Robinson et al., ICLR 2021, Eq. 4).

    As `debiased_info_nce`, but the sum over the n negatives is n sum_N s^(1 + concentration) / sum_N
    s^concentration: a negative weighs more the more similar it is to the anchor.

    Args:
        first: B x d.
        second: B x d; row i of both belongs together.
        concentration: 0 weighs all negatives alike.
        positive_share: As in `debiased_info_nce`.
        temperature: Of the softmax.
    """
    pairs = graph_graph(first, second, within_view=True)
    return contrast(
        pairs, temperature=temperature, positive_share=positive_share, concentration=concentration
    )


def _check_settings(temperature: float, positive_share: float = 0.0, concentration: float = 0.0) -> None:
    if not (temperature > 0 and math.isfinite(temperature)):
        raise ValueError(f"temperature must be above zero, not {temperature}")
    if not 0 <= positive_share < 1:
        raise ValueError(f"positive_share must be from 0 to below 1, not {positive_share}")
    if not concentration >= 0:
        raise ValueError(f"concentration must not be negative, not {concentration}")
