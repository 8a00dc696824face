"""Exactly so many of each segment: the elements with the smallest keys.

With uniform keys this is a uniform draw without replacement; with the same keys a larger count gives a
superset. Other keys (arrival times, Gumbel noise) make other draws.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from graphsc.views import fast


def smallest(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Mask of the `counts[g]` smallest of `keys[ptr[g]:ptr[g + 1]]`; equal keys go by position.

    Keys must be finite, and a count at most the length of its segment.
    """
    if not fast.numpy_serves(keys):
        return smallest_by_order(keys, ptr, counts)
    values, first, wanted = keys.numpy(), ptr.numpy(), counts.numpy()
    if len(values) == 0:
        return torch.zeros(0, dtype=torch.bool)
    lengths = np.diff(first)
    low, high = values.min(), values.max()
    # Segments are set apart so that one sort serves all; doubles leave the keys distinct, or nearly.
    starts = np.arange(len(lengths)) * (float(high) - float(low) + 1.0)
    shifted = np.repeat(starts - low, lengths)
    shifted += values
    last = np.sort(shifted).take(first[:-1] + wanted - 1, mode="clip")
    last[wanted == 0] = -np.inf
    chosen = shifted <= np.repeat(last, lengths)
    # More than asked for: two keys were equal just where the line runs.
    if np.count_nonzero(chosen) != wanted.sum():
        return smallest_by_order(keys, ptr, counts)
    return torch.from_numpy(chosen)


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
