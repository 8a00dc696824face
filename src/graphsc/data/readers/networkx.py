"""NetworkX graphs: `read_networkx` reads a list of them, directed or not; `to_networkx` exports.

By default every attribute that all nodes (or all edges) have is read: words, integers and bools are
categories, numbers with a float among them are attributes. A note of the collection names each attribute
that is left out. Nodes keep their order; an undirected edge gives both directions, a self-loop one. Parallel
edges stay, and one directed graph makes the collection directed; notes say so.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.columns import EncodedColumn, FeatureTable, FloatColumn, encode_column, encode_integers
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import INFINITE, MISSING, class_names, loses_digits

if TYPE_CHECKING:
    import networkx as nx

LABEL_KEYS = ("label", "y")
ID_KEYS = ("id", "name")
INT64 = np.iinfo(np.int64)
Rows = list[Mapping[object, object]]  # the attributes of each node, or of each edge
Problem = tuple[str, str] | None  # what is wrong, and where
Labels = tuple[NDArray[np.float64] | None, tuple[str, ...], dict[str, tuple[str, ...]]]


def accepts_networkx(source: object) -> bool:
    """Whether this is a NetworkX graph, or a list of them, by its type, without importing NetworkX."""
    first = source[0] if isinstance(source, (list, tuple)) and source else source
    return any(base.__module__.startswith("networkx.") for base in type(first).__mro__)


def read_networkx(
    source: object,
    /,
    *,
    name: str = "graphs",
    features: str = "auto",
    node_labels: str | None = None,
    node_attributes: tuple[str, ...] | None = None,
    edge_labels: str | None = None,
    edge_attributes: tuple[str, ...] | None = None,
    graph_label: str | None = None,
    allow_empty: bool = False,
) -> GraphCollection:
    """Read NetworkX graphs.

    Setting `node_labels` or `node_attributes` turns the automatic choice of node attributes off, and every
    node must have those named; likewise for edges.

    Args:
        source: A graph or a list of graphs.
        name: Name of the collection.
        features: Feature scheme.
        node_labels: A categorical node attribute.
        node_attributes: Numeric node attributes; `()` for none.
        edge_labels: A categorical edge attribute.
        edge_attributes: Numeric edge attributes; `()` for none.
        graph_label: Key in `G.graph` of the label: a number, a word, or several numbers. `label` or `y` by
            default.
        allow_empty: Accept graphs without nodes.
    """
    graphs = _graph_list(source)
    node_rows: Rows = []
    edge_rows: Rows = []
    node_names: list[str] = []
    edge_names: list[str] = []
    sources: list[int] = []
    targets: list[int] = []
    node_counts, edge_counts = [], []
    for index, graph in enumerate(graphs):
        position = {node: place for place, node in enumerate(graph.nodes)}
        node_rows.extend(graph.nodes[node] for node in position)
        node_names.extend(f"graph {index}, node {node!r}" for node in position)
        forward = [(position[u], position[v], values) for u, v, values in graph.edges(data=True)]
        reverse = [] if graph.is_directed() else [(v, u, values) for u, v, values in forward if u != v]
        for u, v, values in forward + reverse:
            sources.append(u)
            targets.append(v)
            edge_rows.append(values)
        edge_names.extend(f"graph {index}, edge {u!r} to {v!r}" for u, v in graph.edges())
        edge_names.extend("" for _ in reverse)  # a problem is found at the forward edge first
        node_counts.append(len(position))
        edge_counts.append(len(forward) + len(reverse))
    notes: list[str] = _structure_notes(graphs)
    labels, tasks, classes = _graph_labels(graphs, graph_label)
    return build_collection(
        node_counts=np.array(node_counts, dtype=np.int64),
        edge_counts=np.array(edge_counts, dtype=np.int64),
        source=np.array(sources, dtype=np.int64),
        destination=np.array(targets, dtype=np.int64),
        nodes=_attribute_table("node", node_rows, node_names, node_labels, node_attributes, notes),
        edges=_attribute_table("edge", edge_rows, edge_names, edge_labels, edge_attributes, notes),
        labels=labels,
        tasks=tasks,
        classes=classes,
        ids=_ids(graphs, notes),
        name=name,
        features=features,
        allow_empty=allow_empty,
        notes=notes,
    )


def to_networkx(collection: GraphCollection) -> list[nx.Graph]:
    """Export every graph as a NetworkX graph that `read_networkx` can read.

    Undirected graphs become `Graph`, unless the two directions of an edge differ in their features; a graph
    with duplicate edges becomes a multigraph. Categories become the integer or word they stand for, labels
    `G.graph["label"]`, ids `G.graph["id"]`. Edge weights become `weight`, positions `pos0`, `pos1`, ...
    Unused categories, task names and an unsorted order of categories are lost.
    """
    import networkx as nx

    collection.verify_hashes()
    if collection.pos is not None:
        names = [f"pos{k}" for k in range(collection.pos.shape[1])]
        collection = replace(collection, nodes=_with_floats(collection.nodes, collection.pos, names))
    if collection.edge_weight is not None:
        weights = collection.edge_weight[:, None]
        collection = replace(collection, edges=_with_floats(collection.edges, weights, ["weight"]))
    undirected = collection.undirected and _symmetric_columns(collection)
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
        exported = kinds[undirected, bool(same.any())]()
        exported.graph["id"] = graph.id
        if graph.labels is not None:
            label = _exported_label(graph.labels, collection)
            if label is not None:
                exported.graph["label"] = label
        exported.add_nodes_from(enumerate(_records(graph.nodes)))
        kept = np.flatnonzero(source <= target) if undirected else np.arange(len(source))
        records = _records(graph.edges.take(kept))
        exported.add_edges_from(zip(source[kept].tolist(), target[kept].tolist(), records, strict=True))
        graphs.append(exported)
    return graphs


def _with_floats(table: FeatureTable, values: NDArray[np.float32], names: Sequence[str]) -> FeatureTable:
    return replace(
        table,
        floats=np.concatenate([table.floats, values], axis=1),
        float_names=(*table.float_names, *names),
    )


def _exported_label(labels: NDArray[np.floating], collection: GraphCollection) -> object:
    if len(labels) > 1:
        return tuple(labels.tolist())
    if np.isnan(labels[0]):
        return None
    names = collection.classes.get(collection.tasks[0])
    return float(labels[0]) if names is None else names[int(labels[0])]


def _records(table: FeatureTable) -> list[dict[str, object]]:
    """The attributes of each row as a dict."""
    columns: dict[str, list[object]] = {}
    for k, column in enumerate(table.columns):
        values: Sequence[object] = column.values if column.values is not None else range(column.cardinality)
        if all(str(value).removeprefix("-").isdecimal() for value in values):
            values = [int(str(value)) for value in values]
        columns[column.name] = [values[code] for code in table.codes[:, k].tolist()]
    for k, name in enumerate(table.float_names):
        columns[name] = table.floats[:, k].tolist()
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)] or [
        {} for _ in range(len(table))
    ]


def _symmetric_columns(collection: GraphCollection) -> bool:
    """Whether the two directions of every edge have the same features."""
    if not collection.edges.columns and not collection.edges.float_names:
        return True
    graph = np.repeat(np.arange(len(collection)), np.diff(collection.edge_ptr))
    reverse = collection.edges.take(np.lexsort((collection.edge_index[1], collection.edge_index[0], graph)))
    return reverse == collection.edges


# Graphs and their labels


def _graph_list(source: object) -> list[nx.Graph]:
    import networkx as nx

    if isinstance(source, nx.Graph):
        source = [source]
    if not isinstance(source, Iterable):
        raise DataError(f"a {type(source).__name__} is not a list of NetworkX graphs")
    graphs = list(source)
    for index, graph in enumerate(graphs):
        if not isinstance(graph, nx.Graph):
            raise DataError(f"graph {index} is a {type(graph).__name__}, not a NetworkX graph")
    return graphs


def _structure_notes(graphs: Sequence[nx.Graph]) -> list[str]:
    """What a reader may not expect of parallel edges, and of directed and undirected graphs in one list."""
    notes = []
    parallel = sum(
        graph.number_of_edges() - len({frozenset(e) if not graph.is_directed() else e for e in graph.edges()})
        for graph in graphs
        if graph.is_multigraph()
    )
    if parallel:
        notes.append(f"{parallel:,} edges are parallel to another one and are kept as edges of their own")
    directed = sum(graph.is_directed() for graph in graphs)
    if 0 < directed < len(graphs):
        notes.append(
            f"{directed:,} of {len(graphs):,} graphs are directed, so the collection is; edges of the others "
            "have both directions"
        )
    return notes


def _ids(graphs: Sequence[nx.Graph], notes: list[str]) -> Ids | None:
    """The ids of the graphs, `G.graph["id"]` or else `G.graph["name"]`; a graph without one has its position.

    Names are ids only if no two are equal: functions of NetworkX give all their graphs one name.
    """
    for key in ID_KEYS:
        ids = [graph.graph.get(key) for graph in graphs]
        present = [str(value) for value in ids if value is not None]
        if not present:
            continue
        repeated = len(present) - len(set(present))
        if repeated and key != ID_KEYS[0]:
            notes.append(f"{repeated:,} graphs share their {key!r} with another, so positions are the ids")
            return None
        if repeated:
            notes.append(f"{repeated:,} graphs share their id with another")
        if missing := len(ids) - len(present):
            notes.append(f"{missing:,} of {len(ids):,} graphs have no {key!r}; their position is the id")
        elif all(_is_int64(value) for value in ids):
            return np.array(ids, dtype=np.int64)
        taken = set(present)
        positions = (str(place) if str(place) not in taken else f"#{place}" for place in range(len(ids)))
        return Strings.of(
            place if value is None else str(value) for place, value in zip(positions, ids, strict=True)
        )
    return None


def _graph_labels(graphs: Sequence[nx.Graph], requested: str | None) -> Labels:
    """Labels of shape (graphs, tasks) with NaN for graphs without one, task names, class names."""
    keys = LABEL_KEYS if requested is None else (requested,)
    key = next((key for key in keys if any(key in graph.graph for graph in graphs)), None)
    if key is None:
        if requested is not None:
            raise DataError(f"no graph has the label {requested!r} in G.graph")
        return None, (), {}
    values = [graph.graph.get(key) for graph in graphs]
    if all(value is None or (isinstance(value, int) and not isinstance(value, bool)) for value in values):
        texts = [None if value is None else str(value) for value in values]
        if loses_digits({text for text in texts if text is not None}):
            values = texts  # as floats, two of them could become one
    if all(value is None or isinstance(value, str) for value in values):
        for index, value in enumerate(values):
            if value is not None and INFINITE.fullmatch(value):
                raise DataError("label is infinite", where=f"graph {index}, attribute {key!r} of G.graph")
        names = class_names({value for value in values if value is not None} - MISSING)
        code = {value: float(place) for place, value in enumerate(names)}
        column = np.array([code.get(value, np.nan) for value in values])
        return column.reshape(-1, 1), (key,), {key: names} if names else {}
    rows: list[NDArray[np.float64]] = []
    width = 0
    for index, value in enumerate(values):
        where = f"graph {index}, attribute {key!r} of G.graph"
        try:
            if isinstance(value, str):
                raise ValueError  # "3" among numbers is more likely a mistake than a number
            row = np.zeros(0) if value is None else np.array(value, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError) as error:
            raise DataError(
                f"label {_short_repr(value)} is not a number, as others are", where=where
            ) from error
        if np.isinf(row).any():
            raise DataError("label is infinite", where=where, hint="leave out a label that is missing")
        width = width or len(row)
        if value is not None and (len(row) != width or not width):
            raise DataError(f"label has {len(row)} values, others have {width}", where=where)
        rows.append(row)
    table = np.stack([row if len(row) else np.full(width, np.nan) for row in rows])
    return table, (key,) if width == 1 else (), {}


# Attributes of nodes and edges


def _attribute_table(
    what: str,
    rows: Rows,
    names: Sequence[str],
    label: str | None,
    attributes: tuple[str, ...] | None,
    notes: list[str],
) -> FeatureTable:
    """The requested attributes as columns, or all that every row has."""
    categories: list[EncodedColumn] = []
    numeric: list[FloatColumn] = []
    automatic = label is None and attributes is None
    # A dict keeps the order of first appearance; that of a set would be random.
    keys = dict.fromkeys(key for row in rows for key in row) if automatic else {}
    wanted = list(keys) if automatic else [*([] if label is None else [label]), *(attributes or ())]
    for place, key in enumerate(wanted):
        as_label = None if automatic else label is not None and place == 0
        problem, values = _column_values(key, rows, names)
        if not problem:
            problem, category = _is_category(values, names, as_label)
        if problem and not automatic:
            raise DataError(
                f"{what} attribute {key!r} {problem[0]}",
                where=problem[1],
                hint="correct it, or choose others",
            )
        if problem:
            notes.append(f"{what} attribute {key!r} {problem[0]} ({problem[1]}) and was left out")
        elif category:
            categories.append(_encode(str(key), values))
        else:
            numeric.append((str(key), np.array(values, dtype=np.float64)))
    return FeatureTable.from_columns(len(rows), categories, numeric)


def _column_values(key: object, rows: Rows, names: Sequence[str]) -> tuple[Problem, list[object]]:
    if not isinstance(key, str) or (key.startswith("(") and key.endswith(")")):
        return ("has a name that is not text or is reserved", "rename it"), []
    missing = object()
    values = [row.get(key, missing) for row in rows]
    for place, value in enumerate(values):
        if value is missing:
            return ("is missing", names[place]), []
    return None, values


def _is_category(values: list[object], names: Sequence[str], as_label: bool | None) -> tuple[Problem, bool]:
    """Whether values are categories (True) or numbers (False), or why they are neither."""
    categorical = (str, numbers.Integral, np.bool_)
    if as_label is None:
        as_label = all(isinstance(value, categorical) for value in values)
    allowed = categorical if as_label else (numbers.Real, np.bool_)
    for place, value in enumerate(values):
        if not isinstance(value, allowed):
            needed = "a word or whole number" if as_label else "a number"
            return (f"is {_short_repr(value)}, not {needed}", names[place]), as_label
    return None, as_label


def _encode(name: str, values: list[object]) -> EncodedColumn:
    if all(_is_int64(value) for value in values):
        return encode_integers(name, np.array(values, dtype=np.int64))
    return encode_column(name, np.array([str(value) for value in values], dtype=object))


def _is_int64(value: object) -> bool:
    """Whether this is an integer that fits; a bool is the word "True" or "False" here."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return False
    return INT64.min <= int(value) <= INT64.max


def _short_repr(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"


READERS.register("networkx")(
    Reader(accepts=accepts_networkx, read=read_networkx, summary="NetworkX: a list of graphs")
)
