"""What a trained method is: everything the loop needs to know of it, and nothing of the loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme

Views = Mapping[str, GraphBatch]
Encoded = dict[str, Tensor]
Losses = dict[str, Tensor]


@dataclass(frozen=True)
class Player:
    """Parameters with an optimiser of their own; most methods have one player, an adversarial one two."""

    name: str
    parameters: Sequence[nn.Parameter]
    learning_rate_scale: float = 1.0


@dataclass(frozen=True)
class Pretext:
    """How well a method does what it is trained to do, beside what guessing would give."""

    name: str  # what is measured, in words
    score: float
    chance: float


class TrainedMethod(nn.Module):
    """A method learned by gradient descent.

    Subclasses take the encoder first and typed keywords after it; the keywords are the configuration.
    A step asks each player in turn: `objective(encode(views, player), player)`; the sum of the named
    losses is what that player descends.
    """

    trains: ClassVar[bool] = True  # False: nothing to learn, zero epochs
    encoder: nn.Module
    bn: str = "reestimate"  # or "running", the literature's way; see `graphsc.encoders.inference`

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The batches that one step encodes, by name; the clean one is the anchor.

        Made ahead of time, in another thread: they depend on the batch, the generator and what changes
        between epochs, never on weights. What does depend on weights belongs into `encode`.
        """
        return {"anchor": batch}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """What one rank computes from its views: one row a graph in every tensor."""
        return encode_each(self.encoder, views)

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Named losses, weights included, on the whole batch."""
        raise NotImplementedError

    def figures(self, encoded: Encoded) -> dict[str, float]:
        """What else is worth a column in the metrics; called without gradients, once an epoch."""
        return {}

    def pretext(self, encoded: Encoded) -> Pretext | None:
        """The method's own task on graphs it has not seen; without gradients, in evaluation mode."""
        return None

    def embed(self, batch: GraphBatch) -> Tensor:
        """One row a graph."""
        rows: Tensor = self.encoder(batch)
        return rows

    def dimensions(self, features: FeatureScheme) -> int:
        """The length of a row of `embed`."""
        return int(self.encoder.dimensions)  # type: ignore[arg-type]

    def forward(self, batch: GraphBatch) -> Tensor:
        """So that a method can be used wherever an encoder can."""
        return self.embed(batch)

    def players(self) -> list[Player]:
        """Who learns what, in the order of their turns."""
        return [Player("model", list(self.parameters()))]

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """What happens once, before the first epoch; a resumed run finds its outcome in `state`."""

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """What happens between epochs."""

    def state(self) -> dict[str, Tensor]:
        """What the method keeps between epochs besides its parameters and buffers."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Put back what `state` gave."""


def encode_each(encoder: nn.Module, views: Views) -> Encoded:
    """Every view encoded by itself; encoders that can do so take them in one pass (`encode_batches`)."""
    encode_batches = getattr(encoder, "encode_batches", None)
    if encode_batches is None:
        return {name: encoder(view) for name, view in views.items()}
    return dict(zip(views, encode_batches(list(views.values())), strict=True))
