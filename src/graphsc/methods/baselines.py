"""What every learned method must beat: an encoder that never learned, and no encoder at all."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
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
