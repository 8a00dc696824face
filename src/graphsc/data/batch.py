"""A batch of graphs as tensors: one disconnected graph that an encoder processes in one pass.

The adjacency is stored as CSR by destination (`rowptr`, `source`), the form that sparse aggregation reads.
PyG's names (`x`, `edge_index`, `edge_attr`, `batch`, `ptr`, `y`, `num_graphs`) are properties, for
encoders written for PyG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from graphsc.core.compiled import use_compiled
from graphsc.core.errors import DataError
from graphsc.data.arrays import gather_index, pointer
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column
from graphsc.data.features import CONSTANT, DEGREE, FeatureScheme

if TYPE_CHECKING:
    from torch_geometric.data import Batch, Data

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, eq=False)
class GraphBatch:
    """A batch of G graphs with N nodes and E directed edges, grouped by destination."""

    codes: Tensor  # N x K, int64: categorical features, codes start at 0 in each column
    floats: Tensor  # N x F, float32
    rowptr: Tensor  # N + 1, int32: edges rowptr[i]:rowptr[i + 1] end at node i
    source: Tensor  # E, int32
    ptr: Tensor  # G + 1, int64: nodes ptr[g]:ptr[g + 1] belong to graph g
    features: FeatureScheme
    undirected: bool
    sorted_sources: bool = True  # sources ascend within each CSR row; false once edges were added
    edge_codes: Tensor | None = None  # E x K_e, int64
    edge_floats: Tensor | None = None  # E x F_e, float32
    edge_weight: Tensor | None = None  # E, float32; None = all ones
    pos: Tensor | None = None  # N x dimensions, float32: positions
    y: Tensor | None = None  # G x tasks, NaN = missing
    descriptors: Tensor | None = None  # G x columns, NaN = missing: numbers computed from the graphs alone
    integer_labels: bool = False  # all labels of the collection are integers of one task: classes
    edge_columns: tuple[Column, ...] = ()  # meaning of the edge codes, where it is known
    index: Tensor | None = None  # G, int64: positions in the collection
    replaced: Tensor | None = None  # M, int64: nodes whose features a view replaced by noise
    replacement: Tensor | None = None  # M x features.width: their dense features
    # Numbers of nodes and edges before any view, which views keep, for keys that only the caller knows. Those
    # of an added edge are those of the edge whose attributes it copies.
    node_origin: Tensor | None = None  # N, int64
    edge_origin: Tensor | None = None  # E, int64

    @property
    def num_nodes(self) -> int:
        return self.codes.shape[0]  # not `len`, which would fix the number when torch exports an encoder

    @property
    def num_edges(self) -> int:
        return self.source.shape[0]

    @property
    def num_graphs(self) -> int:
        return self.ptr.shape[0] - 1

    @property
    def device(self) -> torch.device:
        return self.source.device

    @cached_property
    def batch(self) -> Tensor:
        """N, int64: the graph of each node."""
        return _expand_rows(self.ptr, self.num_nodes)

    @cached_property
    def in_degree(self) -> Tensor:
        """N, int64: edges that end at each node."""
        return self.rowptr.diff().long()

    @cached_property
    def destination(self) -> Tensor:
        """E, int32: destination of each edge."""
        return _expand_rows(self.rowptr, self.num_edges)

    @cached_property
    def edge_batch(self) -> Tensor:
        """E, int64: the graph of each edge."""
        return _expand_rows(self.edge_ptr, self.num_edges)

    @cached_property
    def edge_ptr(self) -> Tensor:
        """G + 1, int64: edges edge_ptr[g]:edge_ptr[g + 1] belong to graph g."""
        if _loops(self.rowptr):  # NumPy takes few elements faster
            return torch.from_numpy(self.rowptr.numpy()[self.ptr.numpy()].astype(np.int64))
        return self.rowptr[self.ptr].long()

    @cached_property
    def edge_index(self) -> Tensor:
        """2 x E, int64: sources and destinations, as in PyG."""
        if _loops(self.source):
            from graphsc.data.compiled import edge_index_of

            return torch.from_numpy(edge_index_of(self.rowptr.numpy(), self.source.numpy()))
        return torch.stack([self.source, self.destination]).long()

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge codes (int64) or edge floats, as in PyG; if there are both, both as floats."""
        if self.edge_codes is None or self.edge_floats is None:
            return self.edge_codes if self.edge_floats is None else self.edge_floats
        return torch.cat([self.edge_codes.float(), self.edge_floats], dim=1)

    @property
    def x(self) -> Tensor:
        """N x width: dense node features, for encoders that do not use codes."""
        return self.dense_x()

    def dense_x(self) -> Tensor:
        """N x width: one-hot codes, then floats; rows of replaced nodes hold their replacement."""
        dense = torch.zeros(self.num_nodes, self.features.width, device=self.device)
        offset = 0
        for k, cardinality in enumerate(self.features.cardinalities):
            dense.scatter_(1, self.codes[:, k : k + 1] + offset, 1.0)
            offset += cardinality
        dense[:, offset:] = self.floats
        if self.replaced is not None and self.replacement is not None:
            dense[self.replaced] = self.replacement
        return dense

    def to(self, device: str | torch.device) -> GraphBatch:
        """The same batch on another device."""
        moved: dict[str, Any] = {
            item.name: value.to(device)
            for item in fields(self)
            if isinstance(value := getattr(self, item.name), Tensor)
        }
        return replace(self, **moved)

    @classmethod
    def gather(cls, collection: GraphCollection, rows: NDArray[np.int64]) -> GraphBatch:
        """Gather the graphs at these positions, without Python per graph."""
        index = collection.positions(rows)
        rows = collection.array_rows(index)
        collection.verify_hashes(rows)
        nodes, ptr = gather_index(collection.node_ptr, rows)
        source, rowptr = _gather_edges(collection, rows, ptr)
        edge_table = collection.edges
        weight, pos = collection.edge_weight, collection.pos
        has_attributes = edge_table.columns or edge_table.float_names or weight is not None
        edges = gather_index(collection.edge_ptr, rows)[0] if has_attributes else None
        return cls(
            codes=torch.from_numpy(_codes(collection, nodes)),
            floats=torch.from_numpy(_floats(collection, nodes)),
            rowptr=torch.from_numpy(rowptr),
            source=torch.from_numpy(source),
            ptr=torch.from_numpy(ptr),
            features=collection.features,
            undirected=collection.undirected,
            edge_codes=torch.from_numpy(edge_table.codes[edges].astype(np.int64))
            if edge_table.columns
            else None,
            edge_floats=torch.from_numpy(edge_table.floats[edges]) if edge_table.float_names else None,
            edge_weight=None if weight is None else torch.from_numpy(weight[edges]),
            pos=None if pos is None else torch.from_numpy(pos[nodes]),
            y=None if collection.labels is None else torch.from_numpy(collection.labels[rows]),
            descriptors=None
            if collection.descriptors is None
            else torch.from_numpy(collection.descriptors[rows]),
            integer_labels=collection.has_integer_labels,
            edge_columns=edge_table.columns,
            index=torch.from_numpy(index),
        )

    def to_pyg(self, *, dense: bool = False) -> Batch:
        """The batch as a PyG `Batch`, with the tensors that `to_pyg` gives its collection.

        Args:
            dense: Give `x` as encoders see it: one-hot codes, degrees and constants included, then floats.
                This is always so if a view has replaced features by noise.
        """
        from graphsc.data.pyg_batch import batch_to_pyg

        return batch_to_pyg(self, dense=dense)

    @classmethod
    def from_pyg(cls, batch: Data | Batch, features: FeatureScheme | None = None) -> GraphBatch:
        """Convert a PyG batch.

        Args:
            batch: G graphs, or one.
            features: The scheme of the graphs that an encoder was made for. Without it, the meaning of
                integers is inferred from this batch alone, and their width differs from batch to batch.
        """
        if features is None:
            return cls.of(GraphCollection.from_pyg(batch))
        from graphsc.data.pyg_batch import batch_from_pyg

        return batch_from_pyg(batch, features)

    @classmethod
    def of(cls, collection: GraphCollection) -> GraphBatch:
        """The whole collection as one batch."""
        return cls.gather(collection, np.arange(len(collection), dtype=np.int64))


def _gather_edges(
    collection: GraphCollection, rows: NDArray[np.int64], ptr: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Sources and row pointer of the graphs in these rows, whose nodes begin at `ptr` in the batch."""
    source, destination = collection.edge_index
    if use_compiled():
        from graphsc.data.compiled import gather_edges

        edge_ptr, node_ptr = _read_only(collection.edge_ptr), _read_only(collection.node_ptr)
        new_source, rowptr, invalid = gather_edges(
            _read_only(source), _read_only(destination), edge_ptr, node_ptr, rows
        )
    else:
        edges, edge_ptr = gather_index(collection.edge_ptr, rows)
        graph = np.repeat(np.arange(len(rows)), np.diff(edge_ptr))
        source, destination = source[edges], destination[edges]
        out_of_range = np.maximum(source, destination) >= np.diff(ptr)[graph]
        invalid = int(rows[graph[np.argmax(out_of_range)]]) if out_of_range.any() else -1
        first = ptr.astype(np.int32)[graph]
        new_source = source.astype(np.int32) + first
        counts = np.bincount(destination + first, minlength=int(ptr[-1]))
        rowptr = pointer(counts).astype(np.int32)
    if invalid >= 0:
        raise DataError(
            f"graph {invalid} has an edge out of range", hint="read the graphs again from their source"
        )
    return new_source, rowptr


def _read_only(array: NDArray[T]) -> NDArray[T]:
    """A view that cannot be written, as the arrays of a file are: numba compiles once for both."""
    view = array.view()
    view.flags.writeable = False
    return view


def is_exporting() -> bool:
    """Whether torch exports a program, in which no compiled loop runs and no branch depends on values."""
    exporting = getattr(torch.compiler, "is_exporting", torch.compiler.is_compiling)  # not in torch 2.6
    return bool(exporting())


def _loops(tensor: Tensor) -> bool:
    """Whether compiled loops take this tensor."""
    return tensor.is_cpu and use_compiled() and not is_exporting()


def _expand_rows(ptr: Tensor, total: int) -> Tensor:
    """The row of each of `total` elements, where elements `ptr[i]:ptr[i + 1]` are those of row i."""
    if _loops(ptr):
        from graphsc.data.compiled import expand_rows

        return torch.from_numpy(expand_rows(ptr.numpy()))
    rows = torch.arange(ptr.shape[0] - 1, device=ptr.device, dtype=ptr.dtype)
    return torch.repeat_interleave(rows, ptr.diff(), output_size=total)


def _codes(collection: GraphCollection, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """N x K: codes of the scheme's categorical columns for these nodes."""
    codes = np.zeros((len(nodes), len(collection.features.columns)), dtype=np.int64)
    label_column = 0
    for k, column in enumerate(collection.features.columns):
        if column.name == DEGREE:
            codes[:, k] = np.minimum(collection.degrees[nodes], column.cardinality - 1)
        elif column.name != CONSTANT:  # the code of a constant is 0
            codes[:, k] = collection.nodes.codes[nodes, label_column]
            label_column += 1
    return codes


def _floats(collection: GraphCollection, nodes: NDArray[np.int64]) -> NDArray[np.float32]:
    if not collection.features.float_names:
        return np.zeros((len(nodes), 0), dtype=np.float32)
    return collection.nodes.floats[nodes]


def first_graphs(batch: GraphBatch, count: int) -> GraphBatch:
    """The first graphs of a batch that no view has changed; tensors are shared."""
    nodes, edges = int(batch.ptr[count]), int(batch.edge_ptr[count])

    def cut(values: Tensor | None, length: int) -> Tensor | None:
        return None if values is None else values[:length]

    return replace(
        batch,
        codes=batch.codes[:nodes],
        floats=batch.floats[:nodes],
        rowptr=batch.rowptr[: nodes + 1],
        source=batch.source[:edges],
        ptr=batch.ptr[: count + 1],
        edge_codes=cut(batch.edge_codes, edges),
        edge_floats=cut(batch.edge_floats, edges),
        edge_weight=cut(batch.edge_weight, edges),
        pos=cut(batch.pos, nodes),
        y=cut(batch.y, count),
        descriptors=cut(batch.descriptors, count),
        index=cut(batch.index, count),
        node_origin=cut(batch.node_origin, nodes),
        edge_origin=cut(batch.edge_origin, edges),
    )


def join(batches: Sequence[GraphBatch]) -> GraphBatch:
    """Concatenate batches that have the same features and columns."""
    first = batches[0]
    nodes = _starts([batch.num_nodes for batch in batches])
    edges = _starts([batch.num_edges for batch in batches])

    def optional(name: str) -> Tensor | None:
        parts = [getattr(batch, name) for batch in batches]
        if name == "edge_weight" and any(part is not None for part in parts):
            parts = [
                part if part is not None else torch.ones(batch.num_edges, device=batch.device)
                for part, batch in zip(parts, batches, strict=True)
            ]
        return None if any(part is None for part in parts) else torch.cat(parts)

    replaced = [
        (batch.replaced + start, batch.replacement)
        for batch, start in zip(batches, nodes, strict=False)
        if batch.replaced is not None and batch.replacement is not None
    ]
    return replace(
        first,
        codes=torch.cat([batch.codes for batch in batches]),
        floats=torch.cat([batch.floats for batch in batches]),
        rowptr=_joined_pointers([batch.rowptr for batch in batches], edges),
        source=_shifted([batch.source for batch in batches], nodes),
        ptr=_joined_pointers([batch.ptr for batch in batches], nodes),
        undirected=all(batch.undirected for batch in batches),
        sorted_sources=all(batch.sorted_sources for batch in batches),
        edge_codes=optional("edge_codes"),
        edge_floats=optional("edge_floats"),
        edge_weight=optional("edge_weight"),
        pos=optional("pos"),
        node_origin=optional("node_origin"),
        edge_origin=optional("edge_origin"),
        y=optional("y"),
        descriptors=optional("descriptors"),
        index=optional("index"),
        replaced=torch.cat([index for index, _ in replaced]) if replaced else None,
        replacement=torch.cat([rows for _, rows in replaced]) if replaced else None,
    )


def _starts(sizes: Sequence[int]) -> list[int]:
    starts = [0]
    for size in sizes:
        starts.append(starts[-1] + size)
    return starts


def _shifted(parts: Sequence[Tensor], shifts: Sequence[int]) -> Tensor:
    """The parts one after another, each plus its shift; the first shift is 0."""
    result = torch.cat(list(parts))
    for part, shift in zip(
        result.split_with_sizes([len(part) for part in parts])[1:], shifts[1:], strict=False
    ):
        part += shift
    return result


def _joined_pointers(pointers: Sequence[Tensor], starts: Sequence[int]) -> Tensor:
    return _shifted([pointers[0], *(pointer[1:] for pointer in pointers[1:])], starts)
