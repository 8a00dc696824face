"""Drawings of graphs: compact ones of a whole collection for the explorer, and a PNG of a few graphs.

A drawing is positions and lines, which the explorer's script draws on demand, or SVG text from a user's own
function. By default molecules are drawn as structural formulas where RDKit is installed, and all other graphs
as nodes and edges.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.arrays import pointer
from graphsc.data.collection import Graph, GraphCollection
from graphsc.data.layout import stress_layout
from graphsc.report.figure import colour

MAX_NODES = 150  # larger drawings are unreadable at the size of a card
MAX_EDGES = 500
MAX_TEXTS = 65_000  # codes are 16 bits wide

# How a line is drawn. LEFT and RIGHT: the side of the second line of a double bond in a ring, looking along
# the bond from its first to its second atom. The second line of a DASHED bond is on its right.
PLAIN, DOUBLE, DOUBLE_LEFT, DOUBLE_RIGHT, TRIPLE, DASHED = range(6)


@dataclass(frozen=True)
class Drawing:
    """The drawing of one graph; y grows downwards.

    Attributes:
        positions: nodes x 2, in any unit.
        edges: 2 x lines, node indices.
        texts: One per node; empty for a plain vertex.
        kinds: One of this module's line constants per line, for a structural formula with its texts written
            out. Without kinds, nodes are dots that are coloured by their texts.
    """

    positions: NDArray[np.floating]
    edges: NDArray[np.integer]
    texts: Sequence[str] = ()
    kinds: Sequence[int] = ()


Draw = Callable[[Graph], Drawing | str | None]


@dataclass(frozen=True, kw_only=True)
class Drawings:
    """Drawings of N graphs as flat arrays; a graph without a drawing has no nodes here."""

    node_counts: NDArray[np.uint32]  # N
    edge_counts: NDArray[np.uint32]  # N, lines per drawing
    positions: NDArray[np.uint8]  # nodes x 2; the longer side of each drawing spans 0 to 255
    codes: NDArray[np.uint16]  # nodes, indices into texts
    texts: tuple[str, ...]  # distinct ones
    edges: NDArray[np.uint8]  # lines x 2, node indices within the drawing
    kinds: NDArray[np.uint8]  # lines
    structures: bool = False  # texts are written out, as in a structural formula
    caption: str = ""  # of the legend, where nodes are coloured by their texts
    svgs: dict[int, str] = field(default_factory=dict)  # by index of the graph


def draw_all(collection: GraphCollection, draw: Draw | None = None) -> Drawings:
    """Draw every graph of a collection that is small enough.

    Args:
        collection: N graphs.
        draw: Draws one graph in place of the built-in drawing; returns a `Drawing`, SVG text or None.
    """
    if draw is not None:
        return pack([draw(graph) for graph in collection.graphs()])
    if is_molecular(collection) and importlib.util.find_spec("rdkit") is not None:
        from graphsc.report.molecules import draw_structure

        drawings = [draw_structure(graph) if _is_small(graph) else None for graph in collection.graphs()]
        return pack(drawings, structures=True)
    return _draw_nodes_and_edges(collection)


def is_molecular(collection: GraphCollection) -> bool:
    """Whether nodes are atoms and edges are bonds, as the SMILES reader encodes them."""
    from graphsc.data.molecules.featurize import ATOM, BOND

    nodes, edges = collection.nodes.columns, collection.edges.columns
    return bool(nodes) and nodes[0] == ATOM and bool(edges) and edges[0] == BOND


def _is_small(graph: Graph) -> bool:
    lines = int((graph.edge_index[0] <= graph.edge_index[1]).sum())
    return 0 < graph.num_nodes <= MAX_NODES and lines <= MAX_EDGES


def _draw_nodes_and_edges(collection: GraphCollection) -> Drawings:
    graphs = {index: graph for index, graph in enumerate(collection.graphs()) if _is_small(graph)}
    edges = [
        np.unique(np.sort(graph.edge_index.astype(np.int64), axis=0), axis=1) for graph in graphs.values()
    ]
    layouts = stress_layout([graph.num_nodes for graph in graphs.values()], edges)
    column = collection.nodes.columns[0] if collection.nodes.columns else None
    if column is None or column.cardinality > MAX_TEXTS:
        names: Sequence[str] = ()
        texts: list[list[str]] = [[] for _ in graphs]
    else:
        names = column.values or tuple(map(str, range(column.cardinality)))
        texts = [[names[code] for code in graph.nodes.codes[:, 0]] for graph in graphs.values()]
    drawings: list[Drawing | None] = [None] * len(collection)
    for index, positions, pairs, words in zip(graphs, layouts, edges, texts, strict=True):
        drawings[index] = Drawing(positions, pairs[:, pairs[0] != pairs[1]], words)
    return pack(drawings, texts=names, caption=f"node {column.name}" if column and names else "")


def pack(
    drawings: Sequence[Drawing | str | None],
    *,
    structures: bool = False,
    texts: Sequence[str] = (),
    caption: str = "",
) -> Drawings:
    """Concatenate drawings into flat arrays; `texts` come first, so that their colours are in this order."""
    svgs = {index: drawing for index, drawing in enumerate(drawings) if isinstance(drawing, str)}
    for index, svg in svgs.items():
        if "<svg" not in svg:
            raise DataError(f"the drawing of graph {index} is not SVG", hint="return a Drawing or SVG text")
    slots = [drawing if isinstance(drawing, Drawing) else None for drawing in drawings]
    parts = [drawing for drawing in slots if drawing is not None]
    for part in parts:
        if not 0 < len(part.positions) <= 256:
            raise DataError(f"a drawing has {len(part.positions)} nodes", hint="draw 1 to 256 or return None")
    code_of = {text: code for code, text in enumerate(texts)}
    words = [str(text) for part in parts for text in (part.texts or [""] * len(part.positions))]
    codes = [code_of.setdefault(word, len(code_of)) for word in words]
    if len(code_of) > MAX_TEXTS:
        raise DataError(
            f"the drawings have {len(code_of):,} different texts", hint=f"use at most {MAX_TEXTS:,}"
        )
    kinds = [kind for part in parts for kind in (part.kinds or [PLAIN] * part.edges.shape[1])]
    empty = np.zeros((0, 2), np.uint8)
    return Drawings(
        node_counts=np.array([0 if part is None else len(part.positions) for part in slots], np.uint32),
        edge_counts=np.array([0 if part is None else part.edges.shape[1] for part in slots], np.uint32),
        positions=np.concatenate([empty, *(_quantise(part.positions) for part in parts)]),
        codes=np.array(codes, np.uint16),
        texts=tuple(code_of),
        edges=np.concatenate([empty, *(part.edges.T.astype(np.uint8) for part in parts)]),
        kinds=np.array(kinds, np.uint8),
        structures=structures or any(part.kinds for part in parts),
        caption=caption,
        svgs=svgs,
    )


def graph_svgs(collection: GraphCollection) -> list[str]:
    """An SVG of each graph, for pages without a script; empty for graphs that are too large to draw."""
    if is_molecular(collection) and importlib.util.find_spec("rdkit") is not None:
        from graphsc.report.molecules import draw_structure, formula_svg

        return [formula_svg(draw_structure(g)) if _is_small(g) else "" for g in collection.graphs()]
    packed = _draw_nodes_and_edges(collection)
    node_ptr, edge_ptr = pointer(packed.node_counts), pointer(packed.edge_counts)
    svgs = []
    for index in range(len(collection)):
        nodes = slice(int(node_ptr[index]), int(node_ptr[index + 1]))
        lines = slice(int(edge_ptr[index]), int(edge_ptr[index + 1]))
        svgs.append(_dots_svg(packed.positions[nodes], packed.edges[lines], packed.codes[nodes]))
    return svgs


def _dots_svg(positions: NDArray[np.uint8], edges: NDArray[np.uint8], codes: NDArray[np.uint16]) -> str:
    """Nodes as dots, coloured by their codes, and edges as lines."""
    if not len(positions):
        return ""
    x, y = (positions.astype(np.float64) * [200 / 255, 140 / 255] + [20, 20]).T
    radius = 6.0 if len(x) <= 30 else 4.0 if len(x) <= 80 else 2.5
    parts = ['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 240 180">']
    parts.append('<g stroke="#8a8f98" stroke-width="1.4">')
    parts += [
        f'<line x1="{x[u]:.1f}" y1="{y[u]:.1f}" x2="{x[v]:.1f}" y2="{y[v]:.1f}"/>' for u, v in edges.tolist()
    ]
    parts.append("</g>")
    parts += [
        f'<circle cx="{x[k]:.1f}" cy="{y[k]:.1f}" r="{radius}" fill="{colour(int(codes[k]))}"/>'
        for k in range(len(x))
    ]
    return "".join([*parts, "</svg>"])


def _quantise(positions: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Positions in 256 steps of the longer side, the shorter side centred."""
    low, high = positions.min(axis=0), positions.max(axis=0)
    side = max(float((high - low).max()), 1e-9)
    share = (positions - (low + high) / 2) / side + 0.5
    steps: NDArray[np.uint8] = np.clip(np.rint(255 * share), 0, 255).astype(np.uint8)
    return steps


def draw_graphs(collection: GraphCollection, index: Sequence[int], path: Path) -> None:
    """Draw the graphs at these indices side by side into one PNG; nodes are coloured by their first label."""
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    matplotlib.use("Agg")
    columns = min(4, len(index))
    rows = -(-len(index) // columns)
    figure = Figure(figsize=(3.0 * columns, 3.1 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    used: set[int] = set()
    for axis, graph_index in zip(axes.ravel(), index, strict=False):
        graph = collection.graph(graph_index)
        positions = _layout(graph)
        source, destination = graph.edge_index.astype(np.int64)
        forward = source <= destination
        for u, v in zip(source[forward], destination[forward], strict=True):
            axis.plot(*positions[[u, v]].T, color="#999999", linewidth=1.2, zorder=1)
        codes = graph.nodes.codes[:, 0] if graph.nodes.columns else np.zeros(graph.num_nodes, np.int64)
        used.update(int(code) for code in codes)
        axis.scatter(
            positions[:, 0], positions[:, 1], c=[colour(int(code)) for code in codes], s=55, zorder=2,
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
    import networkx

    network = networkx.Graph()
    network.add_nodes_from(range(graph.num_nodes))
    network.add_edges_from(graph.edge_index.T.astype(int).tolist())
    if graph.num_nodes <= MAX_NODES and networkx.is_connected(network):
        # Kamada-Kawai draws rings as rings, but needs the distances between all pairs.
        positions = networkx.kamada_kawai_layout(network)
    else:
        positions = networkx.spring_layout(network, seed=0)
    return np.array([positions[node] for node in range(graph.num_nodes)])
