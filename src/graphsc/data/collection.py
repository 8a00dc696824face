"""A collection of graphs as flat arrays: the one form in which graphs are kept.

A graph is a slice: its nodes are rows `node_ptr[i]:node_ptr[i + 1]` of the node table, its edges the
columns `edge_ptr[i]:edge_ptr[i + 1]` of `edge_index`. Edges hold local node ids and are sorted by
(destination, source), so that the rows of a CSR matrix are already in place.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings, chunks_of_edges, gather_index, pointer
from graphsc.data.columns import FeatureTable
from graphsc.data.features import FeatureScheme, recode, resolve_scheme

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphsc.data.molecules.rejected import Rejected
    from graphsc.data.statistics import Statistics
    from graphsc.data.storage import BlockGuard


Ids = NDArray[np.int64] | Strings
Index = int | slice | Sequence[int] | NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph of a collection, for drawing and for leaving through a door."""

    num_nodes: int
    edge_index: NDArray[np.unsignedinteger]  # 2 x edges: sources, destinations
    nodes: FeatureTable
    edges: FeatureTable
    labels: NDArray[np.floating] | None
    id: int | str


@dataclass(frozen=True, eq=False, repr=False)
class GraphCollection:
    """Graphs in flat arrays, with what is known of their nodes, edges and labels."""

    node_ptr: NDArray[np.int64]  # graphs + 1
    edge_ptr: NDArray[np.int64]  # graphs + 1
    edge_index: NDArray[np.unsignedinteger]  # 2 x edges: sources, destinations; local ids
    nodes: FeatureTable
    edges: FeatureTable
    undirected: bool  # verified by the door: every edge has its reverse
    features: FeatureScheme
    ids: Ids
    labels: NDArray[np.floating] | None = None  # graphs x tasks, NaN = missing
    tasks: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # names of codes, by task
    name: str = "graphs"
    notes: tuple[str, ...] = ()  # what the door changed on the way in, in words
    rejected: tuple[Rejected, ...] = ()  # rows of the source that the door had to leave out; not in the file
    guard: BlockGuard | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def shape(self) -> tuple[int]:
        """One dimension; scikit-learn slices whatever has a shape as one array."""
        return (len(self),)

    @property
    def num_nodes(self) -> int:
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        """Directed entries: an undirected edge counts twice, a self-loop once."""
        return int(self.edge_ptr[-1])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything but the name and the notes."""
        from graphsc.data.storage import layout_of

        return layout_of(self).content_hash

    @cached_property
    def degrees(self) -> NDArray[np.integer]:
        """In-degree of every node without self-loops, computed once on the unperturbed graphs."""
        self.touch(np.arange(len(self)))
        degree = np.zeros(self.num_nodes, dtype=np.int32)
        for graphs in chunks_of_edges(self.edge_ptr):
            part = slice(int(self.edge_ptr[graphs.start]), int(self.edge_ptr[graphs.stop]))
            source, destination = self.edge_index[:, part]
            first = np.repeat(self.node_ptr[graphs], np.diff(self.edge_ptr[graphs.start : graphs.stop + 1]))
            low = int(self.node_ptr[graphs.start])
            proper = source != destination
            rows = (first - low + destination)[proper]
            width = int(self.node_ptr[graphs.stop]) - low
            degree[low : low + width] = np.bincount(rows, minlength=width)
        return degree

    def __getitem__(self, index: Index | tuple[Index, EllipsisType]) -> GraphCollection:
        """The chosen graphs, in the order asked for; an integer gives a collection of one."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:
            index = index[0]  # scikit-learn asks for `collection[rows, ...]`
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            return self.take(np.arange(start, stop, step))
        if isinstance(index, (int, np.integer)):
            return self.take(np.array([index]))
        return self.take(index)

    def take(self, index: Sequence[int] | NDArray[np.generic]) -> GraphCollection:
        """Gather graphs by position or by a boolean mask, all at once."""
        rows = self.positions(index)
        self.touch(rows)
        nodes, node_ptr = gather_index(self.node_ptr, rows)
        edges, edge_ptr = gather_index(self.edge_ptr, rows)
        return replace(
            self,
            node_ptr=node_ptr,
            edge_ptr=edge_ptr,
            edge_index=self.edge_index[:, edges],
            nodes=self.nodes.take(nodes),
            edges=self.edges.take(edges),
            ids=self.ids.take(rows),
            labels=None if self.labels is None else self.labels[rows],
            guard=None,
        )

    def _slice(self, start: int, stop: int) -> GraphCollection:
        rows = np.arange(start, stop)
        self.touch(rows)
        nodes = slice(int(self.node_ptr[start]), int(self.node_ptr[stop]))
        edges = slice(int(self.edge_ptr[start]), int(self.edge_ptr[stop]))
        return replace(
            self,
            node_ptr=self.node_ptr[start : stop + 1] - nodes.start,
            edge_ptr=self.edge_ptr[start : stop + 1] - edges.start,
            edge_index=self.edge_index[:, edges],
            nodes=self.nodes.take(nodes),
            edges=self.edges.take(edges),
            ids=self.ids.take(rows),
            labels=None if self.labels is None else self.labels[start:stop],
            guard=None,
        )

    def positions(self, index: Sequence[int] | NDArray[np.generic]) -> NDArray[np.int64]:
        """Positions from 0, whatever way graphs were chosen: masks and negative numbers too."""
        index = np.asarray(index)
        if index.ndim != 1:
            raise IndexError("index a collection by one-dimensional positions or masks")
        if index.dtype == np.bool_:
            if len(index) != len(self):
                raise IndexError(f"mask of length {len(index)} for {len(self)} graphs")
            return np.flatnonzero(index)
        if index.size == 0:
            return np.zeros(0, np.int64)
        if not np.issubdtype(index.dtype, np.integer):
            raise IndexError(f"graphs are chosen by whole numbers, not {index.dtype}")
        rows = index.astype(np.int64)
        rows = np.where(rows < 0, rows + len(self), rows)
        if rows.min() < 0 or rows.max() >= len(self):
            raise IndexError(
                f"graph {int(index[np.argmax((rows < 0) | (rows >= len(self)))])} of {len(self)}"
            )
        return rows

    def stored(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where the graphs at these positions lie in the arrays: here, at their positions."""
        return positions

    def touch(self, rows: NDArray[np.int64]) -> None:
        """Verify, once, the blocks of a large file that these graphs lie in."""
        if self.guard is not None and len(rows):
            self.guard.touch_graphs(self, rows)

    def graph(self, index: int) -> Graph:
        """One graph by position."""
        one = self[index]
        identity = one.ids[0]
        return Graph(
            num_nodes=one.num_nodes,
            edge_index=one.edge_index,
            nodes=one.nodes,
            edges=one.edges,
            labels=None if one.labels is None else one.labels[0],
            id=identity if isinstance(identity, str) else int(identity),
        )

    def graphs(self) -> Iterator[Graph]:
        """Each graph in turn; for leaving through a door, not for training."""
        return (self.graph(index) for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Same graphs, order, ids, labels and features; the name does not count."""
        if not isinstance(other, GraphCollection):
            return NotImplemented
        return (
            self.undirected == other.undirected
            and self.features == other.features
            and self.tasks == other.tasks
            and dict(self.classes) == dict(other.classes)
            and np.array_equal(self.node_ptr, other.node_ptr)
            and np.array_equal(self.edge_ptr, other.edge_ptr)
            and np.array_equal(self.edge_index, other.edge_index)
            and self.nodes == other.nodes
            and self.edges == other.edges
            and _same_ids(self.ids, other.ids)
            and _same_labels(self.labels, other.labels)
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, object]:
        """Everything but the map of an open file, which cannot follow a copy to another process."""
        self.touch(np.arange(len(self)))
        return {**self.__dict__, "guard": None}

    def with_features(self, scheme: str | FeatureScheme) -> GraphCollection:
        """The same graphs seen under another scheme; a resolved scheme is matched by value."""
        if isinstance(scheme, str):
            return replace(self, features=resolve_scheme(scheme, self.nodes))
        self.touch(np.arange(len(self)))
        nodes = recode(self.nodes, scheme)
        if scheme.float_names and scheme.float_names != nodes.float_names:
            raise DataError(
                f"graphs have the node attributes {', '.join(nodes.float_names) or 'none'}, "
                f"needed are {', '.join(scheme.float_names)}"
            )
        return replace(self, nodes=nodes, features=scheme)

    @staticmethod
    def concatenate(parts: Sequence[GraphCollection]) -> GraphCollection:
        """All graphs of all parts, in order; columns, tasks and features must agree."""
        return concatenate(parts)

    def describe(self) -> Statistics:
        """Counts and averages, as a table of statistics prints them."""
        from graphsc.data.statistics import describe

        return describe(self)

    def check(self) -> None:
        """Raise an error if any promise of this class does not hold."""
        from graphsc.data.validation import check

        check(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, whole or not at all."""
        from graphsc.data.storage import save

        save(self, path)

    def to_pyg(self) -> list[Data]:
        """The graphs as PyG `Data` objects; `from_pyg` gives the same collection back."""
        from graphsc.data.readers.pyg import to_pyg

        return to_pyg(self)

    @staticmethod
    def from_pyg(graphs: object, **options: Any) -> GraphCollection:
        """A collection from PyG graphs; the options are those of the `pyg` door."""
        from graphsc.data.readers.pyg import read_pyg

        return read_pyg(graphs, **options)

    def __repr__(self) -> str:
        return (
            f"GraphCollection({self.name!r}, {len(self):,} graphs, {self.num_nodes:,} nodes, "
            f"{self.num_edges:,} {'' if self.undirected else 'directed '}edge entries, "
            f"features {self.features.name!r}, {len(self.tasks)} label columns)"
        )

    @staticmethod
    def open(path: str | os.PathLike[str]) -> GraphCollection:
        """Open a saved collection by memory map."""
        from graphsc.data.storage import load

        return load(path)


def _same_ids(one: Ids, other: Ids) -> bool:
    if isinstance(one, Strings) or isinstance(other, Strings):
        return isinstance(one, Strings) and isinstance(other, Strings) and one == other
    return np.array_equal(one, other)


def _same_labels(one: NDArray[np.floating] | None, other: NDArray[np.floating] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other, equal_nan=True)


# Some graphs of a collection, in place: to train on most of a file without a copy of it in memory.


@dataclass(frozen=True, eq=False, repr=False)
class Subset(GraphCollection):
    """Graphs `rows` of the collection whose arrays these are; `subset` makes one.

    Batches are gathered straight from the arrays. Whatever needs arrays of its own (`take`, `save`,
    statistics) copies the chosen graphs first.
    """

    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    whole_hash: str | None = None  # content hash of the collection, where it was known already

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def num_nodes(self) -> int:
        return int((self.node_ptr[self.rows + 1] - self.node_ptr[self.rows]).sum())

    @property
    def num_edges(self) -> int:
        return int((self.edge_ptr[self.rows + 1] - self.edge_ptr[self.rows]).sum())

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the collection's hash and of which graphs are chosen."""
        whole = self.whole_hash or self._whole().content_hash
        return hashlib.sha256(whole.encode() + self.rows.astype("<i8").tobytes()).hexdigest()

    @cached_property
    def degrees(self) -> NDArray[np.integer]:
        """Of all nodes in the arrays."""
        return self._whole().degrees

    def stored(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.rows[positions]

    def take(self, index: Sequence[int] | NDArray[np.generic]) -> GraphCollection:
        """A copy of some of the chosen graphs."""
        return self._whole().take(self.rows[self.positions(index)])

    def _slice(self, start: int, stop: int) -> GraphCollection:
        return self.take(np.arange(start, stop))

    def copy(self) -> GraphCollection:
        """The chosen graphs in arrays of their own."""
        return self.take(np.arange(len(self)))

    def __eq__(self, other: object) -> bool:
        return self.copy() == (other.copy() if isinstance(other, Subset) else other)

    __hash__ = None

    def __getstate__(self) -> dict[str, object]:
        return {**self._whole().__getstate__(), "rows": self.rows, "whole_hash": self.whole_hash}

    def describe(self) -> Statistics:
        return self.copy().describe()

    def check(self) -> None:
        self.copy().check()

    def save(self, path: str | os.PathLike[str]) -> None:
        self.copy().save(path)

    def to_pyg(self) -> list[Data]:
        return self.copy().to_pyg()

    def _whole(self) -> GraphCollection:
        return GraphCollection(**{item.name: getattr(self, item.name) for item in fields(GraphCollection)})


def subset(collection: GraphCollection, rows: Sequence[int] | NDArray[np.generic]) -> Subset:
    """The graphs at these positions, in this order, without a copy of any array."""
    positions = collection.stored(collection.positions(rows))
    return Subset(
        **{item.name: getattr(collection, item.name) for item in fields(GraphCollection)},
        rows=positions,
        whole_hash=collection.whole_hash
        if isinstance(collection, Subset)
        else collection.__dict__.get("content_hash"),
    )


# Several collections as one, in memory.


def concatenate(parts: Sequence[GraphCollection]) -> GraphCollection:
    """All graphs of all parts, in order; columns, tasks and features must agree."""
    if not parts:
        raise DataError("nothing to concatenate")
    first = parts[0]
    for position, part in enumerate(parts):
        for what in ("features", "tasks"):
            if getattr(part, what) != getattr(first, what):
                raise DataError(f"part {position} has other {what} than part 0")
        if dict(part.classes) != dict(first.classes):
            raise DataError(f"part {position} has other classes than part 0")
        if (part.labels is None) != (first.labels is None):
            raise DataError(f"part {position} differs from part 0 in having labels")
        part.touch(np.arange(len(part)))
    return replace(
        first,
        node_ptr=pointer(np.concatenate([np.diff(part.node_ptr) for part in parts])),
        edge_ptr=pointer(np.concatenate([np.diff(part.edge_ptr) for part in parts])),
        edge_index=np.concatenate([part.edge_index for part in parts], axis=1),
        nodes=FeatureTable.concatenate([part.nodes for part in parts]),
        edges=FeatureTable.concatenate([part.edges for part in parts]),
        undirected=all(part.undirected for part in parts),
        ids=_join_ids([part.ids for part in parts]),
        labels=None
        if first.labels is None
        else np.concatenate([part.labels for part in parts if part.labels is not None]),
        notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        guard=None,
    )


def _join_ids(parts: Sequence[Ids]) -> Ids:
    if any(isinstance(part, Strings) for part in parts):
        return Strings.of(str(identity) for part in parts for identity in part)
    return np.concatenate([part for part in parts if not isinstance(part, Strings)])
