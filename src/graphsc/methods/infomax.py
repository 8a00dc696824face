"""Infomax: a node is to know the summary of its own graph from that of another (Deep Graph Infomax).

As Hu et al. (ICLR 2020) pre-train it on many graphs: the wrong summary is that of the next graph in the
batch, where Velickovic et al. (ICLR 2019), with one graph only, shuffle its nodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.readout import pool
from graphsc.losses import pair_bce, roc_auc
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.registry import METHODS, MethodEntry

# How all four pre-trainings of Hu et al. are run.
PUBLISHED: Mapping[str, object] = {
    "bn": "running",
    "training.learning_rate": 1e-3,
    "training.batch_size": 256,
    "training.epochs": 100,
}


class Infomax(TrainedMethod):
    """Node against summary, by a bilinear score."""

    def __init__(self, encoder: nn.Module, *, bn: Literal["reestimate", "running"] = "reestimate") -> None:
        super().__init__()
        check_node_level(encoder)
        self.encoder = encoder
        self.bn = bn
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        self.bilinear = nn.Parameter(torch.empty(width, width).uniform_(-(width**-0.5), width**-0.5))

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Node and graph vectors of one pass.

        "anchor" (B x D) are the graphs as the readout has them, "mean" (B x D) the means of their nodes,
        which may be the same, "size" (B) their numbers of nodes, "local" (N x D) the nodes in the order of
        their graphs: one row a *node*.
        """
        batch = views["anchor"]
        local, graphs = nodes_and_graphs(self.encoder, batch)
        is_mean = getattr(self.encoder, "readout", None) == "mean"
        mean = graphs if is_mean else pool(batch, local, "mean")
        return {"anchor": graphs, "mean": mean, "local": local, "size": batch.ptr.diff()}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """-log sigmoid(l W s) for the own summary, -log sigmoid(-l W s) for the next graph's."""
        return {"information": pair_bce(*self._scores(encoded))}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a node scores its own graph above another."""
        return Pretext("AUC of a node's own summary against another", roc_auc(*self._scores(encoded)), 0.5)

    def _scores(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """N scores with the own summary, and N with the next graph's where there is another graph."""
        local = encoded["local"]
        queries = encoded["mean"].sigmoid() @ self.bilinear.mT
        sizes = encoded["size"].long()
        # A row a graph first, then a row a node: the product is small, and nothing is as large as N x B.
        own = queries.repeat_interleave(sizes, 0, output_size=len(local))
        positive = (local * own).sum(1)
        if len(queries) < 2:
            return positive, positive[:0]
        other = queries.roll(-1, 0).repeat_interleave(sizes, 0, output_size=len(local))
        return positive, (local * other).sum(1)


METHODS.register("infomax")(
    MethodEntry(
        Infomax,
        "Deep Graph Infomax; Strategies for Pre-training Graph Neural Networks",
        2020,
        "transfer: a node knows its graph's summary from another's (DGI)",
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
