"""Methods whose vectors are read off all layers alike, the input among them, and the untrained one."""

from __future__ import annotations

from typing import Literal

from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders import BalancedReadout, Gin
from graphsc.methods.base import TrainedMethod
from graphsc.methods.baselines import Untrained
from graphsc.methods.registry import METHODS, MethodEntry

# One encoder for all of them, so that what training adds can be seen.
ENCODER = {"encoder.depth": 5, "encoder.width": 64}


class Balanced(TrainedMethod):
    """Trained as it was; embedded with a `BalancedReadout`, which has nothing to learn."""

    readout: BalancedReadout

    def embed(self, batch: GraphBatch) -> Tensor:
        assert isinstance(self.encoder, Gin)  # noqa: S101 - the readout has seen to it
        rows: Tensor = self.readout(batch, self.encoder.node_layers(batch))
        return rows

    def dimensions(self, features: FeatureScheme) -> int:
        return self.readout.dimensions


class UntrainedPlus(Balanced, Untrained):
    """What `graphsc-plus` has to beat: its encoder and readout with the first weights."""

    def __init__(self, encoder: nn.Module, *, bn: Literal["reestimate", "running"] = "reestimate") -> None:
        super().__init__(encoder, bn=bn)
        self.readout = BalancedReadout(encoder)


METHODS.register("untrained-plus")(
    MethodEntry(
        UntrainedPlus, "-", 2026, "the encoder and readout of graphsc-plus, untrained", settings=ENCODER
    )
)
