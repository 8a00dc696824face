"""BGRL: bootstrapped graph latents (Thakoor et al., ICLR 2022), in its graph-level form.

Two views go through an encoder and through a target, a moving average of the encoder without gradients. From
a node of one view a predictor predicts the target's vector of its whole graph in the other view. There are no
negatives:

    q_i = p(node i of one view),  t_g = target(graph g of the other view),  g: the graph of node i
    L = 1/N sum_i 2 - cos(q_i, t_g) - cos(q'_i, t'_g),  with ' for exchanged views
    target <- m target + (1 - m) encoder,  m = 1 - (1 - m_0) (1 + cos(pi progress)) / 2
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level
from graphsc.encoders.batch_norm import BatchNorm
from graphsc.encoders.gin import linear
from graphsc.losses import byol_cosine
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews, encode_chosen_nodes
from graphsc.methods.momentum import MomentumCopy, check_momentum
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.dropping import check_drop_rate, drop_edges_and_features
from graphsc.views.sampling import choose_nodes

# PyGCL's example of the graph-level form; the authors train on nodes only.
PUBLISHED: Mapping[str, object] = {
    "edge_rates": [0.2, 0.2],
    "feature_rates": [0.1, 0.1],
    "rising": False,
    "max_nodes": None,
    "encoder.depth": 2,
    "encoder.width": 32,
    "encoder.layers": "last",
    "training.learning_rate": 0.01,
    "training.epochs": 100,
}


class BGRL(TrainedMethod):
    """Nodes predict a moving-average encoder's vector of their graph in another view."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        edge_rates: tuple[float, float] = (0.3, 0.2),  # share of edges that the two views lose
        feature_rates: tuple[float, float] = (0.3, 0.4),  # the same of feature columns
        momentum: float = 0.99,  # m_0, the share of the target that a step keeps
        rising: bool = True,  # the momentum rises to one over training
        max_nodes: int | None = 1024,  # of a batch that predict, drawn per step; None: all
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        check_momentum(momentum)
        for rate in (*edge_rates, *feature_rates):
            check_drop_rate(rate)
        if max_nodes is not None and max_nodes < 1:
            raise ConfigError(f"max_nodes must be at least 1, not {max_nodes}; leave it out to take all")
        self.edge_rates = edge_rates
        self.feature_rates = feature_rates
        self.momentum = momentum
        self.rising = rising
        self.max_nodes = max_nodes
        width = self.graph_width
        self.predictor = nn.Sequential(
            linear(width, width), BatchNorm(width), nn.PReLU(), linear(width, width)
        )
        self.target = MomentumCopy(encoder)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Two views of the graphs; sampled besides: "chosen", which marks the nodes that predict."""
        rates = zip(("anchor", "positive"), self.edge_rates, self.feature_rates, strict=True)
        views = {
            name: drop_edges_and_features(batch, edges, features, generator)
            for name, edges, features in rates
        }
        return SampledViews(views, chosen=choose_nodes(batch, self.max_nodes, generator))

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors by both encoders, and the chosen nodes.

        Returns:
            The result of `encode_chosen_nodes`, and "target" and "target_copy" (B x D): the target's graphs
            of the two views.
        """
        return {
            **encode_chosen_nodes(self.encoder, views),
            "target": self.target(views["anchor"]),
            "target_copy": self.target(views["positive"]),
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Nodes of each view against the target's graphs of the other; one predictor, a pass per view."""
        loss = self._distance(encoded, "nodes", "target_copy") + self._distance(encoded, "copies", "target")
        return {"bootstrap": loss / 2}

    def _distance(self, encoded: Encoded, nodes: str, target: str) -> Tensor:
        rows, sizes = encoded[nodes], encoded["size"].long()
        own = encoded[target].repeat_interleave(sizes, 0, output_size=len(rows))
        return byol_cosine(self.predictor(rows), own)

    def after_step(self, encoded: Encoded, progress: float) -> None:
        """Move the target towards the encoder, by less and less if the momentum rises."""
        left = (1 + math.cos(math.pi * progress)) / 2 if self.rising else 1.0
        self.target.update(self.encoder, 1 - (1 - self.momentum) * left)


METHODS.register("bgrl")(
    MethodEntry(
        BGRL,
        "Large-Scale Representation Learning on Graphs via Bootstrapping",
        2021,
        "nodes predict a moving-average encoder's vector of their graph, without negatives",
        contrast="a node with its graph in another view",
        augmentation="edges and features dropped",
        passes=4,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
