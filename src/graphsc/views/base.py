"""The view interface: `View`, `Operation`, and the `Perturbation` that an operation asks for.

An operation describes its effect on a whole batch by masks, new edges and new features. Nothing is copied
until `apply_perturbation` builds the perturbed batch in one pass.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar, cast
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from graphsc.core.errors import ConfigError
from graphsc.core.registry import Registry
from graphsc.data.batch import GraphBatch
from graphsc.data.pyg_batch import is_pyg
from graphsc.views import array_ops
from graphsc.views.array_ops import cumulative_count, flatnonzero, pointer, take

AnyBatch = TypeVar("AnyBatch")  # a GraphBatch, or a PyG Batch or Data


@dataclass(frozen=True, eq=False)
class AddedEdges:
    """Directed edges to add, in the node numbering of the original batch."""

    source: Tensor  # A, int32
    destination: Tensor  # A, int32
    attributes_from: Tensor | None = None  # A: edges whose attributes are copied; required if there are any

    @classmethod
    def between(
        cls, batch: GraphBatch, source: Tensor, destination: Tensor, attributes_from: Tensor | None = None
    ) -> AddedEdges:
        """Edges of a batch: one entry each, or both directions if the batch is undirected.

        Args:
            batch: The batch that gets them.
            source: A, int32.
            destination: A, int32; no self-loops in an undirected batch.
            attributes_from: A, int64: entries of the adjacency whose attributes are copied.
        """
        if not batch.undirected:
            return cls(source, destination, attributes_from)
        return cls(
            torch.cat([source, destination]),
            torch.cat([destination, source]),
            None if attributes_from is None else torch.cat([attributes_from, attributes_from]),
        )


@dataclass(frozen=True, eq=False)
class NewFeatures:
    """Nodes that get new features: dense rows, or codes (their float features become 0)."""

    nodes: Tensor  # M, int64, distinct
    rows: Tensor  # M x width floats, or M x K codes


@dataclass(frozen=True, eq=False)
class Perturbation:
    """Changes to a batch of N nodes and E edges; a field that is None changes nothing."""

    nodes: Tensor | None = None  # N, true = keep
    edges: Tensor | None = None  # E, true = keep; edges of a dropped node are dropped with it
    added: AddedEdges | None = None
    dense: NewFeatures | None = None
    codes: NewFeatures | None = None
    directed: bool = False  # the two directions of an edge may have been treated differently


# Maps a count per graph (G) to the perturbation of the first elements of a fixed random order.
Order = Callable[[Tensor], Perturbation]


class View(ABC):
    """A random perturbation of every graph in a batch, at a given rate.

    The input batch is never modified. All randomness comes from the generator, which must be on the batch's
    device.
    """

    grows_with_rate: bool = True  # false where the rate is the fraction that is kept
    needs_edges: bool = True  # false where only features of nodes change

    def __call__(
        self,
        batch: AnyBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> AnyBatch:
        """Perturb the batch.

        Args:
            batch: G graphs: a `GraphBatch`, or a PyG `Batch` or `Data`, which gives a PyG one with the same
                keys; `graphsc.views.pyg` has more for PyG.
            rate: Fraction to change, from 0 (the batch itself) to 1.
            generator: Source of all randomness.
            ops: The result of `draw`, so that two strengths can share one draw.
            weaker: Rate of a weaker view. Each graph is then changed in at least one more element than at
                that rate, if it has one.
        """
        if isinstance(batch, GraphBatch):
            return cast(AnyBatch, self.perturb(batch, rate, generator, ops, weaker=weaker))
        check_pyg(batch)
        from graphsc.views.pyg import apply_to_pyg

        view = apply_to_pyg(
            lambda own: self.perturb(own, rate, generator, ops, weaker=weaker), batch, edges=self.needs_edges
        )
        return cast(AnyBatch, view)

    @abstractmethod
    def perturb(
        self,
        batch: GraphBatch,
        rate: float,
        generator: torch.Generator,
        ops: Tensor | None = None,
        *,
        weaker: float | None = None,
    ) -> GraphBatch:
        """What a view does to a batch; arguments as for a call."""

    def draw(self, batch: GraphBatch, generator: torch.Generator) -> Tensor | None:
        """Draw an operation per graph; None where there is nothing to choose."""
        return None

    def nested(
        self, batch: AnyBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[AnyBatch, AnyBatch]:
        """A weak and a strong view such that the strong one includes all changes of the weak one."""
        return views_of(lambda own: self.perturb_nested(own, weak_rate, strong_rate, generator), batch)

    def perturb_nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        """What `nested` does to a batch."""
        raise ConfigError(f"{type(self).__name__} has no nested views", hint="use coupling 'same'")


class Operation(View):
    """A view that changes an exact number of elements per graph, in a random order of its elements."""

    nests = True  # the first elements of an order are a weaker version of a longer prefix

    @abstractmethod
    def size(self, batch: GraphBatch) -> Tensor:
        """G, int64: the number of elements per graph that a rate of 1 stands for."""

    def capacity(self, batch: GraphBatch) -> Tensor:
        """G, int64: the maximum number of elements that may be changed per graph."""
        return self.size(batch)

    @abstractmethod
    def order(self, batch: GraphBatch, max_counts: Tensor, generator: torch.Generator) -> Order:
        """Draw a random order of changes per graph, of which at most `max_counts` (G) will be asked for.

        Graphs with a maximum of 0 stay unchanged.
        """

    def counts(self, batch: GraphBatch, rate: float, weaker: float | None = None) -> Tensor:
        """G, int64: max(1, round(rate * size)), and one more than at the rate `weaker`, up to capacity."""
        if rate == 0:
            return torch.zeros(batch.num_graphs, dtype=torch.int64, device=batch.device)
        if array_ops.use_loops(batch.ptr):
            from graphsc.views import compiled

            sizes, capacity = self.size(batch).numpy(), self.capacity(batch).numpy()
            return torch.from_numpy(compiled.counts(sizes, capacity, float(rate), float(weaker or 0)))
        size = self.size(batch).double()
        counts = (size * rate).round_().clamp_(min=1)
        if weaker:
            counts = torch.maximum(counts, (size * weaker).round_().clamp_(min=1) + 1)
        return torch.minimum(counts.long(), self.capacity(batch))

    def perturb(
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
        return apply_perturbation(batch, self.order(batch, counts, generator)(counts))

    def perturb_nested(
        self, batch: GraphBatch, weak_rate: float, strong_rate: float, generator: torch.Generator
    ) -> tuple[GraphBatch, GraphBatch]:
        if not self.nests:
            return super().perturb_nested(batch, weak_rate, strong_rate, generator)
        strong = self.counts(batch, strong_rate, weak_rate)
        order = self.order(batch, strong, generator)
        weak = batch
        if weak_rate:
            weak = apply_perturbation(batch, order(self.counts(batch, weak_rate)))
        return weak, apply_perturbation(batch, order(strong))


VIEWS: Registry[type[View]] = Registry("view")


def check_pyg(batch: object) -> None:
    """Raise `TypeError` unless this is a PyG `Data`, or a `Batch` of such."""
    if not is_pyg(batch):
        raise TypeError(f"a view takes a GraphBatch or a PyG batch, not {type(batch).__name__}")


def views_of(
    perturb: Callable[[GraphBatch], tuple[GraphBatch, GraphBatch]], batch: AnyBatch
) -> tuple[AnyBatch, AnyBatch]:
    """Two views of a batch, which may be one of PyG."""
    if isinstance(batch, GraphBatch):
        return cast(tuple[AnyBatch, AnyBatch], perturb(batch))
    check_pyg(batch)
    from graphsc.views.pyg import apply_all_to_pyg

    return cast(tuple[AnyBatch, AnyBatch], apply_all_to_pyg(perturb, batch))


def check_rate(rate: float) -> None:
    """Raise `ConfigError` unless the rate lies in [0, 1]."""
    if not 0 <= rate <= 1:
        raise ConfigError(f"a view's rate must lie between 0 and 1, not {rate}")


def merge(perturbations: Sequence[Perturbation]) -> Perturbation:
    """Combine perturbations that concern different graphs of the same batch."""
    if len(perturbations) == 1:
        return perturbations[0]
    added = [part.added for part in perturbations if part.added is not None]
    return Perturbation(
        nodes=_merge_masks([part.nodes for part in perturbations]),
        edges=_merge_masks([part.edges for part in perturbations]),
        added=_merge_edges(added) if added else None,
        dense=_merge_features([part.dense for part in perturbations]),
        codes=_merge_features([part.codes for part in perturbations]),
        directed=any(part.directed for part in perturbations),
    )


def _merge_masks(masks: Sequence[Tensor | None]) -> Tensor | None:
    result: Tensor | None = None
    for mask in masks:
        if mask is not None:
            result = mask if result is None else result & mask
    return result


def _merge_edges(added: Sequence[AddedEdges]) -> AddedEdges:
    attributes_from = [part.attributes_from for part in added if part.attributes_from is not None]
    return AddedEdges(
        torch.cat([part.source for part in added]),
        torch.cat([part.destination for part in added]),
        torch.cat(attributes_from) if attributes_from else None,
    )


def _merge_features(parts: Sequence[NewFeatures | None]) -> NewFeatures | None:
    present = [part for part in parts if part is not None]
    if not present:
        return None
    return NewFeatures(
        torch.cat([part.nodes for part in present]), torch.cat([part.rows for part in present])
    )


def apply_perturbation(batch: GraphBatch, perturbation: Perturbation) -> GraphBatch:
    """Build the perturbed batch: new features, then removals, then added edges.

    Unchanged tensors are shared with the original batch.
    """
    result = _replace_features(batch, perturbation)
    if perturbation.directed:
        result = replace(result, undirected=False)
    if perturbation.nodes is None and perturbation.edges is None and perturbation.added is None:
        return result
    return _rebuild(result, perturbation)


def _replace_features(batch: GraphBatch, perturbation: Perturbation) -> GraphBatch:
    """Codes first, so that a node that gets both ends up with the dense row."""
    if perturbation.codes is None and perturbation.dense is None:
        return batch
    codes, floats, replaced, rows = batch.codes, batch.floats, batch.replaced, batch.replacement
    if perturbation.codes is not None:
        codes, floats = codes.clone(), floats.clone()
        codes[perturbation.codes.nodes] = perturbation.codes.rows
        floats[perturbation.codes.nodes] = 0.0
        replaced, rows = _without_nodes(batch, replaced, rows, perturbation.codes.nodes)
    if perturbation.dense is not None:
        replaced, rows = _without_nodes(batch, replaced, rows, perturbation.dense.nodes)
        if replaced is None or rows is None:
            replaced, rows = perturbation.dense.nodes, perturbation.dense.rows
        else:
            replaced = torch.cat([replaced, perturbation.dense.nodes])
            rows = torch.cat([rows, perturbation.dense.rows])
    return replace(batch, codes=codes, floats=floats, replaced=replaced, replacement=rows)


def _without_nodes(
    batch: GraphBatch, replaced: Tensor | None, rows: Tensor | None, nodes: Tensor
) -> tuple[Tensor | None, Tensor | None]:
    """The replaced rows except those of `nodes`, which get new features."""
    if replaced is None or rows is None:
        return None, None
    overwritten = torch.zeros(batch.num_nodes, dtype=torch.bool, device=batch.device)
    overwritten[nodes] = True
    keep = ~overwritten[replaced]
    return replaced[keep], rows[keep]


def _rebuild(batch: GraphBatch, perturbation: Perturbation) -> GraphBatch:
    """Remove nodes and edges, and add edges, each at the end of its row."""
    nodes, added = perturbation.nodes, perturbation.added
    attributes = (batch.edge_codes, batch.edge_floats, batch.edge_weight, batch.edge_origin)
    with_origin = any(values is not None for values in attributes)
    adjacency = _adjacency_compiled if array_ops.use_loops(batch.source) else _adjacency
    rowptr, source, ptr, kept_nodes, origin = adjacency(batch, perturbation, with_origin)
    codes, floats, replaced, replacement = batch.codes, batch.floats, batch.replaced, batch.replacement
    pos, node_origin = batch.pos, batch.node_origin
    if nodes is not None:
        pos = None if pos is None else pos.index_select(0, kept_nodes)
        node_origin = None if node_origin is None else node_origin.index_select(0, kept_nodes)
        codes, floats = codes.index_select(0, kept_nodes), floats.index_select(0, kept_nodes)
        if replaced is not None and replacement is not None:
            still_there = nodes[replaced]
            replaced = take(cumulative_count(nodes), replaced[still_there]).long()
            replacement = replacement[still_there]
    return replace(
        batch,
        codes=codes,
        floats=floats,
        rowptr=rowptr,
        source=source,
        ptr=batch.ptr if nodes is None else ptr,
        sorted_sources=batch.sorted_sources and (added is None or not len(added.source)),
        edge_codes=_edge_rows(batch.edge_codes, added, origin),
        edge_floats=_edge_rows(batch.edge_floats, added, origin),
        edge_weight=_edge_rows(batch.edge_weight, added, origin, weight=True),
        pos=pos,
        node_origin=node_origin,
        edge_origin=_edge_rows(batch.edge_origin, added, origin),
        replaced=replaced,
        replacement=replacement,
    )


def _edge_rows(
    values: Tensor | None, added: AddedEdges | None, origin: Tensor, *, weight: bool = False
) -> Tensor | None:
    """The attributes of the edges that are left and of those that are added, which have a weight of 1."""
    if values is None:
        return None
    if added is not None:
        if weight:
            new = values.new_ones(len(added.source))
        elif added.attributes_from is None:
            raise ValueError("these edges have attributes, so added edges need `attributes_from`")
        else:
            new = values.index_select(0, added.attributes_from)
        values = torch.cat([values, new])
    return values.index_select(0, origin)


# Row pointer, sources, graph pointer, old numbers of the nodes, and origin of each edge: its old position, or
# the number of old edges plus its position among the added ones. The last two may be empty if not needed.
_Adjacency = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def _adjacency_compiled(batch: GraphBatch, perturbation: Perturbation, with_origin: bool) -> _Adjacency:
    from graphsc.views.compiled import rebuild

    nodes, edges, added = perturbation.nodes, perturbation.edges, perturbation.added
    nothing, no_edges = torch.zeros(0, dtype=torch.bool), torch.zeros(0, dtype=torch.int32)
    rowptr, source, ptr, kept_nodes, origin = rebuild(
        batch.rowptr.numpy(),
        batch.source.numpy(),
        batch.ptr.numpy(),
        (nothing if nodes is None else nodes).numpy(),
        (nothing if edges is None else edges).numpy(),
        (no_edges if added is None else added.source).numpy(),
        (no_edges if added is None else added.destination).numpy(),
        with_origin,
    )
    return (
        torch.from_numpy(rowptr),
        torch.from_numpy(source),
        torch.from_numpy(ptr),
        torch.from_numpy(kept_nodes),
        torch.from_numpy(origin),
    )


def _adjacency(batch: GraphBatch, perturbation: Perturbation, with_origin: bool) -> _Adjacency:
    """The same in torch."""
    nodes, edges, added = perturbation.nodes, perturbation.edges, perturbation.added
    source, destination, ptr = batch.source, batch.destination, batch.ptr
    keep = torch.ones_like(source, dtype=torch.bool) if edges is None else edges
    if added is not None:
        source = torch.cat([source, added.source])
        destination = torch.cat([destination, added.destination])
        keep = torch.cat([keep, torch.ones_like(added.source, dtype=torch.bool)])
    if nodes is not None:
        keep = keep & take(nodes, source) & take(nodes, destination)
    origin = flatnonzero(keep)
    source, destination = source.index_select(0, origin), destination.index_select(0, origin)
    if added is not None:
        order = destination.argsort(stable=True)
        origin, source = origin.index_select(0, order), source.index_select(0, order)
    degree = torch.bincount(destination, minlength=batch.num_nodes)
    kept_nodes = origin[:0]
    if nodes is not None:
        new_number = cumulative_count(nodes)
        kept_nodes = flatnonzero(nodes)
        source, degree = take(new_number, source), degree.index_select(0, kept_nodes)
        ptr = new_number[ptr].long()
    return pointer(degree).int(), source, ptr, kept_nodes, origin


T = TypeVar("T")


def cache_per_batch(function: Callable[[GraphBatch], T]) -> Callable[[GraphBatch], T]:
    """Cache a function's result for as long as its batch lives.

    Batches are immutable, and two views of a batch need the same quantities. The result must not refer to
    the batch.
    """
    cache: WeakKeyDictionary[GraphBatch, T] = WeakKeyDictionary()

    def cached(batch: GraphBatch) -> T:
        result = cache.get(batch)
        if result is None:
            result = cache[batch] = function(batch)
        return result

    return cached


@cache_per_batch
def nodes_per_graph(batch: GraphBatch) -> Tensor:
    """G, int64; a shared tensor that must not be modified in place."""
    return batch.ptr.diff()


@cache_per_batch
def removable_nodes(batch: GraphBatch) -> Tensor:
    """G, int64: all nodes but one; a shared tensor that must not be modified in place."""
    return (nodes_per_graph(batch) - 1).clamp_(min=0)
