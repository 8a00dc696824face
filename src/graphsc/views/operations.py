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
from graphsc.views import array_ops
from graphsc.views.array_ops import cumulative_count, flatnonzero, pointer, repeat, take
from graphsc.views.base import (
    VIEWS,
    AddedEdges,
    NewFeatures,
    Operation,
    Order,
    Perturbation,
    cache_per_batch,
    nodes_per_graph,
    removable_nodes,
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
        return removable_nodes(batch)

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

    needs_edges = False

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
    entry: Tensor | None  # P, int32: position in the adjacency; None if it is the edge's own number
    reverse: Tensor | None  # P, int32: position of the reverse, `entry` for a self-loop; None if directed

    def entries(self, pairs: Tensor) -> Tensor:
        """One adjacency entry per given edge, int64."""
        return pairs if self.entry is None else take(self.entry, pairs).long()

    def all_entries(self, pairs: Tensor) -> Tensor:
        """The entries of the given edges in both directions, int64; that of a self-loop is listed twice."""
        entries = self.entries(pairs)
        if self.reverse is None:
            return entries
        return torch.cat([entries, take(self.reverse, pairs).long()])

    def mask_without(self, pairs: Tensor, num_entries: int) -> Tensor:
        """E, bool: false at the entries of the given edges."""
        if self.entry is not None and self.reverse is not None and array_ops.use_loops(pairs):
            from graphsc.views.compiled import without_pairs

            arrays = self.entry.numpy(), self.reverse.numpy(), pairs.numpy()
            return torch.from_numpy(without_pairs(*arrays, num_entries))
        keep = torch.ones(num_entries, dtype=torch.bool, device=pairs.device)
        return keep.index_fill_(0, self.all_entries(pairs), False)


@cache_per_batch
def edge_pairs(batch: GraphBatch) -> EdgePairs:
    """The edges of a batch, cached."""
    loops = array_ops.use_loops(batch.source)
    order, source = None, batch.source
    if not batch.sorted_sources:
        order = _sorted_rows_compiled(batch) if loops else _sorted_rows(batch)
        source = take(source, order)
    if not batch.undirected:
        return EdgePairs(source, batch.destination, batch.rowptr, batch.edge_ptr, order, None)
    pairs = (_undirected_pairs_compiled if loops else _undirected_pairs)(batch, source)
    pair_source, destination, rowptr, entry, reverse = pairs
    if order is not None:
        entry, reverse = take(order, entry), take(order, reverse)
    return EdgePairs(pair_source, destination, rowptr, rowptr[batch.ptr].long(), entry, reverse)


def _sorted_rows_compiled(batch: GraphBatch) -> Tensor:
    from graphsc.views.compiled import sort_rows

    return torch.from_numpy(sort_rows(batch.rowptr.numpy(), batch.source.numpy()))


def _sorted_rows(batch: GraphBatch) -> Tensor:
    """E, int32: positions of the entries, stably sorted by source within each row."""
    return (batch.destination.long() * batch.num_nodes + batch.source).argsort(stable=True).int()


# Source, destination and row pointer of the edges, and the positions of their two entries.
_Pairs = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def _undirected_pairs_compiled(batch: GraphBatch, source: Tensor) -> _Pairs:
    from graphsc.views.compiled import undirected_pairs

    pairs = undirected_pairs(batch.rowptr.numpy(), source.numpy())
    source, destination, rowptr, entry, reverse = map(torch.from_numpy, pairs)
    return source, destination, rowptr, entry, reverse


def _undirected_pairs(batch: GraphBatch, source: Tensor) -> _Pairs:
    """The same in torch; `source` is sorted within each row."""
    upper = source <= batch.destination
    entry, lower = flatnonzero(upper), flatnonzero(~upper)
    destination = take(batch.destination, entry)
    # Sorted by (source, destination), the entries below the diagonal match those above it in order.
    lower = lower[take(source, lower).argsort(stable=True)]
    pair_source = take(source, entry)
    reverse = entry.clone()
    reverse[pair_source != destination] = lower
    rowptr = take(cumulative_count(upper), batch.rowptr)
    return pair_source, destination, rowptr, entry.int(), reverse.int()


@dataclass(frozen=True, eq=False)
class AbsentPairs:
    """The node pairs of each graph without an edge: {u, v} if undirected, else (u, v); no self-loops.

    Absent pairs are numbered in the order in which edges are stored. The r-th is found by counting the edges
    before it, so sampling needs no rejection even in a nearly complete graph.
    """

    counts: Tensor  # G, int64
    undirected: bool
    graph_ptr: Tensor  # G + 1: nodes of each graph
    ptr: Tensor  # N + 1: absent pairs ptr[i]:ptr[i + 1] end at node i
    rowptr: Tensor  # N + 1: the same for edges, without self-loops and duplicates
    source: Tensor  # sources of these edges, sorted within each row

    def draw(self, counts: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Sample `counts[g]` distinct absent pairs per graph: sources and destinations, int32."""
        numbers = sample_without_replacement(self.counts, counts, generator)
        if not array_ops.use_loops(numbers):
            return self._locate(numbers)
        from graphsc.views.compiled import locate_absent

        source, destination = locate_absent(
            numbers.numpy(),
            self.graph_ptr.numpy(),
            self.ptr.numpy(),
            self.rowptr.numpy(),
            self.source.numpy(),
            self.undirected,
        )
        return torch.from_numpy(source), torch.from_numpy(destination)

    def _locate(self, numbers: Tensor) -> tuple[Tensor, Tensor]:
        """The pairs with these sorted numbers, in torch."""
        size, total = len(self.ptr) - 1, len(self.source)
        first_node = repeat(self.graph_ptr[:-1], self.graph_ptr.diff(), size)
        row = repeat(torch.arange(size, device=numbers.device), self.rowptr.diff().long(), total)
        # Position of each edge among the possible sources of its row, and number of absent pairs before it.
        place = self.source - first_node[row]
        if not self.undirected:
            place -= (self.source > row).long()
        before = self.ptr[row] + place - (torch.arange(total, device=row.device) - self.rowptr[row])
        row = torch.searchsorted(self.ptr, numbers, right=True) - 1
        edges_before = torch.searchsorted(before, numbers, right=True) - self.rowptr[row]
        source = first_node[row] + numbers - self.ptr[row] + edges_before
        if not self.undirected:  # skip the node itself
            source += (source >= row).long()
        return source.int(), row.int()


@cache_per_batch
def absent_pairs(batch: GraphBatch) -> AbsentPairs:
    """The absent pairs of a batch, cached."""
    size, sizes = batch.num_nodes, nodes_per_graph(batch)
    rowptr, source = _simple_edges(edge_pairs(batch))
    # Number of pairs that end at each node: with all earlier nodes, or with all other nodes.
    if batch.undirected:
        partners = torch.arange(size, device=batch.device) - repeat(batch.ptr[:-1], sizes, size)
    else:
        partners = repeat(sizes - 1, sizes, size)
    ptr = pointer(partners - rowptr.diff())
    return AbsentPairs(ptr[batch.ptr].diff(), batch.undirected, batch.ptr, ptr, rowptr, source)


def _simple_edges(pairs: EdgePairs) -> tuple[Tensor, Tensor]:
    """Row pointer and sources of the edges without self-loops and duplicates."""
    source, destination = pairs.source, pairs.destination
    if array_ops.use_loops(source):
        from graphsc.views.compiled import simple_edges

        rowptr, simple_source = simple_edges(pairs.rowptr.numpy(), source.numpy())
        return torch.from_numpy(rowptr), torch.from_numpy(simple_source)
    simple = source != destination
    simple[1:] &= (source[1:] != source[:-1]) | (destination[1:] != destination[:-1])
    return take(cumulative_count(simple), pairs.rowptr), source[simple]


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
            dropped = candidates if among is None else candidates[among]
            keep = pairs.mask_without(dropped, batch.num_edges)
            return Perturbation(edges=keep, added=None if new is None else new.first(counts))

        return first


class _NewEdges:
    """Edges to add, in random order within each graph."""

    def __init__(
        self, batch: GraphBatch, pairs: EdgePairs, max_counts: Tensor, generator: torch.Generator
    ) -> None:
        absent = absent_pairs(batch)
        self.max_counts = torch.minimum(max_counts, absent.counts)
        self.batch = batch
        self.source, self.destination = absent.draw(self.max_counts, generator)
        self.order = RandomOrder(pointer(self.max_counts), generator)
        self.attributes_from: Tensor | None = None
        attributes = (batch.edge_codes, batch.edge_floats, batch.edge_origin)
        if any(values is not None for values in attributes):
            total = len(self.source)
            size = repeat(pairs.ptr.diff(), self.max_counts, total)
            uniform = torch.rand(total, generator=generator, device=batch.device, dtype=torch.float64)
            copied = torch.minimum(uniform.mul_(size).long(), size - 1)
            self.attributes_from = pairs.entries(copied + repeat(pairs.ptr[:-1], self.max_counts, total))

    def first(self, counts: Tensor) -> AddedEdges:
        source, destination, attributes_from = self.source, self.destination, self.attributes_from
        among = self.order.first(torch.minimum(counts, self.max_counts))
        if among is not None:
            source, destination = source[among], destination[among]
            attributes_from = None if attributes_from is None else attributes_from[among]
        return AddedEdges.between(self.batch, source, destination, attributes_from)
