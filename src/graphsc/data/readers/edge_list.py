"""Edge lists: CSV, TSV or Parquet with one edge per row.

A row names a graph and two of its nodes; other columns are edge features. A second table may list the
nodes with their features, a third the graphs with their labels. Integers and words are categories, numbers
with a decimal point among them are attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import pointer
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable, Merge
from graphsc.data.molecules.rows import smiles_columns
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import (
    Codes,
    Decimal,
    TextColumn,
    TextTable,
    all_integers,
    feature_table,
    label_matrix,
    parse_ids,
    read_header,
    read_table,
    rows_without_a_number,
    table_stem,
    table_suffix,
    with_decimal_points,
    write_malformed,
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
    header = read_header(Path(source))
    names = {cell.lower() for cell in header}
    if all(names.intersection(SYNONYMS[role]) for role in ("source", "target")):
        return True
    return suffix == ".parquet" and not smiles_columns(header)  # to say which columns it lacks


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
    merge: Merge | None = None,
    separator: str | None = None,
    decimal: Decimal | None = None,
    strict: bool = False,
    rejected: str | Path | None = None,
    allow_empty: bool = False,
) -> GraphCollection:
    """Read an edge list.

    Graphs are in the order of their first appearance in `graphs`, then `nodes`, then the edges. Malformed
    rows of the table of edges are left out; `rejected_edges` of the collection lists them, and a note counts
    them.

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
        directed: Keep every row as one directed edge. Otherwise a row stands for both directions.
        merge: What the columns of several rows for one edge become: those of the `first` row, or the `sum`,
            `mean` or `max` of their numbers; whole numbers are then attributes, and of words the first
            counts. By default `first`, and with `directed` such rows stay separate edges.
        separator: The character between cells, or `tab`; detected by default.
        decimal: `,` or `.`, the decimal point of numbers; detected by default.
        strict: Raise an error at the first malformed row.
        rejected: A CSV file to list the malformed rows in.
        allow_empty: Accept graphs without nodes.
    """
    if not isinstance(source, (str, Path)):
        raise DataError(f"a {type(source).__name__} is not the path of an edge list")
    edge_table = read_table(Path(source), separator=separator, strict=strict)
    graph_name = _find_column(edge_table, "graph", graph_column)
    ends = [
        _find_column(edge_table, "source", source_column),
        _find_column(edge_table, "target", target_column),
    ]
    node_table = None if nodes is None else read_table(Path(nodes), separator=separator)
    graph_table = None if graphs is None else read_table(Path(graphs), separator=separator)
    columns = edge_table.columns_except([graph_name, *ends])
    edge_table = with_decimal_points(edge_table, columns, decimal)
    if not strict:
        edge_table = edge_table.without(_malformed(edge_table, [graph_name, *ends], columns))
        if node_table is not None:
            unlisted = _unlisted(edge_table, graph_name, ends, node_table, graph_column, node_column)
            edge_table = edge_table.without(unlisted)
        if not len(edge_table.lines):
            first = edge_table.malformed[0]
            raise DataError(
                f"no row is a usable edge; the first: {first.reason}", where=f"{source}, line {first.line}"
            )

    number_of: dict[str, int] = {}  # graph id to graph number
    graph_rows = None if graph_table is None else _graph_numbers(graph_table, graph_column, number_of)
    node_graph = None if node_table is None else _graph_numbers(node_table, graph_column, number_of)
    edge_graph = _graph_numbers(edge_table, graph_name, number_of)

    if node_table is not None and node_graph is not None:
        counts, local, node_features = _nodes_from_table(
            node_table, node_graph, node_column, graph_column, edge_table, edge_graph, ends, list(number_of),
            decimal,
        )  # fmt: skip
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
        labels, tasks, classes = _labels(
            graph_table, graph_rows, graph_column, label_columns, len(number_of), decimal
        )
        if without := len(number_of) - len(graph_rows):
            notes.append(f"{without:,} graphs are not in {graph_table.path.name} and have no label")

    merge_as = merge or (None if directed else "first")
    edge_features = feature_table(edge_table, columns, numbers=merge_as not in (None, "first"))
    if merge_as is not None:
        edge_graph, local, edge_features, note = _merge(
            counts, edge_graph, local, edge_features, merge_as, directed=directed
        )
        notes += note
    order = np.argsort(edge_graph, kind="stable")
    sources, targets = local[0][order], local[1][order]
    rows = order
    if not directed:
        # A self-loop has no reverse.
        forward = np.stack([sources, targets], axis=1)
        keep = np.ones(2 * len(order), dtype=bool)
        keep[1::2] = sources != targets
        sources, targets = forward.ravel()[keep], forward[:, ::-1].ravel()[keep]
        rows = np.repeat(order, 2)[keep]
    malformed = edge_table.malformed
    if malformed:
        total = len(edge_table.lines) + len(malformed)
        example = f"the first on line {malformed[0].line}: {malformed[0].reason}"
        notes.append(f"{len(malformed):,} of {total:,} rows are malformed and were left out, {example}")
        if rejected is not None:
            write_malformed(Path(rejected), malformed)
    collection = build_collection(
        node_counts=counts,
        edge_counts=np.bincount(edge_graph[rows], minlength=len(number_of)),
        source=sources,
        destination=targets,
        nodes=node_features,
        edges=edge_features.take(rows),
        labels=labels,
        tasks=tasks,
        classes=classes,
        ids=parse_ids(list(number_of)),
        name=table_stem(edge_table.path) if name is None else name,
        features=features,
        allow_empty=allow_empty,
        notes=notes,
    )
    return replace(collection, rejected_edges=malformed)


def _malformed(table: TextTable, required: Sequence[str], columns: Sequence[str]) -> dict[int, str]:
    """Rows that name no graph or no node, or have no number where others have one."""
    wrong = rows_without_a_number(table, columns)
    for name in required:
        cells = table.columns[name]
        if "" in cells.values:
            empty = np.flatnonzero(cells.codes == cells.values.index(""))
            wrong |= dict.fromkeys(empty.tolist(), f"cell of {name!r} is empty")
    return dict(sorted(wrong.items()))


def _unlisted(
    table: TextTable,
    graph_name: str,
    ends: Sequence[str],
    nodes: TextTable,
    graph_column: str | None,
    node_column: str | None,
) -> dict[int, str]:
    """Rows with a node that the table of nodes does not have."""
    graphs = nodes.required(_graph_column(nodes, graph_column))
    names = nodes.required(_find_column(nodes, "node", node_column))
    width = len(names.values)
    listed = graphs.codes * width + names.codes
    graph_of = {value: place for place, value in enumerate(graphs.values)}
    name_of = {value: place for place, value in enumerate(names.values)}
    graph = _lookup(table.columns[graph_name], graph_of)
    wrong: dict[int, str] = {}
    for end in ends:
        node = _lookup(table.columns[end], name_of)
        known = (graph >= 0) & (node >= 0) & np.isin(graph * width + node, listed)
        for row in np.flatnonzero(~known).tolist():
            of, text = table.columns[graph_name].text(row), table.columns[end].text(row)
            wrong[row] = f"node {text[:40]!r} of graph {of[:40]!r} is not in {nodes.path.name}"
    return dict(sorted(wrong.items()))


def _merge(
    counts: Codes,
    edge_graph: Codes,
    local: Sequence[Codes],
    features: FeatureTable,
    how: Merge,
    *,
    directed: bool,
) -> tuple[Codes, list[Codes], FeatureTable, list[str]]:
    """One row per edge; of an undirected one, both directions are the same edge."""
    ends = np.stack(local)
    pair = ends if directed else np.sort(ends, axis=0)
    key = (pointer(counts)[edge_graph] + pair[0]) * int(counts.max(initial=1)) + pair[1]
    _, first, group = np.unique(key, return_index=True, return_inverse=True)
    repeated = len(key) - len(first)
    if not repeated:
        return edge_graph, list(local), features, []
    # Groups in the order of their first rows, so that graphs and edges keep theirs.
    rank = np.argsort(np.argsort(first, kind="stable"), kind="stable")
    group, first = rank[group], np.sort(first)
    reversed_rows = int((ends[0] != ends[0, first[group]]).sum()) if not directed else 0
    note = f"{repeated:,} of {len(key):,} rows repeat an edge"
    if reversed_rows:
        note += f", {reversed_rows:,} of them in the other direction"
    if features.columns or features.float_names:
        columns = "the first row's columns count" if how == "first" else f"numbers are merged by their {how}"
        if how != "first" and features.columns:
            columns += ", and of words the first counts"
        note += f"; {columns} (merge={how})"
    else:
        note += "; they were merged"
    return (
        edge_graph[first], [ends[0, first], ends[1, first]], features.merge(group, how), [note],
    )  # fmt: skip


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
    decimal: Decimal | None,
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
    return counts, local, feature_table(with_decimal_points(node_table, others, decimal), others).take(order)


def _lookup(cells: TextColumn, number: Mapping[str, int], otherwise: int = -1) -> Codes:
    return np.array([number.get(value, otherwise) for value in cells.values], dtype=np.int64)[cells.codes]


def _labels(
    table: TextTable,
    graph_rows: Codes,
    graph_column: str | None,
    requested: tuple[str, ...] | None,
    graphs: int,
    decimal: Decimal | None,
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
    labels[graph_rows], classes = label_matrix(with_decimal_points(table, tasks, decimal), tasks)
    return labels, tasks, classes


READERS.register("edges")(
    Reader(
        accepts=accepts_edges,
        read=read_edges,
        summary="edge list: CSV, TSV or Parquet with columns graph, source, target",
    )
)
