"""Edge lists as a data warehouse gives them: CSV, TSV or Parquet with one edge a row.

A row names a graph and two of its nodes; other columns are known of the edge. A second table may list
the nodes, a third the graphs with their labels. Whole numbers and words are categories, numbers with a
decimal point among them are attributes.
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
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import (
    Cells,
    Codes,
    Sheet,
    all_whole,
    as_ids,
    as_labels,
    as_table,
    kind_of,
    peek_header,
    read_sheet,
    stem_of,
)

SYNONYMS = {
    "graph": ("graph_id", "graph", "gid"),
    "source": ("source", "src", "from", "u"),
    "target": ("target", "dst", "destination", "to", "v"),
    "node": ("node_id", "node", "nid"),
}


def accepts_edges(source: object) -> bool:
    """Whether this is a table with columns that look like the two ends of an edge."""
    if not isinstance(source, (str, Path)) or not (kind := kind_of(Path(source))):
        return False
    if kind == ".parquet":
        return True
    names = {cell.lower() for cell in peek_header(Path(source))}
    return all(names.intersection(SYNONYMS[role]) for role in ("source", "target"))


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
    """Read an edge list; columns not named here are guessed among the usual names.

    `nodes` is a table of graph, node and what is known of it: it decides which nodes there are, and
    their order (else: those with edges, sorted). `graphs` is a table of graph and labels
    (`label_columns`, or all), an empty cell being a missing label. Graphs come in order of first
    appearance in `graphs`, `nodes`, the edges. Unless `directed`, a row stands for both directions,
    and rows that repeat an edge are merged, the first one's columns winning.
    """
    if not isinstance(source, (str, Path)):
        raise DataError(f"a {type(source).__name__} is not the path of an edge list")
    sheet = read_sheet(Path(source))
    graph_name = _pick(sheet, "graph", graph_column)
    ends = [_pick(sheet, "source", source_column), _pick(sheet, "target", target_column)]
    node_sheet = None if nodes is None else read_sheet(Path(nodes))
    graph_sheet = None if graphs is None else read_sheet(Path(graphs))

    known: dict[str, int] = {}
    graph_rows = None if graph_sheet is None else _owners(graph_sheet, graph_column, known)
    node_rows = None if node_sheet is None else _owners(node_sheet, graph_column, known)
    owner = _owners(sheet, graph_name, known)

    if node_sheet is not None and node_rows is not None:
        counts, local, node_table = _listed_nodes(
            node_sheet, node_rows, node_column, graph_column, sheet, owner, ends, list(known)
        )
    else:
        counts, local = _nodes_of_edges(sheet, owner, ends, len(known))
        node_table = None
    empty = np.flatnonzero(counts == 0)
    if len(empty) and not allow_empty:
        raise DataError(
            f"graph {list(known)[int(empty[0])]!r} has no nodes",
            where=str(graph_sheet.path if graph_sheet is not None else sheet.path),
            hint="give it edges or nodes, leave it out, or pass allow_empty",
        )
    labels: NDArray[np.float64] | None = None
    tasks: tuple[str, ...] = ()
    classes: dict[str, tuple[str, ...]] = {}
    notes = []
    if graph_sheet is not None and graph_rows is not None:
        labels, tasks, classes = _labels(graph_sheet, graph_rows, graph_column, label_columns, len(known))
        if unlisted := len(known) - len(graph_rows):
            notes.append(f"{unlisted:,} graphs are not in {graph_sheet.path.name} and have no label")

    order = np.argsort(owner, kind="stable")
    one, other = local[0][order], local[1][order]
    rows = order
    if not directed:
        # Row by row, forth and back: merging keeps the first listing, and must keep the same both ways.
        rows = np.repeat(order, 2)
        keep = np.ones(len(rows), dtype=bool)
        keep[1::2] = one != other
        one, other = np.stack([one, other], 1).ravel()[keep], np.stack([other, one], 1).ravel()[keep]
        rows = rows[keep]
    return build_collection(
        node_counts=counts,
        edge_counts=np.bincount(owner[rows], minlength=len(known)),
        source=one,
        destination=other,
        nodes=node_table,
        edges=as_table(sheet, sheet.rest([graph_name, *ends])).take(rows),
        labels=labels,
        tasks=tasks,
        classes=classes,
        ids=as_ids(list(known)),
        name=stem_of(sheet.path) if name is None else name,
        features=features,
        merge_duplicates=not directed,
        allow_empty=allow_empty,
        notes=notes,
    )


def _pick(sheet: Sheet, role: str, asked: str | None) -> str:
    """The column that plays one of our roles."""
    return sheet.pick(role, asked, SYNONYMS[role])


def _graph_column(sheet: Sheet, asked: str | None) -> str:
    """The graph's column in any of the tables, which need not all call it the same."""
    return _pick(sheet, "graph", asked if asked in sheet.columns else None)


def _owners(sheet: Sheet, column: str | None, known: dict[str, int]) -> Codes:
    """The graph of each row by number; graphs not met before are added to `known`."""
    cells = sheet.full(_graph_column(sheet, column))
    numbers = np.array([known.setdefault(value, len(known)) for value in cells.values], dtype=np.int64)
    return numbers[cells.codes]


def _nodes_of_edges(
    sheet: Sheet, owner: Codes, ends: Sequence[str], graphs: int
) -> tuple[Codes, list[Codes]]:
    """Nodes a graph, and the local ids of both ends, nodes sorted by their own ids."""
    cells = [sheet.full(end) for end in ends]
    whole = all(all_whole(column.values) for column in cells)
    distinct = list({value for column in cells for value in column.values})
    ranked = sorted(distinct, key=int) if whole else sorted(distinct)
    rank = {value: place for place, value in enumerate(ranked)}
    keys = [owner * len(rank) + _translate(column, rank) for column in cells]
    nodes, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    counts = np.bincount(nodes // len(rank), minlength=graphs)
    local = inverse - np.repeat(pointer(counts)[:-1], counts)[inverse]
    return counts, [local[: len(owner)], local[len(owner) :]]


def _listed_nodes(
    listing: Sheet,
    rows: Codes,
    node_column: str | None,
    graph_column: str | None,
    sheet: Sheet,
    owner: Codes,
    ends: Sequence[str],
    graphs: Sequence[str],
) -> tuple[Codes, list[Codes], FeatureTable]:
    """The same with the nodes of a table, in its order, and what it knows of them."""
    name = _pick(listing, "node", node_column)
    cells = listing.full(name)
    number = {value: place for place, value in enumerate(cells.values)}
    width = len(number) + 1  # one more, for the nodes that are not listed
    order = np.argsort(rows, kind="stable")
    keys = (rows * width + cells.codes)[order]
    ranking = np.argsort(keys, kind="stable")
    ranked = keys[ranking]
    twice = np.flatnonzero(ranked[1:] == ranked[:-1])
    if len(twice):
        row = int(order[ranking[twice[0] + 1]])
        raise DataError(
            f"node {cells.text(row)!r} of graph {graphs[rows[row]]!r} is listed twice",
            where=listing.where(row),
        )
    counts = np.bincount(rows, minlength=len(graphs))
    starts = pointer(counts)
    local = []
    for end in ends:
        wanted = owner * width + _translate(sheet.full(end), number, len(number))
        place = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
        lost = np.flatnonzero(ranked[place] != wanted)
        if len(lost):
            row = int(lost[0])
            node = sheet.columns[end].text(row)
            raise DataError(
                f"node {node!r} of graph {graphs[owner[row]]!r} is not in {listing.path.name}",
                where=sheet.where(row),
            )
        local.append(ranking[place] - starts[owner])
    used = [_graph_column(listing, graph_column), name]
    return counts, local, as_table(listing, listing.rest(used)).take(order)


def _translate(cells: Cells, number: Mapping[str, int], otherwise: int = -1) -> Codes:
    return np.array([number.get(value, otherwise) for value in cells.values], dtype=np.int64)[cells.codes]


def _labels(
    sheet: Sheet, rows: Codes, graph_column: str | None, asked: tuple[str, ...] | None, graphs: int
) -> tuple[NDArray[np.float64] | None, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Labels as graphs x tasks, task names, and class names of tasks whose labels are words."""
    graph_name = _graph_column(sheet, graph_column)
    first = np.unique(rows, return_index=True)[1]
    if len(first) < len(rows):
        row = int(np.setdiff1d(np.arange(len(rows)), first)[0])
        graph = sheet.columns[graph_name].text(row)
        raise DataError(f"graph {graph!r} is listed twice", where=sheet.where(row))
    rest = sheet.rest([graph_name])
    tasks = tuple(rest if asked is None else (sheet.pick("label", label) for label in asked))
    if not tasks:
        return None, (), {}
    labels = np.full((graphs, len(tasks)), np.nan)
    labels[rows], classes = as_labels(sheet, tasks)
    return labels, tasks, classes


READERS.register("edges")(
    Reader(
        accepts=accepts_edges,
        read=read_edges,
        summary="edge list: CSV, TSV or Parquet with columns graph, source, target",
    )
)
