"""Exactly so many of each segment: the elements with the smallest keys.

With uniform keys this is a uniform draw without replacement; with the same keys a larger count gives a
superset. Other keys (arrival times, Gumbel noise) make other draws.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.views.fast import ascending, repeat


def smallest(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Mask of the `counts[g]` smallest of `keys[ptr[g]:ptr[g + 1]]`; equal keys go by position.

    Keys must be finite, and a count at most the length of its segment.
    """
    if len(keys) == 0:
        return torch.zeros(0, dtype=torch.bool, device=keys.device)
    lengths = ptr.diff()
    low, high = keys.aminmax()
    # Segments are set apart so that one sort serves all; doubles leave the keys distinct, or nearly.
    step = (high - low).double() + 1.0
    starts = torch.arange(len(lengths), device=keys.device) * step
    shifted = repeat(starts, lengths, len(keys)).add_(keys).sub_(low)
    last = ascending(shifted)[(ptr[:-1] + counts - 1).clamp_(0, len(keys) - 1)]
    last = last.masked_fill(counts == 0, -torch.inf)
    chosen = shifted <= repeat(last, lengths, len(keys))
    # More than asked for: two keys were equal just where the line runs.
    if int(chosen.sum()) != int(counts.sum()):
        return smallest_by_order(keys, ptr, counts)
    return chosen


def smallest_by_order(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """The same by ranking every element: slower, and right with equal keys too."""
    segment = torch.repeat_interleave(ptr.diff(), output_size=len(keys))
    order = keys.argsort(stable=True)
    order = order[segment[order].argsort(stable=True)]
    rank = torch.arange(len(keys), device=keys.device) - ptr[segment]
    chosen = torch.empty(len(keys), dtype=torch.bool, device=keys.device)
    chosen[order] = rank < counts[segment]
    return chosen


def choose(ptr: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask of `counts[g]` uniformly drawn elements of each segment."""
    keys = torch.rand(int(ptr[-1]), generator=generator, device=generator.device)
    return smallest(keys, ptr, counts)


class RandomOrder:
    """A random order of the elements of each segment, drawn only when fewer than all are asked for."""

    def __init__(self, ptr: Tensor, generator: torch.Generator) -> None:
        self.ptr = ptr
        self.generator = generator
        self._keys: Tensor | None = None

    def first(self, counts: Tensor) -> Tensor | None:
        """Mask of the first `counts[g]` of each segment; None for all. Larger counts give supersets."""
        if torch.equal(counts, self.ptr.diff()):
            return None
        if self._keys is None:
            total, device = int(self.ptr[-1]), self.generator.device
            self._keys = torch.rand(total, generator=self.generator, device=device)
        return smallest(self._keys, self.ptr, counts)
