"""Whether a collection keeps every promise its class makes; slow and complete."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import chunks_of_edges, pointer
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable


def check(collection: GraphCollection) -> None:
    """Raise a `DataError` that names the first broken promise."""
    if collection.guard is not None:
        collection.guard.verify_all()
    graphs = len(collection)
    _pointer("node_ptr", collection.node_ptr, len(collection.nodes))
    _pointer("edge_ptr", collection.edge_ptr, len(collection.edges))
    if len(collection.edge_ptr) != graphs + 1 or len(collection.ids) != graphs:
        raise DataError("pointers and ids are of differing length")
    if collection.edge_index.shape != (2, collection.num_edges):
        raise DataError("edge_index does not have one column an edge")
    _table("node", collection.nodes)
    _table("edge", collection.edges)
    if len(collection.nodes) and not collection.features.fits(collection.nodes):
        raise DataError("features do not fit the nodes")
    labels = collection.labels
    if labels is not None:
        if labels.shape != (graphs, len(collection.tasks)):
            raise DataError("labels do not have one row a graph and one column a task")
        if np.isinf(labels).any():
            raise DataError(f"label of graph {int(np.argwhere(np.isinf(labels))[0][0])} is infinite")
    if not _edges_hold(collection):
        raise DataError("the collection says undirected, but some edge has no reverse")


def _edges_hold(collection: GraphCollection) -> bool:
    """Check ranges and order of all edges; return whether the undirected flag is true."""
    counts = np.diff(collection.node_ptr)
    for run in chunks_of_edges(collection.edge_ptr):
        part = slice(int(collection.edge_ptr[run.start]), int(collection.edge_ptr[run.stop]))
        lengths = np.diff(collection.edge_ptr[run.start : run.stop + 1])
        graph = np.repeat(np.arange(run.stop - run.start), lengths)
        source, destination = collection.edge_index[:, part].astype(np.int64)
        beyond = np.maximum(source, destination) >= counts[run][graph]
        if beyond.any():
            raise DataError(f"graph {run.start + int(graph[np.argmax(beyond)])} has an edge out of range")
        first = pointer(counts[run])[:-1][graph]
        width = int(counts[run].max(initial=1))
        key = (first + destination) * width + source
        if (key[1:] < key[:-1]).any():
            raise DataError("edges are not sorted by destination and source")
        if collection.undirected:
            back = np.sort((first + source) * width + destination)
            if not np.array_equal(key, back):
                return False
    return True


def _pointer(name: str, ptr: NDArray[np.int64], rows: int) -> None:
    if ptr[0] != 0 or int(ptr[-1]) != rows or (np.diff(ptr) < 0).any():
        raise DataError(f"{name} is not a rising pointer over {rows} rows")


def _table(what: str, table: FeatureTable) -> None:
    if table.codes.shape[1:] != (len(table.columns),):
        raise DataError(f"{what} codes do not match their columns")
    if table.floats.shape != (len(table.codes), len(table.float_names)):
        raise DataError(f"{what} floats do not match their rows and names")
    if not np.isfinite(table.floats).all():
        raise DataError(f"a {what} attribute is not a finite number")
    for k, column in enumerate(table.columns):
        if len(table) and int(table.codes[:, k].max()) >= column.cardinality:
            raise DataError(f"{what} column {column.name!r} has a code beyond {column.cardinality - 1}")
