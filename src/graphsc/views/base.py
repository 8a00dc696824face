"""What a view is: a batch in, a changed batch out; and how a rate becomes exact counts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.core.registry import Registry
from graphsc.data.batch import GraphBatch
from graphsc.views.array_ops import compress, mark, order_by, positions, repeat, running_count, take

# What a view does to a batch, before anything is done: masks, new edges, new features.


@dataclass(frozen=True, eq=False)
class AddedEdges:
    """Directed edges to add, in the node numbers of the unchanged batch."""

    source: Tensor  # A, int32
    destination: Tensor  # A, int32
    like: Tensor | None = None  # A: the edge whose attributes each gets; needed if edges have any


@dataclass(frozen=True, eq=False)
class NewFeatures:
    """Nodes that get other features: dense rows, or codes (their floats become 0)."""

    nodes: Tensor  # M, int64, distinct
    rows: Tensor  # M x width floats, or M x K codes


@dataclass(frozen=True, eq=False)
class Change:
    """Changes to a batch of N nodes and E edges; what is None stays as it is."""

    nodes: Tensor | None = None  # N, true = keep
    edges: Tensor | None = None  # E, true = keep; edges of a lost node go with it
    added: AddedEdges | None = None
    dense: NewFeatures | None = None
    codes: NewFeatures | None = None
    directed: bool = False  # the two directions of an edge may have met different fates


def merge(changes: Sequence[Change]) -> Change:
    """All changes in one; each must concern graphs that the others leave alone."""
    if len(changes) == 1:
        return changes[0]
    added = [change.added for change in changes if change.added is not None]
    return Change(
        nodes=_both([change.nodes for change in changes]),
        edges=_both([change.edges for change in changes]),
        added=_join(added) if added else None,
        dense=_merged_features([change.dense for change in changes]),
        codes=_merged_features([change.codes for change in changes]),
        directed=any(change.directed for change in changes),
    )


def _both(masks: Sequence[Tensor | None]) -> Tensor | None:
    result: Tensor | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result & mask
    return result


def _join(added: Sequence[AddedEdges]) -> AddedEdges:
    like = [part.like for part in added if part.like is not None]
    return AddedEdges(
        torch.cat([part.source for part in added]),
        torch.cat([part.destination for part in added]),
        torch.cat(like) if like else None,
    )


def _merged_features(parts: Sequence[NewFeatures | None]) -> NewFeatures | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return NewFeatures(
        torch.cat([part.nodes for part in present]), torch.cat([part.rows for part in present])
    )


# A batch with edges added, each at the end of its row; the others are not sorted again.


def insert_edges(
    batch: GraphBatch, changed: GraphBatch, nodes: Tensor | None, added: AddedEdges
) -> GraphBatch:
    """`changed` (what is left of `batch` under the node mask) with the added edges."""
    source, destination, like = added.source, added.destination, added.like
    if nodes is not None:
        there = take(nodes, source) & take(nodes, destination)
        before = running_count(nodes)
        source = take(before, compress(source, there))
        destination = take(before, compress(destination, there))
        like = None if like is None else compress(like, there)
    order, added_before = order_by(destination, changed.num_nodes)
    destination = take(destination, order)
    count = torch.arange(len(order), dtype=torch.int32, device=order.device)
    # An added edge lies behind all older edges up to the end of its row, and behind the added before it.
    slot = take(changed.rowptr, destination + 1).add_(count).long()
    total = changed.num_edges + len(order)
    old = torch.ones(total, dtype=torch.bool, device=order.device)
    old_slot = positions(mark(old, slot, False))

    def place(values: Tensor, new: Tensor) -> Tensor:
        result = values.new_empty((total, *values.shape[1:]))
        new = new.index_select(0, order)
        if values.ndim == 1:  # three times faster than the general way
            return result.scatter_(0, old_slot, values).scatter_(0, slot, new)
        return result.index_copy_(0, old_slot, values).index_copy_(0, slot, new)

    def attributes(values: Tensor | None, given: Tensor | None) -> Tensor | None:
        if values is None or given is None:
            return None
        if like is None:
            raise ValueError("edges with attributes need `like`, to say whose the added ones get")
        return place(values, given.index_select(0, like))

    weight = changed.edge_weight
    return replace(
        changed,
        source=place(changed.source, source),
        rowptr=changed.rowptr + added_before,
        sorted_sources=False,
        edge_codes=attributes(changed.edge_codes, batch.edge_codes),
        edge_floats=attributes(changed.edge_floats, batch.edge_floats),
        edge_weight=None if weight is None else place(weight, weight.new_ones(len(order))),
    )


# A batch without some of its nodes and edges, everything else kept in line.


def remove(batch: GraphBatch, nodes: Tensor | None, edges: Tensor | None) -> GraphBatch:
    """The batch reduced to the nodes (N) and edges (E) whose masks are true; None keeps all."""
    if nodes is None:
        return batch if edges is None else _fewer_edges(batch, edges)
    keep = take(nodes, batch.source)
    keep &= repeat(nodes, batch.in_degree, batch.num_edges)
    if edges is not None:
        keep &= edges
    changed = _fewer_edges(batch, keep)
    before = running_count(nodes)
    kept = positions(nodes)
    replaced, replacement = batch.replaced, batch.replacement
    if replaced is not None and replacement is not None:
        stay = nodes[replaced]
        replaced, replacement = before[replaced[stay]].long(), replacement[stay]
    return replace(
        changed,
        codes=batch.codes.index_select(0, kept),
        floats=batch.floats.index_select(0, kept),
        source=take(before, changed.source),
        # A lost node has no edge left, so its row can go without moving the others' ends.
        rowptr=torch.cat([take(changed.rowptr, kept), changed.rowptr[-1:]]),
        ptr=before[batch.ptr].long(),
        replaced=replaced,
        replacement=replacement,
    )


def _fewer_edges(batch: GraphBatch, keep: Tensor) -> GraphBatch:
    described = (batch.edge_codes, batch.edge_floats, batch.edge_weight)
    # Sources are squeezed by the mask; the index costs more and only attributes need it.
    index = None if all(values is None for values in described) else positions(keep)
    codes, floats, weight = (
        None if values is None or index is None else values.index_select(0, index) for values in described
    )
    return replace(
        batch,
        source=compress(batch.source, keep),
        rowptr=take(running_count(keep), batch.rowptr),
        edge_codes=codes,
        edge_floats=floats,
        edge_weight=weight,
    )


# From a batch and a change to the changed batch: features, then what is lost, then what is added.


def materialise(batch: GraphBatch, change: Change) -> GraphBatch:
    """The changed batch; tensors that stay as they are are shared with the batch it came from."""
    changed = _features(batch, change)
    if change.directed:
        changed = replace(changed, undirected=False)
    if change.edges is not None or change.nodes is not None:
        changed = remove(changed, change.nodes, change.edges)
    if change.added is not None and len(change.added.source):
        changed = insert_edges(batch, changed, change.nodes, change.added)
    return changed


def _features(batch: GraphBatch, change: Change) -> GraphBatch:
    """New codes first, so that a node given both ends up with the dense row."""
    if change.codes is None and change.dense is None:
        return batch
    codes, floats, old, rows = batch.codes, batch.floats, batch.replaced, batch.replacement
    if change.codes is not None:
        codes, floats = codes.clone(), floats.clone()
        codes[change.codes.nodes] = change.codes.rows
        floats[change.codes.nodes] = 0.0
        old, rows = _forget(batch, old, rows, change.codes.nodes)
    if change.dense is not None:
        old, rows = _forget(batch, old, rows, change.dense.nodes)
        if old is None or rows is None:
            old, rows = change.dense.nodes, change.dense.rows
        else:
            old = torch.cat([old, change.dense.nodes])
            rows = torch.cat([rows, change.dense.rows])
    return replace(batch, codes=codes, floats=floats, replaced=old, replacement=rows)


def _forget(
    batch: GraphBatch, old: Tensor | None, rows: Tensor | None, nodes: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """Replaced rows without those of `nodes`, which get new features."""
    if old is None or rows is None:
        return None, None
    fresh = torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device)
    fresh[nodes] = True
    stay = ~fresh[old]
    return old[stay], rows[stay]


# What is worked out once for each batch: a batch never changes, and two views of it need the same.


T = TypeVar("T")


def once_per_batch(function: Callable[[GraphBatch], T]) -> Callable[[GraphBatch], T]:
    """Remember a function's result as long as its batch lives; the result must not hold the batch."""
    known: WeakKeyDictionary[GraphBatch, T] = WeakKeyDictionary()

    def remembered(batch: GraphBatch) -> T:
        result = known.get(batch)
        if result is None:
            result = known[batch] = function(batch)
        return result

    return remembered


# A random order of changes for each graph; given how many each graph gets (G), the first so many.
Order = Callable[[Tensor], Change]


class View(ABC):
    """A random change of every graph in a batch, as strong as its rate says.

    The batch is never altered; every draw comes from the generator, which lies on the batch's device.
    """

    grows_with_rate: bool = True  # a larger rate is a stronger change; not so where the rate is kept

    @abstractmethod
    def __call__(
        self,
        batch: GraphBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> GraphBatch:
        """The changed batch. `rate` is the fraction changed, from 0 (the same batch) to 1.

        `ops` is what `draw` gave, so that one draw can serve two strengths. `weaker` is the rate of a
        weaker view: each graph is then changed in at least one more place than at that rate, where it
        has one.
        """

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor | None:
        """Which operation each graph gets; None where there is nothing to choose."""
        return None

    def nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        """A weak and a strong view where the strong one changes all that the weak one does."""
        raise ConfigError(f"{type(self).__name__} has no nested views", hint="use coupling 'same'")


class Operation(View):
    """A view that changes so many elements of each graph, by a random order of its elements."""

    nests = True  # the first elements of an order are a weaker version of more of them

    @abstractmethod
    def size(self, batch: GraphBatch) -> Tensor:
        """G, int64: how many elements of each graph a rate of 1 means."""

    def capacity(self, batch: GraphBatch) -> Tensor:
        """G, int64: how many elements of each graph may be changed."""
        return self.size(batch)

    @abstractmethod
    def order(self, batch: GraphBatch, most: Tensor, generator: torch.Generator) -> Order:
        """A random order of changes of each graph, asked for at most `most` (G) of them.

        Graphs whose `most` is 0 are left alone.
        """

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        """G, int64: max(1, round(rate * size)), one more than at the rate `weaker`, up to capacity."""
        if rate == 0:
            return torch.zeros(batch.num_graphs, dtype=torch.int64, device=batch.device)
        size = self.size(batch).double()
        counts = (size * rate).round_().clamp_(min=1)
        if weaker:
            counts = torch.maximum(counts, (size * weaker).round_().clamp_(min=1) + 1)
        return torch.minimum(counts.long(), self.capacity(batch))

    def __call__(
        self,
        batch: GraphBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> GraphBatch:
        check_rate(rate)
        if ops is not None:
            raise ConfigError(f"{type(self).__name__} has no operations to choose from")
        if rate == 0:
            return batch
        counts = self.counts(batch, rate, weaker)
        return materialise(batch, self.order(batch, counts, generator)(counts))

    def nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        if not self.nests:
            return super().nested(batch, weak_rate, strong_rate, generator)
        strong = self.counts(batch, strong_rate, weak_rate)
        order = self.order(batch, strong, generator)
        weak = batch
        if weak_rate:
            weak = materialise(batch, order(self.counts(batch, weak_rate)))
        return weak, materialise(batch, order(strong))


VIEWS: Registry[type[View]] = Registry("view")


def check_rate(rate: float) -> None:
    """Refuse a rate that is no fraction."""
    if not 0 <= rate <= 1:
        raise ConfigError(f"a view's rate must lie between 0 and 1, not {rate}")


@once_per_batch
def nodes_per_graph(batch: GraphBatch) -> Tensor:
    """G, int64; one tensor for all who ask."""
    return batch.ptr.diff()
