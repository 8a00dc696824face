"""SUBG-CON: sub-graph contrast (Jiao et al., ICDM 2020), on random nodes of every graph.

The neighbourhood of a node are the k nodes that personalised PageRank from it ranks highest. The node must
match the summary of its own neighbourhood better than another's, by a margin:

    h_i: node i, encoded in its neighbourhood;  s_i = sigmoid(mean of the neighbourhood's nodes)
    L = mean of max(0, margin - sigmoid(h_i s_i) + sigmoid(h_i s_j))
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch, join
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.readout import pool
from graphsc.losses import margin_ranking, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.base import nodes_per_graph
from graphsc.views.centrality import pagerank
from graphsc.views.sampling import smallest_per_segment
from graphsc.views.subgraph import induced_subgraphs, node_mask, random_nodes

# The authors' script: one layer of 1,024 units, 500 nodes of one network per step, and a smaller margin than
# the paper's.
PUBLISHED: Mapping[str, object] = {
    "margin": 0.5,
    "scaled": False,
    "share": 1.0,
    "encoder.depth": 1,
    "encoder.width": 1024,
    "training.learning_rate": 1e-3,
}


class SubgCon(TrainedMethod):
    """Nodes against the summaries of neighbourhoods."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        size: int = 20,  # k, nodes of a neighbourhood at most
        share: float = 0.5,  # of a graph's nodes that a neighbourhood has at most
        centres: int = 4,  # nodes per graph and step; 128 graphs then have about the paper's 500
        margin: float = 0.75,
        scaled: bool = True,  # divide products by the square root of the width; published: no
        damping: float = 0.85,  # of PageRank
        walk_steps: int = 10,  # of PageRank; no node farther away is reached
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        if size < 1 or centres < 1 or walk_steps < 1:
            raise ConfigError("size, centres and walk_steps must be at least 1")
        if not 0 < share <= 1 or not 0 < damping < 1 or not 0 < margin <= 1:
            raise ConfigError("share and margin must be above 0 up to 1, damping between 0 and 1")
        self.size = size
        self.share = share
        self.centres = centres
        self.margin = margin
        self.scaled = scaled
        self.damping = damping
        self.walk_steps = walk_steps

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The neighbourhoods of random nodes, as graphs; sampled besides: "centre", which marks these nodes.

        First one of each graph that has any nodes, then another of each, and so on.
        """
        centres = torch.stack(
            [node_mask(batch, random_nodes(batch, generator)) for _ in range(self.centres)], dim=1
        )
        ranks = pagerank(batch, centres.float(), damping=self.damping, steps=self.walk_steps)
        # Of two nodes with the same rank, the one of lower degree is nearer. The centre always stays.
        scores = (ranks / batch.in_degree.clamp(min=1)[:, None]).masked_fill_(centres, 2.0)
        sizes = nodes_per_graph(batch)
        most = (sizes * self.share).ceil().long().clamp(max=self.size)
        parts, marks = [], []
        for centre, rank, score in zip(centres.mT, ranks.mT, scores.mT, strict=True):
            inside = smallest_per_segment(-score, batch.ptr, most) & (rank > 0)
            parts.append(induced_subgraphs(batch, inside, sizes > 0))
            marks.append(centre[inside])
        return SampledViews({"anchor": join(parts)}, centre=torch.cat(marks))

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """One row for each of the M neighbourhoods.

        Returns:
            "anchor" (M x D), the neighbourhoods by the encoder's readout; "centre" (M x D), the vectors of
            their centres; "summary" (M x D), the sigmoids of the means of their nodes.
        """
        assert isinstance(views, SampledViews)  # noqa: S101 - as `views` makes them
        batch = views["anchor"]
        nodes, graphs = nodes_and_graphs(self.encoder, batch)
        summary = pool(batch, nodes, "mean").sigmoid()
        return {"anchor": graphs, "centre": nodes[views.sampled["centre"]], "summary": summary}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The hinge between the own summary and that of the next neighbourhood, of another graph."""
        positive, negative = self._scores(encoded)
        return {"margin": margin_ranking(positive.sigmoid(), negative.sigmoid(), margin=self.margin)}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a node scores its own neighbourhood above another."""
        score = roc_auc(*self._scores(encoded))
        return Pretext("AUC of a node's own neighbourhood against another", score, 0.5)

    def _scores(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """Scores with the own summary and with the next one; none if there is only one."""
        centre, summary = encoded["centre"], encoded["summary"]
        if self.scaled:
            centre = centre / math.sqrt(centre.shape[1])
        if len(centre) < 2:
            centre, summary = centre[:0], summary[:0]
        return (centre * summary).sum(1), (centre * summary.roll(-1, 0)).sum(1)


METHODS.register("subgcon")(
    MethodEntry(
        SubgCon,
        "Sub-graph Contrast for Scalable Self-Supervised Graph Representation Learning",
        2020,
        "a node matches the summary of its own neighbourhood, not another's",
        contrast="a node with the sub-graph around it",
        negatives="sub-graphs of other graphs",
        augmentation="sub-graphs by PageRank",
        passes=4,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
