"""Sampling without replacement from many segments at once, with an exact count per segment.

A segment is the nodes or edges of one graph. There are two ways: take the elements with the smallest random
keys (`smallest_per_segment`), or draw indices without a key for every element
(`sample_without_replacement`), which is faster when few of many are drawn.
"""

from __future__ import annotations

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views import array_ops
from graphsc.views.array_ops import pointer, repeat, take
from graphsc.views.base import Perturbation, apply_perturbation, nodes_per_graph


def smallest_per_segment(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Mask of the `counts[g]` smallest of `keys[ptr[g]:ptr[g + 1]]`; ties go to the lower position.

    With uniform keys this is uniform sampling without replacement. With the same keys, a larger count gives
    a superset. Other keys (arrival times, Gumbel noise) give other distributions. Keys must be finite, and
    counts at most the length of their segment.
    """
    if not array_ops.use_loops(keys):
        return _smallest_by_rank(keys, ptr, counts)
    from graphsc.views import compiled

    return torch.from_numpy(compiled.smallest_per_segment(keys.double().numpy(), ptr.numpy(), counts.numpy()))


def _smallest_by_rank(keys: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """The same by ranking every element, on any device."""
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


def sample_without_replacement(sizes: Tensor, counts: Tensor, generator: torch.Generator) -> Tensor:
    """Draw `counts[g]` of `sizes[g]` elements uniformly per segment.

    Draws of elements that were drawn before are repeated, in rounds over all segments. The resulting set is
    uniform, because no element is favoured. Where more than half are wanted, the others are drawn.

    Returns:
        Sorted element numbers, int64, counted over all segments laid end to end.
    """
    inverted = 2 * counts > sizes
    wanted = torch.where(inverted, sizes - counts, counts)
    if array_ops.use_loops(sizes):
        return _sample_compiled(sizes, wanted, inverted, generator)
    drawn = _draw_distinct(sizes, wanted, generator)
    return _complement(drawn, sizes, wanted, inverted) if bool(inverted.any()) else drawn


def _sample_compiled(sizes: Tensor, wanted: Tensor, inverted: Tensor, generator: torch.Generator) -> Tensor:
    from graphsc.views.compiled import add_distinct, list_distinct

    missing = wanted.clone()
    total = int(wanted.sum())
    table = torch.full((3 * total,), -1).numpy()
    while total:
        uniform = torch.rand(total, generator=generator, dtype=torch.float64)
        total = add_distinct(table, sizes.numpy(), wanted.numpy(), missing.numpy(), uniform.numpy())
    return torch.from_numpy(list_distinct(table, sizes.numpy(), wanted.numpy(), inverted.numpy()))


def _draw_distinct(sizes: Tensor, wanted: Tensor, generator: torch.Generator) -> Tensor:
    """`wanted[g]` distinct elements of each segment, sorted, in torch."""
    ptr = pointer(sizes)
    missing, drawn = wanted, wanted.new_zeros(0)
    while total := int(missing.sum()):
        uniform = torch.rand(total, generator=generator, device=sizes.device, dtype=torch.float64)
        # The draws are below one, and in double precision their product with a size stays below the size.
        new = uniform.mul_(repeat(sizes, missing, total)).long().add_(repeat(ptr[:-1], missing, total))
        drawn = torch.unique(torch.cat([drawn, new]))
        missing = wanted - torch.searchsorted(drawn, ptr).diff()
    return drawn


def _complement(drawn: Tensor, sizes: Tensor, counts: Tensor, inverted: Tensor) -> Tensor:
    """Replace the `counts[g]` drawn numbers of each inverted segment by the numbers that were not drawn."""
    swap = repeat(inverted, counts, len(drawn))
    starts = sizes.cumsum(0) - sizes
    lengths = sizes * inverted
    ptr = pointer(lengths)
    total = int(ptr[-1])
    shift = starts - ptr[:-1]  # from a number among the inverted segments to that among all
    absent = torch.ones(total, dtype=torch.bool, device=drawn.device)
    absent[(drawn - repeat(shift, counts, len(drawn)))[swap]] = False
    others = (torch.arange(total, device=drawn.device) + repeat(shift, lengths, total))[absent]
    return torch.cat([drawn[~swap], others]).sort().values


def choose_nodes(
    batch: GraphBatch, count: int | None, generator: torch.Generator, *, by_graph: bool = False
) -> Tensor:
    """Mask (N) of at most `count` uniformly drawn nodes of a batch; all for None.

    With `by_graph`, nodes of the same graph are drawn together: those of the first graphs of a random order,
    and a part of the last of these.
    """
    size, device = batch.num_nodes, generator.device
    if count is None or size <= count:
        return torch.ones(size, dtype=torch.bool, device=device)
    order = torch.randperm(size, generator=generator, device=device)
    if by_graph:
        place = torch.randperm(batch.num_graphs, generator=generator, device=device)
        order = order[take(place, batch.batch[order]).argsort(stable=True)]
    chosen = torch.zeros(size, dtype=torch.bool, device=device)
    return chosen.index_fill_(0, order[:count], True)


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
