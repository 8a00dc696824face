"""GRACE: graph contrastive representation learning (Zhu et al., 2020), on the nodes of a batch of graphs.

Two views keep all nodes and lose edges and feature columns. A node's copy in the other view is its positive;
all other nodes of both views are negatives:

    l(u_i, v_i) = -log( S(u_i, v_i) / (S(u_i, v_i) + sum_{k != i} S(u_i, v_k) + S(u_i, u_k)) )
    S(a, b) = exp(cos(g(a), g(b)) / tau),  L = 1/(2N) sum_i l(u_i, v_i) + l(v_i, u_i)

The paper has one graph and embeds its nodes. Here nodes are pooled by the encoder's readout as for any other
method.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level
from graphsc.losses import node_contrast, retrieval_accuracy
from graphsc.losses.nodes import Weigh
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews, check_contrast, encode_chosen_nodes, projection
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import pointer
from graphsc.views.dropping import check_drop_rate, drop_edges_and_features
from graphsc.views.sampling import choose_nodes

NodeNegatives = Literal["batch", "graph"]
MAX_RETRIEVED = 1_000  # nodes to choose among in the pretext task

# The authors' settings for Cora, their first data set. They have none for collections of graphs.
PUBLISHED: Mapping[str, object] = {
    "max_nodes": None,
    "projection_width": 128,
    "encoder.depth": 2,
    "encoder.width": 128,
    "encoder.layers": "last",
    "training.learning_rate": 5e-4,
    "training.weight_decay": 1e-5,
    "training.epochs": 200,
}


class GRACE(TrainedMethod):
    """Two views of every node against all other nodes."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        edge_rates: tuple[float, float] = (0.2, 0.4),  # share of edges that the two views lose
        feature_rates: tuple[float, float] = (0.3, 0.4),  # the same of feature columns
        temperature: float = 0.4,
        negatives: NodeNegatives = "batch",  # "graph": nodes of the same graph only
        max_nodes: int | None = 384,  # of a batch that are contrasted, drawn per step; None: all
        projection_width: int = 32,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        check_contrast(temperature)
        for rate in (*edge_rates, *feature_rates):
            check_drop_rate(rate)
        if (max_nodes is not None and max_nodes < 2) or projection_width < 1:
            raise ConfigError("max_nodes must be at least 2 and projection_width at least 1")
        self.edge_rates = edge_rates
        self.feature_rates = feature_rates
        self.temperature = temperature
        self.negatives = negatives
        self.max_nodes = max_nodes
        self.head = projection(self.graph_width, projection_width, activation=nn.ELU)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Two views of the graphs; sampled besides: "chosen", which marks the nodes to contrast."""
        rates = zip(("anchor", "positive"), self.edge_rates, self.feature_rates, strict=True)
        views = {name: self._view(batch, edges, features, generator) for name, edges, features in rates}
        by_graph = self.negatives == "graph"
        chosen = choose_nodes(batch, self.max_nodes, generator, by_graph=by_graph)
        return SampledViews(views, chosen=chosen)

    def _view(
        self, batch: GraphBatch, edge_rate: float, feature_rate: float, generator: torch.Generator
    ) -> GraphBatch:
        return drop_edges_and_features(batch, edge_rate, feature_rate, generator)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of both views, and the chosen nodes; see `encode_chosen_nodes`."""
        return encode_chosen_nodes(self.encoder, views)

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The contrast of both directions, on projected nodes."""
        nodes, copies = self.head(torch.cat([encoded["nodes"], encoded["copies"]])).chunk(2)
        ptr = pointer(encoded["size"].long()) if self.negatives == "graph" else None
        return {
            "contrast": node_contrast(
                nodes, copies, temperature=self.temperature, ptr=ptr, weigh=self._weigh()
            )
        }

    def _weigh(self) -> Weigh | None:
        """Weights of the negatives; none here."""
        return None

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a node is nearest to its own copy, among at most 1,000 nodes of the batch."""
        step = -(-len(encoded["nodes"]) // MAX_RETRIEVED)
        nodes, copies = (self.head(encoded[name][::step]) for name in ("nodes", "copies"))
        return Pretext("own copy of a node nearest", retrieval_accuracy(nodes, copies), 1 / len(nodes))


METHODS.register("grace")(
    MethodEntry(
        GRACE,
        "Deep Graph Contrastive Representation Learning",
        2020,
        "two views of every node against all other nodes of the batch",
        contrast="two views of a node",
        negatives="other nodes of both views",
        augmentation="edges and features dropped",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
