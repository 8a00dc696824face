"""EdgePred: nodes that an edge joins score higher together than nodes that none joins.

The edge prediction of Hamilton et al. (NeurIPS 2017) as Hu et al. (ICLR 2020) pre-train it on molecules.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.losses import pair_bce, roc_auc
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.infomax import PUBLISHED as TRAINING
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import pointer
from graphsc.views.operations import absent_pairs, edge_pairs

PUBLISHED: Mapping[str, object] = {**TRAINING, "scaled": False}


class EdgePred(TrainedMethod):
    """Edges against pairs without an edge, by the product of the two nodes' vectors."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        negatives: float = 1.0,  # absent pairs for each edge of a graph, as far as it has so many
        # Products over the root of the width. As published, without, the first losses of 300 dimensions are
        # forty times that of guessing, and the shortest way down is to make all vectors zero.
        scaled: bool = True,
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_node_level(encoder)
        if negatives <= 0:
            raise ConfigError(f"negatives must be above zero, not {negatives}")
        self.encoder = encoder
        self.negatives = negatives
        self.scaled = scaled
        self.bn = bn

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and the same nodes joined by pairs that are not joined, drawn without repetition."""
        pairs, absent = edge_pairs(batch), absent_pairs(batch)
        wanted = (pairs.ptr.diff() * self.negatives).ceil().long()
        source, destination = absent.draw(torch.minimum(wanted, absent.counts), generator)
        # They come in the order in which a batch has its edges.
        rowptr = pointer(torch.bincount(destination, minlength=batch.num_nodes)).int()
        joined = replace(
            batch, source=source, rowptr=rowptr, undirected=False, sorted_sources=True, edge_codes=None,
            edge_floats=None, edge_weight=None,
        )  # fmt: skip
        return {"anchor": batch, "absent": joined}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors "anchor" (B x D), and one score a pair: "edges" (P) and "absent" (Q)."""
        batch, absent = views["anchor"], views["absent"]
        nodes, graphs = nodes_and_graphs(self.encoder, batch)
        pairs = edge_pairs(batch)
        # A loop is no pair of nodes.
        real = pairs.source != pairs.destination
        return {
            "anchor": graphs,
            "edges": self._products(nodes, pairs.source[real], pairs.destination[real]),
            "absent": self._products(nodes, absent.source, absent.destination),
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """-log sigmoid(h_u h_v) over edges, -log sigmoid(-h_u h_v) over absent pairs, means of both."""
        return {"edges": pair_bce(encoded["edges"], encoded["absent"])}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often an edge scores above a pair without one."""
        score = roc_auc(encoded["edges"], encoded["absent"])
        return Pretext("AUC of edges against pairs without one", score, 0.5)

    def _products(self, nodes: Tensor, source: Tensor, destination: Tensor) -> Tensor:
        """One product a pair, in full precision: sums of hundreds of terms."""
        if nodes.dtype is not torch.float64:
            nodes = nodes.float()
        found = (nodes.index_select(0, source) * nodes.index_select(0, destination)).sum(1)
        return found / math.sqrt(nodes.shape[1]) if self.scaled else found


METHODS.register("edgepred")(
    MethodEntry(
        EdgePred,
        "Strategies for Pre-training Graph Neural Networks",
        2020,
        "transfer: edges told from pairs without one",
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
