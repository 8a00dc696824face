"""What every learned method must beat: an encoder that never learned, and no encoder at all."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders import Gin, MultiScaleReadout
from graphsc.encoders.readout import Readout, pool
from graphsc.methods.base import TrainedMethod
from graphsc.methods.registry import METHODS, MethodEntry


class Untrained(TrainedMethod):
    """The encoder with its first weights; on many data sets within a point or two of the trained one."""

    trains = False

    def __init__(self, encoder: nn.Module, *, bn: Literal["reestimate", "running"] = "reestimate") -> None:
        super().__init__()
        self.encoder = encoder
        self.bn = bn


class Raw(TrainedMethod):
    """Node features pooled over each graph; no weights at all."""

    trains = False

    def __init__(self, encoder: nn.Module, *, readout: Readout = "sum") -> None:
        super().__init__()
        # The encoder is not kept: what has no weights should save none.
        self.encoder = nn.Identity()
        self.readout: Readout = readout

    def embed(self, batch: GraphBatch) -> Tensor:
        return pool(batch, batch.dense_x(), self.readout)

    def dimensions(self, features: FeatureScheme) -> int:
        return features.width


METHODS.register("untrained")(MethodEntry(Untrained, "-", 2019, "the encoder with its initial weights"))
METHODS.register("raw")(MethodEntry(Raw, "-", 2019, "node features summed over each graph"))


# Methods whose vectors are read off all layers alike, the input among them, and the untrained one.


# One encoder for all of them, so that what training adds can be seen.
ENCODER = {"encoder.depth": 5, "encoder.width": 64}


class MultiScale(TrainedMethod):
    """Trained as it was; embedded with a `MultiScaleReadout`, which has nothing to learn."""

    readout: MultiScaleReadout

    def embed(self, batch: GraphBatch) -> Tensor:
        assert isinstance(self.encoder, Gin)  # noqa: S101 - the readout has seen to it
        rows: Tensor = self.readout(batch, self.encoder.node_layers(batch))
        return rows

    def dimensions(self, features: FeatureScheme) -> int:
        return self.readout.dimensions


class UntrainedPlus(MultiScale, Untrained):
    """What `graphsc-plus` has to beat: its encoder and readout with the first weights."""

    def __init__(self, encoder: nn.Module, *, bn: Literal["reestimate", "running"] = "reestimate") -> None:
        super().__init__(encoder, bn=bn)
        self.readout = MultiScaleReadout(encoder)


METHODS.register("untrained-plus")(
    MethodEntry(
        UntrainedPlus, "-", 2026, "the encoder and readout of graphsc-plus, untrained", settings=ENCODER
    )
)
