"""ContextPred: what lies around a node is to be known from what lies further out (Hu et al., ICLR 2020).

A graph is cut in two that overlap: the ball around a random node, and a ring around it. Two encoders see one
each, and are to tell the two halves of one graph from those of two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.readout import pool
from graphsc.losses import pair_bce, roc_auc
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import SampledViews
from graphsc.methods.infomax import PUBLISHED as TRAINING
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import take
from graphsc.views.subgraph import hop_distances, induced_subgraphs, random_nodes

PUBLISHED: Mapping[str, object] = {**TRAINING, "scaled": False}


class ContextPred(TrainedMethod):
    """The ball around a node against the ring around that ball; the ball's encoder embeds."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        radius: int | None = None,  # of the ball, in hops; None: as many as the encoder has layers
        inner: int | None = None,  # the ring begins behind so many hops; None: one less than the radius
        context_size: int = 3,  # how many hops wide the ring is, and how deep its encoder
        negatives: int = 1,  # contexts of other graphs for each
        scaled: bool = True,  # products over the root of the width; published: the products themselves
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_node_level(encoder)
        new_encoder, depth = getattr(encoder, "reinitialised", None), getattr(encoder, "depth", None)
        if new_encoder is None or depth is None:
            raise ConfigError(
                "contextpred needs a second, shallower encoder: one with depth and reinitialised(depth=...)",
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
        self.encoder = encoder
        self.context_encoder: nn.Module = new_encoder(depth=context_size)
        self.outer = self.inner + context_size
        self.negatives = negatives
        self.scaled = scaled
        self.bn = bn

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The ball around a random node of each graph, and the ring; graphs without a ring are left out.

        Drawn besides: "centre" and "overlap", which mark nodes of ball and ring, and "real" (a row a graph).
        Where no graph has a ring, all are there, whole instead of a ring, and "real" is 0: no loss.
        """
        centre = random_nodes(batch, generator)
        distance = hop_distances(batch, centre, max(self.radius, self.outer))
        ball = distance <= self.radius
        ring = (distance > self.inner) & (distance <= self.outer)
        has_ring = torch.bincount(batch.batch[ring], minlength=batch.num_graphs) > 0
        any_ring = int(ring.sum()) > 1  # BatchNorm cannot do with less
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
        """One row a graph that has a ring: "centre" and "context" (B' x d), and "real" (B').

        "centre" is the centre's vector after the encoder's last layer, "context" the mean of the other
        encoder's for those nodes of the ring that are in the ball too. "anchor" (B' x D) are the balls.
        """
        assert isinstance(views, SampledViews)  # noqa: S101 - as `views` makes them
        drawn = views.drawn
        nodes, graphs = nodes_and_graphs(self.encoder, views["ball"], "last")
        around, _ = nodes_and_graphs(self.context_encoder, views["ring"], "last")
        overlap = drawn["overlap"].to(around.dtype)[:, None]
        total = pool(views["ring"], torch.cat([around * overlap, overlap], 1), "sum")
        return {
            "anchor": graphs,
            "centre": nodes[drawn["centre"]],
            "context": total[:, :-1] / total[:, -1:],
            "real": drawn["real"],
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """-log sigmoid(c n) for the own context, -log sigmoid(-c n) for those of the next graphs."""
        positive, negative = self._scores(encoded)
        if not len(positive):  # a zero that hangs on all weights
            return {"context": (encoded["centre"].sum() + encoded["context"].sum()) * 0.0}
        return {"context": pair_bce(positive, negative, weight=self.negatives)}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph's own context scores above another's."""
        score = roc_auc(*self._scores(encoded))
        return Pretext("AUC of a node's own context against another", score, 0.5)

    def _scores(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        """Scores with the own context, and with those of the next `negatives` graphs, as far as there are."""
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
        "transfer: a node's surroundings known from what lies further out",
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
