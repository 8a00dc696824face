"""Edges as things of their own: in an undirected batch two entries are one edge and share one fate."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.fast import compress, order_by, positions, repeat, running_count, take
from graphsc.views.memo import once_per_batch


@dataclass(frozen=True, eq=False)
class EdgePairs:
    """The P edges of a batch, in the order (destination, source), with source <= destination.

    In a directed batch every entry is an edge of its own.
    """

    source: Tensor  # P, int32
    destination: Tensor  # P, int32, rising
    rowptr: Tensor  # N + 1, int32: edges rowptr[i]:rowptr[i + 1] end at node i
    ptr: Tensor  # G + 1, int64: edges of each graph
    below: Tensor | None  # N + 1, int32: entries with source > destination, in rows before each
    back: Tensor | None  # P, int32: which of those entries is the edge's other direction; -1 for a loop
    order: Tensor | None  # E, int32: where the entries are, if rows were not sorted

    def entries(self, pairs: Tensor) -> Tensor:
        """One entry for each of the given edges, int64."""
        found = pairs
        if self.below is not None:
            # Within a sorted row the entries above the diagonal come first.
            found = pairs + take(self.below, take(self.destination, pairs))
        return found if self.order is None else take(self.order, found).long()

    def all_entries(self, pairs: Tensor) -> Tensor:
        """The entries of the given edges in both directions, int64; a loop's may be there twice."""
        found = self.entries(pairs)
        if self.back is None:
            return found
        back, row = take(self.back, pairs), take(self.source, pairs)
        other = (back + take(self.rowptr, row + 1)).long()
        if self.order is not None:
            other = take(self.order, other).long()
        return torch.cat([found, torch.where(back < 0, found, other)])


@once_per_batch
def edge_pairs(batch: GraphBatch) -> EdgePairs:
    """The edges of a batch."""
    size, source, rowptr = batch.num_nodes, batch.source, batch.rowptr
    nodes = torch.arange(size, dtype=torch.int32, device=batch.device)
    destination = batch.destination
    order = None
    if not batch.sorted_sources:
        by_source = order_by(source, size)[0]
        order = take(by_source, order_by(take(destination, by_source), size)[0])
        source = take(source, order)  # destinations rise already and stay as they are
    if not batch.undirected:
        return EdgePairs(source, destination, rowptr, batch.edge_ptr, None, None, order)
    upper = source <= destination
    pair_source = compress(source, upper)
    pair_rowptr = take(running_count(upper), rowptr)
    ptr = take(pair_rowptr, batch.ptr).long()
    destination = repeat(nodes, pair_rowptr.diff().long(), len(pair_source))
    # Sorted by (source, destination), entries below the diagonal line up with those above it.
    back = order_by(compress(source, upper.logical_not_()), size)[0].int()
    if len(back) < len(pair_source):
        ordinary = positions(pair_source != destination)
        back = torch.full_like(pair_source, -1).scatter_(0, ordinary, back)
    return EdgePairs(pair_source, destination, pair_rowptr, ptr, rowptr - pair_rowptr, back, order)
