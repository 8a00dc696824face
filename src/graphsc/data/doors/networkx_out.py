"""The way out to NetworkX: a collection as a list of graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection
from graphsc.data.table import Table

if TYPE_CHECKING:
    import networkx as nx


def to_networkx(collection: GraphCollection) -> list[nx.Graph]:
    """One NetworkX graph a graph; `read_networkx` reads it back.

    Undirected graphs leave as `Graph`, unless the two directions of an edge differ in what is known of
    them; a graph with an edge listed twice as a multigraph. Categories leave as the whole number or word
    they stand for, labels as `G.graph["label"]`, ids as `G.graph["id"]`. A category that no node uses,
    names of tasks and an order of categories other than the sorted one are not kept.
    """
    import networkx as nx

    both_ways = collection.undirected and _symmetric_columns(collection)
    kinds = {
        (True, False): nx.Graph,
        (True, True): nx.MultiGraph,
        (False, False): nx.DiGraph,
        (False, True): nx.MultiDiGraph,
    }
    graphs = []
    for graph in collection.graphs():
        source, target = graph.edge_index.astype(np.int64)
        same = (source[1:] == source[:-1]) & (target[1:] == target[:-1])
        made = kinds[both_ways, bool(same.any())]()
        made.graph["id"] = graph.id
        if graph.labels is not None:
            label = _label_out(graph.labels, collection)
            if label is not None:
                made.graph["label"] = label
        made.add_nodes_from(enumerate(_records(graph.nodes)))
        kept = np.flatnonzero(source <= target) if both_ways else np.arange(len(source))
        records = _records(graph.edges.take(kept))
        made.add_edges_from(zip(source[kept].tolist(), target[kept].tolist(), records, strict=True))
        graphs.append(made)
    return graphs


def _label_out(labels: NDArray[np.floating], collection: GraphCollection) -> object:
    if len(labels) > 1:
        return tuple(labels.tolist())
    if np.isnan(labels[0]):
        return None
    names = collection.classes.get(collection.tasks[0])
    return float(labels[0]) if names is None else names[int(labels[0])]


def _records(table: Table) -> list[dict[str, object]]:
    """One dict of attributes a row."""
    columns: dict[str, list[object]] = {}
    for k, column in enumerate(table.columns):
        known: Sequence[object] = column.values if column.values is not None else range(column.cardinality)
        if all(str(value).removeprefix("-").isdecimal() for value in known):
            known = [int(str(value)) for value in known]
        columns[column.name] = [known[code] for code in table.codes[:, k].tolist()]
    for k, name in enumerate(table.float_names):
        columns[name] = table.floats[:, k].tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] or [
        {} for _ in range(len(table))
    ]


def _symmetric_columns(collection: GraphCollection) -> bool:
    """Whether the two directions of every edge have the same columns."""
    if not collection.edges.columns and not collection.edges.float_names:
        return True
    graph = np.repeat(np.arange(len(collection)), np.diff(collection.edge_ptr))
    back = collection.edges.take(np.lexsort((collection.edge_index[1], collection.edge_index[0], graph)))
    return back == collection.edges
