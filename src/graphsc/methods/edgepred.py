"""EdgePred: tell edges from pairs of nodes without one (Hamilton et al., NeurIPS 2017).

As Hu et al. (ICLR 2020) pre-train it on molecules. E are the edges, A absent pairs of the same graphs:

    L = 1/|E| sum_E -log sigmoid(h_u h_v) + 1/|A| sum_A -log sigmoid(-h_u h_v)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.losses import pair_bce, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.pretraining import HU_MOLECULES, HU_TRAINING
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import pointer
from graphsc.views.operations import absent_pairs, edge_pairs

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
        """The graphs, and the same nodes joined by absent pairs, drawn without repetition."""
        pairs, absent = edge_pairs(batch), absent_pairs(batch)
        wanted = (pairs.ptr.diff() * self.negatives).ceil().long()
        source, destination = absent.draw(torch.minimum(wanted, absent.counts), generator)
        # The pairs are already in the order in which a batch stores its edges.
        rowptr = pointer(torch.bincount(destination, minlength=batch.num_nodes)).int()
        joined = replace(
            batch, source=source, rowptr=rowptr, undirected=False, sorted_sources=True, edge_codes=None,
            edge_floats=None, edge_weight=None,
        )  # fmt: skip
        return {"anchor": batch, "absent": joined}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors "anchor" (B x D), and one score per pair: "edges" (P) and "absent" (Q)."""
        batch, absent = views["anchor"], views["absent"]
        nodes, graphs = nodes_and_graphs(self.encoder, batch)
        pairs = edge_pairs(batch)
        no_loop = pairs.source != pairs.destination
        return {
            "anchor": graphs,
            "edges": self._products(nodes, pairs.source[no_loop], pairs.destination[no_loop]),
            "absent": self._products(nodes, absent.source, absent.destination),
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """-log sigmoid(h_u h_v) over edges plus -log sigmoid(-h_u h_v) over absent pairs, a mean each."""
        return {"edges": pair_bce(encoded["edges"], encoded["absent"])}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often an edge scores above an absent pair."""
        score = roc_auc(encoded["edges"], encoded["absent"])
        return Pretext("AUC of edges against pairs without one", score, 0.5)

    def _products(self, nodes: Tensor, source: Tensor, destination: Tensor) -> Tensor:
        """One inner product per pair, in full precision because it sums hundreds of terms."""
        if nodes.dtype is not torch.float64:
            nodes = nodes.float()
        products = (nodes.index_select(0, source) * nodes.index_select(0, destination)).sum(1)
        return products / math.sqrt(nodes.shape[1]) if self.scaled else products


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
