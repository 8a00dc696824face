"""GraphSC-plus: this project's own extension of GraphSC, under its own name.

It makes two changes, each chosen on development seeds by inner folds alone (`results/search`). First,
distances are ordered: the weak view is nearer than the strong view, and the strong view is nearer than any
other graph. GraphSC contrasts a graph with itself only; here the strong view is one more negative among the
graphs of the batch, and the hardest. Second, embeddings weight all layers equally (`MultiScaleReadout`).

    L = GraphSC's terms + lambda_contrast * L_o
    L_o = -1/B sum_i log(exp(s_ii) / (sum_j exp(s_ij) + exp(t_i)))
    s_ij = cos(z_i, z+_j) / tau,  t_i = cos(z_i, z-_i) / tau,  z = g4(h)
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.encoders import MultiScaleReadout
from graphsc.losses import ordered_contrast
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses
from graphsc.methods.baselines import MULTI_SCALE_ENCODER, MultiScale
from graphsc.methods.contrastive import projection, resolve_operations
from graphsc.methods.graphsc import GraphSC
from graphsc.methods.registry import METHODS, MethodEntry


class GraphSCPlus(MultiScale, GraphSC):
    """GraphSC with a contrast against other graphs and a multi-scale readout."""

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
        lambda_masked: float = 0.0,  # the masked contrast takes a quarter of the time and did not help
        lambda_factor: float = 0.0,
        lambda_absolute: float = 0.01,
        lambda_contrast: float = 1.0,
        temperature: float = 0.2,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(
            encoder, weak_rate=weak_rate, strong_rate=strong_rate, operations=operations, coupling=coupling,
            margin=margin, factors=factors, lambda_masked=lambda_masked, lambda_factor=lambda_factor,
            lambda_absolute=lambda_absolute, batch_norm_embedding=batch_norm_embedding,
        )  # fmt: skip
        if lambda_contrast < 0 or temperature <= 0:
            raise ConfigError("lambda_contrast must not be negative, temperature must be positive")
        self.lambda_contrast = lambda_contrast
        self.temperature = temperature
        self.fourth_head = projection(self.graph_width) if lambda_contrast else None
        self.readout = MultiScaleReadout(encoder)

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """GraphSC's terms and the contrast, each with its weight."""
        losses = super().objective(encoded, player)
        if self.fourth_head is not None:
            views = torch.cat([encoded[name] for name in ("anchor", "positive", "negative")])
            projected: tuple[Tensor, ...] = self.fourth_head(views).chunk(3)
            contrast = ordered_contrast(*projected, temperature=self.temperature)
            losses["contrast"] = self.lambda_contrast * contrast
        return losses


METHODS.register("graphsc-plus")(
    MethodEntry(
        GraphSCPlus, "-", 2026, "GraphSC with other graphs as further negatives and a multi-scale readout",
        contrast="a graph with its weak and its strong view",
        negatives="its own strong view, and other graphs of the batch",
        augmentation="random perturbations, weak and strong", passes=3,
        settings={**MULTI_SCALE_ENCODER, "training.learning_rate": 1e-3}, resolve=resolve_operations,
    )
)  # fmt: skip
