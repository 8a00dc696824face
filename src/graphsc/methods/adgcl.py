"""AD-GCL: an adversary learns which edges to drop, the encoder to recognise the graph all the same.

The view learner weighs the edges so that NT-Xent between graph and view becomes large, and pays for what it
drops; then the encoder makes the same loss small. What stays recognisable with so little is what the
encoder is to keep.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.gin import linear
from graphsc.encoders.ops import edge_mlp
from graphsc.losses import nt_xent
from graphsc.methods.base import Encoded, Losses, Player, Pretext, TrainedMethod, Views, encode_each
from graphsc.methods.contrastive import projection
from graphsc.methods.graphcl import retrieval
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views.base import cache_per_batch
from graphsc.views.operations import edge_pairs

# AD-GCL's view learner: a network that says of every edge how likely it is to stay.


@dataclass(frozen=True, eq=False)
class Edges:
    """What has one fate: P edges, in order of their graphs."""

    source: Tensor  # P, int32
    destination: Tensor  # P, int32
    graph: Tensor  # P, int64
    counts: Tensor  # G, int64: edges of each graph
    of_entry: Tensor | None  # E, int64: the edge of each entry of the batch; None if they are the same


@cache_per_batch
def undirected_edges(batch: GraphBatch) -> Edges:
    """Both directions as one edge, where the batch has no directions; else each by itself."""
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


class ViewLearner(nn.Module):
    """An encoder of its own, an MLP on the two ends of an edge, and a relaxed coin for each edge.

    The weight of an edge is sigmoid((logit + noise) / temperature), the noise that of a logistic variable;
    the colder, the nearer to zero or one.
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
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        self.first = linear(2 * width, hidden)
        self.second = linear(hidden, 1)
        self.temperature = temperature
        self.both_directions = both_directions
        self.bias = bias  # keeps the noise finite

    def edges(self, batch: GraphBatch) -> Edges:
        """What gets a weight; depends on the batch alone."""
        return undirected_edges(batch) if self.both_directions else directed_edges(batch)

    def forward(self, batch: GraphBatch) -> tuple[Tensor, Tensor]:
        """The weight of each entry (E), and the share of each graph's edges that is dropped (G)."""
        edges = self.edges(batch)
        logits = self.logits(batch)
        uniform = torch.rand(len(logits), device=logits.device) * (1 - 2 * self.bias) + self.bias
        weight = torch.sigmoid((logits + torch.logit(uniform)) / self.temperature)
        total = weight.new_zeros(batch.num_graphs).index_add(0, edges.graph, 1 - weight)
        dropped = total / edges.counts.clamp(min=1)
        return weight if edges.of_entry is None else weight.index_select(0, edges.of_entry), dropped

    def logits(self, batch: GraphBatch) -> Tensor:
        """P: the larger, the likelier an edge stays. An edge without direction has the mean of both ways."""
        edges = self.edges(batch)
        nodes: Tensor = self.encoder.nodes(batch)  # type: ignore[operator]
        # The first layer on [h_u, h_v] is a sum of one on h_u and one on h_v: once a node, not once an edge.
        start, end = (nodes @ part.mT for part in self.first.weight.chunk(2, 1))
        start = start + self.first.bias
        weight = self.second.weight[0]
        found = edge_mlp(start, end, weight, edges.source, edges.destination)
        if edges.of_entry is not None:
            found = (found + edge_mlp(start, end, weight, edges.destination, edges.source)) / 2
        return found + self.second.bias


# A network whose turn it is not: used, but not learned.


Mode = Literal["training", "evaluation"]


@contextmanager
def resting(module: nn.Module, mode: Mode = "training") -> Iterator[None]:
    """Let gradients pass through a module and leave none on its parameters.

    In "evaluation" its BatchNorm takes the running statistics; in "training" it stays as it is.
    """
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    was_training = module.training
    for parameter in learning:
        parameter.requires_grad_(False)
    if mode == "evaluation":
        module.eval()
    try:
        yield
    finally:
        module.train(was_training)
        for parameter in learning:
            parameter.requires_grad_(True)


PUBLISHED: Mapping[str, object] = {
    "directions": "independent",
    "other_player": "evaluation",
    "bn": "running",
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
    """Two players on one loss: the view learner ascends it, encoder and head descend it."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        drop_penalty: float = 5.0,  # lambda, on the share of a graph's edges that is dropped
        directions: Literal["shared", "independent"] = "shared",  # the fate of an undirected edge's two
        edge_temperature: float = 1.0,  # of the Gumbel-sigmoid
        hidden: int = 64,  # of the MLP on an edge's ends
        temperature: float = 0.2,
        symmetric: bool = True,  # each view the anchor once
        view_rate_scale: float = 1.0,  # the view learner's learning rate, in that of the encoder
        other_player: Literal["training", "evaluation"] = "training",  # BatchNorm of whose turn it is not
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        if drop_penalty < 0 or view_rate_scale < 0:
            raise ConfigError("drop_penalty and view_rate_scale must not be negative")
        if temperature <= 0 or edge_temperature <= 0 or hidden < 1:
            raise ConfigError("temperature and edge_temperature must be positive, hidden at least 1")
        new_encoder = getattr(encoder, "reinitialised", None)
        if new_encoder is None or not hasattr(encoder, "nodes"):
            raise ConfigError(
                "adgcl needs a second encoder and node embeddings: an encoder with reinitialised(), nodes()",
                hint="use gin",
            )
        self.encoder = encoder
        self.head = projection(int(encoder.dimensions))  # type: ignore[arg-type]
        self.view_learner = ViewLearner(
            new_encoder(), hidden=hidden, temperature=edge_temperature, both_directions=directions == "shared"
        )
        self.drop_penalty = drop_penalty
        self.temperature = temperature
        self.symmetric = symmetric
        self.view_rate_scale = view_rate_scale
        self.other_player = other_player
        self.bn = bn

    def players(self) -> list[Player]:
        """The adversary moves first."""
        return [
            Player("view", list(self.view_learner.parameters()), self.view_rate_scale),
            Player("model", [*self.encoder.parameters(), *self.head.parameters()]),
        ]

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graph alone: what is dropped depends on weights."""
        self.view_learner.edges(batch)  # remembered with the batch, and so made ahead
        return {"anchor": batch}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of the graph and of its view, and the share of its edges that the view drops."""
        batch = views["anchor"]
        if player == "view":
            weight, dropped = self.view_learner(batch)
            with resting(self.encoder, self.other_player):
                with torch.no_grad():
                    anchor = self.encoder(batch)
                positive = self.encoder(replace(batch, edge_weight=weight))
            return {"anchor": anchor, "positive": positive, "dropped": dropped}
        with torch.no_grad(), resting(self.view_learner, self.other_player):
            weight, dropped = self.view_learner(batch)
        both = {"anchor": batch, "positive": replace(batch, edge_weight=weight)}
        return {**encode_each(self.encoder, both), "dropped": dropped}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent for the model; its opposite and the price of dropping for the view learner."""
        if player == "model":
            return {"contrast": self._contrast(encoded)}
        with resting(self.head):
            contrast = self._contrast(encoded)
        return {"contrast": -contrast, "dropped": self.drop_penalty * encoded["dropped"].mean()}

    def _contrast(self, encoded: Encoded) -> Tensor:
        anchor, positive = self.head(torch.cat([encoded["anchor"], encoded["positive"]])).chunk(2)
        return nt_xent(anchor, positive, temperature=self.temperature, symmetric=self.symmetric)

    def figures(self, encoded: Encoded) -> dict[str, float]:
        """The share of edges that the view learner drops."""
        return {"dropped_edges": float(encoded["dropped"].mean())}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph finds the view that the adversary made of it among those of its batch."""
        return retrieval(self.head(encoded["anchor"]), self.head(encoded["positive"]))


METHODS.register("adgcl")(
    MethodEntry(
        ADGCL,
        "Adversarial Graph Augmentation to Improve Graph Contrastive Learning",
        2021,
        "an adversary learns which edges to drop",
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
