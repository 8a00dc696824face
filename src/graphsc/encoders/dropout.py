"""Dropout for CPUs, where torch draws one entry at a time: here one draw of 64 bits decides four."""

from __future__ import annotations

import torch
from torch import Tensor

LEVELS = 1 << 16


def drop(x: Tensor, rate: float) -> Tensor:
    """Each entry set to zero with probability `rate`, to 1 in 65,536, the others scaled up to make up for it.

    Draws from torch's own generator. 0 gives x itself.
    """
    dropped = round(rate * LEVELS)
    if dropped == 0:
        return x
    if x.device.type != "cpu":
        return torch.nn.functional.dropout(x, rate)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    kept = draws.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - LEVELS // 2
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))
