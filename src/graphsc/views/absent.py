"""Pairs of nodes that no edge joins, drawn uniformly and without repetition.

Absent pairs are numbered in the order in which edges are stored. The r-th of them is found by counting
the edges before it, so that even a nearly complete graph costs no second try.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsc.data.batch import GraphBatch
from graphsc.views.distinct import distinct
from graphsc.views.edge_pairs import EdgePairs, edge_pairs
from graphsc.views.fast import compress, mark, pointer, positions, rank_among, repeat, take
from graphsc.views.memo import once_per_batch


@dataclass(frozen=True, eq=False)
class AbsentPairs:
    """The absent pairs of each graph: {u, v} where edges have no direction, else (u, v); no loops."""

    counts: Tensor  # G, int64
    undirected: bool
    first_node: Tensor  # N: the first node of each node's graph
    ptr: Tensor  # N + 1: absent pairs ptr[i]:ptr[i + 1] end at node i
    rowptr: Tensor  # N + 1: the same for edges, loops and second copies left out
    before: Tensor  # for each such edge, how many absent pairs come before it; never falls

    def draw(self, counts: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """`counts[g]` distinct absent pairs of each graph: sources and destinations, int32."""
        number = distinct(self.counts, counts, generator)
        row = self._rows(number)
        edges_before = rank_among(self.before, number.to(self.before.dtype)) - take(self.rowptr, row)
        first = take(self.first_node, row)
        source = number - take(self.ptr, row) + edges_before + first
        if not self.undirected:  # the node itself is passed over
            source += (source >= row).long()
        return source.int(), row.int()

    def _rows(self, number: Tensor) -> Tensor:
        """The node each of the rising numbers ends at; look-ups are made on the shorter side."""
        size = len(self.ptr) - 1
        if len(number) < size:
            return rank_among(self.ptr, number) - 1
        ends = rank_among(number, self.ptr - 1)
        return repeat(torch.arange(size, device=number.device), ends.diff(), len(number))


@once_per_batch
def absent_pairs(batch: GraphBatch) -> AbsentPairs:
    """The absent pairs of a batch."""
    size, sizes = batch.num_nodes, batch.ptr.diff()
    source, rowptr = _simple(edge_pairs(batch))
    degree = rowptr.diff().long()
    nodes = torch.arange(size, device=batch.device)
    first_node = repeat(batch.ptr[:-1], sizes, size)
    # How many pairs end at each node: with all nodes before it, or with all nodes but itself.
    partners = nodes - first_node if batch.undirected else repeat(sizes - 1, sizes, size)
    ptr = pointer(partners - degree)
    dtype = torch.int32 if int(ptr[-1]) + size + len(source) < 2**31 else torch.int64
    before = repeat((ptr[:-1] - first_node + rowptr[:-1]).to(dtype), degree, len(source))
    before += source
    before -= torch.arange(len(source), dtype=dtype, device=batch.device)
    if not batch.undirected:
        before -= (source > repeat(nodes, degree, len(source))).to(dtype)
    return AbsentPairs(ptr[batch.ptr].diff(), batch.undirected, first_node, ptr, rowptr, before)


def _simple(pairs: EdgePairs) -> tuple[Tensor, Tensor]:
    """Sources and row pointer of the edges without loops and second copies."""
    source, destination = pairs.source, pairs.destination
    again = positions(source[1:] == source[:-1])
    again = again[take(destination, again) == take(destination, again + 1)] + 1
    loops = positions(source == destination)
    out = torch.unique(torch.cat([again, loops]))
    if not len(out):
        return source, pairs.rowptr
    single = mark(torch.ones(len(source), dtype=torch.bool, device=source.device), out, False)
    return compress(source, single), pairs.rowptr - rank_among(out, pairs.rowptr.long() - 1).int()
