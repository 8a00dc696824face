"""How a method is trained; the same keywords in Python, in a config file and on the command line."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Literal

from graphsc.core.errors import ConfigError


@dataclass(frozen=True)
class TrainSettings:
    """Settings of the loop. Defaults are those of the GraphCL line."""

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup_epochs: float = 0.0
    clip: float | None = None  # largest norm of the gradient
    precision: Literal["full", "bf16"] = "full"
    compile: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch_size < 1:
            raise ConfigError("epochs must not be negative and batch_size must be at least 1")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ConfigError(f"learning_rate must be positive, not {self.learning_rate}")
        if self.weight_decay < 0 or self.warmup_epochs < 0 or (self.clip is not None and self.clip <= 0):
            raise ConfigError("weight_decay and warmup_epochs must not be negative, clip must be positive")

    def rate_at(self, epoch: int, step: int, steps: int) -> float:
        """The learning rate of one step: a function of when it is, so that nothing needs to be saved."""
        done = epoch + step / steps  # in epochs
        if self.warmup_epochs and done < self.warmup_epochs:
            return self.learning_rate * (step + 1 + epoch * steps) / (self.warmup_epochs * steps + 1)
        if self.schedule == "constant" or self.epochs <= self.warmup_epochs:
            return self.learning_rate
        share = (done - self.warmup_epochs) / (self.epochs - self.warmup_epochs)
        if self.schedule == "linear":
            return self.learning_rate * (1 - share)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * share))

    def to_json(self) -> dict[str, object]:
        return asdict(self)
