"""GraphSC-plus: our own continuation of GraphSC, under its own name.

Two changes, each found on development seeds by inner folds alone (`results/search`). First, distances have an
order: the weak view is nearer than the strong one, and the strong one nearer than any other graph. The paper
contrasts a graph with itself only; here its strong view is one more negative among the graphs of the batch,
and the hardest. Second, vectors are read off all layers alike (`graphsc.encoders.readout`).
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.encoders import MultiScaleReadout
from graphsc.losses import ordered_contrast
from graphsc.methods.base import Encoded, Losses
from graphsc.methods.baselines import ENCODER, MultiScale
from graphsc.methods.contrastive import projection, resolve_operations
from graphsc.methods.graphsc import GraphSC
from graphsc.methods.registry import METHODS, MethodEntry


class GraphSCPlus(MultiScale, GraphSC):
    """GraphSC's terms, a contrast with other graphs in which the strong view takes part, balanced layers."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        weak_rate: float = 0.1,
        strong_rate: float = 0.25,
        operations: tuple[str, ...] = ("auto",),
        coupling: Literal["same", "independent", "nested"] = "same",
        margin: float = 0.2,
        factors: int = 4,
        lambda_masked: float = 0.0,  # the masked contrast takes a quarter of the time and brought nothing
        lambda_factor: float = 0.0,
        lambda_absolute: float = 0.01,
        lambda_contrast: float = 1.0,
        temperature: float = 0.2,
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__(
            encoder, weak_rate=weak_rate, strong_rate=strong_rate, operations=operations, coupling=coupling,
            margin=margin, factors=factors, lambda_masked=lambda_masked, lambda_factor=lambda_factor,
            lambda_absolute=lambda_absolute, bn=bn,
        )  # fmt: skip
        if lambda_contrast < 0 or temperature <= 0:
            raise ConfigError("lambda_contrast must not be negative, temperature must be positive")
        self.lambda_contrast = lambda_contrast
        self.temperature = temperature
        self.fourth_head = projection(int(encoder.dimensions)) if lambda_contrast else None  # type: ignore[arg-type]
        self.readout = MultiScaleReadout(encoder)

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """GraphSC's terms and the contrast, each with its weight."""
        losses = super().objective(encoded, player)
        if self.fourth_head is not None:
            views = torch.cat([encoded[name] for name in ("anchor", "positive", "negative")])
            parts: tuple[Tensor, ...] = self.fourth_head(views).chunk(3)
            losses["contrast"] = self.lambda_contrast * ordered_contrast(*parts, temperature=self.temperature)
        return losses


METHODS.register("graphsc-plus")(
    MethodEntry(
        GraphSCPlus, "-", 2026, "GraphSC with other graphs as the farthest views, and balanced layers",
        settings={**ENCODER, "training.learning_rate": 1e-3}, resolve=resolve_operations,
    )
)  # fmt: skip
