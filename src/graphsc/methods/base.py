"""The contract of a trained method, and the parts that many methods use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import JoinedLayers

Views = Mapping[str, GraphBatch]
Encoded = dict[str, Tensor]
Losses = dict[str, Tensor]

# BatchNorm for embedding. "reestimate": with statistics of the clean graphs; "uncentred": likewise, and the
# readout sums columns that are not centred, so that it keeps the size of graphs; "running": with the running
# statistics of training.
BatchNormEmbedding = Literal["uncentred", "reestimate", "running"]


@dataclass(frozen=True)
class Player:
    """Parameters with their own optimiser. Most methods have one player; an adversarial method has two."""

    name: str
    parameters: Sequence[nn.Parameter]
    learning_rate_scale: float = 1.0


@dataclass(frozen=True)
class Pretext:
    """The score of a method on its own pretext task, with the score that guessing would give."""

    name: str  # what is measured, in words
    score: float
    chance: float


class TrainedMethod(nn.Module):
    """A method learned by gradient descent. It knows nothing of the training loop.

    A subclass takes the encoder first and typed keywords after it; the keywords are the configuration.
    In each step the loop computes `objective(encode(views, player), player)` for each player in turn and
    minimises the sum of the named losses with that player's optimiser.
    """

    trains: ClassVar[bool] = True  # False: there is nothing to learn, and training has zero epochs

    def __init__(self, encoder: nn.Module, *, batch_norm_embedding: BatchNormEmbedding = "uncentred") -> None:
        super().__init__()
        self.encoder = encoder
        self.batch_norm_embedding = batch_norm_embedding

    @property
    def graph_width(self) -> int:
        """D, the length of the encoder's graph vectors."""
        return int(self.encoder.dimensions)  # type: ignore[arg-type]

    @property
    def embeds_by_encoder(self) -> bool:
        """Whether embeddings are the encoder's graph vectors, so that a packed model needs nothing else."""
        return type(self).embed is TrainedMethod.embed

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Make the batches that one step encodes.

        Called ahead of time in another thread, so views must not depend on weights or on what `after_step`
        changes, only on the batch, the generator and state that changes between epochs. Anything that depends
        on weights belongs in `encode`.

        Returns:
            Batches by name. "anchor" is the clean batch, unless the method contrasts two perturbed views.
        """
        return {"anchor": batch}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Encode the views of one rank: tensors with one row per graph, unless the method says otherwise."""
        return encode_each(self.encoder, views)

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Named losses on the whole (gathered) batch, each multiplied by its weight."""
        raise NotImplementedError

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """Additional columns for the metrics; called once per epoch, without gradients."""
        return {}

    def pretext(self, encoded: Encoded) -> Pretext | None:
        """Score the pretext task on unseen graphs; called in evaluation mode, without gradients."""
        return None

    def embed(self, batch: GraphBatch) -> Tensor:
        """One embedding per graph: B x `dimensions`."""
        return self.embed_with(self.encoder, batch)

    def embed_with(self, encoder: nn.Module, batch: GraphBatch) -> Tensor:
        """The graph vectors of an encoder as `batch_norm_embedding` has them: B x its `dimensions`."""
        if isinstance(encoder, JoinedLayers):
            return encoder.pool_layers(batch, self.embedding_layers(batch, encoder))
        embeddings: Tensor = encoder(batch)
        return embeddings

    def embedding_layers(self, batch: GraphBatch, encoder: JoinedLayers | None = None) -> list[Tensor]:
        """The layers for embedding of an encoder such as `gin`, by default the own one: N x width each."""
        layered = self.encoder if encoder is None else encoder
        assert isinstance(layered, JoinedLayers)  # noqa: S101 - the caller has checked it
        layers = layered.node_layers(batch)
        return layered.uncentred(layers) if self.batch_norm_embedding == "uncentred" else layers

    def dimensions(self, features: FeatureScheme) -> int:
        """The length of an embedding."""
        return self.graph_width

    def forward(self, batch: GraphBatch) -> Tensor:
        """Embed, so that a method can be used wherever an encoder can."""
        return self.embed(batch)

    def players(self) -> list[Player]:
        """Groups of parameters with their own optimisers, in the order of their turns."""
        return [Player("model", [parameter for parameter in self.parameters() if parameter.requires_grad])]

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Prepare before the first epoch. A resumed run restores the outcome from `state` instead."""

    def after_step(self, encoded: Encoded, progress: float) -> None:
        """Update what follows the weights: moving averages, queues and memories.

        Called once per step, after the updates of all players and before a checkpoint, without gradients.
        What it changes must be a parameter, a buffer or in `state`. On every rank it sees the same rows.

        Args:
            encoded: The whole batch as `objective` saw it (for the last player), detached.
            progress: The share of training that is done, up to 1 after the last step.
        """

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Update what changes between epochs."""

    def state(self) -> dict[str, Tensor]:
        """State kept between steps and epochs besides parameters and buffers."""
        return {}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Restore what `state` returned."""


def encode_each(encoder: nn.Module, views: Views) -> Encoded:
    """Encode every view with its own BatchNorm statistics; in one pass where the encoder has `each`."""
    each = getattr(encoder, "encode_batches", None)
    if each is None:
        return {name: encoder(view) for name, view in views.items()}
    return dict(zip(views, each(list(views.values())), strict=True))


@contextmanager
def preserved(
    module: nn.Module, *, training: bool | None = None, restore_buffers: bool = True
) -> Iterator[None]:
    """Put back the mode of a module and, by default, its buffers when the block ends.

    Args:
        module: The module.
        training: Its mode inside the block; None leaves the mode as it is.
        restore_buffers: Put its buffers back, so that a pass in training mode leaves BatchNorm's running
            statistics unchanged.
    """
    modes = [(part, part.training) for part in module.modules()]
    buffers = {name: value.clone() for name, value in module.named_buffers()} if restore_buffers else {}
    try:
        if training is not None:
            module.train(training)
        yield
    finally:
        for part, mode in modes:
            part.training = mode
        with torch.no_grad():
            for name, value in module.named_buffers():
                if name in buffers:
                    value.copy_(buffers[name])


@contextmanager
def frozen(
    module: nn.Module, *, training: bool | None = None, restore_buffers: bool = False
) -> Iterator[None]:
    """Use a module without training it: gradients pass through it, its parameters receive none.

    Arguments are those of `preserved`.
    """
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    with preserved(module, training=training, restore_buffers=restore_buffers):
        for parameter in learning:
            parameter.requires_grad_(False)
        try:
            yield
        finally:
            for parameter in learning:
                parameter.requires_grad_(True)
