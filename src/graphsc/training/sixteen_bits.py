"""Weights in sixteen bits each: whole numbers and one scale a row.

Half-precision floats spend five bits on exponents that weights of one layer do not need, and BatchNorm, whose
statistics are those of the exact weights, makes the rounding larger where a column hardly varies. Whole
numbers are sixteen times as exact at the same size.
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

LARGEST = 2**15 - 1
SCALE = ".scale"


def to_sixteen_bits(weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Every matrix as int16 with a scale for each row beside it; all else, which is small, as it is."""
    found: dict[str, Tensor] = {}
    for name, value in weights.items():
        if value.dim() != 2 or not value.is_floating_point():
            found[name] = value
            continue
        scale = value.abs().amax(1).double().clamp(min=torch.finfo(torch.float32).tiny) / LARGEST
        found[name] = (value.double() / scale[:, None]).round().to(torch.int16)
        found[name + SCALE] = scale.float()
    return found


def from_sixteen_bits(stored: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Weights in 32 bits again; what was never made smaller is handed on."""
    found = {}
    for name, value in stored.items():
        if name.endswith(SCALE) and name.removesuffix(SCALE) in stored:
            continue
        scale = stored.get(name + SCALE)
        found[name] = value if scale is None else value.float() * scale[:, None]
    return found
