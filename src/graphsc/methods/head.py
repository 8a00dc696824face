"""A projection head: the small network between an encoder and a contrastive loss."""

from __future__ import annotations

from torch import nn


def projection(inputs: int, outputs: int | None = None) -> nn.Sequential:
    """Linear - ReLU - Linear, Xavier-uniform weights and zero biases."""
    head = nn.Sequential(nn.Linear(inputs, inputs), nn.ReLU(), nn.Linear(inputs, outputs or inputs))
    for layer in head:
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            nn.init.zeros_(layer.bias)
    return head
