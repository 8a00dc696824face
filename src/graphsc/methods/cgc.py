"""CGC: contrast with counterfactual graphs (Yang et al., WWW 2023), with clusters in place of classes.

A counterfactual of a graph is almost the same graph, but a classifier takes it for another class: a negative
that is hard, and not a false one. A generator learns to make two of each graph, one with edges and one with
features weakened. Without labels, the classifier is a clustering of the collection into K clusters:

    p_k(G) = softmax over k of 10 cos(f(G), centre k),  c: the cluster of the graph itself
    generator:  mean of -log(1 - p_c(G')) while G' is still in cluster c, + lambda times the share weakened
    encoder:    mean of -log( S(z, z+) / (S(z, z+) + sum of S(z, z') + sum_j S(z, z+_j)) )

with S(a, b) = exp(cos(a, b) / tau). The first sum is over the counterfactuals that have left their cluster,
the second, which is optional, over other graphs; z+ is a random view, as in GraphCL.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.encoders.gin import linear
from graphsc.encoders.inference import BATCH_SIZE, batches_of
from graphsc.losses import counterfactual_contrast
from graphsc.losses.triplet import l2_normalise
from graphsc.methods.adgcl import ViewLearner
from graphsc.methods.base import (
    BatchNormEmbedding,
    Encoded,
    Losses,
    Player,
    Pretext,
    TrainedMethod,
    Views,
    encode_each,
    frozen,
)
from graphsc.methods.clustering import soft_assignment, soft_kmeans
from graphsc.methods.contrastive import (
    check_contrast,
    choice_of,
    make_operations,
    projection,
    resolve_operations,
    retrieval,
)
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.base import check_rate

SHARPNESS = 10.0  # factor of the cosine in the softmax over clusters
CLUSTER_STEPS = 10
FIRST_LOGIT = 3.0  # counterfactuals begin near their graphs: a weight of 0.95, but for the noise
FIT_GRAPHS = 10_000  # at most so many random graphs are clustered
COUNTERFACTUALS = ("edges", "features")


class CGC(TrainedMethod):
    """Graphs against counterfactuals of themselves."""

    centres: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        *,
        operations: tuple[str, ...] = ("auto",),  # of the positive view; one is drawn per graph
        rate: float = 0.2,
        clusters: int = 8,  # K, at most a quarter of the graphs
        similarity: float = 0.5,  # lambda, on the share of edges and features that is weakened
        others: bool = False,  # the positive views of other graphs are negatives too
        temperature: float = 0.2,
        hidden: int = 64,  # width of the generator's MLP on the two ends of an edge
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_rate(rate)
        check_contrast(temperature)
        if clusters < 2 or hidden < 1 or similarity < 0:
            raise ConfigError("clusters must be at least 2, hidden at least 1, similarity not negative")
        fresh = getattr(encoder, "reinitialised", None)
        if fresh is None or not hasattr(encoder, "nodes"):
            raise ConfigError(
                "cgc needs a second encoder and node embeddings: an encoder with fresh() and nodes()",
                hint="use gin",
            )
        self.view = choice_of(make_operations(operations))
        self.rate = rate
        self.similarity = similarity
        self.others = others
        self.temperature = temperature
        self.head = projection(self.graph_width)
        self.generator = Generator(fresh(), hidden=hidden)
        self.register_buffer("centres", torch.zeros(clusters, self.graph_width))

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graph and a random view of it; counterfactuals depend on weights and belong in `encode`."""
        self.generator.edges(batch)  # computed ahead of time and cached with the batch
        return {"anchor": batch, "positive": self.view(batch, self.rate, generator)}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of the graphs and their counterfactuals.

        Returns:
            "anchor", "edges" and "features" (B x D), and for the model "positive"; "weakened" (B), the share
            of edges plus the share of features that the counterfactuals lack.
        """
        batch = views["anchor"]
        if player == "generator":
            made, weakened = self.generator(batch)
            with frozen(self.encoder):
                with torch.no_grad():
                    anchor = self.encoder(batch)
                return {"anchor": anchor, **encode_each(self.encoder, made), "weakened": weakened}
        with torch.no_grad(), frozen(self.generator):
            made, weakened = self.generator(batch)
        return {**encode_each(self.encoder, {**views, **made}), "weakened": weakened}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Leave the cluster by few changes, for the generator; the contrast, for the model."""
        clusters = {name: self._clusters(encoded[name]) for name in ("anchor", *COUNTERFACTUALS)}
        own = clusters["anchor"].argmax(1)
        left = torch.stack([clusters[name].argmax(1) != own for name in COUNTERFACTUALS])
        if player == "generator":
            inside = torch.stack([_at(clusters[name], own) for name in COUNTERFACTUALS])
            losses = -torch.log1p(-inside.clamp(max=1 - 1e-6)).masked_fill(left, 0.0)
            return {
                "class": losses.sum() / max(len(own), 1),
                "similarity": self.similarity * encoded["weakened"].mean(),
            }
        names = ("anchor", "positive", *COUNTERFACTUALS)
        anchor, positive, *negatives = self.head(torch.cat([encoded[name] for name in names])).chunk(4)
        return {
            "contrast": counterfactual_contrast(
                anchor,
                positive,
                torch.stack(negatives),
                left,
                temperature=self.temperature,
                others=self.others,
            )
        }

    def _clusters(self, graphs: Tensor) -> Tensor:
        """B x K: the probabilities of the clusters; centres that do not exist have none."""
        exist = self.centres.any(1)
        if not bool(exist.any()):  # before `begin`: one cluster
            exist = torch.arange(len(self.centres), device=graphs.device) == 0
        return soft_assignment(l2_normalise(graphs), self.centres[exist].to(graphs.dtype), SHARPNESS)

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """The share of counterfactuals that have left their cluster, and of what they lack."""
        own = self._clusters(encoded["anchor"]).argmax(1)
        left = [self._clusters(encoded[name]).argmax(1) != own for name in COUNTERFACTUALS]
        return {
            "left_cluster": float(torch.stack(left).double().mean()),
            "weakened": float(encoded["weakened"].mean()) / 2,
        }

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph is nearest to its own view in the batch."""
        return retrieval(self.head(encoded["anchor"]), self.head(encoded["positive"]))

    def players(self) -> list[Player]:
        """The generator moves first."""
        return [
            Player("generator", list(self.generator.parameters())),
            Player("model", [*self.encoder.parameters(), *self.head.parameters()]),
        ]

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        self._cluster(collection, generator)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Cluster the graphs anew, with the encoder as it is now."""
        self._cluster(collection, generator)

    @torch.no_grad()
    def _cluster(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Set the centres by soft k-means on the graphs, or a random part of them, from random graphs.

        In training mode, as the loss sees them; BatchNorm's running statistics are put back.
        """
        order = torch.randperm(len(collection), generator=generator, device=generator.device)[:FIT_GRAPHS]
        sample = collection.take(order.cpu().numpy().astype(np.int64))
        with frozen(self, training=True, restore_buffers=True):
            rows = [self.encoder(batch) for batch in batches_of(sample, BATCH_SIZE, self.centres.device)]
        unit = l2_normalise(torch.cat(rows).to(self.centres.dtype))
        count = max(1, min(len(self.centres), len(unit) // 4))
        self.centres.zero_()
        self.centres[:count] = soft_kmeans(unit, unit[:count], SHARPNESS, CLUSTER_STEPS)


class Generator(ViewLearner):
    """AD-GCL's weight per edge, and a weight per node that multiplies its features."""

    def __init__(self, encoder: nn.Module, *, hidden: int) -> None:
        super().__init__(encoder, hidden=hidden, temperature=1.0, both_directions=True)
        self.node = linear(int(encoder.dimensions), 1)  # type: ignore[arg-type]
        for layer in (self.second, self.node):
            nn.init.constant_(layer.bias, FIRST_LOGIT)

    def forward(self, batch: GraphBatch) -> tuple[dict[str, GraphBatch], Tensor]:  # type: ignore[override]
        """The counterfactuals "edges" and "features", and the shares they lack, added up (B)."""
        nodes: Tensor = self.encoder.nodes(batch)  # type: ignore[operator]
        weight, dropped = self.weigh_edges(batch, nodes)
        keep = self.sample(self.node(nodes).flatten())
        rows = torch.arange(batch.num_nodes, device=batch.device)
        masked = replace(batch, replaced=rows, replacement=batch.dense_x().to(keep.dtype) * keep[:, None])
        lost = keep.new_zeros(batch.num_graphs).index_add(0, batch.batch, 1 - keep)
        made = {"edges": replace(batch, edge_weight=weight), "features": masked}
        return made, dropped + lost / batch.ptr.diff().clamp(min=1)


def _at(rows: Tensor, column: Tensor) -> Tensor:
    return rows.gather(1, column[:, None]).flatten()


METHODS.register("cgc")(
    MethodEntry(
        CGC,
        "Generating Counterfactual Hard Negative Samples for Graph Contrastive Learning",
        2023,
        "graphs against learned counterfactuals, which are almost the same and of another cluster",
        contrast="a graph with a view of it",
        negatives="counterfactuals of the graph",
        augmentation="random perturbations; learned weights of edges and features",
        passes=9,
        settings={"training.learning_rate": 0.001},
        resolve=resolve_operations,
    )
)
