"""Three toy methods that use every part of the contract."""

import torch
from torch import nn

from graphsc.methods.base import Player, TrainedMethod
from graphsc.methods.momentum import MomentumCopy, VectorQueue
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


class Following(TrainedMethod):
    """All that `after_step` can change: an average of the encoder, a queue, and a tensor in `state`."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__(encoder)
        self.target = MomentumCopy(encoder)
        self.queue = VectorQueue(24, int(encoder.dimensions))
        self.done = torch.zeros(())

    def encode(self, views, player="model"):
        return {"anchor": self.encoder(views["anchor"]), "target": self.target(views["anchor"])}

    def objective(self, encoded, player="model"):
        near = (encoded["anchor"] - encoded["target"] - self.done).square().mean()
        far = self.queue.vectors() if len(self.queue) else encoded["target"]
        return {"near": near, "far": (encoded["anchor"] @ far.mT).square().mean() / 100}

    def after_step(self, encoded, progress):
        self.target.update(self.encoder, 0.9)
        self.queue.push(encoded["target"])
        self.done = self.done + progress

    def state(self):
        return {"done": self.done}

    def load_state(self, state):
        self.done = state["done"]


def register() -> None:
    toys = {"toy-two-players": TwoPlayers, "toy-remembering": Remembering, "toy-following": Following}
    for name, make in toys.items():
        if name not in METHODS:
            METHODS.register(name)(MethodEntry(make, "-", 2026, "a toy"))
