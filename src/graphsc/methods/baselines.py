"""Baselines that every learned method must beat: an untrained encoder, and no encoder at all.

`MultiScale`, which embeds with all layers weighted equally, is shared by `untrained-plus` and `graphsc-plus`.
"""

from __future__ import annotations

from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders import MultiScaleReadout
from graphsc.encoders.readout import Readout, pool
from graphsc.methods.base import BatchNormEmbedding, TrainedMethod
from graphsc.methods.registry import METHODS, MethodEntry

# The encoder of all multi-scale methods, so that the effect of training can be seen.
MULTI_SCALE_ENCODER = {"encoder.depth": 5, "encoder.width": 64}


class Untrained(TrainedMethod):
    """The randomly initialised encoder; on many data sets within a point or two of the trained one."""

    trains = False


class Raw(TrainedMethod):
    """Node features pooled over each graph; no weights."""

    trains = False

    def __init__(self, encoder: nn.Module, *, readout: Readout = "sum") -> None:
        super().__init__(nn.Identity())  # the encoder is not kept, so that no weights are saved
        self.readout: Readout = readout

    def embed(self, batch: GraphBatch) -> Tensor:
        return pool(batch, batch.dense_x(), self.readout)

    def dimensions(self, features: FeatureScheme) -> int:
        return features.width


class MultiScale(TrainedMethod):
    """A mixin that embeds with a `MultiScaleReadout`, which has nothing to learn.

    Without one, vectors are the encoder's.
    """

    readout: MultiScaleReadout | None

    @property
    def embeds_by_encoder(self) -> bool:
        return self.readout is None

    def embed(self, batch: GraphBatch) -> Tensor:
        if self.readout is None:
            return super().embed(batch)
        embeddings: Tensor = self.readout(batch, self.embedding_layers(batch))
        return embeddings

    def dimensions(self, features: FeatureScheme) -> int:
        return super().dimensions(features) if self.readout is None else self.readout.dimensions


class UntrainedPlus(MultiScale, Untrained):
    """The baseline of `graphsc-plus`: its encoder and readout with randomly initialised weights."""

    def __init__(self, encoder: nn.Module, *, batch_norm_embedding: BatchNormEmbedding = "uncentred") -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        self.readout = MultiScaleReadout(encoder)


METHODS.register("untrained")(MethodEntry(Untrained, "-", 2019, "the randomly initialised encoder"))
METHODS.register("raw")(MethodEntry(Raw, "-", 2019, "node features summed over each graph"))
METHODS.register("untrained-plus")(
    MethodEntry(
        UntrainedPlus, "-", 2026, "the encoder and readout of graphsc-plus, untrained",
        settings=MULTI_SCALE_ENCODER,
    )
)  # fmt: skip
