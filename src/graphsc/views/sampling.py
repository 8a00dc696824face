"""Sampling without replacement from many segments at once, with an exact count per segment.

A segment is the nodes or edges of one graph. There are two ways: take the elements with the smallest random
keys (`smallest_per_segment`), or draw indices without a key for every element
(`sample_without_replacement`), which is faster when few of many are drawn.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import array_ops
from graphsc.views.array_ops import (
    compress,
    cumulative_count,
    flatnonzero,
    pointer,
    repeat,
    set_flags,
    sort,
    take,
)
from graphsc.views.base import Perturbation, apply_perturbation, nodes_per_graph


def smallest_per_segment(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Mask of the `counts[g]` smallest of `keys[ptr[g]:ptr[g + 1]]`; ties go to the lower position.

    With uniform keys this is uniform sampling without replacement. With the same keys, a larger count gives
    a superset. Other keys (arrival times, Gumbel noise) give other distributions. Keys must be finite, and
    counts at most the length of their segment.
    """
    if not array_ops.use_numpy(keys):
        return _smallest_by_rank(keys, ptr, counts)
    values, starts, wanted = keys.numpy(), ptr.numpy(), counts.numpy()
    if len(values) == 0:
        return torch.zeros(0, dtype=torch.bool)
    lengths = np.diff(starts)
    low, high = values.min(), values.max()
    # Segments are shifted apart so that one sort serves all. In double precision keys stay almost distinct.
    shifts = np.arange(len(lengths)) * (float(high) - float(low) + 1.0)
    shifted = np.repeat(shifts - low, lengths)
    shifted += values
    threshold = np.sort(shifted).take(starts[:-1] + wanted - 1, mode="clip")
    threshold[wanted == 0] = -np.inf
    chosen = shifted <= np.repeat(threshold, lengths)
    # Too many are chosen if keys tie at the threshold.
    if np.count_nonzero(chosen) != wanted.sum():
        return _smallest_by_rank(keys, ptr, counts)
    return torch.from_numpy(chosen)


def _smallest_by_rank(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """The same by ranking every element: slower, but correct with ties and on any device."""
    segment = torch.repeat_interleave(ptr.diff(), output_size=len(keys))
    order = keys.argsort(stable=True)
    order = order[segment[order].argsort(stable=True)]
    rank = torch.arange(len(keys), device=keys.device) - ptr[segment]
    chosen = torch.empty(len(keys), dtype=torch.bool, device=keys.device)
    chosen[order] = rank < counts[segment]
    return chosen


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
        return smallest_per_segment(self._keys, self.ptr, counts)


# Up to this many elements per drawn one, flagging all elements is cheaper than sorting the drawn ones.
_MAX_SIZE_PER_DRAW = 32
_MAX_SCALAR_DRAWS = 64  # up to this many missing elements are drawn one by one


def sample_without_replacement(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Draw `counts[g]` of `sizes[g]` elements uniformly per segment.

    Duplicates are drawn again. The resulting set is uniform, because no element is favoured.

    Returns:
        Sorted element numbers, int64, counted over all segments laid end to end.
    """
    start = sizes.cumsum(0) - sizes
    dense = sizes <= _MAX_SIZE_PER_DRAW * counts
    sparse_counts = counts.masked_fill(dense, 0)
    parts = []
    if bool(sparse_counts.any()):
        parts.append(_sample_by_sorting(start, sizes, sparse_counts, generator))
    if len(parts) == 0 or bool((counts * dense).any()):
        counts, pool = counts * dense, sizes * dense
        chosen = flatnonzero(_sample_by_flags(pool, counts, generator))
        parts.append(chosen.add_(repeat(start - pointer(pool)[:-1], counts, len(chosen))))
    return parts[0] if len(parts) == 1 else sort(torch.cat(parts))


def _sample_by_flags(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask over all elements. Where more than half are wanted, the complement is drawn."""
    ptr = pointer(sizes)
    total = int(ptr[-1])
    inverted = 2 * counts > sizes
    wanted = torch.where(inverted, sizes - counts, counts)
    flags = torch.zeros(total, dtype=torch.bool, device=sizes.device)
    set_flags(flags, _draw(ptr[:-1], sizes, wanted, generator), True)
    missing = wanted - take(cumulative_count(flags), ptr).diff()
    number = int(missing.sum())
    low, size = repeat(ptr[:-1], missing, number), repeat(sizes, missing, number)
    while number > _MAX_SCALAR_DRAWS:
        new = sort(_uniform_integers(low, size, generator))
        again = _is_duplicate(new) | take(flags, new)
        set_flags(flags, new, True)
        low, size = compress(low, again), compress(size, again)
        number = len(low)
    if number:
        _flag_one_by_one(flags, low, size, generator)
    return flags ^ repeat(inverted, sizes, total) if bool(inverted.any()) else flags


def _flag_one_by_one(flags: Tensor, low: Tensor, size: Tensor, generator: torch.Generator) -> None:
    """Flag one more element per entry; for so few that vectorised rounds would cost more."""
    view = flags.numpy() if array_ops.use_numpy(flags) else flags
    uniform: list[float] = []
    for first, length in zip(low.tolist(), size.tolist(), strict=True):
        place = None
        while place is None or view[place]:
            if not uniform:
                draws = torch.rand(
                    4 * _MAX_SCALAR_DRAWS, generator=generator, device=flags.device, dtype=torch.float64
                )
                uniform = draws.tolist()
            place = first + int(uniform.pop() * length)
        view[place] = True


def _sample_by_sorting(start: Tensor, sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """The drawn numbers, sorted; for few out of many, where duplicates are rare."""
    drawn = sort(_draw(start, sizes, counts, generator))
    total = len(drawn)
    again = _is_duplicate(drawn)
    while bool(again.any()):
        # Sorting keeps every number within the positions of its own segment.
        low, size = repeat(start, counts, total), repeat(sizes, counts, total)
        new = _uniform_integers(compress(low, again), compress(size, again), generator)
        drawn = sort(torch.cat([compress(drawn, ~again), new]))
        again = _is_duplicate(drawn)
    return drawn


def _draw(start: Tensor, sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    total = int(counts.sum())
    return _uniform_integers(repeat(start, counts, total), repeat(sizes, counts, total), generator)


def _uniform_integers(low: Tensor, size: Tensor, generator: torch.Generator) -> Tensor:
    """One integer from low to low + size - 1 per entry, int64."""
    uniform = torch.rand(len(low), generator=generator, device=low.device, dtype=torch.float64)
    # The draws are below one, and in double precision their product with a size stays below the size.
    return uniform.mul_(size).long().add_(low)


def _is_duplicate(values: Tensor) -> Tensor:
    """Mask of the sorted values that equal the value before."""
    mask = torch.zeros(len(values), dtype=torch.bool, device=values.device)
    torch.eq(values[1:], values[:-1], out=mask[1:])
    return mask


def sample_subgraphs(
    batch: GraphBatch, weight: Tensor, counts: Tensor, generator: torch.Generator
) -> GraphBatch:
    """The subgraphs induced by `counts[g]` nodes per graph, drawn without replacement.

    A draw is in proportion to the weights (N, positive) of the nodes not yet drawn. Counts (G) are clamped to
    between one and all nodes of a graph, so that no graph becomes empty.
    """
    return apply_perturbation(batch, Perturbation(nodes=sample_nodes(batch, weight, counts, generator)))


def sample_nodes(batch: GraphBatch, weight: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Mask (N) of the nodes that `sample_subgraphs` keeps.

    Each node gets an exponential waiting time with its weight as rate. The order of these times is that of
    sequential draws in proportion to the weights. Logarithms keep the times in range.
    """
    counts = torch.minimum(counts.clamp(min=1), nodes_per_graph(batch))
    times = torch.empty(batch.num_nodes, device=batch.device).exponential_(generator=generator)
    # A time may be rounded to zero, which has no logarithm.
    keys = times.clamp_(min=torch.finfo(times.dtype).tiny).log_() - weight.float().log()
    return smallest_per_segment(keys, batch.ptr, counts)
