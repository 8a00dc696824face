"""Exactly so many of each segment: the elements with the smallest keys.

With uniform keys this is a uniform draw without replacement; with the same keys a larger count gives a
superset. Other keys (arrival times, Gumbel noise) make other draws.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import array_ops
from graphsc.views.array_ops import ascending, compress, mark, pointer, positions, repeat, running_count, take
from graphsc.views.base import Change, materialise, nodes_per_graph


def smallest(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Mask of the `counts[g]` smallest of `keys[ptr[g]:ptr[g + 1]]`; equal keys go by position.

    Keys must be finite, and a count at most the length of its segment.
    """
    if not array_ops.numpy_serves(keys):
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


# Distinct elements of each segment by number, drawn without a random key for every element.


# Up to this many elements for each one drawn, flags for all are cheaper than sorting the drawn ones.
FLAGS = 32
FEW = 64  # up to so many are drawn again one by one


def distinct(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """`counts[g]` of `sizes[g]` elements, uniformly; numbers over all segments end to end, rising.

    Draw, and draw again what is there already: a uniform set, because no element is favoured.
    """
    start = sizes.cumsum(0) - sizes
    short = sizes <= FLAGS * counts
    few = counts.masked_fill(short, 0)
    parts = []
    if bool(few.any()):
        parts.append(_sorting(start, sizes, few, generator))
    if len(parts) == 0 or bool((counts * short).any()):
        counts, pool = counts * short, sizes * short
        chosen = positions(_flagging(pool, counts, generator))
        parts.append(chosen.add_(repeat(start - pointer(pool)[:-1], counts, len(chosen))))
    return parts[0] if len(parts) == 1 else ascending(torch.cat(parts))


def _flagging(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask over all elements; where most are wanted, those that are not are drawn."""
    ptr = pointer(sizes)
    total = int(ptr[-1])
    most = 2 * counts > sizes
    wanted = torch.where(most, sizes - counts, counts)
    flags = torch.zeros(total, dtype=torch.bool, device=sizes.device)
    mark(flags, _draw(ptr[:-1], sizes, wanted, generator), True)
    missing = wanted - take(running_count(flags), ptr).diff()
    number = int(missing.sum())
    low, size = repeat(ptr[:-1], missing, number), repeat(sizes, missing, number)
    while number > FEW:
        new = ascending(_uniform(low, size, generator))
        again = _repeated(new) | take(flags, new)
        mark(flags, new, True)
        low, size = compress(low, again), compress(size, again)
        number = len(low)
    if number:
        _one_by_one(flags, low, size, generator)
    return flags ^ repeat(most, sizes, total) if bool(most.any()) else flags


def _one_by_one(flags: Tensor, low: Tensor, size: Tensor, generator: torch.Generator) -> None:
    """Flag one more for each; for so few that whole rounds would cost more."""
    view = flags.numpy() if array_ops.numpy_serves(flags) else flags
    uniform: list[float] = []
    for first, length in zip(low.tolist(), size.tolist(), strict=True):
        place = None
        while place is None or view[place]:
            if not uniform:
                drawn = torch.rand(4 * FEW, generator=generator, device=flags.device, dtype=torch.float64)
                uniform = drawn.tolist()
            place = first + int(uniform.pop() * length)
        view[place] = True


def _sorting(start: Tensor, sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """The drawn numbers, rising; for few out of many, where hardly any comes twice."""
    kept = ascending(_draw(start, sizes, counts, generator))
    total = len(kept)
    again = _repeated(kept)
    while bool(again.any()):
        # Sorting leaves every number within its own segment's places.
        low, size = repeat(start, counts, total), repeat(sizes, counts, total)
        new = _uniform(compress(low, again), compress(size, again), generator)
        kept = ascending(torch.cat([compress(kept, ~again), new]))
        again = _repeated(kept)
    return kept


def _draw(start: Tensor, sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    total = int(counts.sum())
    return _uniform(repeat(start, counts, total), repeat(sizes, counts, total), generator)


def _uniform(low: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
    """A whole number from low to low + size - 1 for each, int64."""
    uniform = torch.rand(len(low), generator=generator, device=low.device, dtype=torch.float64)
    # Below one, so that the product lies below the size: a double rounds it down where it must.
    return uniform.mul_(size).long().add_(low)


def _repeated(rising: Tensor) -> Tensor:
    """Mask of values that equal the one before."""
    mask = torch.zeros(len(rising), dtype=torch.bool, device=rising.device)
    torch.eq(rising[1:], rising[:-1], out=mask[1:])
    return mask


# Some of each graph's nodes kept, the likelier the more they weigh: draws that a network's scores steer.


def keep_nodes(batch: GraphBatch, weight: Tensor, counts: Tensor, generator: torch.Generator) -> GraphBatch:
    """The sub-graphs on `counts[g]` (G) nodes of each graph, drawn one after the other without replacement.

    weight: N, above zero; each draw takes a node with a chance in proportion to its weight among those that
    are left. Counts are brought between one and all of a graph's nodes, so that no graph is emptied.
    """
    return materialise(batch, Change(nodes=draw_weighted(batch, weight, counts, generator)))


def draw_weighted(batch: GraphBatch, weight: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask (N) of the nodes drawn.

    Each node waits for a time that is exponential at the rate of its weight. Who comes first, and of those
    left who comes next, is drawn in proportion to the weights. Logarithms keep the times within range.
    """
    counts = torch.minimum(counts.clamp(min=1), nodes_per_graph(batch))
    waits = torch.empty(batch.num_nodes, device=batch.device).exponential_(generator=generator)
    # A wait of zero, which rounding may give, has no logarithm.
    keys = waits.clamp_(min=torch.finfo(waits.dtype).tiny).log_() - weight.float().log()
    return smallest(keys, batch.ptr, counts)
