"""What follows the weights during training: a moving-average copy of a module, and a queue of vectors.

Both are updated in `TrainedMethod.after_step` and are part of the checkpoint: parameters without gradients,
and buffers.
"""

from __future__ import annotations

from copy import deepcopy

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError


class MomentumCopy(nn.Module):
    """A copy of a module whose parameters are a moving average of the original's; it has no gradients.

    Buffers are its own: BatchNorm's running statistics are those of its own passes.
    """

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = deepcopy(module).requires_grad_(False)

    @torch.no_grad()
    def forward(self, *arguments: object) -> Tensor:
        """The copy's result, without a gradient."""
        result: Tensor = self.module(*arguments)
        return result

    @torch.no_grad()
    def update(self, original: nn.Module, momentum: float) -> None:
        """Move every parameter to momentum * its value + (1 - momentum) * the original's."""
        own, others = tuple(self.module.parameters()), tuple(original.parameters())
        if own:
            torch._foreach_lerp_(own, others, 1 - momentum)


class VectorQueue(nn.Module):
    """The newest `capacity` vectors that were pushed, in a ring; empty at first."""

    ring: Tensor
    pushed: Tensor

    def __init__(self, capacity: int, width: int) -> None:
        super().__init__()
        if capacity < 1:
            raise ConfigError(f"a queue needs a capacity of at least 1, not {capacity}")
        self.register_buffer("ring", torch.zeros(capacity, width))
        self.register_buffer("pushed", torch.zeros((), dtype=torch.int64))

    def __len__(self) -> int:
        return min(int(self.pushed), len(self.ring))

    def vectors(self) -> Tensor:
        """The vectors it holds, `len(self)` x width, in no particular order."""
        return self.ring[: len(self)]

    @torch.no_grad()
    def push(self, rows: Tensor) -> None:
        """Add rows (n x width) in place of the oldest."""
        capacity = len(self.ring)
        start = int(self.pushed) + max(len(rows) - capacity, 0)
        newest = rows[-capacity:]
        places = (start + torch.arange(len(newest), device=self.ring.device)) % capacity
        self.ring[places] = newest.to(self.ring.dtype)
        self.pushed += len(rows)


def check_momentum(momentum: float) -> None:
    """Refuse a momentum outside [0, 1]."""
    if not 0 <= momentum <= 1:
        raise ConfigError(f"momentum is the share that is kept, from 0 to 1, not {momentum}")
