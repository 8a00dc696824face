"""Encoders by name: ours, another package's, and any PyG module as a drop-in."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from graphsc.core.registry import Registry

# An entry takes a feature scheme and keywords, and gives a module that maps a batch to G x dimensions.
ENCODERS: Registry[Callable[..., nn.Module]] = Registry("encoder")
