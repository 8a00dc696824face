"""GraphMAE: a masked graph autoencoder (Hou et al., KDD 2022).

The features of some nodes are masked, and a decoder has to reconstruct them. Before decoding, the vectors of
the masked nodes are masked again, so that the encoder must put what it knows into their neighbours.

    V~: masked nodes, of which most get a learned token and some the features of another node
    H = f(A, X~),  Z = decoder(A, H W with rows of V~ set to zero)
    L = 1/|V~| sum over i in V~ of (1 - cos(z_i, x_i))^gamma
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import check_node_level, node_width, nodes_and_graphs
from graphsc.encoders.gin import GinLayer, linear
from graphsc.encoders.ops import Adjacency, fused_sum_relu
from graphsc.losses import scaled_cosine_error
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views import MaskAttributes
from graphsc.views.array_ops import flatnonzero
from graphsc.views.base import check_rate
from graphsc.views.sampling import smallest_per_segment

# The repository's configuration for each data set. NCI1 and the sets it has none for are pooled by their
# mean: there `pooling` is misspelt, or missing, and the mean is its default.
PUBLISHED: Mapping[str, Mapping[str, object]] = {
    "published": {
        "replace_rate": 0.0,
        "batch_norm_embedding": "running",
        "encoder.depth": 2,
        "encoder.width": 512,
        "encoder.norm": "before",
        "encoder.layers": "last",
        "encoder.readout": "mean",
        "training.learning_rate": 1.5e-4,
        "training.epochs": 100,
        "training.batch_size": 32,
    },
    "published@MUTAG": {
        "rate": 0.75,
        "replace_rate": 0.1,
        "encoder.depth": 5,
        "encoder.width": 32,
        "encoder.readout": "sum",
        "training.learning_rate": 5e-4,
        "training.epochs": 20,
        "training.batch_size": 64,
    },
    "published@PROTEINS": {"gamma": 1.0, "encoder.depth": 3, "encoder.readout": "max"},
    "published@NCI1": {
        "rate": 0.25,
        "replace_rate": 0.1,
        "training.learning_rate": 1e-3,
        "training.epochs": 300,
        "training.batch_size": 16,
        "training.schedule": "cosine",
    },
    "published@IMDB-BINARY": {"gamma": 1.0, "training.epochs": 60},
    "published@COLLAB": {
        "rate": 0.75,
        "gamma": 1.0,
        "encoder.width": 256,
        "encoder.readout": "max",
        "training.epochs": 20,
        "training.schedule": "cosine",
    },
    "published@REDDIT-BINARY": {
        "rate": 0.75,
        "replace_rate": 0.1,
        "encoder.readout": "sum",
        "training.batch_size": 8,
        "training.schedule": "cosine",
    },
}


class GraphMAE(TrainedMethod):
    """Reconstruction of masked node features by a decoder of one layer."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        rate: float = 0.5,  # share of each graph's nodes whose features are masked, at least one
        replace_rate: float = 0.1,  # share of the masked nodes that get another node's features
        gamma: float = 2.0,  # exponent of the error
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        check_rate(rate)
        if not 0 <= replace_rate <= 1:
            raise ConfigError(f"replace_rate must lie between 0 and 1, not {replace_rate}")
        if gamma < 1:
            raise ConfigError(f"gamma must be at least 1, not {gamma}")
        features = getattr(encoder, "features", None)
        if not isinstance(features, FeatureScheme) or features.width < 2:
            raise ConfigError(
                "graphmae reconstructs the features of nodes, and these graphs have none that vary",
                hint="open the graphs with features 'labels', 'degree' or 'attributes'",
            )
        self.features = features
        self.rate = rate
        self.replace_rate = replace_rate
        self.gamma = gamma
        self.mask = MaskAttributes()
        width = node_width(encoder)
        # Features with a code for masked nodes have their token in the encoder's first layer.
        self.token = nn.Parameter(torch.zeros(features.width)) if features.hidden is None else None
        self.to_decoder = linear(width, width, bias=False)
        self.decoder = GinLayer(
            linear(width, width, bias=False), width, "none", False, 0.0, outputs=features.width
        )

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and the same with features masked; "masked" (N, bool) marks the nodes."""
        device = batch.device
        keys = torch.rand(batch.num_nodes, generator=generator, device=device)
        masked = smallest_per_segment(keys, batch.ptr, self.mask.counts(batch, self.rate))
        nodes = flatnonzero(masked)
        order = torch.randperm(len(nodes), generator=generator, device=device)
        count = int(self.replace_rate * len(nodes))
        noisy, hidden = nodes[order[:count]], nodes[order[count:]].sort().values
        donors = torch.randint(max(batch.num_nodes, 1), (count,), generator=generator, device=device)
        codes, floats = batch.codes.clone(), batch.floats.clone()
        codes[noisy], floats[noisy] = batch.codes[donors], batch.floats[donors]
        view = replace(batch, codes=codes, floats=floats)
        if self.features.hidden is None:
            # `encode` puts the learned token in place of the zeros: views must not depend on weights.
            zeros = torch.zeros(len(hidden), self.features.width, device=device)
            view = replace(view, replaced=hidden, replacement=zeros)
        else:
            codes[hidden], floats[hidden] = 0, 0.0
            codes[hidden, 0] = self.features.hidden
        return SampledViews({"anchor": batch, "masked": view}, masked=masked)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Reconstructions and targets; only the masked graphs are encoded.

        Returns:
            "anchor" (B x D), the masked graphs; "decoded" and "target" (M x w), the masked nodes.
        """
        assert isinstance(views, SampledViews)  # noqa: S101 - as `views` makes them
        clean, view, masked = views["anchor"], views["masked"], views.sampled["masked"]
        if self.token is not None and view.replaced is not None:
            view = replace(view, replacement=self.token.expand(len(view.replaced), -1))
        nodes, graphs = nodes_and_graphs(self.encoder, view, "last")
        remasked = self.to_decoder(nodes).masked_fill(masked[:, None], 0.0)
        where = flatnonzero(masked)
        # The layer in two parts: only the masked nodes need the second.
        around = fused_sum_relu(
            self.decoder.first(remasked), Adjacency.of(view), None, self.decoder.bias, own=1.0
        )
        decoded = self.decoder.second(around.index_select(0, where))
        return {
            "anchor": graphs,
            "decoded": decoded,
            "target": clean.dense_x().index_select(0, where).to(decoded.dtype),
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The scaled cosine error of the masked nodes."""
        error = scaled_cosine_error(encoded["decoded"], encoded["target"], gamma=self.gamma)
        return {"reconstruction": error}

    def pretext(self, encoded: Encoded) -> Pretext | None:
        """How often a masked node's first category is found; chance is to predict the most common always.

        None where nodes have no categories.
        """
        if not self.features.columns or not len(encoded["target"]):
            return None
        categories = self.features.cardinalities[0]
        right = encoded["target"][:, :categories].argmax(1)
        predicted = encoded["decoded"][:, :categories].argmax(1)
        most_common = torch.bincount(right).max() / len(right)
        accuracy = (predicted == right).double().mean()
        return Pretext("accuracy on masked nodes", float(accuracy), float(most_common))


METHODS.register("graphmae")(
    MethodEntry(
        GraphMAE,
        "GraphMAE: Self-Supervised Masked Graph Autoencoders",
        2022,
        "reconstruct masked features from the nodes around them",
        contrast="masked nodes with their features",
        augmentation="masked features",
        passes=1,
        settings={"training.learning_rate": 0.001},
        presets=PUBLISHED,
    )
)
