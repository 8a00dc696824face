"""EdgePred: tell edges from pairs of nodes without one (Hamilton et al., NeurIPS 2017).

As Hu et al. (ICLR 2020) pre-train it on molecules. E are the edges, A absent pairs of the same graphs:

    L = 1/|E| sum_E -log sigmoid(h_u h_v) + 1/|A| sum_A -log sigmoid(-h_u h_v)
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.losses import pair_bce
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.pretraining import (
    HU_MOLECULES,
    HU_TRAINING,
    edge_retrieval,
    pair_products,
    with_absent_pairs,
)
from graphsc.methods.registry import METHODS, MethodEntry

PUBLISHED: Mapping[str, object] = {**HU_TRAINING, "scaled": False}
MOLECULES: Mapping[str, object] = {**HU_MOLECULES, "scaled": False}


class EdgePred(TrainedMethod):
    """Edges against absent pairs, by the inner product of the two nodes' vectors."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        negatives: float = 1.0,  # absent pairs per edge of a graph, as far as it has so many
        # Divide products by the square root of the width. Without it, as published, the initial loss of 300
        # dimensions is forty times that of guessing, and training tends to make all vectors zero.
        scaled: bool = True,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        if negatives <= 0:
            raise ConfigError(f"negatives must be above zero, not {negatives}")
        self.negatives = negatives
        self.scaled = scaled

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and the same nodes joined by absent pairs."""
        return with_absent_pairs(batch, self.negatives, generator)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors "anchor" (B x D), and one score per pair: "edges" (P) and "absent" (Q)."""
        nodes, graphs = nodes_and_graphs(self.encoder, views["anchor"])
        scale = math.sqrt(nodes.shape[1]) if self.scaled else 1.0
        products = pair_products(nodes, views)
        return {"anchor": graphs, **{name: scores / scale for name, scores in products.items()}}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """-log sigmoid(h_u h_v) over edges plus -log sigmoid(-h_u h_v) over absent pairs, a mean each."""
        return {"edges": pair_bce(encoded["edges"], encoded["absent"])}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often an edge scores above an absent pair."""
        return edge_retrieval(encoded)


METHODS.register("edgepred")(
    MethodEntry(
        EdgePred,
        "Strategies for Pre-training Graph Neural Networks",
        2020,
        "transfer: tell edges from pairs of nodes without one",
        contrast="the two ends of an edge",
        negatives="pairs of nodes without an edge",
        passes=1,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
