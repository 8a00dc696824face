"""Array operations on any device that the views share. Nothing here is differentiable."""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.core.compiled import use_compiled


def use_loops(values: Tensor) -> bool:
    """Whether the loops of `views.compiled` can run on these values."""
    return values.is_cpu and use_compiled()


def flatnonzero(mask: Tensor) -> Tensor:
    """The indices where a mask is true, int64."""
    return mask.nonzero().flatten()


def repeat(values: Tensor, counts: Tensor, total: int) -> Tensor:
    """Repeat each value as often as its count (int64); `total` is the sum of the counts."""
    return torch.repeat_interleave(values, counts, output_size=total)


def take(values: Tensor, index: Tensor) -> Tensor:
    """Rows of `values` by an int32 or int64 index."""
    if values.dtype is torch.bool:  # torch gathers bytes faster than booleans
        return values.view(torch.uint8).index_select(0, index).view(torch.bool)
    return values.index_select(0, index)


def cumulative_count(mask: Tensor) -> Tensor:
    """The number of true entries before each position, int32, with the total appended."""
    return torch.cat([mask.new_zeros(1, dtype=torch.int32), mask.cumsum(0, dtype=torch.int32)])


def pointer(counts: Tensor) -> Tensor:
    """The CSR pointer of segments of these lengths: [0, c0, c0 + c1, ...]."""
    return torch.cat([counts.new_zeros(1), counts.cumsum(0)])
