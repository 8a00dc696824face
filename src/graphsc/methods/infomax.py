"""Infomax (DGI): a node recognises the summary of its own graph (Velickovic et al., ICLR 2019).

As Hu et al. (ICLR 2020) pre-train it on many graphs: the negative is the summary of the next graph in the
batch. The original, which has one graph only, shuffles its nodes instead.

    s_b = sigmoid(mean of the nodes of graph b),  R_ib = l_i W s_b,  g = the graph of node i
    L = 1/N sum_i -log sigmoid(R_ig) - log sigmoid(-R_i,g+1)
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.readout import pool
from graphsc.losses import pair_bce, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.pretraining import HU_MOLECULES, HU_TRAINING
from graphsc.methods.registry import METHODS, MethodEntry


class Infomax(TrainedMethod):
    """Nodes against graph summaries, by a bilinear score."""

    def __init__(self, encoder: nn.Module, *, batch_norm_embedding: BatchNormEmbedding = "uncentred") -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        width = self.graph_width
        self.bilinear = nn.Parameter(torch.empty(width, width).uniform_(-(width**-0.5), width**-0.5))

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Node and graph vectors of one pass.

        Returns:
            "anchor" (B x D), graphs by the encoder's readout; "mean" (B x D), the means of their nodes;
            "size" (B), their numbers of nodes; "local" (N x D), the nodes in the order of their graphs.
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
        # The product with W per graph, not per node; nothing is as large as N x B.
        queries = encoded["mean"].sigmoid() @ self.bilinear.mT
        sizes = encoded["size"].long()
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
        "transfer: tell the summary of a node's own graph from another graph's (DGI)",
        contrast="nodes with the summary of their graph",
        negatives="the next graph of the batch",
        passes=1,
        settings={"training.learning_rate": 0.001},
        presets={"published": HU_TRAINING, "molecules": HU_MOLECULES},
    )
)
