"""A collection of graphs as flat arrays, the only form in which the package keeps graphs.

Graph i is a slice: its nodes are rows `node_ptr[i]:node_ptr[i + 1]` of the node table, its edges the
columns `edge_ptr[i]:edge_ptr[i + 1]` of `edge_index`. Edges hold node numbers within their graph and are
sorted by (destination, source), which is the order of a CSR matrix.
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
from graphsc.core.registry import nearest
from graphsc.data.arrays import Strings, chunks_of_edges, gather_index, pointer
from graphsc.data.columns import FeatureTable
from graphsc.data.features import EDGES, FeatureScheme, recode, recode_edges, resolve_scheme

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphsc.data.molecules.rejected import Rejected
    from graphsc.data.readers.csv import Malformed
    from graphsc.data.statistics import Statistics
    from graphsc.data.storage import BlockVerifier


Ids = NDArray[np.int64] | Strings
EXACT_FLOAT = 2**24  # integers up to here are exact in float32
Index = int | slice | Sequence[int] | NDArray[np.generic]


@dataclass(frozen=True, eq=False)
class Graph:
    """One graph of a collection, for drawing and for export."""

    num_nodes: int
    edge_index: NDArray[np.unsignedinteger]  # 2 x edges: sources, destinations
    nodes: FeatureTable
    edges: FeatureTable
    labels: NDArray[np.floating] | None
    id: int | str


@dataclass(frozen=True, eq=False, repr=False)
class GraphCollection:
    """Graphs in flat arrays, with node and edge features, labels and ids.

    It has a length and takes integers, slices, index arrays and masks like a NumPy array of graphs, so
    that scikit-learn can split it. Made by `open_collection`, by a reader or by `build_collection`.
    """

    node_ptr: NDArray[np.int64]  # graphs + 1
    edge_ptr: NDArray[np.int64]  # graphs + 1
    edge_index: NDArray[np.unsignedinteger]  # 2 x edges: sources, destinations; numbered within the graph
    nodes: FeatureTable
    edges: FeatureTable
    undirected: bool  # checked when built: every edge has its reverse
    features: FeatureScheme
    ids: Ids
    labels: NDArray[np.floating] | None = None  # graphs x tasks, NaN = missing
    tasks: tuple[str, ...] = ()
    classes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # class names by task
    pos: NDArray[np.float32] | None = None  # nodes x dimensions: positions
    edge_weight: NDArray[np.float32] | None = None  # edges
    # graphs x columns: numbers computed from the graphs alone, targets of pre-training; not saved
    descriptors: NDArray[np.float32] | None = None
    name: str = "graphs"
    notes: tuple[str, ...] = ()  # sentences about what the reader changed or left out
    rejected: tuple[Rejected, ...] = ()  # rows of the source that the reader left out; not saved
    rejected_edges: tuple[Malformed, ...] = ()  # rows of an edge list, likewise
    verifier: BlockVerifier | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.node_ptr) - 1

    @property
    def shape(self) -> tuple[int]:
        """(graphs,); scikit-learn indexes objects that have a shape like arrays."""
        return (len(self),)

    @property
    def num_nodes(self) -> int:
        return int(self.node_ptr[-1])

    @property
    def num_edges(self) -> int:
        """Directed edges: an undirected edge counts twice, a self-loop once."""
        return int(self.edge_ptr[-1])

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of everything except the name and the notes."""
        from graphsc.data.storage import layout_of

        return layout_of(self).content_hash

    @cached_property
    def has_integer_labels(self) -> bool:
        """Whether PyG gets the labels as classes: integers of one task, none missing."""
        labels = self.labels
        if labels is None or labels.shape[1] != 1:
            return False
        return bool(((labels == np.round(labels)) & (np.abs(labels) <= EXACT_FLOAT)).all())

    @cached_property
    def degrees(self) -> NDArray[np.integer]:
        """In-degree of every node without self-loops, computed once on the original graphs."""
        self.verify_hashes()
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
        """The selected graphs, in the given order; an integer gives a collection of one graph."""
        if isinstance(index, tuple) and len(index) == 2 and index[1] is Ellipsis:
            index = index[0]  # scikit-learn indexes with `collection[rows, ...]`
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self._slice(start, max(start, stop))
            return self.take(np.arange(start, stop, step))
        if isinstance(index, (int, np.integer)):
            return self.take(np.array([index]))
        return self.take(index)

    def take(self, index: Sequence[int] | NDArray[np.generic]) -> GraphCollection:
        """A copy of the graphs at the given positions or under a boolean mask."""
        rows = self.positions(index)
        nodes, node_ptr = gather_index(self.node_ptr, rows)
        edges, edge_ptr = gather_index(self.edge_ptr, rows)
        return self._select(rows, nodes, node_ptr, edges, edge_ptr)

    def _slice(self, start: int, stop: int) -> GraphCollection:
        """Consecutive graphs, whose nodes and edges share memory with this collection's."""
        nodes = slice(int(self.node_ptr[start]), int(self.node_ptr[stop]))
        edges = slice(int(self.edge_ptr[start]), int(self.edge_ptr[stop]))
        node_ptr = self.node_ptr[start : stop + 1] - nodes.start
        edge_ptr = self.edge_ptr[start : stop + 1] - edges.start
        return self._select(np.arange(start, stop), nodes, node_ptr, edges, edge_ptr)

    def _select(
        self,
        rows: NDArray[np.int64],
        nodes: NDArray[np.int64] | slice,
        node_ptr: NDArray[np.int64],
        edges: NDArray[np.int64] | slice,
        edge_ptr: NDArray[np.int64],
    ) -> GraphCollection:
        self.verify_hashes(rows)
        return replace(
            self,
            node_ptr=node_ptr,
            edge_ptr=edge_ptr,
            edge_index=self.edge_index[:, edges],
            nodes=self.nodes.take(nodes),
            edges=self.edges.take(edges),
            pos=None if self.pos is None else self.pos[nodes],
            edge_weight=None if self.edge_weight is None else self.edge_weight[edges],
            ids=self.ids.take(rows),
            labels=None if self.labels is None else self.labels[rows],
            descriptors=None if self.descriptors is None else self.descriptors[rows],
            verifier=None,
        )

    def positions(self, index: Sequence[int] | NDArray[np.generic]) -> NDArray[np.int64]:
        """Convert an index array or boolean mask to non-negative positions.

        Raises:
            IndexError: If the index is out of range or not one-dimensional integers or booleans.
        """
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

    def array_rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Rows of `node_ptr` and `edge_ptr` that hold the graphs at these positions."""
        return positions

    def verify_hashes(self, rows: NDArray[np.int64] | None = None) -> None:
        """Compare the file blocks of the graphs in these array rows with their hashes.

        Blocks verified before are skipped. Code that reads the arrays directly calls this first, because
        large files are not verified when they are opened.

        Args:
            rows: As `array_rows` gives them; None is all.

        Raises:
            DamagedFileError: If a block does not match its hash.
        """
        if self.verifier is None:
            return
        rows = np.arange(len(self.node_ptr) - 1) if rows is None else rows
        if len(rows):
            self.verifier.verify_graphs(self, rows)

    def graph(self, index: int) -> Graph:
        """The graph at a position."""
        single = self[index]
        graph_id = single.ids[0]
        return Graph(
            num_nodes=single.num_nodes,
            edge_index=single.edge_index,
            nodes=single.nodes,
            edges=single.edges,
            labels=None if single.labels is None else single.labels[0],
            id=graph_id if isinstance(graph_id, str) else int(graph_id),
        )

    def graphs(self) -> Iterator[Graph]:
        """Iterate over single graphs; for export, too slow for training."""
        return (self.graph(index) for index in range(len(self)))

    def __eq__(self, other: object) -> bool:
        """Same graphs in the same order, ids, labels and features; name and notes may differ."""
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
            and _same_floats(self.pos, other.pos)
            and _same_floats(self.edge_weight, other.edge_weight)
            and _same_ids(self.ids, other.ids)
            and _same_floats(self.labels, other.labels)
        )

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, object]:
        """State without the memory map of an open file, which cannot be pickled."""
        self.verify_hashes()
        return {**self.__dict__, "verifier": None}

    def with_features(self, scheme: str | FeatureScheme) -> GraphCollection:
        """The same graphs under another feature scheme.

        Args:
            scheme: A scheme's name, or a resolved scheme (of a trained model, say), to whose codes the
                labels are translated by value.

        Raises:
            DataError: If the graphs lack labels or attributes that the scheme needs.
        """
        if isinstance(scheme, str):
            return replace(self, features=resolve_scheme(scheme, self.nodes, self.edges))
        self.verify_hashes()
        nodes, edges = recode(self.nodes, scheme), recode_edges(self.edges, scheme)
        for what, names, table in (
            ("node", scheme.float_names, nodes),
            ("edge", scheme.edge_float_names, edges),
        ):
            if names and names != table.float_names:
                raise DataError(
                    f"graphs have the {what} attributes {', '.join(table.float_names) or 'none'}, "
                    f"needed are {', '.join(names)}"
                )
        return replace(self, nodes=nodes, edges=edges, features=scheme)

    def with_edge_features(self) -> GraphCollection:
        """The same graphs, with all edge columns in the feature scheme, if there are any."""
        columns, names = self.edges.columns, self.edges.float_names
        if not (columns or names) or self.features.has_edges:
            return self
        name = f"{self.features.name}+{EDGES}"
        return replace(
            self,
            features=replace(self.features, name=name, edge_columns=columns, edge_float_names=names),
        )

    @staticmethod
    def concatenate(parts: Sequence[GraphCollection]) -> GraphCollection:
        """The graphs of all parts, in order; columns, tasks, classes and features must agree."""
        if not parts:
            raise DataError("nothing to concatenate")
        parts = [part.copy() if isinstance(part, Subset) else part for part in parts]
        first = parts[0]
        for position, part in enumerate(parts):
            for what in ("features", "tasks"):
                if getattr(part, what) != getattr(first, what):
                    raise DataError(f"part {position} has other {what} than part 0")
            if dict(part.classes) != dict(first.classes):
                raise DataError(f"part {position} has other classes than part 0")
            if (part.labels is None) != (first.labels is None):
                raise DataError(f"part {position} differs from part 0 in having labels")
            for what in ("pos", "edge_weight"):
                if (getattr(part, what) is None) != (getattr(first, what) is None):
                    raise DataError(f"part {position} differs from part 0 in having {what}")
            part.verify_hashes()
        labels = [part.labels for part in parts if part.labels is not None]
        return replace(
            first,
            node_ptr=pointer(np.concatenate([np.diff(part.node_ptr) for part in parts])),
            edge_ptr=pointer(np.concatenate([np.diff(part.edge_ptr) for part in parts])),
            edge_index=np.concatenate([part.edge_index for part in parts], axis=1),
            nodes=FeatureTable.concatenate([part.nodes for part in parts]),
            edges=FeatureTable.concatenate([part.edges for part in parts]),
            pos=_join_floats([part.pos for part in parts]),
            edge_weight=_join_floats([part.edge_weight for part in parts]),
            descriptors=None,
            undirected=all(part.undirected for part in parts),
            ids=_join_ids([part.ids for part in parts]),
            labels=None if first.labels is None else np.concatenate(labels),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
            verifier=None,
        )

    def class_codes(self, task: int | str = 0) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Classes as 0, 1, ..., and their original names.

        Args:
            task: Name or position of the label column.

        Returns:
            One code per graph, -1 where the label is missing; and the name of each code.

        Raises:
            DataError: If there is no such label, or it is not one of classes.
        """
        position = self.tasks.index(task) if task in self.tasks else task
        if self.labels is None or not isinstance(position, int) or not 0 <= position < len(self.tasks):
            raise DataError(f"there is no label {task!r}", hint=nearest(str(task), self.tasks))
        column = np.asarray(self.labels)[:, position].astype(np.float64)
        known = ~np.isnan(column)
        values, found = np.unique(column[known], return_inverse=True)
        names = self.classes.get(self.tasks[position])
        if names is None:
            if (values != np.round(values)).any():
                raise DataError(f"label {self.tasks[position]!r} has fractions, so it is not one of classes")
            names, codes = tuple(str(int(value)) for value in values), found
        else:
            codes = column[known].astype(np.int64)
        result = np.full(len(column), -1, dtype=np.int64)
        result[known] = codes
        return result, names

    def describe(self) -> Statistics:
        """Counts and averages, as papers print them."""
        from graphsc.data.statistics import describe

        return describe(self)

    def check(self) -> None:
        """Verify every block and every invariant of this class; raises an error at the first violation."""
        from graphsc.data.validation import check

        check(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write one safetensors file, atomically."""
        from graphsc.data.storage import save

        save(self, path)

    @staticmethod
    def open(path: str | os.PathLike[str]) -> GraphCollection:
        """Open a saved collection by memory map."""
        from graphsc.data.storage import load

        return load(path)

    def to_pyg(self) -> list[Data]:
        """The graphs as PyG `Data` objects; `from_pyg` restores the same collection."""
        from graphsc.data.readers.pyg import to_pyg

        return to_pyg(self)

    @staticmethod
    def from_pyg(graphs: object, **options: Any) -> GraphCollection:
        """A collection from PyG graphs, with the options of `read_pyg`."""
        from graphsc.data.readers.pyg import read_pyg

        return read_pyg(graphs, **options)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from graphsc.data.html import collection_html

        return collection_html(self)

    def __repr__(self) -> str:
        return (
            f"GraphCollection({self.name!r}, {len(self):,} graphs, {self.num_nodes:,} nodes, "
            f"{self.num_edges:,} {'' if self.undirected else 'directed '}edge entries, "
            f"features {self.features.name!r}, {len(self.tasks)} label columns)"
        )


def _join_floats(parts: Sequence[NDArray[np.float32] | None]) -> NDArray[np.float32] | None:
    present = [part for part in parts if part is not None]
    return np.concatenate(present) if present else None


def _join_ids(parts: Sequence[Ids]) -> Ids:
    if any(isinstance(part, Strings) for part in parts):
        return Strings.of(str(graph_id) for part in parts for graph_id in part)
    return np.concatenate([part for part in parts if not isinstance(part, Strings)])


def _same_ids(left: Ids, right: Ids) -> bool:
    if isinstance(left, Strings) or isinstance(right, Strings):
        return isinstance(left, Strings) and isinstance(right, Strings) and left == right
    return np.array_equal(left, right)


def _same_floats(left: NDArray[np.floating] | None, right: NDArray[np.floating] | None) -> bool:
    if left is None or right is None:
        return left is right
    return np.array_equal(left, right, equal_nan=True)


@dataclass(frozen=True, eq=False, repr=False)
class Subset(GraphCollection):
    """Selected graphs of a collection that share its arrays; made by `subset`.

    Training on part of a large file needs no copy: batches are gathered from the shared arrays. Methods
    that need contiguous arrays (`take`, `save`, `describe`) copy the selected graphs first.
    """

    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    whole_hash: str | None = None  # content hash of the whole collection, if already known

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
        """SHA-256 of the whole collection's hash and the selected rows."""
        whole = self.whole_hash or self._whole().content_hash
        return hashlib.sha256(whole.encode() + self.rows.astype("<i8").tobytes()).hexdigest()

    @cached_property
    def degrees(self) -> NDArray[np.integer]:
        """In-degrees of all nodes in the shared arrays, not only of the selected graphs."""
        return self._whole().degrees

    def array_rows(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.rows[positions]

    def take(self, index: Sequence[int] | NDArray[np.generic]) -> GraphCollection:
        """A copy of some of the selected graphs."""
        return self._whole().take(self.rows[self.positions(index)])

    def _slice(self, start: int, stop: int) -> GraphCollection:
        return self.take(np.arange(start, stop))

    def copy(self) -> GraphCollection:
        """The selected graphs in arrays of their own."""
        return self.take(np.arange(len(self)))

    def __eq__(self, other: object) -> bool:
        return self.copy() == (other.copy() if isinstance(other, Subset) else other)

    __hash__ = None

    def __getstate__(self) -> dict[str, object]:
        return {**self._whole().__getstate__(), "rows": self.rows, "whole_hash": self.whole_hash}

    def with_features(self, scheme: str | FeatureScheme) -> GraphCollection:
        return subset(self._whole().with_features(scheme), self.rows)

    def with_edge_features(self) -> GraphCollection:
        return subset(self._whole().with_edge_features(), self.rows)

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
    """The graphs at these positions, in this order, without copying any array."""
    positions = collection.array_rows(collection.positions(rows))
    return Subset(
        **{item.name: getattr(collection, item.name) for item in fields(GraphCollection)},
        rows=positions,
        whole_hash=collection.whole_hash
        if isinstance(collection, Subset)
        else collection.__dict__.get("content_hash"),
    )
