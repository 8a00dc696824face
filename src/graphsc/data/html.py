"""A collection as a notebook shows it: its statistics, and drawings of four graphs."""

from __future__ import annotations

from html import escape

import numpy as np

from graphsc.core.tables import Table
from graphsc.data.collection import Graph, GraphCollection
from graphsc.data.layout import stress_layout

DRAWINGS = 4
MOST_NODES = 150  # of a graph that is drawn
MOST_GRAPHS = 200_000  # in a larger collection only sizes are shown, because counting takes seconds
SIDE = 150  # pixels
# The Okabe-Ito palette, safe for colour-blind readers, without its yellow, which is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")


def collection_html(collection: GraphCollection) -> str:
    """Statistics and four graphs, spread over the collection; text is escaped, and there is no script."""
    if len(collection) <= MOST_GRAPHS:
        rows = collection.describe().facts()
    else:
        rows = [("graphs", f"{len(collection):,}"), ("nodes", f"{collection.num_nodes:,}")]
    table = Table(("", collection.name), tuple(rows), align="ll")
    return f"<div>{table.html()}{_drawings(collection)}</div>"


def _drawings(collection: GraphCollection) -> str:
    sizes = np.diff(collection.node_ptr)
    drawable = np.flatnonzero((sizes > 0) & (sizes <= MOST_NODES))
    if not len(drawable):
        return ""
    chosen = drawable[np.unique(np.linspace(0, len(drawable) - 1, DRAWINGS).astype(np.int64))]
    graphs = [collection.graph(int(index)) for index in chosen]
    edges = [np.unique(np.sort(graph.edge_index.astype(np.int64), axis=0), axis=1) for graph in graphs]
    layouts = stress_layout([graph.num_nodes for graph in graphs], edges)
    figures = (
        f'<figure style="margin:0"><figcaption>{escape(_title(collection, graph))}</figcaption>'
        f"{_svg(graph, pairs, positions)}</figure>"
        for graph, pairs, positions in zip(graphs, edges, layouts, strict=True)
    )
    return f'<div style="display:flex;flex-wrap:wrap;gap:1em">{"".join(figures)}</div>'


def _title(collection: GraphCollection, graph: Graph) -> str:
    text = f"graph {graph.id}"
    if graph.labels is not None and len(graph.labels) == 1 and not np.isnan(graph.labels[0]):
        names = collection.classes.get(collection.tasks[0])
        value = float(graph.labels[0])
        text += f", {names[int(value)] if names else f'label {value:g}'}"
    return text


def _svg(graph: Graph, pairs: np.ndarray[tuple[int, int], np.dtype[np.int64]], positions: object) -> str:
    """Nodes as dots coloured by their first label, edges as lines."""
    points = np.asarray(positions, dtype=np.float64)
    low, high = points.min(axis=0), points.max(axis=0)
    scale = (SIDE - 20) / max(float((high - low).max()), 1e-9)
    points = (points - (low + high) / 2) * scale + SIDE / 2
    ends = points[pairs[:, pairs[0] != pairs[1]].T].reshape(-1, 4)  # without self-loops
    lines = "".join(
        f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>' for x1, y1, x2, y2 in ends
    )
    codes = graph.nodes.codes[:, 0] if graph.nodes.columns else np.zeros(graph.num_nodes, np.int64)
    radius = 4 if graph.num_nodes <= 60 else 2
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{COLOURS[int(code) % len(COLOURS)]}"/>'
        for (x, y), code in zip(points, codes, strict=True)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{SIDE}" height="{SIDE}" role="img">'
        f'<g stroke="#999999">{lines}</g>{dots}</svg>'
    )
