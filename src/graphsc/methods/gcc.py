"""GCC: graph contrastive coding (Qiu et al., KDD 2020).

Two random walks with restart from one node give two sub-graphs, which belong together; sub-graphs of other
graphs do not. Nodes are described by structure alone, so that graphs of any kind can be compared: how likely
a walk is back after 1, 2, ... steps, the degree, and whether it is the node at which the walks began.

    q_g = head(f(first sub-graph of g)),  k_g = the same of the second by moving averages of f and head
    Q: the keys of earlier steps, in a queue
    L = 1/B sum_g -log( exp(cos(q_g, k_g) / tau) / sum over k in {k_g} and the keys and Q of other graphs
                        of exp(cos(q_g, k) / tau) )
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.columns import Column
from graphsc.data.features import DEGREE, DEGREE_CAP, FeatureScheme
from graphsc.encoders.gin import Gin
from graphsc.losses import Pairs, contrast
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import check_contrast, projection, retrieval
from graphsc.methods.momentum import MomentumCopy, VectorQueue, check_momentum
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import take
from graphsc.views.base import nodes_per_graph
from graphsc.views.subgraph import induced_subgraphs, node_mask, random_nodes, walks_with_restart

COLUMNS = 256  # of the walks' distributions that are in memory at once

# The repository's script for pre-training, which reads sub-graphs of six large networks.
PUBLISHED: Mapping[str, object] = {
    "steps": 256,
    "positions": 32,
    "temperature": 0.07,
    "queue": 16_384,
    "momentum": 0.999,
    "batch_norm_embedding": "running",
    "encoder.depth": 5,
    "encoder.width": 64,
    "training.learning_rate": 0.005,
    "training.weight_decay": 1e-5,
    "training.clip": 1.0,
    "training.schedule": "linear",
    "training.warmup_epochs": 10,
    "training.epochs": 100,
    "training.batch_size": 32,
}


class GCC(TrainedMethod):
    """Two sub-graphs around a node against a queue of sub-graphs of other graphs."""

    encoder: StructuralEncoder

    def __init__(
        self,
        encoder: nn.Module,
        *,
        steps: int = 64,  # of each walk
        restart: float = 0.8,  # the probability of a step to return to the node where the walk began
        positions: int = 16,  # return probabilities that describe a node
        own_features: bool = False,  # describe nodes by the graphs' own features too
        temperature: float = 0.07,
        queue: int = 1024,  # keys of earlier steps
        momentum: float = 0.99,  # of the moving averages
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        if not isinstance(encoder, Gin):
            raise ConfigError(
                f"gcc describes nodes by structure and needs the encoder gin, not {type(encoder).__name__}",
                hint="use --encoder gin",
            )
        if steps < 1 or positions < 1:
            raise ConfigError("steps and positions must be at least 1")
        if not 0 <= restart < 1:
            raise ConfigError(f"restart is a probability below 1, not {restart}")
        check_contrast(temperature)
        check_momentum(momentum)
        structural = StructuralEncoder(encoder, positions, own_features)
        super().__init__(structural, batch_norm_embedding=batch_norm_embedding)
        self.steps = steps
        self.restart = restart
        self.temperature = temperature
        self.momentum = momentum
        self.head = projection(self.graph_width)
        self.key_encoder = MomentumCopy(self.encoder)
        self.key_head = MomentumCopy(self.head)
        self.queue = VectorQueue(queue, self.graph_width)
        self.owners = VectorQueue(queue, 1)  # the graphs of the keys

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The sub-graphs that two walks from one node of each graph visit, with structural features."""
        seeds = random_nodes(batch, generator)
        walks = walks_with_restart(batch, seeds.repeat(2), self.steps, self.restart, generator)
        is_seed, everything = node_mask(batch, seeds), torch.ones(batch.num_graphs, dtype=torch.bool)
        views = {}
        for name, visited in zip(("anchor", "positive"), walks.chunk(2, dim=1), strict=True):
            inside = node_mask(batch, visited.flatten())
            part = induced_subgraphs(batch, inside, everything.to(batch.device))
            views[name] = self.encoder.describe(part, is_seed[inside])
        return views

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Vectors of both sub-graphs.

        Returns:
            "anchor" (B x D) by the encoder, "positive" (B x D) by its moving average, and "index" (B), the
            position of each graph, which tells other graphs from it.
        """
        index = views["anchor"].index
        if index is None:  # no collection: every graph of the batch is another, and none of an earlier one
            index = -1 - torch.arange(views["anchor"].num_graphs, device=views["anchor"].device)
        return {
            "anchor": self.encoder(views["anchor"]),
            "positive": self.key_encoder(views["positive"]),
            "index": index,
        }

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """InfoNCE of each query with its key against the keys of other graphs, of this step and the queue."""
        query, key = self.head(encoded["anchor"]), self.key_head(encoded["positive"])
        index = encoded["index"].to(query.dtype)
        keys = torch.cat([key, self.queue.vectors().to(query)])
        owners = torch.cat([index, self.owners.vectors().to(query).flatten()])
        own = torch.eye(len(query), len(keys), dtype=torch.bool, device=keys.device)
        pairs = Pairs(query, keys, own, owners != index[:, None])
        return {"contrast": contrast(pairs, temperature=self.temperature)}

    def after_step(self, encoded: Encoded, progress: float) -> None:
        """Queue the keys, then move the averages."""
        self.queue.push(self.key_head(encoded["positive"]))
        self.owners.push(encoded["index"][:, None])
        self.key_encoder.update(self.encoder, self.momentum)
        self.key_head.update(self.head, self.momentum)

    def embed(self, batch: GraphBatch) -> Tensor:
        """One embedding per whole graph: B x `dimensions`."""
        return self.embed_with(self.encoder.gin, self.encoder.described(batch))

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a sub-graph is nearest to the other one of its graph."""
        return retrieval(self.head(encoded["anchor"]), self.key_head(encoded["positive"]))


class StructuralEncoder(nn.Module):
    """GIN on structural features: return probabilities, degree and seed of each node.

    A batch with other features is described first, with the nodes of the largest degree of each graph as
    its seeds.
    """

    def __init__(self, encoder: Gin, positions: int, own_features: bool) -> None:
        super().__init__()
        self.features = encoder.features
        self.positions = positions
        self.own_features = own_features
        own = encoder.features
        columns = (Column(DEGREE, DEGREE_CAP + 1), Column("(seed)", 2))
        names = tuple(f"(back after {step + 1})" for step in range(positions))
        self.scheme = FeatureScheme(
            f"{own.name}+structure" if own_features else "structure",
            (*(own.columns if own_features else ()), *columns),
            (*(own.float_names if own_features else ()), *names),
            DEGREE_CAP,
        )
        self.gin = encoder.reinitialised(features=self.scheme)
        self.dimensions = self.gin.dimensions

    def forward(self, batch: GraphBatch) -> Tensor:
        """G x dimensions."""
        rows: Tensor = self.gin(self.described(batch))
        return rows

    def described(self, batch: GraphBatch) -> GraphBatch:
        """The batch with structural features; a batch that has them already stays."""
        return batch if batch.features == self.scheme else self.describe(batch, hubs(batch))

    def describe(self, batch: GraphBatch, seeds: Tensor) -> GraphBatch:
        """The batch with structural features; `seeds` (N, bool) marks nodes."""
        degree = batch.in_degree.clamp(max=DEGREE_CAP)
        codes, floats = torch.stack([degree, seeds.long()], 1), return_probabilities(batch, self.positions)
        if self.own_features:
            codes, floats = torch.cat([batch.codes, codes], 1), torch.cat([batch.floats, floats], 1)
        return replace(
            batch, codes=codes, floats=floats, features=self.scheme, replaced=None, replacement=None
        )


def return_probabilities(batch: GraphBatch, steps: int) -> Tensor:
    """N x steps: how likely a random walk from a node is back after 1, 2, ..., `steps` steps.

    The diagonals of P, P^2, ... with P = D^-1 A. With the eigenvalues l_j and eigenvectors u_j of the
    normalised adjacency they are sum over j of l_j^t u_ij^2, which no choice of signs or of a basis changes.
    """
    sizes = nodes_per_graph(batch)
    largest = int(sizes.max()) if len(sizes) else 0
    local = torch.arange(batch.num_nodes, device=batch.device) - take(batch.ptr[:-1], batch.batch)
    share = 1 / take(batch.in_degree, batch.destination).float()
    result = torch.zeros(batch.num_nodes, steps, device=batch.device)
    for start in range(0, largest, COLUMNS):
        width = min(COLUMNS, largest - start)
        place = (local - start)[:, None]
        reached = (place == torch.arange(width, device=batch.device)).float()
        mine = (place >= 0) & (place < width)
        for step in range(steps):
            if batch.num_edges:
                reached = embedding_bag(
                    batch.source, reached, batch.rowptr, mode="sum", include_last_offset=True,
                    per_sample_weights=share,
                )  # fmt: skip
            else:
                reached = torch.zeros_like(reached)
            back = reached.gather(1, place.clamp(0, width - 1))
            result[:, step] += torch.where(mine, back, 0.0)[:, 0]
    return result


def hubs(batch: GraphBatch) -> Tensor:
    """N, bool: the nodes with the largest degree of their graph; all of them, in whatever order they are."""
    degree = batch.in_degree
    largest = degree.new_zeros(batch.num_graphs).scatter_reduce(0, batch.batch, degree, "amax")
    return degree == take(largest, batch.batch)


METHODS.register("gcc")(
    MethodEntry(
        GCC,
        "GCC: Graph Contrastive Coding for Graph Neural Network Pre-Training",
        2020,
        "two sub-graphs around a node, by structure alone, against a queue",
        contrast="two sub-graphs around a node",
        negatives="sub-graphs of other graphs, of earlier steps too",
        augmentation="random walks with restart",
        passes=2,
        only_gin=True,
        settings={"training.learning_rate": 0.005},
        presets={"published": PUBLISHED},
    )
)
