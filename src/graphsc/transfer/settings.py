"""How a model is fine-tuned; the same keywords in Python, in a plan and on the command line."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Literal

from graphsc.core.errors import ConfigError
from graphsc.training.settings import TrainSettings

GRID_RATES = (1e-4, 5e-4, 1e-3)
GRID_EVERY = 20


@dataclass(frozen=True)
class FineTuneSettings:
    """Settings of fine-tuning. Defaults are those of the literature since Hu et al. (2020).

    With several learning rates each is trained, and validation chooses. `every` says at which epochs a model
    may be chosen: every one, or every 20th with the grid of the GraphSC paper.
    """

    epochs: int = 100
    learning_rates: tuple[float, ...] = (1e-3,)
    batch_size: int = 32
    dropout: float = 0.5
    weight_decay: float = 0.0
    clip: float | None = None
    patience: int | None = None  # epochs without a better score on validation after which to stop
    every: int = 1
    precision: Literal["full", "bf16"] = "full"

    def __post_init__(self) -> None:
        if self.epochs < 1:
            raise ConfigError("fine-tuning needs at least 1 epoch", hint="graphsc yardstick fits without any")
        if not self.learning_rates or len(set(self.learning_rates)) != len(self.learning_rates):
            raise ConfigError("learning rates must be given once each, at least one")
        if not 0 <= self.dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {self.dropout}")
        if self.every < 1 or (self.patience is not None and self.patience < 1):
            raise ConfigError("every and patience must be at least 1")
        for rate in self.learning_rates:
            self.loop(rate, 0)

    def loop(self, learning_rate: float, seed: int) -> TrainSettings:
        """The training loop's part of it."""
        return TrainSettings(
            epochs=self.epochs,
            batch_size=self.batch_size,
            learning_rate=learning_rate,
            weight_decay=self.weight_decay,
            clip=self.clip,
            seed=seed,
            precision=self.precision,
        )

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "learning_rates": list(self.learning_rates)}
