"""SimGRACE: contrastive learning without data augmentation (Xia et al., WWW 2022).

The graph is encoded by the encoder and by a noisy copy of it; no graph is perturbed. The noise of each weight
tensor is as wide as the tensor's own values and is drawn in every step. Only the encoder learns.

    theta' = theta + eta Delta,  Delta ~ N(0, std(theta)^2) per tensor
    L = NT-Xent(g(f(G; theta)), g(f(G; theta')))
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from graphsc.core.errors import ConfigError
from graphsc.losses import graphcl_nt_xent
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import check_contrast, projection, retrieval
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry

# The repository's script for TU data; it searches eta in 0.1, 1, 10 and 100.
PUBLISHED: Mapping[str, object] = {
    "rows": "perturbed",
    "batch_norm_embedding": "running",
    "encoder.depth": 5,
    "encoder.width": 32,
    "training.learning_rate": 0.01,
    "training.epochs": 20,
    "training.batch_size": 128,
}

MOLECULES: Mapping[str, object] = {
    **ON_MOLECULES,
    "eta": 0.1,
    "temperature": 0.1,
    "rows": "perturbed",
    "training.epochs": 80,
}


class SimGRACE(TrainedMethod):
    """Contrast by perturbing the encoder."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        eta: float = 1.0,  # width of the noise, in standard deviations of each tensor
        temperature: float = 0.2,
        rows: Literal["encoder", "perturbed"] = "encoder",  # whose vectors are the rows i of NT-Xent
        positive_in_denominator: bool = False,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        if eta < 0:
            raise ConfigError(f"eta must not be negative, not {eta}")
        check_contrast(temperature)
        self.eta = eta
        self.rows = rows
        self.contrast = partial(
            graphcl_nt_xent, temperature=temperature, positive_in_denominator=positive_in_denominator
        )
        self.head = projection(self.graph_width)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors (B x D) of the encoder, and of a perturbed copy through which no gradient flows."""
        batch = views["anchor"]
        with torch.no_grad():
            # Buffers are copies, so that the running statistics remain those of the unperturbed encoder.
            buffers = {name: value.clone() for name, value in self.encoder.named_buffers()}
            weights = perturb(dict(self.encoder.named_parameters()), self.eta)
            positive: Tensor = functional_call(self.encoder, {**buffers, **weights}, (batch,))
        return {"anchor": self.encoder(batch), "positive": positive}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent; one head for both, which learns from the encoder's vectors alone."""
        own = self.head(encoded["anchor"])
        with torch.no_grad():
            other = self.head(encoded["positive"])
        return {"contrast": self.contrast(*self._ordered(own, other))}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph's two vectors are nearest to each other in the batch."""
        return retrieval(*self._ordered(self.head(encoded["anchor"]), self.head(encoded["positive"])))

    def _ordered(self, own: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
        return (own, other) if self.rows == "encoder" else (other, own)


def perturb(parameters: Mapping[str, Tensor], eta: float) -> dict[str, Tensor]:
    """Add noise to each tensor: eta times N(0, s), with s the standard deviation of its entries.

    A tensor of equal entries, such as a new bias, gets no noise, nor does a tensor of one entry. The noise
    comes from torch's global generator.
    """
    return {
        name: torch.addcmul(value, torch.randn_like(value), value.std(), value=eta)
        if value.numel() > 1
        else value
        for name, value in parameters.items()
    }


METHODS.register("simgrace")(
    MethodEntry(
        SimGRACE,
        "SimGRACE: A Simple Framework for Graph Contrastive Learning without Data Augmentation",
        2022,
        "a graph encoded by the encoder and by a perturbed copy of it",
        contrast="the vectors of two encoders",
        negatives="other graphs of the batch",
        augmentation="noise on the encoder's weights",
        passes=2,
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
