"""MVGRL: nodes of one view against graphs of the other (Hassani and Khasahmadi, ICML 2020).

The two views of a graph are its edges and its personalised PageRank, a weighted and denser graph on the same
nodes. Each has an encoder of its own; nothing is perturbed.

    l, h: nodes and graphs of the adjacency;  l', h': those of the diffusion
    z = FF1(l), y = FF2(h) and the same for l', h';  FF: three layers plus a linear shortcut
    L = JS(z, y') + JS(z', y),  JS: the negated Jensen-Shannon estimate of mutual information of InfoGraph
    embedding y + y'
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import check_node_level, node_width, nodes_and_graphs
from graphsc.encoders.molecule_gin import HIDDEN_BOND, MoleculeGin
from graphsc.losses import jensen_shannon, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.infograph import ResidualHead, graph_of_node
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.diffusion import Diffusion

# The published code, with this library's encoder. It never trains its encoders, only the heads.
PUBLISHED: Mapping[str, object] = {
    "train_encoders": False,
    "encoder.depth": 4,
    "encoder.width": 512,
    "training.learning_rate": 1e-3,
    "training.epochs": 40,
    "training.batch_size": 64,
}


class MVGRL(TrainedMethod):
    """Local-global mutual information across the adjacency and its diffusion."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        alpha: float = 0.2,  # the probability of a walk to return to its node
        neighbours: int = 64,  # weights that each node keeps of the diffusion
        embedding: Literal["projected", "encoders"] = "projected",  # the sum behind the heads, or before them
        train_encoders: bool = True,  # False, as published: only the heads learn
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        fresh = getattr(encoder, "reinitialised", None)
        if fresh is None:
            raise ConfigError(
                "mvgrl needs a second encoder of the same kind: one with reinitialised()",
                hint="use the encoder gin",
            )
        self.diffusion_encoder: nn.Module = fresh()
        self.diffusion = Diffusion(alpha=alpha, neighbours=neighbours)
        self.embedding = embedding
        width = node_width(encoder)
        self.local_head = ResidualHead(width)
        self.global_head = ResidualHead(width, self.graph_width)
        if not train_encoders:
            self.encoder.requires_grad_(False)
            self.diffusion_encoder.requires_grad_(False)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and their diffusion."""
        return {"anchor": batch, "diffusion": self._diffused(batch)}

    def _diffused(self, batch: GraphBatch) -> GraphBatch:
        """The diffusion, whose edges are no bonds: an encoder that reads bonds finds them masked."""
        result = self.diffusion(batch)
        if isinstance(self.diffusion_encoder, MoleculeGin):
            masked = torch.tensor([HIDDEN_BOND, 0], device=batch.device).expand(result.num_edges, 2)
            result = replace(result, edge_codes=masked)
        return result

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Node and graph vectors of both views.

        Returns:
            "anchor" and "positive" (B x D), the graphs of adjacency and diffusion; "size" (B), their numbers
            of nodes; "local" and "diffused" (N x d), the nodes of both after the last layer.
        """
        local, graphs = nodes_and_graphs(self.encoder, views["anchor"], "last")
        diffused, others = nodes_and_graphs(self.diffusion_encoder, views["diffusion"], "last")
        sizes = views["anchor"].ptr.diff()
        return {"anchor": graphs, "positive": others, "local": local, "diffused": diffused, "size": sizes}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The negated estimates of the mutual information, both ways."""
        graph = graph_of_node(encoded)
        graphs, others = self.global_head(torch.cat([encoded["anchor"], encoded["positive"]])).chunk(2)
        return {
            "nodes": jensen_shannon(self.local_head(encoded["local"]), others, graph),
            "diffused": jensen_shannon(self.local_head(encoded["diffused"]), graphs, graph),
        }

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often the diffusion of a graph scores one of its own nodes above another graph's."""
        scores = self.local_head(encoded["local"]) @ self.global_head(encoded["positive"]).mT
        own = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, graph_of_node(encoded)[:, None], True)
        return Pretext("own nodes above others'", roc_auc(scores[own], scores[~own]), 0.5)

    def dimensions(self, features: FeatureScheme) -> int:
        return self.graph_width if self.embedding == "encoders" else self.local_head.width

    def embed(self, batch: GraphBatch) -> Tensor:
        """The sum of both graph vectors: B x d behind the heads, B x D before them."""
        diffused = self._diffused(batch)
        if self.embedding == "encoders":
            return self.embed_with(self.encoder, batch) + self.embed_with(self.diffusion_encoder, diffused)
        # As the head was trained on them: centred.
        rows = torch.cat([self.encoder(batch), self.diffusion_encoder(diffused)])
        first, second = self.global_head(rows).chunk(2)
        total: Tensor = first + second
        return total


METHODS.register("mvgrl")(
    MethodEntry(
        MVGRL,
        "Contrastive Multi-View Representation Learning on Graphs",
        2020,
        "nodes of a graph against its diffusion, and the reverse",
        contrast="nodes with the other view of their graph",
        negatives="other graphs of the batch",
        augmentation="personalised PageRank",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
