"""GIC: graph InfoClust (Mavromatis and Karypis, 2020).

A node recognises the summary of its graph, as in DGI, and that of its cluster among all nodes of the batch.
The negatives h~ are the nodes of the same graphs with features exchanged at random. g is the graph of node i:

    s_g = sigmoid(mean of the nodes of g)
    r_ik = softmax over k of beta cos(h_i, mu_k),  mu_k = sum_i r_ik h_i / |h_i| / sum_i r_ik,
    z_i = sigmoid(sum_k r_ik mu_k)
    L_graph = 1/N sum_i -log sigmoid(h_i W s_g) - log sigmoid(-h~_i W s_g)
    L_cluster = 1/N sum_i -log sigmoid(h_i z_i) - log sigmoid(-h~_i z_i)
    L = alpha L_graph + (1 - alpha) L_cluster
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.losses import pair_bce, roc_auc
from graphsc.losses.triplet import l2_normalise
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.clustering import soft_assignment, soft_kmeans, weighted_means
from graphsc.methods.contrastive import SampledViews
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import flatnonzero
from graphsc.views.sampling import choose_nodes

# The authors' script, for one network: one layer of 64 units, 128 clusters, at most 2,000 epochs.
PUBLISHED: Mapping[str, object] = {
    "clusters": 128,
    "max_nodes": None,
    "sharpness": 100.0,
    "cluster_steps": 10,
    "encoder.depth": 1,
    "encoder.width": 64,
    "training.learning_rate": 1e-3,
    "training.epochs": 2000,
}


class GIC(TrainedMethod):
    """Nodes against summaries of graphs and of clusters."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        clusters: int = 32,  # K, at most a quarter of the nodes that are contrasted
        sharpness: float = 10.0,  # beta; the larger, the more a node belongs to one cluster
        cluster_steps: int = 5,  # of soft k-means, before the one with a gradient
        alpha: float = 0.5,  # weight of the graph's summary; 1 - alpha is that of the cluster's
        max_nodes: int | None = 1024,  # of a batch that are clustered and contrasted; None: all
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        if clusters < 1 or cluster_steps < 0 or sharpness <= 0:
            raise ConfigError("clusters must be at least 1, cluster_steps 0 and sharpness above 0")
        if not 0 <= alpha <= 1:
            raise ConfigError(f"alpha is a share and must lie between 0 and 1, not {alpha}")
        if max_nodes is not None and max_nodes < 1:
            raise ConfigError(f"max_nodes must be at least 1, not {max_nodes}; leave it out to take all")
        self.clusters = clusters
        self.sharpness = sharpness
        self.cluster_steps = cluster_steps
        self.alpha = alpha
        self.max_nodes = max_nodes
        width = self.graph_width
        self.bilinear = nn.Parameter(torch.empty(width, width).uniform_(-(width**-0.5), width**-0.5))

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and the same with the features of all nodes of the batch exchanged.

        Sampled besides: "chosen", which marks the nodes to contrast, and "order" (N), random numbers by which
        k-means finds its first centres.
        """
        device = generator.device
        exchanged = torch.randperm(batch.num_nodes, generator=generator, device=device)
        corrupted = replace(batch, codes=batch.codes[exchanged], floats=batch.floats[exchanged])
        return SampledViews(
            {"anchor": batch, "corrupted": corrupted},
            chosen=choose_nodes(batch, self.max_nodes, generator),
            order=torch.rand(batch.num_nodes, generator=generator, device=device),
        )

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors, and the n chosen nodes of both views.

        Returns:
            "anchor" (B x D), graphs by the encoder's readout; "mean" (B x D), the same divided by the number
            of nodes where the readout is a sum; "size" (B), the numbers of chosen nodes; "local" and
            "corrupted" (n x D), the chosen nodes in the order of their graphs; "order" (n).
        """
        assert isinstance(views, SampledViews)  # noqa: S101 - as `views` makes them
        batch, chosen = views["anchor"], flatnonzero(views.sampled["chosen"])
        local, graphs = nodes_and_graphs(self.encoder, batch, rows=chosen)
        corrupted, _ = nodes_and_graphs(self.encoder, views["corrupted"], rows=chosen)
        is_sum = getattr(self.encoder, "readout", None) == "sum"
        return {
            "anchor": graphs,
            "mean": graphs / batch.ptr.diff().clamp(min=1)[:, None] if is_sum else graphs,
            "size": torch.bincount(batch.batch[chosen], minlength=batch.num_graphs),
            "local": local,
            "corrupted": corrupted,
            "order": views.sampled["order"][chosen],
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Nodes against their graph's summary and against their cluster's, weighted."""
        losses = {}
        if self.alpha:
            losses["graph"] = self.alpha * pair_bce(*self._graph_scores(encoded))
        if self.alpha < 1:
            local, corrupted = encoded["local"], encoded["corrupted"]
            summaries = cluster_summaries(
                local, encoded["order"], self.clusters, sharpness=self.sharpness, steps=self.cluster_steps
            )
            scores = (local * summaries).sum(1), (corrupted * summaries).sum(1)
            losses["cluster"] = (1 - self.alpha) * pair_bce(*scores)
        if not self.alpha:  # zero, but with a gradient for all weights
            losses["graph"] = self.bilinear.sum() * 0.0
        return losses

    def _graph_scores(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """Scores (n) of the nodes with their graph's summary, and those of the corrupted ones."""
        local = encoded["local"]
        queries = encoded["mean"].sigmoid() @ self.bilinear.mT
        own = queries.repeat_interleave(encoded["size"].long(), 0, output_size=len(local))
        return (local * own).sum(1), (encoded["corrupted"] * own).sum(1)

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a node scores above a corrupted one, each with its graph's summary."""
        return Pretext("AUC of nodes against corrupted ones", roc_auc(*self._graph_scores(encoded)), 0.5)


def cluster_summaries(nodes: Tensor, order: Tensor, clusters: int, *, sharpness: float, steps: int) -> Tensor:
    """The sigmoid of each node's mixture of cluster centres, by soft k-means on unit vectors.

    Args:
        nodes: N x d.
        order: N; the nodes of the smallest numbers are the first centres.
        clusters: K, but at most a quarter of the nodes.
        sharpness: Factor of the cosine in the softmax.
        steps: Steps without gradient; one more has a gradient through assignment and centres.

    Returns:
        N x d.
    """
    unit = l2_normalise(nodes)
    count = max(1, min(clusters, len(nodes) // 4))
    first = unit[order.argsort(stable=True)[:count]]
    assignment = soft_assignment(unit, soft_kmeans(unit, first, sharpness, steps), sharpness)
    return (assignment @ weighted_means(unit, assignment)).sigmoid()


METHODS.register("gic")(
    MethodEntry(
        GIC,
        "Graph InfoClust: Leveraging Cluster-Level Node Information for Unsupervised Graph Representation "
        "Learning",
        2020,
        "nodes recognise the summaries of their graph and of their cluster",
        contrast="a node with the summaries of its graph and its cluster",
        negatives="nodes with exchanged features",
        augmentation="features exchanged between nodes",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
