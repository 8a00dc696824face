"""VGAE: variational graph auto-encoder (Kipf and Welling, 2016).

Every node has a Gaussian; a sample of it must tell, by inner products, which nodes are joined. E are the
edges of a batch, A absent pairs of the same graphs, n the number of nodes of a node's graph:

    q(z_i) = N(mu_i, sigma_i^2),  mu = W h + b,  log sigma = W' h + b'
    L = 1/2 (1/|E| sum_E -log sigmoid(z_u z_v) + 1/|A| sum_A -log sigmoid(-z_u z_v))
        + 1/N sum_i KL(q(z_i) || N(0, 1)) / n
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.gin import linear
from graphsc.losses import gaussian_kl, pair_bce
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews
from graphsc.methods.pretraining import edge_retrieval, pair_products, with_absent_pairs
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import take

MAX_LOG_STD = 10.0  # a larger deviation would overflow in products

# The authors' script: layers of 32 and 16 units. Theirs predicts the links of one network.
PUBLISHED: Mapping[str, object] = {
    "encoder.depth": 2,
    "encoder.width": 32,
    "encoder.layers": "last",
    "training.learning_rate": 0.01,
    "training.epochs": 200,
}


class VGAE(TrainedMethod):
    """Edges reconstructed from samples of a Gaussian per node."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        latent: int = 16,  # dimensions of z
        negatives: float = 1.0,  # absent pairs per edge of a graph, as far as it has so many
        divergence: float = 1.0,  # weight of the KL term
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        if latent < 1 or negatives <= 0 or divergence < 0:
            raise ConfigError(
                "latent must be at least 1, negatives above zero, and divergence must not be negative"
            )
        self.latent = latent
        self.negatives = negatives
        self.divergence = divergence
        self.gaussian = linear(self.graph_width, 2 * latent)  # mean and log of the deviation
        with torch.no_grad():
            self.gaussian.weight[latent:] = 0.0  # a deviation of one to begin with

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and their nodes joined by absent pairs; sampled besides: "noise" (N x latent)."""
        shape = batch.num_nodes, self.latent
        noise = torch.randn(shape, generator=generator, device=generator.device)
        return SampledViews(with_absent_pairs(batch, self.negatives, generator), noise=noise)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors, scores of pairs, and the divergence of every node.

        Returns:
            "anchor" (B x D); "edges" (P) and "absent" (Q), the inner products of the two ends; "kl" (N), the
            divergence over the number of nodes of the graph. In evaluation mode a node's z is its mean.
        """
        assert isinstance(views, SampledViews)  # noqa: S101 - as `views` makes them
        batch = views["anchor"]
        nodes, graphs = nodes_and_graphs(self.encoder, batch)
        with torch.autocast(nodes.device.type, enabled=False):
            mean, log_std = self.gaussian(nodes.to(self.gaussian.weight.dtype)).chunk(2, 1)
            log_std = log_std.clamp(max=MAX_LOG_STD)
            noise = views.sampled["noise"].to(mean.dtype)
            latent = mean + noise * log_std.exp() if self.training else mean
            sizes = take(batch.ptr.diff(), batch.batch)
            return {
                "anchor": graphs,
                **pair_products(latent, views),
                "kl": gaussian_kl(mean, log_std) / sizes,
            }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Half the cross-entropies of edges and absent pairs, a mean each, and the mean divergence."""
        losses = {"edges": pair_bce(encoded["edges"], encoded["absent"]) / 2}
        if self.divergence:
            losses["divergence"] = self.divergence * encoded["kl"].sum() / max(len(encoded["kl"]), 1)
        return losses

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often an edge scores above an absent pair."""
        return edge_retrieval(encoded)


METHODS.register("vgae")(
    MethodEntry(
        VGAE,
        "Variational Graph Auto-Encoders",
        2016,
        "edges reconstructed from a Gaussian vector per node",
        contrast="the two ends of an edge",
        negatives="pairs of nodes without an edge",
        passes=1,
        presets={"published": PUBLISHED},
    )
)
