"""Nodes taken away with their edges: what is left is the induced sub-graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import (
    compress,
    mark,
    order_by,
    pointer,
    positions,
    rank_among,
    repeat,
    running_count,
    take,
)
from graphsc.views.base import (
    VIEWS,
    AddedEdges,
    Change,
    NewFeatures,
    Operation,
    Order,
    nodes_per_graph,
    once_per_batch,
)
from graphsc.views.sampling import RandomOrder, distinct, smallest


@VIEWS.register("drop-nodes")
class DropNodes(Operation):
    """Drop a fraction of each graph's nodes, uniformly drawn; one node always stays."""

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def capacity(self, batch: GraphBatch) -> Tensor:
        return (nodes_per_graph(batch) - 1).clamp_(min=0)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        return lambda counts: Change(nodes=smallest(keys, batch.ptr, counts).logical_not_())


# Node features hidden: replaced by noise, or by a token that means "unknown".


@VIEWS.register("mask-attributes")
class MaskAttributes(Operation):
    """Replace the features of a fraction of each graph's nodes.

    By noise: dense rows drawn from N(mean, std). By a token, as molecule encoders have it: the first
    categorical column becomes that code, the others 0 and floats 0. "auto" takes the token where one is
    given or the features have a code for hidden nodes, and else noise.
    """

    def __init__(
        self,
        *,
        value: Literal["auto", "noise", "token"] = "auto",
        mean: float = 0.5,
        std: float = 0.5,
        token: int | None = None,  # None: the features' own
    ) -> None:
        if std < 0:
            raise ConfigError(f"std must not be negative, not {std}")
        if token is not None and token < 0:
            raise ConfigError(f"token must be a code from 0, not {token}")
        if value not in ("auto", "noise", "token"):
            raise ConfigError(f"value must be 'auto', 'noise' or 'token', not {value!r}")
        if value == "noise" and token is not None:
            raise ConfigError("a token is given, but features are to be replaced by noise")
        self.value = value
        self.mean = mean
        self.std = std
        self.token = token

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        at_most = smallest(keys, batch.ptr, most)
        nodes = positions(at_most)
        token = self._token(batch)
        rows = (
            self._noise(batch, len(nodes), generator) if token is None else _codes(batch, len(nodes), token)
        )

        def first(counts: Tensor) -> Change:
            chosen, values = nodes, rows
            if not torch.equal(counts, most):
                among = smallest(keys, batch.ptr, counts)[nodes]
                chosen, values = nodes[among], rows[among]
            features = NewFeatures(chosen, values)
            return Change(dense=features) if token is None else Change(codes=features)

        return first

    def _token(self, batch: GraphBatch) -> int | None:
        """The code that hides a node, or None for noise."""
        if self.value == "noise":
            return None
        token = batch.features.hidden if self.token is None else self.token
        if token is None and self.value == "token":
            raise ConfigError(
                "these nodes' features have no code for hidden nodes",
                hint="say which code is the token, or replace features by noise",
            )
        return token

    def _noise(self, batch: GraphBatch, count: int, generator: torch.Generator) -> Tensor:
        rows = torch.empty(count, batch.features.width, device=batch.device)
        return rows.normal_(self.mean, self.std, generator=generator)


def _codes(batch: GraphBatch, count: int, token: int) -> Tensor:
    known = batch.features.cardinalities
    if not known or token >= known[0]:
        raise ConfigError(
            f"token {token} is no code of these nodes' first categorical feature",
            hint=f"it has {known[0]} codes, from 0" if known else "they have none; leave token out",
        )
    codes = torch.zeros(count, len(known), dtype=torch.int64, device=batch.device)
    codes[:, 0] = token
    return codes


# Graphs as they are: one of JOAO's five operations, and a useful control.


@VIEWS.register("identity")
class Identity(Operation):
    """The same graph at every rate."""

    def size(self, batch: GraphBatch) -> Tensor:
        return torch.zeros_like(nodes_per_graph(batch))

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        return lambda counts: Change()


# Edges as things of their own: in an undirected batch two entries are one edge and share one fate.


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


# Pairs of nodes that no edge joins, drawn uniformly and without repetition.
#
# Absent pairs are numbered in the order in which edges are stored. The r-th of them is found by counting
# the edges before it, so that even a nearly complete graph costs no second try.


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


# Edges taken away, and as many put where there were none.


@VIEWS.register("perturb-edges")
class PerturbEdges(Operation):
    """Drop a fraction of each graph's edges and, with mode "replace", add as many absent ones.

    An undirected edge is dropped or added in both directions. Where fewer pairs are absent than edges
    dropped, all of them are added. An added edge has the attributes of a random edge of its graph.
    """

    def __init__(self, *, mode: Literal["replace", "drop"] = "replace") -> None:
        if mode not in ("replace", "drop"):
            raise ConfigError(f"mode must be 'replace' or 'drop', not {mode!r}")
        self.mode = mode

    def size(self, batch: GraphBatch) -> Tensor:
        return edge_pairs(batch).ptr.diff()

    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        pairs = edge_pairs(batch)
        dropped = distinct(pairs.ptr.diff(), most, generator)
        order = RandomOrder(pointer(most), generator)
        new = _Additions(batch, pairs, most, generator) if self.mode == "replace" else None

        def first(counts: Tensor) -> Change:
            among = order.first(counts)
            gone = dropped if among is None else compress(dropped, among)
            keep = torch.ones(batch.num_edges, dtype=torch.bool, device=batch.device)
            mark(keep, pairs.all_entries(gone), False)
            return Change(edges=keep, added=None if new is None else new.first(counts))

        return first


class _Additions:
    """Edges to add, in random order within each graph."""

    def __init__(self, batch: GraphBatch, pairs: EdgePairs, most: Tensor, generator: torch.Generator) -> None:
        absent = absent_pairs(batch)
        self.most = torch.minimum(most, absent.counts)
        self.undirected = batch.undirected
        self.source, self.destination = absent.draw(self.most, generator)
        self.order = RandomOrder(pointer(self.most), generator)
        self.like: Tensor | None = None
        if batch.edge_codes is not None or batch.edge_floats is not None:
            total = len(self.source)
            size = repeat(pairs.ptr.diff(), self.most, total)
            uniform = torch.rand(total, generator=generator, device=batch.device, dtype=torch.float64)
            drawn = torch.minimum(uniform.mul_(size).long(), size - 1)
            self.like = pairs.entries(drawn + repeat(pairs.ptr[:-1], self.most, total))

    def first(self, counts: Tensor) -> AddedEdges:
        source, destination, like = self.source, self.destination, self.like
        among = self.order.first(torch.minimum(counts, self.most))
        if among is not None:
            source, destination = compress(source, among), compress(destination, among)
            like = None if like is None else compress(like, among)
        if not self.undirected:
            return AddedEdges(source, destination, like)
        return AddedEdges(
            torch.cat([source, destination]),
            torch.cat([destination, source]),
            None if like is None else torch.cat([like, like]),
        )
