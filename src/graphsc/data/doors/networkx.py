"""NetworkX: a list of graphs, directed or not, in; `to_networkx` gives a list of graphs back.

Left to itself the door takes every attribute that all nodes (or all edges) have: words, whole numbers
and bools are categories, numbers with a float among them are attributes. What it leaves out it says in
the collection's notes. Nodes keep their order; an undirected edge gives both directions, a loop one.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.assemble import assemble
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.doors import DOORS, Door
from graphsc.data.doors.networkx_attributes import Rows, attribute_table, is_whole, short
from graphsc.data.doors.networkx_out import to_networkx as to_networkx
from graphsc.data.strings import Strings

if TYPE_CHECKING:
    import networkx as nx

LABEL_KEYS = ("label", "y")
ID_KEYS = ("id", "name")
Labels = tuple[NDArray[np.float64] | None, tuple[str, ...], dict[str, tuple[str, ...]]]


def accepts_networkx(source: object) -> bool:
    """Whether this is a NetworkX graph, or a list of them; looks at types only."""
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

    `node_labels` names a categorical node attribute, `node_attributes` numeric ones; naming either (or
    `node_attributes=()`) turns the automatic choice off, and each must be on every node. The same goes
    for edges. `graph_label` is a key of `G.graph`: a number, a word, or several numbers.
    """
    graphs = _listed(source)
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
        before = len(sources)
        listed = list(graph.edges(data=True))
        forth = [(position[one], position[other], values) for one, other, values in listed]
        back = [] if graph.is_directed() else [(v, u, values) for u, v, values in forth if u != v]
        for one, other, values in forth + back:
            sources.append(one)
            targets.append(other)
            edge_rows.append(values)
        ends = [f"graph {index}, edge {one!r} to {other!r}" for one, other, _ in listed]
        edge_names.extend(ends)
        edge_names.extend("" for _ in back)  # seen forth before
        node_counts.append(len(position))
        edge_counts.append(len(sources) - before)
    notes: list[str] = []
    labels, tasks, classes = _graph_labels(graphs, graph_label)
    return assemble(
        node_counts=np.array(node_counts, dtype=np.int64),
        edge_counts=np.array(edge_counts, dtype=np.int64),
        source=np.array(sources, dtype=np.int64),
        destination=np.array(targets, dtype=np.int64),
        nodes=attribute_table("node", node_rows, node_names, node_labels, node_attributes, notes),
        edges=attribute_table("edge", edge_rows, edge_names, edge_labels, edge_attributes, notes),
        labels=labels,
        tasks=tasks,
        classes=classes,
        ids=_ids(graphs),
        name=name,
        features=features,
        allow_empty=allow_empty,
        notes=notes,
    )


def _listed(source: object) -> list[nx.Graph]:
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


def _ids(graphs: Sequence[nx.Graph]) -> Ids | None:
    """Ids the graphs carry, if each has one and no two are the same."""
    for key in ID_KEYS:
        ids = [graph.graph.get(key) for graph in graphs]
        if all(is_whole(identity) for identity in ids) and len(set(ids)) == len(ids):
            return np.array(ids, dtype=np.int64)
        words = [str(identity) for identity in ids if isinstance(identity, (str, numbers.Integral))]
        if len(words) == len(ids) and len(set(words)) == len(words):
            return Strings.of(words)
    return None


def _graph_labels(graphs: Sequence[nx.Graph], wanted: str | None) -> Labels:
    """Labels as graphs x tasks with NaN where a graph has none, task names, class names."""
    keys = LABEL_KEYS if wanted is None else (wanted,)
    key = next((key for key in keys if any(key in graph.graph for graph in graphs)), None)
    if key is None:
        if wanted is not None:
            raise DataError(f"no graph has the label {wanted!r} in G.graph")
        return None, (), {}
    values = [graph.graph.get(key) for graph in graphs]
    if all(value is None or isinstance(value, str) for value in values):
        names = sorted({value for value in values if value is not None})
        code = {value: float(place) for place, value in enumerate(names)}
        column = np.array([code.get(value, np.nan) for value in values])
        return column.reshape(-1, 1), (key,), {key: tuple(names)} if names else {}
    rows: list[NDArray[np.float64]] = []
    width = 0
    for index, value in enumerate(values):
        where = f"graph {index}, attribute {key!r} of G.graph"
        try:
            if isinstance(value, str):
                raise ValueError  # "3" among numbers is more likely a mistake than a number
            row = np.zeros(0) if value is None else np.array(value, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError) as error:
            raise DataError(f"label {short(value)} is not a number, as others are", where=where) from error
        if np.isinf(row).any():
            raise DataError("label is infinite", where=where, hint="leave out a label that is missing")
        width = width or len(row)
        if value is not None and (len(row) != width or not width):
            raise DataError(f"label has {len(row)} values, others have {width}", where=where)
        rows.append(row)
    table = np.stack([row if len(row) else np.full(width, np.nan) for row in rows])
    return table, (key,) if width == 1 else (), {}


DOORS.register("networkx")(
    Door(accepts=accepts_networkx, read=read_networkx, summary="NetworkX: a list of graphs")
)
