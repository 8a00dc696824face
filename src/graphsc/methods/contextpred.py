"""ContextPred: predict the context of a node's neighbourhood (Hu et al., ICLR 2020).

Two encoders see two overlapping parts of each graph: the ball of K hops around a random node v, and a ring
around v from r to r + 3 hops. They learn to tell the two parts of one graph from those of two graphs:

    h_g: vector of v, from the ball;  c_g: mean over the nodes in both ball and ring, from the ring
    L = 1/B sum_g -log sigmoid(h_g c_g) - log sigmoid(-h_g c_{g+1})
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.readout import pool
from graphsc.losses import pair_bce, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews
from graphsc.methods.pretraining import HU_MOLECULES, HU_TRAINING
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import take
from graphsc.views.subgraph import hop_distances, induced_subgraphs, random_nodes

PUBLISHED: Mapping[str, object] = {**HU_TRAINING, "scaled": False}
MOLECULES: Mapping[str, object] = {**HU_MOLECULES, "scaled": False}


class ContextPred(TrainedMethod):
    """The ball around a node against the ring around it; the ball's encoder makes the embeddings."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        radius: int | None = None,  # K, of the ball in hops; None: the depth of the encoder
        inner: int | None = None,  # r, the ring begins beyond it; None: one less than the radius
        context_size: int = 3,  # width of the ring in hops, and depth of its encoder
        negatives: int = 1,  # contexts of other graphs per centre
        scaled: bool = True,  # divide products by the square root of the width; published: no
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        fresh, depth = getattr(encoder, "reinitialised", None), getattr(encoder, "depth", None)
        if fresh is None or depth is None:
            raise ConfigError(
                "contextpred needs a second, shallower encoder: one with depth and fresh(depth=...)",
                hint="use gin or molecule-gin",
            )
        self.radius = int(depth) if radius is None else radius
        self.inner = self.radius - 1 if inner is None else inner
        if context_size < 1 or negatives < 1:
            raise ConfigError("context_size and negatives must be at least 1")
        if not 0 <= self.inner < self.radius:
            raise ConfigError(
                f"ball and ring must overlap: inner must be from 0 to {self.radius - 1}, not {self.inner}"
            )
        self.context_encoder: nn.Module = fresh(depth=context_size)
        self.outer = self.inner + context_size
        self.negatives = negatives
        self.scaled = scaled

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The ball around a random node of each graph, and the ring; graphs without a ring are left out.

        Returns:
            "anchor", "ball" and "ring". Sampled besides: "centre" and "overlap", which mark nodes of ball and
            ring, and "real" (one row per graph). If no graph has a ring, all graphs are kept with the whole
            graph as ring, and "real" is 0: there is no loss.
        """
        centre = random_nodes(batch, generator)
        distance = hop_distances(batch, centre, max(self.radius, self.outer))
        ball = distance <= self.radius
        ring = (distance > self.inner) & (distance <= self.outer)
        has_ring = torch.bincount(batch.batch[ring], minlength=batch.num_graphs) > 0
        any_ring = int(ring.sum()) > 1  # one node has no moments
        if not any_ring:
            ring = torch.ones_like(ring)
            has_ring = batch.ptr.diff() > 0
        inside = take(has_ring, batch.batch)
        ball, ring = ball & inside, ring & inside
        return SampledViews(
            {
                "anchor": batch,
                "ball": induced_subgraphs(batch, ball, has_ring),
                "ring": induced_subgraphs(batch, ring, has_ring),
            },
            centre=(distance == 0)[ball],
            overlap=(distance <= self.radius)[ring],
            real=torch.full((int(has_ring.sum()),), float(any_ring), device=batch.device),
        )

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """One row for each of the B' graphs with a ring.

        Returns:
            "anchor" (B' x D), the balls; "centre" (B' x d), the centre's vector after the last layer;
            "context" (B' x d), the mean over the overlap by the context encoder; "real" (B').
        """
        assert isinstance(views, SampledViews)  # noqa: S101 - as `views` makes them
        sampled = views.sampled
        nodes, graphs = nodes_and_graphs(self.encoder, views["ball"], "last")
        around, _ = nodes_and_graphs(self.context_encoder, views["ring"], "last")
        overlap = sampled["overlap"].to(around.dtype)[:, None]
        total = pool(views["ring"], torch.cat([around * overlap, overlap], 1), "sum")
        return {
            "anchor": graphs,
            "centre": nodes[sampled["centre"]],
            "context": total[:, :-1] / total[:, -1:],
            "real": sampled["real"],
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """-log sigmoid(c n) for the own context, -log sigmoid(-c n) for those of the next graphs."""
        positive, negative = self._scores(encoded)
        if not len(positive):  # zero, but with a gradient for all weights
            return {"context": (encoded["centre"].sum() + encoded["context"].sum()) * 0.0}
        return {"context": pair_bce(positive, negative, weight=self.negatives)}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a centre scores its own context above another graph's."""
        score = roc_auc(*self._scores(encoded))
        return Pretext("AUC of a node's own context against another", score, 0.5)

    def _scores(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """Scores with the own context, and with those of the next `negatives` graphs of the batch."""
        real = encoded["real"] > 0
        centre, context = encoded["centre"][real], encoded["context"][real]
        if self.scaled:
            centre = centre / math.sqrt(centre.shape[1])
        shifts = range(1, min(self.negatives, len(centre) - 1) + 1)
        negative = [(centre * context.roll(-shift, 0)).sum(1) for shift in shifts]
        positive = (centre * context).sum(1)
        return positive, torch.cat(negative) if negative else positive[:0]


METHODS.register("contextpred")(
    MethodEntry(
        ContextPred,
        "Strategies for Pre-training Graph Neural Networks",
        2020,
        "transfer: match a node's neighbourhood with its context further out",
        contrast="the ball around a node with the ring around it",
        negatives="rings of other graphs",
        augmentation="balls and rings",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
