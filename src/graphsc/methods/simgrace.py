"""SimGRACE: a graph seen by an encoder and by a noisy copy of it; no graph is ever perturbed.

The copy's weights are the encoder's plus noise as wide as each tensor's own values, drawn anew each step.
NT-Xent between the two; only the encoder learns.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from graphsc.core.errors import ConfigError
from graphsc.losses import nt_xent
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import projection
from graphsc.methods.graphcl import check_contrast, retrieval
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry

# What the repository's script for TU data runs; eta it searches in 0.1, 1, 10 and 100.
PUBLISHED: Mapping[str, object] = {
    "rows": "perturbed",
    "bn": "running",
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
        eta: float = 1.0,  # how wide the noise is, in standard deviations of each tensor
        temperature: float = 0.2,
        rows: Literal["encoder", "perturbed"] = "encoder",  # whose vectors look for their like in the other's
        positive_in_denominator: bool = False,
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        if eta < 0:
            raise ConfigError(f"eta must not be negative, not {eta}")
        check_contrast(temperature)
        self.encoder = encoder
        self.eta = eta
        self.rows = rows
        self.contrast = partial(
            nt_xent, temperature=temperature, positive_in_denominator=positive_in_denominator
        )
        self.bn = bn
        self.head = projection(int(encoder.dimensions))  # type: ignore[arg-type]

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors by the encoder, and by a perturbed one through which no gradient flows."""
        batch = views["anchor"]
        with torch.no_grad():
            # Buffers are copies: BatchNorm normalises by the batch either way, and its running statistics
            # stay those of the encoder that will be used.
            buffers = {name: value.clone() for name, value in self.encoder.named_buffers()}
            weights = perturbed(dict(self.encoder.named_parameters()), self.eta)
            positive: Tensor = functional_call(self.encoder, {**buffers, **weights}, (batch,))
        return {"anchor": self.encoder(batch), "positive": positive}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent; the head is the same for both, and learns from the encoder's vectors alone."""
        own = self.head(encoded["anchor"])
        with torch.no_grad():
            other = self.head(encoded["positive"])
        return {
            "contrast": self.contrast(own, other) if self.rows == "encoder" else self.contrast(other, own)
        }

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph finds itself, as the other encoder sees it, among those of its batch."""
        own, other = self.head(encoded["anchor"]), self.head(encoded["positive"])
        return retrieval(own, other) if self.rows == "encoder" else retrieval(other, own)


def perturbed(parameters: Mapping[str, Tensor], eta: float) -> dict[str, Tensor]:
    """Each tensor plus eta times N(0, s), s the standard deviation of its own entries.

    A tensor of equal entries, such as a fresh bias, gets no noise, nor does a single entry, which has no
    spread. Drawn from torch's own generator.
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
        "a graph by the encoder and by a perturbed copy of the encoder",
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
