"""Build a collection from parsed graphs: check, sort, merge duplicates, choose the smallest dtypes.

Every reader ends here, so that the invariants of `GraphCollection` are established in one place.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings, chunks_of_edges, pointer, smallest_unsigned
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.columns import FeatureTable
from graphsc.data.features import resolve_scheme


def build_collection(
    *,
    node_counts: NDArray[np.integer],
    edge_counts: NDArray[np.integer],
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
    nodes: FeatureTable | None = None,
    edges: FeatureTable | None = None,
    labels: NDArray[np.floating] | None = None,
    tasks: Sequence[str] = (),
    classes: Mapping[str, tuple[str, ...]] | None = None,
    pos: NDArray[np.floating] | None = None,
    edge_weight: NDArray[np.floating] | None = None,
    ids: Ids | None = None,
    name: str = "graphs",
    features: str = "auto",
    merge_duplicates: bool = False,
    allow_empty: bool = False,
    notes: Sequence[str] = (),
) -> GraphCollection:
    """Build a collection from graphs stored end to end.

    Args:
        node_counts: Nodes per graph.
        edge_counts: Directed edges per graph.
        source: Source of each edge as a node number within its graph; the edges of graph 0 come first.
        destination: Destination of each edge, likewise.
        nodes: One row per node.
        edges: One row per edge.
        labels: Shape (graphs,) or (graphs, tasks); NaN is a missing label.
        tasks: Task names; `label`, or `task0`, `task1`, ... by default.
        classes: Class names by task.
        pos: Positions of nodes, shape (nodes, dimensions).
        edge_weight: One weight per edge.
        ids: One id per graph; 0, 1, ... by default.
        name: Name of the collection.
        features: Feature scheme, see `resolve_scheme`.
        merge_duplicates: Keep only the first of several equal edges, with its columns.
        allow_empty: Accept graphs without nodes.
        notes: Sentences about what the reader changed or left out.

    Raises:
        DataError: If counts disagree, an edge names a node that does not exist, or a value is not finite.
    """
    node_counts = np.asarray(node_counts, dtype=np.int64)
    edge_ptr = pointer(np.asarray(edge_counts, dtype=np.int64))
    node_ptr = pointer(node_counts)
    graphs = len(node_counts)
    if graphs == 0:
        raise DataError("there is no graph in this source")
    empty = np.flatnonzero(node_counts == 0)
    if len(empty) and not allow_empty:
        raise DataError(f"graph {int(empty[0])} has no nodes", hint="leave it out, or pass allow_empty")
    nodes = FeatureTable.empty(int(node_ptr[-1])) if nodes is None else nodes
    edges = FeatureTable.empty(int(edge_ptr[-1])) if edges is None else edges
    if ids is None:
        ids = np.arange(graphs, dtype=np.int64)
    elif not isinstance(ids, Strings):
        ids = np.asarray(ids, dtype=np.int64)
    for what, count, expected in (
        ("edge counts", len(edge_ptr) - 1, graphs),
        ("sources", len(source), int(edge_ptr[-1])),
        ("destinations", len(destination), int(edge_ptr[-1])),
        ("rows of node columns", len(nodes), int(node_ptr[-1])),
        ("rows of edge columns", len(edges), int(edge_ptr[-1])),
        ("rows of pos", int(node_ptr[-1]) if pos is None else len(pos), int(node_ptr[-1])),
        ("edge weights", int(edge_ptr[-1]) if edge_weight is None else len(edge_weight), int(edge_ptr[-1])),
        ("ids", len(ids), graphs),
        ("labels", graphs if labels is None else len(labels), graphs),
    ):
        if count != expected:
            raise DataError(f"{count:,} {what} where {expected:,} are needed")
    _check_floats("node", nodes.floats, nodes.float_names, node_ptr)
    _check_floats("edge", edges.floats, edges.float_names, edge_ptr)
    with np.errstate(over="ignore"):  # a value too large for float32 becomes infinite, which is refused
        if pos is not None:
            pos = np.ascontiguousarray(pos, np.float32)
            _check_floats("node", pos, ["pos"] * pos.shape[1], node_ptr)
        if edge_weight is not None:
            edge_weight = np.ascontiguousarray(edge_weight, np.float32)
            _check_floats("edge", edge_weight[:, None], ["edge_weight"], edge_ptr)
    _check_range(source, destination, edge_ptr, node_counts)

    local = smallest_unsigned(int(node_counts.max(initial=1)) - 1)
    edge_index = np.empty((2, int(edge_ptr[-1])), dtype=local)
    order: NDArray[np.int64] | None = None
    final_counts = np.diff(edge_ptr)
    undirected, merged, written = True, 0, 0
    if edges.columns or edges.float_names or edge_weight is not None:
        order = np.empty(int(edge_ptr[-1]), dtype=np.int64)
    for chunk in chunks_of_edges(edge_ptr):
        part = slice(int(edge_ptr[chunk.start]), int(edge_ptr[chunk.stop]))
        graph = np.repeat(
            np.arange(chunk.stop - chunk.start), np.diff(edge_ptr[chunk.start : chunk.stop + 1])
        )
        key, reverse, chunk_order = _sorted_keys(
            graph, source[part], destination[part], node_counts[chunk], order is not None
        )
        if merge_duplicates and len(key):
            first = np.r_[True, key[1:] != key[:-1]]
            if not first.all():
                merged += int(len(first) - first.sum())
                key = key[first]
                reverse = reverse[np.r_[True, reverse[1:] != reverse[:-1]]]
                chunk_order = chunk_order[first] if chunk_order is not None else None
        undirected = undirected and np.array_equal(key, reverse)
        # Decode the keys: (first node of the graph + destination) * width + source.
        width = int(node_counts[chunk].max(initial=1))
        rows, columns = np.divmod(key, width)
        starts = pointer(node_counts[chunk])
        edge_graph = np.searchsorted(starts, rows, side="right") - 1
        done = slice(written, written + len(key))
        edge_index[0, done] = columns
        edge_index[1, done] = rows - starts[edge_graph]
        if order is not None and chunk_order is not None:
            order[done] = chunk_order + part.start
        final_counts[chunk] = np.bincount(edge_graph, minlength=chunk.stop - chunk.start)
        written += len(key)
    if written < edge_index.shape[1]:
        edge_index = np.ascontiguousarray(edge_index[:, :written])
    all_notes = list(notes)
    if merged:
        all_notes.append(f"{merged:,} edges were listed more than once and merged")
    if features == "auto" and nodes.columns and nodes.float_names:
        names = ", ".join(nodes.float_names[:5]) + (", ..." if len(nodes.float_names) > 5 else "")
        all_notes.append(
            f"node attributes are not used: {names}; to use them, set features to labels+attributes"
        )
    return GraphCollection(
        node_ptr=node_ptr,
        edge_ptr=pointer(final_counts),
        edge_index=edge_index,
        nodes=nodes,
        edges=FeatureTable.empty(written) if order is None else edges.take(order[:written]),
        undirected=bool(undirected),
        features=resolve_scheme(features, nodes, edges),
        ids=ids,
        labels=None if labels is None else downcast_labels(labels),
        tasks=_checked_tasks(labels, tasks),
        classes=dict(classes or {}),
        pos=pos,
        edge_weight=None if edge_weight is None or order is None else edge_weight[order[:written]],
        name=name,
        notes=tuple(all_notes),
    )


def _sorted_keys(
    graph: NDArray[np.int64],
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
    node_counts: NDArray[np.integer],
    want_order: bool,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64] | None]:
    """Sorted keys of the edges (graph, destination, source) and of the reversed edges, and the order."""
    starts = pointer(node_counts)[:-1]
    width = int(node_counts.max(initial=1))
    first = starts[graph]
    key = (first + destination) * width + source
    reverse = np.sort((first + source) * width + destination)
    if not want_order:
        # Files are often sorted already, and checking is cheaper than sorting.
        return (key if (key[1:] >= key[:-1]).all() else np.sort(key)), reverse, None
    order = np.argsort(key, kind="stable")
    return key[order], reverse, order


def downcast_labels(labels: NDArray[np.floating]) -> NDArray[np.floating]:
    """Labels of shape (graphs, tasks), as float32 where that is exact."""
    table = labels.reshape(len(labels), -1).astype(np.float64)
    infinite = np.isinf(table).any(axis=1)
    if infinite.any():
        raise DataError(f"label of graph {int(np.argmax(infinite))} is infinite")
    with np.errstate(over="ignore"):  # a label too large for float32 stays float64
        narrow = table.astype(np.float32)
    return narrow if np.array_equal(narrow.astype(np.float64), table, equal_nan=True) else table


def default_tasks(width: int) -> tuple[str, ...]:
    """Names of this many tasks whose source names none."""
    return ("label",) if width == 1 else tuple(f"task{i}" for i in range(width))


def _checked_tasks(labels: NDArray[np.floating] | None, tasks: Sequence[str]) -> tuple[str, ...]:
    if labels is None:
        return ()
    width = labels.reshape(len(labels), -1).shape[1]
    if not tasks:
        return default_tasks(width)
    if len(tasks) != width:
        raise DataError(f"{width} label columns but {len(tasks)} task names")
    return tuple(tasks)


def _check_floats(
    what: str, floats: NDArray[np.floating], names: Sequence[str], ptr: NDArray[np.int64]
) -> None:
    if floats.size and not np.isfinite(floats).all():
        row, column = map(int, np.argwhere(~np.isfinite(floats))[0])
        graph = int(np.searchsorted(ptr, row, side="right")) - 1
        raise DataError(
            f"{what} attribute {names[column]!r} is not a finite number",
            where=f"graph {graph}, {what} {row - int(ptr[graph])}",
        )


def _check_range(
    source: NDArray[np.integer],
    destination: NDArray[np.integer],
    edge_ptr: NDArray[np.int64],
    node_counts: NDArray[np.integer],
) -> None:
    limit = np.repeat(node_counts, np.diff(edge_ptr))
    for end in (source, destination):
        if len(end) and not np.issubdtype(end.dtype, np.integer):
            raise DataError(f"edge_index holds {end.dtype}, not whole numbers")
        wrong = (end < 0) | (end >= limit)
        if wrong.any():
            edge = int(np.argmax(wrong))
            graph = int(np.searchsorted(edge_ptr, edge, side="right")) - 1
            raise DataError(
                f"edge_index names node {int(end[edge])} of a graph with {int(limit[edge])} nodes",
                where=f"graph {graph}, edge {edge - int(edge_ptr[graph])}",
            )
