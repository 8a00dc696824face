"""Edge lists: CSV, TSV or Parquet with one edge per row.

A row names a graph and two of its nodes; other columns are edge features. A second table may list the
nodes with their features, a third the graphs with their labels. Integers and words are categories, numbers
with a decimal point among them are attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import pointer
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable
from graphsc.data.molecules.rows import SMILES_COLUMNS
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import (
    Codes,
    TextColumn,
    TextTable,
    all_integers,
    feature_table,
    label_matrix,
    parse_ids,
    read_header,
    read_table,
    table_stem,
    table_suffix,
)

SYNONYMS = {
    "graph": ("graph_id", "graph", "gid"),
    "source": ("source", "src", "from", "u"),
    "target": ("target", "dst", "destination", "to", "v"),
    "node": ("node_id", "node", "nid"),
}


def accepts_edges(source: object) -> bool:
    """Whether this is a table with columns for the source and the target of an edge."""
    if not isinstance(source, (str, Path)) or not (suffix := table_suffix(Path(source))):
        return False
    names = {cell.lower() for cell in read_header(Path(source))}
    if all(names.intersection(SYNONYMS[role]) for role in ("source", "target")):
        return True
    return suffix == ".parquet" and not names.intersection(SMILES_COLUMNS)  # to say which columns it lacks


def read_edges(
    source: str | Path,
    /,
    *,
    name: str | None = None,
    features: str = "auto",
    nodes: str | Path | None = None,
    graphs: str | Path | None = None,
    graph_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    node_column: str | None = None,
    label_columns: tuple[str, ...] | None = None,
    directed: bool = False,
    allow_empty: bool = False,
) -> GraphCollection:
    """Read an edge list.

    Graphs are in the order of their first appearance in `graphs`, then `nodes`, then the edges.

    Args:
        source: The table of edges.
        name: Name of the collection; the file's name by default.
        features: Feature scheme.
        nodes: A table with a graph, a node and its features per row. It decides which nodes there are and
            their order; without it they are the nodes that have edges, sorted.
        graphs: A table with a graph and its labels per row; an empty cell is a missing label.
        graph_column: Column of the graph; this and the next three are guessed by their usual names.
        source_column: Column of an edge's source.
        target_column: Column of an edge's target.
        node_column: Column of the node in `nodes`.
        label_columns: Label columns of `graphs`; all by default.
        directed: Keep every row as one directed edge. Otherwise a row stands for both directions, and of
            several rows for one edge the first counts.
        allow_empty: Accept graphs without nodes.
    """
    if not isinstance(source, (str, Path)):
        raise DataError(f"a {type(source).__name__} is not the path of an edge list")
    edge_table = read_table(Path(source))
    graph_name = _find_column(edge_table, "graph", graph_column)
    ends = [
        _find_column(edge_table, "source", source_column),
        _find_column(edge_table, "target", target_column),
    ]
    node_table = None if nodes is None else read_table(Path(nodes))
    graph_table = None if graphs is None else read_table(Path(graphs))

    number_of: dict[str, int] = {}  # graph id to graph number
    graph_rows = None if graph_table is None else _graph_numbers(graph_table, graph_column, number_of)
    node_graph = None if node_table is None else _graph_numbers(node_table, graph_column, number_of)
    edge_graph = _graph_numbers(edge_table, graph_name, number_of)

    if node_table is not None and node_graph is not None:
        counts, local, node_features = _nodes_from_table(
            node_table, node_graph, node_column, graph_column, edge_table, edge_graph, ends, list(number_of)
        )
    else:
        counts, local = _nodes_from_edges(edge_table, edge_graph, ends, len(number_of))
        node_features = None
    empty = np.flatnonzero(counts == 0)
    if len(empty) and not allow_empty:
        raise DataError(
            f"graph {list(number_of)[int(empty[0])]!r} has no nodes",
            where=str(edge_table.path if graph_table is None else graph_table.path),
            hint="give it edges or nodes, leave it out, or pass allow_empty",
        )
    labels: NDArray[np.float64] | None = None
    tasks: tuple[str, ...] = ()
    classes: dict[str, tuple[str, ...]] = {}
    notes = []
    if graph_table is not None and graph_rows is not None:
        labels, tasks, classes = _labels(graph_table, graph_rows, graph_column, label_columns, len(number_of))
        if unlisted := len(number_of) - len(graph_rows):
            notes.append(f"{unlisted:,} graphs are not in {graph_table.path.name} and have no label")

    order = np.argsort(edge_graph, kind="stable")
    sources, targets = local[0][order], local[1][order]
    rows = order
    if not directed:
        # The reverse follows its edge directly: merging keeps the first row, and must keep the same one
        # for both directions. A self-loop has no reverse.
        forward = np.stack([sources, targets], axis=1)
        keep = np.ones(2 * len(order), dtype=bool)
        keep[1::2] = sources != targets
        sources, targets = forward.ravel()[keep], forward[:, ::-1].ravel()[keep]
        rows = np.repeat(order, 2)[keep]
    return build_collection(
        node_counts=counts,
        edge_counts=np.bincount(edge_graph[rows], minlength=len(number_of)),
        source=sources,
        destination=targets,
        nodes=node_features,
        edges=feature_table(edge_table, edge_table.columns_except([graph_name, *ends])).take(rows),
        labels=labels,
        tasks=tasks,
        classes=classes,
        ids=parse_ids(list(number_of)),
        name=table_stem(edge_table.path) if name is None else name,
        features=features,
        merge_duplicates=not directed,
        allow_empty=allow_empty,
        notes=notes,
    )


def _find_column(table: TextTable, role: str, requested: str | None) -> str:
    return table.find_column(role, requested, SYNONYMS[role])


def _graph_column(table: TextTable, requested: str | None) -> str:
    """The graph's column in any of the tables, which may name it differently."""
    return _find_column(table, "graph", requested if requested in table.columns else None)


def _graph_numbers(table: TextTable, column: str | None, number_of: dict[str, int]) -> Codes:
    """The graph number of each row; new graphs are added to `number_of`."""
    cells = table.required(_graph_column(table, column))
    numbers = np.array(
        [number_of.setdefault(value, len(number_of)) for value in cells.values], dtype=np.int64
    )
    return numbers[cells.codes]


def _nodes_from_edges(
    table: TextTable, edge_graph: Codes, ends: Sequence[str], graphs: int
) -> tuple[Codes, list[Codes]]:
    """Node counts, and the node numbers of both ends within their graph; nodes are sorted by their ids."""
    cells = [table.required(end) for end in ends]
    distinct = list({value for column in cells for value in column.values})
    integers = all(all_integers(column.values) for column in cells)
    rank = {value: place for place, value in enumerate(sorted(distinct, key=int if integers else None))}
    keys = [edge_graph * len(rank) + _lookup(column, rank) for column in cells]
    nodes, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    counts = np.bincount(nodes // len(rank), minlength=graphs)
    local = inverse - np.repeat(pointer(counts)[:-1], counts)[inverse]
    return counts, [local[: len(edge_graph)], local[len(edge_graph) :]]


def _nodes_from_table(
    node_table: TextTable,
    node_graph: Codes,
    node_column: str | None,
    graph_column: str | None,
    edge_table: TextTable,
    edge_graph: Codes,
    ends: Sequence[str],
    graphs: Sequence[str],
) -> tuple[Codes, list[Codes], FeatureTable]:
    """Like `_nodes_from_edges` with the nodes of a table, in its order, and their features."""
    name = _find_column(node_table, "node", node_column)
    cells = node_table.required(name)
    number = {value: place for place, value in enumerate(cells.values)}
    width = len(number) + 1  # one more, for nodes that are not listed
    order = np.argsort(node_graph, kind="stable")
    keys = (node_graph * width + cells.codes)[order]
    ranking = np.argsort(keys, kind="stable")
    ranked = keys[ranking]
    repeated = np.flatnonzero(ranked[1:] == ranked[:-1])
    if len(repeated):
        row = int(order[ranking[repeated[0] + 1]])
        raise DataError(
            f"node {cells.text(row)!r} of graph {graphs[node_graph[row]]!r} is listed twice",
            where=node_table.where(row),
        )
    counts = np.bincount(node_graph, minlength=len(graphs))
    starts = pointer(counts)
    local = []
    for end in ends:
        wanted = edge_graph * width + _lookup(edge_table.required(end), number, len(number))
        place = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
        missing = np.flatnonzero(ranked[place] != wanted)
        if len(missing):
            row = int(missing[0])
            node = edge_table.columns[end].text(row)
            raise DataError(
                f"node {node!r} of graph {graphs[edge_graph[row]]!r} is not in {node_table.path.name}",
                where=edge_table.where(row),
            )
        local.append(ranking[place] - starts[edge_graph])
    others = node_table.columns_except([_graph_column(node_table, graph_column), name])
    return counts, local, feature_table(node_table, others).take(order)


def _lookup(cells: TextColumn, number: Mapping[str, int], otherwise: int = -1) -> Codes:
    return np.array([number.get(value, otherwise) for value in cells.values], dtype=np.int64)[cells.codes]


def _labels(
    table: TextTable,
    graph_rows: Codes,
    graph_column: str | None,
    requested: tuple[str, ...] | None,
    graphs: int,
) -> tuple[NDArray[np.float64] | None, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Labels of shape (graphs, tasks), task names, and class names of tasks whose labels are words."""
    graph_name = _graph_column(table, graph_column)
    first = np.unique(graph_rows, return_index=True)[1]
    if len(first) < len(graph_rows):
        row = int(np.setdiff1d(np.arange(len(graph_rows)), first)[0])
        graph = table.columns[graph_name].text(row)
        raise DataError(f"graph {graph!r} is listed twice", where=table.where(row))
    if requested is None:
        tasks = tuple(table.columns_except([graph_name]))
    else:
        tasks = tuple(table.find_column("label", label) for label in requested)
    if not tasks:
        return None, (), {}
    labels = np.full((graphs, len(tasks)), np.nan)
    labels[graph_rows], classes = label_matrix(table, tasks)
    return labels, tasks, classes


READERS.register("edges")(
    Reader(
        accepts=accepts_edges,
        read=read_edges,
        summary="edge list: CSV, TSV or Parquet with columns graph, source, target",
    )
)
