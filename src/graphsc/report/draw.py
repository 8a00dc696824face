"""A few graphs of a collection, drawn side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import Graph, GraphCollection
from graphsc.report.style import colour

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
