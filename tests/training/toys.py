"""Two toy methods that use every part of the contract."""

import torch
from torch import nn

from graphsc.methods.base import Player, TrainedMethod
from graphsc.methods.registry import METHODS, MethodEntry


class TwoPlayers(TrainedMethod):
    """The encoder makes rows small, a scale makes the same quantity large: opposed objectives."""

    def __init__(self, encoder: nn.Module, *, pull: float = 1.0) -> None:
        super().__init__(encoder)
        self.pull = pull
        self.scale = nn.Parameter(torch.ones(()))

    def objective(self, encoded, player="model"):
        size = encoded["anchor"].square().mean() * self.scale.square() * self.pull
        # Without the spring the adversary would diverge.
        return {"size": size} if player == "model" else {"size": -size, "spring": 5 * (self.scale - 1) ** 2}

    def encode(self, views, player="model"):
        with torch.set_grad_enabled(torch.is_grad_enabled()):
            rows = self.encoder(views["anchor"])
        return {"anchor": rows if player == "model" else rows.detach()}

    def players(self):
        return [
            Player("adversary", [self.scale], learning_rate_scale=0.5),
            Player("model", list(self.encoder.parameters())),
        ]


class Remembering(TrainedMethod):
    """Keeps a vector that is neither parameter nor buffer; it is drawn anew after each epoch."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__(encoder)
        self.target = torch.zeros(int(encoder.dimensions))
        self.dropout = nn.Dropout(0.3)  # draws from torch's global generator

    def objective(self, encoded, player="model"):
        return {"distance": (self.dropout(encoded["anchor"]) - self.target).square().mean()}

    def after_epoch(self, collection, generator):
        self.target = self.target + torch.randn(self.target.shape, generator=generator)

    def state(self):
        return {"target": self.target}

    def load_state(self, state):
        self.target = state["target"]


def register() -> None:
    for name, make in (("toy-two-players", TwoPlayers), ("toy-remembering", Remembering)):
        if name not in METHODS:
            METHODS.register(name)(MethodEntry(make, "-", 2026, "a toy"))
