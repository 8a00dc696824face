"""Validation of a collection's invariants: the cheap part at opening, all of it for `graphsc data check`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings, chunks_of_edges, pointer
from graphsc.data.collection import GraphCollection


def check(collection: GraphCollection) -> None:
    """Verify every block hash and every invariant of a collection.

    Raises:
        DamagedFileError: If a block of its file does not match its hash.
        DataError: For the first violated invariant.
    """
    if collection.verifier is not None:
        collection.verifier.verify_all()
    check_shapes(collection)
    for what, table in (("node", collection.nodes), ("edge", collection.edges)):
        if not np.isfinite(table.floats).all():
            raise DataError(f"a {what} attribute is not a finite number")
        for k, column in enumerate(table.columns):
            if len(table) and int(table.codes[:, k].max()) >= column.cardinality:
                raise DataError(f"{what} column {column.name!r} has a code above {column.cardinality - 1}")
    for what, values in (("position", collection.pos), ("edge weight", collection.edge_weight)):
        if values is not None and not np.isfinite(values).all():
            raise DataError(f"a {what} is not a finite number")
    if collection.labels is not None and np.isinf(collection.labels).any():
        graph = int(np.argwhere(np.isinf(collection.labels))[0][0])
        raise DataError(f"label of graph {graph} is infinite")
    _check_edges(collection)


def check_shapes(collection: GraphCollection) -> None:
    """Check that the arrays fit each other, without reading nodes and edges.

    Raises:
        DataError: For the first violated invariant.
    """
    graphs, ids = len(collection), collection.ids
    _check_pointer("node_ptr", collection.node_ptr, len(collection.nodes))
    _check_pointer("edge_ptr", collection.edge_ptr, len(collection.edges))
    if len(collection.edge_ptr) != graphs + 1 or len(ids) != graphs:
        raise DataError("pointers and ids have different lengths")
    if isinstance(ids, Strings):
        _check_pointer("id_ptr", ids.ptr, len(ids.bytes))
    if collection.edge_index.shape != (2, collection.num_edges):
        raise DataError("edge_index does not have one column per edge")
    for what, table in (("node", collection.nodes), ("edge", collection.edges)):
        if table.codes.shape[1:] != (len(table.columns),):
            raise DataError(f"{what} codes do not match their columns")
        if table.floats.shape != (len(table.codes), len(table.float_names)):
            raise DataError(f"{what} floats do not match their rows and names")
    if len(collection.nodes) and not collection.features.fits(collection.nodes, collection.edges):
        raise DataError("features do not fit the nodes and edges")
    if collection.pos is not None and (
        collection.pos.ndim != 2 or len(collection.pos) != len(collection.nodes)
    ):
        raise DataError("pos does not have one row per node")
    if collection.edge_weight is not None and collection.edge_weight.shape != (len(collection.edges),):
        raise DataError("edge_weight does not have one number per edge")
    if collection.labels is not None and collection.labels.shape != (graphs, len(collection.tasks)):
        raise DataError("labels do not have one row per graph and one column per task")


def _check_edges(collection: GraphCollection) -> None:
    """Check the range and order of all edges, and that undirected graphs have every reverse edge."""
    counts = np.diff(collection.node_ptr)
    for chunk in chunks_of_edges(collection.edge_ptr):
        part = slice(int(collection.edge_ptr[chunk.start]), int(collection.edge_ptr[chunk.stop]))
        lengths = np.diff(collection.edge_ptr[chunk.start : chunk.stop + 1])
        graph = np.repeat(np.arange(chunk.stop - chunk.start), lengths)
        source, destination = collection.edge_index[:, part].astype(np.int64)
        invalid = np.maximum(source, destination) >= counts[chunk][graph]
        if invalid.any():
            raise DataError(f"graph {chunk.start + int(graph[np.argmax(invalid)])} has an edge out of range")
        first = pointer(counts[chunk])[:-1][graph]
        width = int(counts[chunk].max(initial=1))
        key = (first + destination) * width + source
        if (key[1:] < key[:-1]).any():
            raise DataError("edges are not sorted by destination and source")
        if collection.undirected:
            reverse = np.sort((first + source) * width + destination)
            if not np.array_equal(key, reverse):
                raise DataError("the collection says undirected, but some edge has no reverse")


def _check_pointer(name: str, ptr: NDArray[np.int64], rows: int) -> None:
    if ptr.ndim != 1 or not len(ptr) or ptr[0] != 0 or int(ptr[-1]) != rows or (np.diff(ptr) < 0).any():
        raise DataError(f"{name} is not an ascending pointer over {rows} rows")
