"""A network whose turn it is not: used, but not learned."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from torch import nn

Mode = Literal["training", "evaluation"]


@contextmanager
def resting(module: nn.Module, mode: Mode = "training") -> Iterator[None]:
    """Let gradients pass through a module and leave none on its parameters.

    In "evaluation" its BatchNorm takes the running statistics; in "training" it stays as it is.
    """
    learning = [parameter for parameter in module.parameters() if parameter.requires_grad]
    was_training = module.training
    for parameter in learning:
        parameter.requires_grad_(False)
    if mode == "evaluation":
        module.eval()
    try:
        yield
    finally:
        module.train(was_training)
        for parameter in learning:
            parameter.requires_grad_(True)
