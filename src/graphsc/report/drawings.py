"""Every graph of a collection as a small drawing, in a few bytes each.

A drawing is places and lines, which a page draws when it is looked at, or SVG text where somebody's own
function gives that. Without such a function, molecules are drawn as structures where RDKit is there, and all
other graphs as nodes and edges, their places found for many graphs at once.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.collection import Graph, GraphCollection
from graphsc.report.figure import colour
from graphsc.report.layout import stress_layout

# A few graphs of a collection, drawn side by side.


MOST_NODES = 150  # beyond this a drawing is a ball of wool


def draw_graphs(collection: GraphCollection, index: Sequence[int], path: Path) -> None:
    """Draw the graphs at these positions into one PNG; nodes are coloured by their first label."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    matplotlib.use("Agg")
    columns = min(4, len(index))
    rows = -(-len(index) // columns)
    figure = Figure(figsize=(3.0 * columns, 3.1 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    used: set[int] = set()
    for axis, position in zip(axes.ravel(), index, strict=False):
        graph = collection.graph(position)
        places = _layout(graph)
        source, destination = graph.edge_index.astype(np.int64)
        forward = source <= destination
        for u, v in zip(source[forward], destination[forward], strict=True):
            axis.plot(*places[[u, v]].T, color="#999999", linewidth=1.2, zorder=1)
        codes = graph.nodes.codes[:, 0] if graph.nodes.columns else np.zeros(graph.num_nodes, np.int64)
        used.update(int(code) for code in codes)
        axis.scatter(
            places[:, 0], places[:, 1], c=[colour(int(code)) for code in codes], s=55, zorder=2,
            edgecolors="white", linewidths=0.8,
        )  # fmt: skip
        axis.set_title(_title(collection, graph), fontsize=10)
        axis.set_aspect("equal")
        axis.margins(0.12)
    for axis in axes.ravel():
        axis.axis("off")
    if collection.nodes.columns:
        column = collection.nodes.columns[0]
        names = column.values or tuple(str(code) for code in range(column.cardinality))
        handles = [
            Line2D([], [], marker="o", linestyle="", color=colour(code), label=names[code])
            for code in sorted(used)
        ]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=min(len(handles), 10),
            title=f"node {column.name}", frameon=False, fontsize=9,
        )  # fmt: skip
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def _title(collection: GraphCollection, graph: Graph) -> str:
    text = f"{collection.name} {graph.id}"
    if graph.labels is not None and len(graph.labels) == 1 and not np.isnan(graph.labels[0]):
        names = collection.classes.get(collection.tasks[0])
        value = graph.labels[0]
        text += f"  (class {names[int(value)] if names else f'{value:g}'})"
    return text


def _layout(graph: Graph) -> NDArray[np.float64]:
    """Places for the nodes; small connected graphs get the tidy layout, others the robust one."""
    import networkx

    drawn = networkx.Graph()
    drawn.add_nodes_from(range(graph.num_nodes))
    drawn.add_edges_from(graph.edge_index.T.astype(int).tolist())
    if graph.num_nodes <= MOST_NODES and networkx.is_connected(drawn):
        # Kamada-Kawai draws rings as rings; it needs distances between all pairs.
        places = networkx.kamada_kawai_layout(drawn)
    else:
        places = networkx.spring_layout(drawn, seed=0)
    return np.array([places[node] for node in range(graph.num_nodes)])


MOST_TEXTS = 65_000
MOST_EDGES = 500  # beyond this a small drawing is a black square

# How a line is drawn. The second line of a double bond in a ring is on the ring's side, seen along the bond;
# that of a dashed one is on its right.
PLAIN, DOUBLE, DOUBLE_LEFT, DOUBLE_RIGHT, TRIPLE, DASHED = range(6)


@dataclass(frozen=True)
class Drawing:
    """Places and lines of one graph; y grows downwards.

    places: nodes x 2, in any unit. edges: 2 x lines. texts: one a node, empty for a bare corner or dot.
    kinds: one a line, of this module's constants, where the drawing is a structural formula with its texts
    written out; without them nodes are dots, coloured by their texts.
    """

    places: NDArray[np.floating]
    edges: NDArray[np.integer]
    texts: Sequence[str] = ()
    kinds: Sequence[int] = ()


Draw = Callable[[Graph], Drawing | str | None]


@dataclass(frozen=True, kw_only=True)
class Drawings:
    """Drawings of N graphs laid end to end; a graph that is not drawn has no nodes here."""

    node_counts: NDArray[np.uint32]  # N, of the drawing
    edge_counts: NDArray[np.uint32]  # N, of the drawing
    places: NDArray[np.uint8]  # nodes x 2, the longer side of each drawing from 0 to 255
    codes: NDArray[np.uint16]  # nodes, into texts
    texts: tuple[str, ...]
    edges: NDArray[np.uint8]  # lines x 2, local ids
    kinds: NDArray[np.uint8]  # lines
    structures: bool = False  # texts stand for their nodes, as in a structural formula
    caption: str = ""  # what the texts are, where they are not written out
    svgs: dict[int, str] = field(default_factory=dict)  # by position


def draw_all(collection: GraphCollection, draw: Draw | None = None) -> Drawings:
    """Draw every graph that is small enough, by `draw` (a Drawing, SVG text or None) or as suits it."""
    if draw is not None:
        return pack([draw(graph) for graph in collection.graphs()])
    if is_molecular(collection) and importlib.util.find_spec("rdkit") is not None:
        from graphsc.report.molecules import draw_structure

        small = (graph if _is_small(graph) else None for graph in collection.graphs())
        return pack([None if graph is None else draw_structure(graph) for graph in small], structures=True)
    return _nodes_and_edges(collection)


def is_molecular(collection: GraphCollection) -> bool:
    """Whether nodes are atoms by name and edges are bonds, as the SMILES reader reads them."""
    from graphsc.data.molecules.featurize import ATOM, BOND

    nodes, edges = collection.nodes.columns, collection.edges.columns
    return bool(nodes) and nodes[0] == ATOM and bool(edges) and edges[0] == BOND


def _is_small(graph: Graph) -> bool:
    lines = int((graph.edge_index[0] <= graph.edge_index[1]).sum())
    return 0 < graph.num_nodes <= MOST_NODES and lines <= MOST_EDGES


def _nodes_and_edges(collection: GraphCollection) -> Drawings:
    graphs = {index: graph for index, graph in enumerate(collection.graphs()) if _is_small(graph)}
    lines = [
        np.unique(np.sort(graph.edge_index.astype(np.int64), axis=0), axis=1) for graph in graphs.values()
    ]
    places = stress_layout([graph.num_nodes for graph in graphs.values()], lines)
    column = collection.nodes.columns[0] if collection.nodes.columns else None
    if column is None or column.cardinality > MOST_TEXTS:
        names: Sequence[str] = ()
        texts: list[list[str]] = [[] for _ in graphs]
    else:
        names = column.values or tuple(map(str, range(column.cardinality)))
        texts = [[names[code] for code in graph.nodes.codes[:, 0]] for graph in graphs.values()]
    drawn: list[Drawing | str | None] = [None] * len(collection)
    for index, place, line, words in zip(graphs, places, lines, texts, strict=True):
        drawn[index] = Drawing(place, line[:, line[0] != line[1]], words)
    return pack(drawn, texts=names, caption=f"node {column.name}" if column and names else "")


def pack(
    drawings: Sequence[Drawing | str | None],
    *,
    structures: bool = False,
    texts: Sequence[str] = (),
    caption: str = "",
) -> Drawings:
    """Lay drawings end to end; `texts` come before others, so that their colours are in their order."""
    known = {text: code for code, text in enumerate(texts)}
    svgs = {index: drawing for index, drawing in enumerate(drawings) if isinstance(drawing, str)}
    for index, text in svgs.items():
        if "<svg" not in text:
            raise DataError(f"the drawing of graph {index} is not SVG", hint="give a Drawing or SVG text")
    parts = [drawing if isinstance(drawing, Drawing) else None for drawing in drawings]
    there = [part for part in parts if part is not None]
    for part in there:
        if not 0 < len(part.places) <= 256:
            raise DataError(
                f"a drawing of {len(part.places)} nodes", hint="draw 1 to 256 nodes, or give None"
            )
    words = [str(text) for part in there for text in (part.texts or [""] * len(part.places))]
    codes = [known.setdefault(word, len(known)) for word in words]
    if len(known) > MOST_TEXTS:
        raise DataError(
            f"the drawings have {len(known):,} different texts", hint=f"use at most {MOST_TEXTS:,}"
        )
    kinds = [kind for part in there for kind in (part.kinds or [PLAIN] * part.edges.shape[1])]
    return Drawings(
        node_counts=np.array([0 if part is None else len(part.places) for part in parts], np.uint32),
        edge_counts=np.array([0 if part is None else part.edges.shape[1] for part in parts], np.uint32),
        places=np.concatenate([np.zeros((0, 2), np.uint8), *(_quantised(part.places) for part in there)]),
        codes=np.array(codes, np.uint16),
        texts=tuple(known),
        edges=np.concatenate(
            [np.zeros((0, 2), np.uint8), *(part.edges.T.astype(np.uint8) for part in there)]
        ),
        kinds=np.array(kinds, np.uint8),
        structures=structures or any(part.kinds for part in there),
        caption=caption,
        svgs=svgs,
    )


def _quantised(places: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Places in 256 steps of the longer side, the shorter one centred."""
    low, high = places.min(axis=0), places.max(axis=0)
    side = max(float((high - low).max()), 1e-9)
    share = (places - (low + high) / 2) / side + 0.5
    steps: NDArray[np.uint8] = np.clip(np.rint(255 * share), 0, 255).astype(np.uint8)
    return steps
