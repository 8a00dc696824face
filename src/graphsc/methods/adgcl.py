"""AD-GCL: adversarial graph augmentation (Suresh et al., NeurIPS 2021).

A view learner weights the edges of each graph so that the graph becomes hard to recognise, and pays for the
edges it drops. The encoder learns to recognise the graph all the same, and so keeps what is essential.

    w_e = sigmoid((MLP([h_u, h_v]) + logistic noise) / t)    for each edge e = {u, v}
    C = NT-Xent(g(f(G)), g(f(G with messages along e scaled by w_e)))
    view learner minimises  -C + lambda * mean over graphs of mean over edges of (1 - w_e)
    encoder and head minimise  C
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.gin import linear
from graphsc.encoders.ops import edge_mlp
from graphsc.losses import graphcl_nt_xent
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
from graphsc.methods.contrastive import projection, retrieval
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views.base import cache_per_batch
from graphsc.views.operations import edge_pairs

PUBLISHED: Mapping[str, object] = {
    "directions": "independent",
    "other_player": "evaluation",
    "batch_norm_embedding": "running",
    "encoder.depth": 5,
    "encoder.width": 32,
    "encoder.norm": "before",
    "encoder.layers": "last",
    "encoder.activate_last": False,
    "training.epochs": 150,
    "training.batch_size": 32,
    "training.learning_rate": 0.001,
}

MOLECULES: Mapping[str, object] = {
    **ON_MOLECULES,
    "temperature": 0.2,
    "symmetric": False,
    "directions": "independent",
    "other_player": "evaluation",
    "training.epochs": 100,
}


class ADGCL(TrainedMethod):
    """Two players on one loss: the view learner maximises it, encoder and head minimise it."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        drop_penalty: float = 5.0,  # lambda, on the share of a graph's edges that is dropped
        directions: Literal["shared", "independent"] = "shared",  # the two entries of an undirected edge
        edge_temperature: float = 1.0,  # t, of the Gumbel-sigmoid
        hidden: int = 64,  # width of the MLP on the two ends of an edge
        temperature: float = 0.2,
        symmetric: bool = True,  # NT-Xent in both directions
        view_rate_scale: float = 1.0,  # the view learner's learning rate as a multiple of the encoder's
        # Mode of the network that is not being trained, which decides its BatchNorm statistics.
        other_player: Literal["training", "evaluation"] = "training",
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        if drop_penalty < 0 or view_rate_scale < 0:
            raise ConfigError("drop_penalty and view_rate_scale must not be negative")
        if temperature <= 0 or edge_temperature <= 0 or hidden < 1:
            raise ConfigError("temperature and edge_temperature must be positive, hidden at least 1")
        fresh = getattr(encoder, "reinitialised", None)
        if fresh is None or not hasattr(encoder, "nodes"):
            raise ConfigError(
                "adgcl needs a second encoder and node embeddings: an encoder with fresh() and nodes()",
                hint="use gin",
            )
        self.head = projection(self.graph_width)
        self.view_learner = ViewLearner(
            fresh(), hidden=hidden, temperature=edge_temperature, both_directions=directions == "shared"
        )
        self.drop_penalty = drop_penalty
        self.temperature = temperature
        self.symmetric = symmetric
        self.view_rate_scale = view_rate_scale
        self.other_player_mode = None if other_player == "training" else False

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graph alone: the dropped edges depend on weights, so they belong in `encode`."""
        self.view_learner.edges(batch)  # computed ahead of time and cached with the batch
        return {"anchor": batch}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors "anchor" and "positive" (B x D), and "dropped" (B), the share of dropped edges."""
        batch = views["anchor"]
        if player == "view":
            weight, dropped = self.view_learner(batch)
            with frozen(self.encoder, training=self.other_player_mode):
                with torch.no_grad():
                    anchor = self.encoder(batch)
                positive = self.encoder(_weighted(batch, weight))
            return {"anchor": anchor, "positive": positive, "dropped": dropped}
        with torch.no_grad(), frozen(self.view_learner, training=self.other_player_mode):
            weight, dropped = self.view_learner(batch)
        both = {"anchor": batch, "positive": _weighted(batch, weight)}
        return {**encode_each(self.encoder, both), "dropped": dropped}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent for the model; its negative and the penalty on dropped edges for the view learner."""
        if player == "model":
            return {"contrast": self._contrast(encoded)}
        with frozen(self.head):
            contrast = self._contrast(encoded)
        return {"contrast": -contrast, "dropped": self.drop_penalty * encoded["dropped"].mean()}

    def _contrast(self, encoded: Encoded) -> Tensor:
        anchor, positive = self.head(torch.cat([encoded["anchor"], encoded["positive"]])).chunk(2)
        return graphcl_nt_xent(anchor, positive, temperature=self.temperature, symmetric=self.symmetric)

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """The share of edges that the view learner drops."""
        return {"dropped_edges": float(encoded["dropped"].mean())}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph is nearest to its own view in the batch."""
        return retrieval(self.head(encoded["anchor"]), self.head(encoded["positive"]))

    def players(self) -> list[Player]:
        """The view learner moves first."""
        return [
            Player("view", list(self.view_learner.parameters()), self.view_rate_scale),
            Player("model", [*self.encoder.parameters(), *self.head.parameters()]),
        ]


class ViewLearner(nn.Module):
    """Predicts a weight between 0 and 1 for each edge: an encoder of its own and an MLP on the two ends.

    The weight is a relaxed Bernoulli sample, sigmoid((logit + logistic noise) / temperature). The lower the
    temperature, the nearer to zero or one.
    """

    def __init__(
        self,
        encoder: nn.Module,
        *,
        hidden: int,
        temperature: float,
        both_directions: bool,
        bias: float = 1e-4,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.first = linear(2 * int(encoder.dimensions), hidden)  # type: ignore[arg-type]
        self.second = linear(hidden, 1)
        self.temperature = temperature
        self.both_directions = both_directions
        self.bias = bias  # keeps the noise finite

    def edges(self, batch: GraphBatch) -> Edges:
        """The edges that get a weight; depends on the batch alone."""
        return undirected_edges(batch) if self.both_directions else directed_edges(batch)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """The weight of each entry of the batch (E), and the dropped share of each graph's edges (G)."""
        return self.weigh_edges(batch, self.encoder.nodes(batch))  # type: ignore[operator]

    def weigh_edges(self, batch: GraphBatch, nodes: Tensor) -> tuple[Tensor, Tensor]:
        """The same from the nodes of the encoder (N x D)."""
        edges = self.edges(batch)
        weight = self.sample(self.logits(batch, nodes))
        total = weight.new_zeros(batch.num_graphs).index_add(0, edges.graph, 1 - weight)
        dropped = total / edges.counts.clamp(min=1)
        return weight if edges.of_entry is None else weight.index_select(0, edges.of_entry), dropped

    def sample(self, logits: Tensor) -> Tensor:
        """A relaxed Bernoulli sample for each logit, with noise from torch's global generator."""
        uniform = torch.rand(len(logits), device=logits.device) * (1 - 2 * self.bias) + self.bias
        return torch.sigmoid((logits + torch.logit(uniform)) / self.temperature)

    def logits(self, batch: GraphBatch, nodes: Tensor) -> Tensor:
        """One logit per edge (P); an undirected edge has the mean over the two orders of its ends."""
        edges = self.edges(batch)
        # The first layer on [h_u, h_v] is a sum of a layer on h_u and one on h_v: per node, not per edge.
        start, end = (nodes @ part.mT for part in self.first.weight.chunk(2, 1))
        start = start + self.first.bias
        weight = self.second.weight[0]
        logits = edge_mlp(start, end, weight, edges.source, edges.destination)
        if edges.of_entry is not None:
            logits = (logits + edge_mlp(start, end, weight, edges.destination, edges.source)) / 2
        return logits + self.second.bias


@dataclass(frozen=True, eq=False)
class Edges:
    """P edges with one weight each, in the order of their graphs."""

    source: Tensor  # P, int32
    destination: Tensor  # P, int32
    graph: Tensor  # P, int64
    counts: Tensor  # G, int64: edges per graph
    of_entry: Tensor | None  # E, int64: the edge of each entry of the batch; None if they are the same


@cache_per_batch
def undirected_edges(batch: GraphBatch) -> Edges:
    """Both directions as one edge where the batch is undirected, else each entry by itself."""
    if not batch.undirected:
        return directed_edges(batch)
    pairs = edge_pairs(batch)
    number = torch.arange(len(pairs.source), device=batch.device)
    of_entry = torch.empty(batch.num_edges, dtype=torch.int64, device=batch.device)
    of_entry[pairs.all_entries(number)] = number.repeat(2)
    graph = batch.batch.index_select(0, pairs.destination)
    return Edges(pairs.source, pairs.destination, graph, pairs.ptr.diff(), of_entry)


@cache_per_batch
def directed_edges(batch: GraphBatch) -> Edges:
    """Every entry by itself."""
    return Edges(batch.source, batch.destination, batch.edge_batch, batch.edge_ptr.diff(), None)


def _weighted(batch: GraphBatch, weight: Tensor) -> GraphBatch:
    """The batch with its edge weights, if it has any, times these."""
    own = batch.edge_weight
    return replace(batch, edge_weight=weight if own is None else weight * own)


METHODS.register("adgcl")(
    MethodEntry(
        ADGCL,
        "Adversarial Graph Augmentation to Improve Graph Contrastive Learning",
        2021,
        "an adversary learns which edges to drop",
        contrast="a graph with a view of it",
        negatives="other graphs of the batch",
        augmentation="edges dropped by an adversary",
        passes=6,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
