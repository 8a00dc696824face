"""The basic perturbations: drop nodes, mask node attributes, perturb edges, identity.

`Subgraph` has a module of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import (
    compress,
    counting_sort,
    cumulative_count,
    flatnonzero,
    pointer,
    repeat,
    searchsorted_right,
    set_flags,
    take,
)
from graphsc.views.base import (
    VIEWS,
    AddedEdges,
    NewFeatures,
    Operation,
    Order,
    Perturbation,
    cache_per_batch,
    nodes_per_graph,
)
from graphsc.views.sampling import RandomOrder, sample_without_replacement, smallest_per_segment


@VIEWS.register("identity")
class Identity(Operation):
    """Leave graphs unchanged at every rate; one of JOAO's five operations, and a control."""

    def size(self, batch: GraphBatch) -> Tensor:
        return torch.zeros_like(nodes_per_graph(batch))

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        return lambda counts: Perturbation()


@VIEWS.register("drop-nodes")
class DropNodes(Operation):
    """Drop a uniformly drawn fraction of each graph's nodes, with their edges; at least one node stays."""

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def capacity(self, batch: GraphBatch) -> Tensor:
        return (nodes_per_graph(batch) - 1).clamp_(min=0)

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        return lambda counts: Perturbation(nodes=smallest_per_segment(keys, batch.ptr, counts).logical_not_())


@VIEWS.register("mask-attributes")
class MaskAttributes(Operation):
    """Replace the features of a fraction of each graph's nodes by noise or by a mask token.

    Args:
        value: "noise" draws dense rows from N(mean, std). "token" sets the first categorical column to the
            token, the other columns and the floats to 0, as molecule encoders expect. "auto" uses a token
            if one is given or the feature scheme has a code for hidden nodes, and noise otherwise.
        mean: Mean of the noise.
        std: Standard deviation of the noise.
        token: Code of the mask token; None for that of the feature scheme.
    """

    def __init__(
        self,
        *,
        value: Literal["auto", "noise", "token"] = "auto",
        mean: float = 0.5,
        std: float = 0.5,
        token: int | None = None,
    ) -> None:
        if std < 0:
            raise ConfigError(f"std must be at least 0, not {std}")
        if token is not None and token < 0:
            raise ConfigError(f"token must be at least 0, not {token}")
        if value not in ("auto", "noise", "token"):
            raise ConfigError(f"value must be 'auto', 'noise' or 'token', not {value!r}")
        if value == "noise" and token is not None:
            raise ConfigError(
                "a token is given, but value is 'noise'", hint="leave out the token, or use value 'token'"
            )
        self.value = value
        self.mean = mean
        self.std = std
        self.token = token

    def size(self, batch: GraphBatch) -> Tensor:
        return nodes_per_graph(batch)

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        keys = torch.rand(batch.num_nodes, generator=generator, device=batch.device)
        nodes = flatnonzero(smallest_per_segment(keys, batch.ptr, max_counts))
        token = self._token(batch)
        rows = (
            self._noise(batch, len(nodes), generator)
            if token is None
            else _token_rows(batch, len(nodes), token)
        )

        def first(counts: Tensor) -> Perturbation:
            masked, values = nodes, rows
            if not torch.equal(counts, max_counts):
                among = smallest_per_segment(keys, batch.ptr, counts)[nodes]
                masked, values = nodes[among], rows[among]
            features = NewFeatures(masked, values)
            return Perturbation(dense=features) if token is None else Perturbation(codes=features)

        return first

    def _token(self, batch: GraphBatch) -> int | None:
        """The code of the mask token, or None for noise."""
        if self.value == "noise":
            return None
        token = batch.features.hidden if self.token is None else self.token
        if token is None and self.value == "token":
            raise ConfigError(
                "the node features have no code for hidden nodes",
                hint="name the code with token=CODE, or use value 'noise'",
            )
        return token

    def _noise(self, batch: GraphBatch, count: int, generator: torch.Generator) -> Tensor:
        rows = torch.empty(count, batch.features.width, device=batch.device)
        return rows.normal_(self.mean, self.std, generator=generator)


def _token_rows(batch: GraphBatch, count: int, token: int) -> Tensor:
    cardinalities = batch.features.cardinalities
    if not cardinalities or token >= cardinalities[0]:
        raise ConfigError(
            f"token {token} is not a code of the first categorical node feature",
            hint=f"use a code from 0 to {cardinalities[0] - 1}" if cardinalities else "leave out the token",
        )
    codes = torch.zeros(count, len(cardinalities), dtype=torch.int64, device=batch.device)
    codes[:, 0] = token
    return codes


@dataclass(frozen=True, eq=False)
class EdgePairs:
    """The P edges of a batch, sorted by (destination, source).

    The two adjacency entries of an undirected edge form one edge, with source <= destination. In a directed
    batch every entry is an edge of its own.
    """

    source: Tensor  # P, int32
    destination: Tensor  # P, int32, sorted
    rowptr: Tensor  # N + 1, int32: edges rowptr[i]:rowptr[i + 1] end at node i
    ptr: Tensor  # G + 1, int64: edges of each graph
    below: Tensor | None  # N + 1, int32: number of entries with source > destination in earlier rows
    back: Tensor | None  # P, int32: index among those entries of the reverse direction; -1 for a self-loop
    order: Tensor | None  # E, int32: positions of the sorted entries, if rows were not sorted

    def entries(self, pairs: Tensor) -> Tensor:
        """One adjacency entry per given edge, int64."""
        entries = pairs
        if self.below is not None:
            # Within a sorted row the entries above the diagonal come first.
            entries = pairs + take(self.below, take(self.destination, pairs))
        return entries if self.order is None else take(self.order, entries).long()

    def all_entries(self, pairs: Tensor) -> Tensor:
        """The entries of the given edges in both directions, int64; that of a self-loop is listed twice."""
        entries = self.entries(pairs)
        if self.back is None:
            return entries
        back, row = take(self.back, pairs), take(self.source, pairs)
        reverse = (back + take(self.rowptr, row + 1)).long()
        if self.order is not None:
            reverse = take(self.order, reverse).long()
        return torch.cat([entries, torch.where(back < 0, entries, reverse)])


@cache_per_batch
def edge_pairs(batch: GraphBatch) -> EdgePairs:
    """The edges of a batch, cached."""
    size, source, rowptr = batch.num_nodes, batch.source, batch.rowptr
    nodes = torch.arange(size, dtype=torch.int32, device=batch.device)
    destination = batch.destination
    order = None
    if not batch.sorted_sources:
        by_source = counting_sort(source, size)[0]
        order = take(by_source, counting_sort(take(destination, by_source), size)[0])
        source = take(source, order)  # destinations are sorted already
    if not batch.undirected:
        return EdgePairs(source, destination, rowptr, batch.edge_ptr, None, None, order)
    upper = source <= destination
    pair_source = compress(source, upper)
    pair_rowptr = take(cumulative_count(upper), rowptr)
    ptr = take(pair_rowptr, batch.ptr).long()
    destination = repeat(nodes, pair_rowptr.diff().long(), len(pair_source))
    # Sorted by (source, destination), the entries below the diagonal match those above it in order.
    back = counting_sort(compress(source, upper.logical_not_()), size)[0].int()
    if len(back) < len(pair_source):
        ordinary = flatnonzero(pair_source != destination)
        back = torch.full_like(pair_source, -1).scatter_(0, ordinary, back)
    return EdgePairs(pair_source, destination, pair_rowptr, ptr, rowptr - pair_rowptr, back, order)


@dataclass(frozen=True, eq=False)
class AbsentPairs:
    """The node pairs of each graph without an edge: {u, v} if undirected, else (u, v); no self-loops.

    Absent pairs are numbered in the order in which edges are stored. The r-th is found by counting the edges
    before it, so sampling needs no rejection even in a nearly complete graph.
    """

    counts: Tensor  # G, int64
    undirected: bool
    first_node: Tensor  # N: first node of each node's graph
    ptr: Tensor  # N + 1: absent pairs ptr[i]:ptr[i + 1] end at node i
    rowptr: Tensor  # N + 1: the same for edges, without self-loops and duplicates
    before: Tensor  # number of absent pairs before each such edge, sorted

    def draw(self, counts: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample `counts[g]` distinct absent pairs per graph: sources and destinations, int32."""
        number = sample_without_replacement(self.counts, counts, generator)
        row = self._rows(number)
        edges_before = searchsorted_right(self.before, number.to(self.before.dtype)) - take(self.rowptr, row)
        first = take(self.first_node, row)
        source = number - take(self.ptr, row) + edges_before + first
        if not self.undirected:  # skip the node itself
            source += (source >= row).long()
        return source.int(), row.int()

    def _rows(self, number: Tensor) -> Tensor:
        """The destination node of each sorted number; the shorter side is searched in the longer."""
        size = len(self.ptr) - 1
        if len(number) < size:
            return searchsorted_right(self.ptr, number) - 1
        ends = searchsorted_right(number, self.ptr - 1)
        return repeat(torch.arange(size, device=number.device), ends.diff(), len(number))


@cache_per_batch
def absent_pairs(batch: GraphBatch) -> AbsentPairs:
    """The absent pairs of a batch, cached."""
    size, sizes = batch.num_nodes, batch.ptr.diff()
    source, rowptr = _simple_edges(edge_pairs(batch))
    degree = rowptr.diff().long()
    nodes = torch.arange(size, device=batch.device)
    first_node = repeat(batch.ptr[:-1], sizes, size)
    # Number of pairs that end at each node: with all earlier nodes, or with all other nodes.
    partners = nodes - first_node if batch.undirected else repeat(sizes - 1, sizes, size)
    ptr = pointer(partners - degree)
    dtype = torch.int32 if int(ptr[-1]) + size + len(source) < 2**31 else torch.int64
    before = repeat((ptr[:-1] - first_node + rowptr[:-1]).to(dtype), degree, len(source))
    before += source
    before -= torch.arange(len(source), dtype=dtype, device=batch.device)
    if not batch.undirected:
        before -= (source > repeat(nodes, degree, len(source))).to(dtype)
    return AbsentPairs(ptr[batch.ptr].diff(), batch.undirected, first_node, ptr, rowptr, before)


def _simple_edges(pairs: EdgePairs) -> tuple[Tensor, Tensor]:
    """Sources and row pointer of the edges without self-loops and duplicates."""
    source, destination = pairs.source, pairs.destination
    duplicates = flatnonzero(source[1:] == source[:-1])
    duplicates = duplicates[take(destination, duplicates) == take(destination, duplicates + 1)] + 1
    loops = flatnonzero(source == destination)
    excluded = torch.unique(torch.cat([duplicates, loops]))
    if not len(excluded):
        return source, pairs.rowptr
    simple = set_flags(torch.ones(len(source), dtype=torch.bool, device=source.device), excluded, False)
    excluded_before = searchsorted_right(excluded, pairs.rowptr.long() - 1).int()
    return compress(source, simple), pairs.rowptr - excluded_before


@VIEWS.register("perturb-edges")
class PerturbEdges(Operation):
    """Drop a fraction of each graph's edges and, with mode "replace", add as many absent ones.

    An undirected edge is dropped or added in both directions. If there are fewer absent pairs than dropped
    edges, all of them are added. An added edge copies the attributes of a random edge of its graph.
    """

    def __init__(self, *, mode: Literal["replace", "drop"] = "replace") -> None:
        if mode not in ("replace", "drop"):
            raise ConfigError(f"mode must be 'replace' or 'drop', not {mode!r}")
        self.mode = mode

    def size(self, batch: GraphBatch) -> Tensor:
        return edge_pairs(batch).ptr.diff()

    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        pairs = edge_pairs(batch)
        candidates = sample_without_replacement(pairs.ptr.diff(), max_counts, generator)
        order = RandomOrder(pointer(max_counts), generator)
        new = _NewEdges(batch, pairs, max_counts, generator) if self.mode == "replace" else None

        def first(counts: Tensor) -> Perturbation:
            among = order.first(counts)
            dropped = candidates if among is None else compress(candidates, among)
            keep = torch.ones(batch.num_edges, dtype=torch.bool, device=batch.device)
            set_flags(keep, pairs.all_entries(dropped), False)
            return Perturbation(edges=keep, added=None if new is None else new.first(counts))

        return first


class _NewEdges:
    """Edges to add, in random order within each graph."""

    def __init__(
        self, batch: GraphBatch, pairs: EdgePairs, max_counts: Tensor, generator: torch.Generator
    ) -> None:
        absent = absent_pairs(batch)
        self.max_counts = torch.minimum(max_counts, absent.counts)
        self.undirected = batch.undirected
        self.source, self.destination = absent.draw(self.max_counts, generator)
        self.order = RandomOrder(pointer(self.max_counts), generator)
        self.attributes_from: Tensor | None = None
        if batch.edge_codes is not None or batch.edge_floats is not None:
            total = len(self.source)
            size = repeat(pairs.ptr.diff(), self.max_counts, total)
            uniform = torch.rand(total, generator=generator, device=batch.device, dtype=torch.float64)
            copied = torch.minimum(uniform.mul_(size).long(), size - 1)
            self.attributes_from = pairs.entries(copied + repeat(pairs.ptr[:-1], self.max_counts, total))

    def first(self, counts: Tensor) -> AddedEdges:
        source, destination, attributes_from = self.source, self.destination, self.attributes_from
        among = self.order.first(torch.minimum(counts, self.max_counts))
        if among is not None:
            source, destination = compress(source, among), compress(destination, among)
            attributes_from = None if attributes_from is None else compress(attributes_from, among)
        if not self.undirected:
            return AddedEdges(source, destination, attributes_from)
        return AddedEdges(
            torch.cat([source, destination]),
            torch.cat([destination, source]),
            None if attributes_from is None else torch.cat([attributes_from, attributes_from]),
        )
