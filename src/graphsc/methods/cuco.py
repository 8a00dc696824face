"""CuCo: curriculum contrastive learning (Chu et al., IJCAI 2021).

Views and head are GraphCL's. Negatives come from a memory of the collection's graphs, from easy to hard: a
graph is contrasted with K graphs drawn from the share of the memory that is least similar to it, and this
share grows during training.

    p_i = cos(z_i, z'_i) / tau,  s_ij = cos(z_i, m_j) / tau,  m: the memory, made anew after each epoch
    share(t) = t^lambda,  t: the share of training that is done
    L = 1/B sum_i -log( exp(p_i) / (exp(p_i) + sum over the K drawn j of exp(s_ij)) )
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.collection import GraphCollection
from graphsc.encoders.inference import BATCH_SIZE, batches_of
from graphsc.losses import curriculum_contrast
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Views, preserved
from graphsc.methods.contrastive import Augmentations, resolve_operations
from graphsc.methods.graphcl import GraphCL
from graphsc.methods.registry import METHODS, MethodEntry

# The repository's script for TU data. It compares projected graphs with a memory that is not projected.
PUBLISHED: Mapping[str, object] = {
    "two_views": False,
    "rate": 0.1,
    "augmentations": "graphcl",
    "self_loops": True,
    "memory_vectors": "encoder",
    "batch_norm_embedding": "running",
    "encoder.depth": 3,
    "encoder.width": 32,
    "training.learning_rate": 0.01,
    "training.epochs": 20,
    "training.batch_size": 128,
}


class CuCo(GraphCL):
    """GraphCL with negatives from a memory, from easy to hard."""

    done: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        *,
        operations: tuple[str, ...] = ("auto",),  # one is drawn per graph and view
        rate: float = 0.2,
        two_views: bool = True,  # False: the graph itself against one view of it
        augmentations: Augmentations = "fixed",
        subgraph_keeps: float = 0.2,  # the share of nodes that the published subgraph keeps at most
        self_loops: bool = False,  # as in GraphCL
        temperature: float = 0.2,
        negatives: int = 16,  # K, drawn for each graph
        pace: float = 0.5,  # lambda: the share of the memory in use is progress^pace
        memory: int = 8192,  # graphs in the memory at most; drawn anew each epoch from a larger collection
        memory_vectors: Literal["projected", "encoder"] = "projected",  # encoder: before the head
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(
            encoder,
            operations=operations,
            rate=rate,
            two_views=two_views,
            augmentations=augmentations,
            subgraph_keeps=subgraph_keeps,
            self_loops=self_loops,
            temperature=temperature,
            negatives=negatives,
            batch_norm_embedding=batch_norm_embedding,
        )
        if pace <= 0 or memory < 1:
            raise ConfigError("pace must be positive and memory must be at least 1")
        self.temperature = temperature
        self.negatives = negatives
        self.pace = pace
        self.memory_size = memory
        self.memory_vectors = memory_vectors
        self.register_buffer("done", torch.zeros(()))  # the share of training that is done
        # The vectors of the memory and the positions of their graphs in the collection, ascending. Not
        # buffers: they belong to the training graphs, not to the model.
        self.memory = torch.zeros(0, self.graph_width)
        self.members = torch.zeros(0, dtype=torch.int64)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of both views (B x D), and "index" (B), the positions of the graphs."""
        encoded = super().encode(views, player)
        index = views["anchor"].index
        unknown = torch.full((views["anchor"].num_graphs,), -1, device=views["anchor"].device)
        return {**encoded, "index": unknown if index is None else index}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """InfoNCE with negatives from the easiest share of the memory."""
        anchor, positive = self.head(torch.cat([encoded["anchor"], encoded["positive"]])).chunk(2)
        memory, own = self.memory, self._own_rows(encoded["index"].long())
        if not len(memory):  # before `begin`: the other graphs of the batch
            memory, own = positive, torch.arange(len(positive), device=positive.device)
        loss = curriculum_contrast(
            anchor, positive, memory.to(anchor), own, share=float(self.done) ** self.pace,
            count=self.negatives, temperature=self.temperature,
        )  # fmt: skip
        return {"contrast": loss}

    def _own_rows(self, index: Tensor) -> Tensor:
        """B, int64: the row of the memory that holds each graph of these positions, or -1."""
        members = self.members.to(index.device)
        if not len(members):
            return torch.full_like(index, -1)
        rows = torch.searchsorted(members, index).clamp(max=len(members) - 1)
        return torch.where(members[rows] == index, rows, -1)

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """The share of the memory in use."""
        return {"memory_share": float(self.done) ** self.pace}

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        self._remember(collection, generator)

    def after_step(self, encoded: Encoded, progress: float) -> None:
        """Progress decides which negatives are easy enough."""
        self.done.fill_(progress)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Make the memory anew."""
        self._remember(collection, generator)

    @torch.no_grad()
    def _remember(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Encode the clean graphs of the memory, in training mode as the loss sees them."""
        device = self.done.device
        count = min(self.memory_size, len(collection))
        order = torch.randperm(len(collection), generator=generator, device=generator.device)
        members = order[:count].sort().values.cpu()
        sample = collection.take(members.numpy().astype(np.int64))
        parts = -(-count // BATCH_SIZE)
        size = -(-count // max(parts, 1))  # equal parts: the moments of a small last one would be poor
        with preserved(self, training=True):
            batches = map(self._with_loops, batches_of(sample, size, device))
            vectors = torch.cat([self.encoder(batch) for batch in batches])
            if self.memory_vectors == "projected":
                vectors = self.head(vectors)
        self.memory, self.members = vectors.float(), members.to(device)

    def state(self) -> dict[str, Tensor]:
        return {"memory": self.memory, "members": self.members}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.memory, self.members = (state[name].to(self.done.device) for name in ("memory", "members"))


METHODS.register("cuco")(
    MethodEntry(
        CuCo,
        "CuCo: Graph Representation with Curriculum Contrastive Learning",
        2021,
        "GraphCL with negatives from a memory, from easy to hard",
        contrast="two views of a graph",
        negatives="graphs of the whole collection, from easy to hard",
        augmentation="random perturbations",
        passes=2,
        presets={"published": PUBLISHED},
        resolve=resolve_operations,
    )
)
