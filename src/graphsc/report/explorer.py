"""An interactive map of a collection: one HTML file with its own script that needs no network.

The data are in the file as JSON that is never executed, with flat arrays as base64. The content security
policy of the file allows its own script and style, by their hashes, and nothing else. The script inserts text
as text nodes only.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.files import write_atomic
from graphsc.data.collection import GraphCollection
from graphsc.report.drawings import Drawings
from graphsc.report.figure import COLOURS
from graphsc.report.html import csp_hash, template_environment

_MAX_CLASSES = 30  # distinct whole numbers up to which a label counts as a class
_MISSING = "(missing)"
_SCRIPTS = ("explore-data.js", "explore-draw.js", "explore.js")


@dataclass(frozen=True)
class Colouring:
    """A column by which graphs can be coloured: `codes` into `names`, or `numbers`, nan where missing."""

    title: str
    names: tuple[str, ...] = ()
    codes: NDArray[np.uint16] | None = None
    numbers: NDArray[np.float32] | None = None


def by_name(title: str, values: Sequence[str]) -> Colouring:
    """Colour by names, in sorted order."""
    names, codes = np.unique(np.array([str(value) for value in values], dtype=object), return_inverse=True)
    if len(names) > 65_535:
        raise DataError(f"{title} has {len(names):,} different values", hint="use fewer, or numbers")
    return Colouring(title, tuple(names.tolist()), codes.astype(np.uint16))


def by_number(title: str, values: NDArray[np.generic]) -> Colouring:
    """Colour by numbers; nan where missing."""
    return Colouring(title, numbers=np.asarray(values, dtype=np.float32))


def by_cell(title: str, cells: Sequence[str]) -> Colouring:
    """Colour by the cells of a table: numbers if all non-empty cells are numbers, else names."""
    try:
        return by_number(title, np.array([float(cell) if cell.strip() else np.nan for cell in cells]))
    except ValueError:
        return by_name(title, [cell or _MISSING for cell in cells])


def colourings_of(collection: GraphCollection) -> list[Colouring]:
    """Return all colourings of a collection: labels first, then sizes, then means of node attributes."""
    nodes = np.diff(collection.node_ptr)
    return [
        *_label_colourings(collection),
        by_number("nodes", nodes),
        by_number("edges", edge_counts(collection)),
        by_number("mean degree", np.diff(collection.edge_ptr) / np.maximum(nodes, 1)),
        *_attribute_colourings(collection, nodes),
    ]


def edge_counts(collection: GraphCollection) -> NDArray[np.int64]:
    """Return the edges per graph; the two entries of an undirected edge count once."""
    if not collection.undirected:
        return np.diff(collection.edge_ptr)
    source, destination = collection.edge_index
    graph = np.repeat(np.arange(len(collection)), np.diff(collection.edge_ptr))
    return np.bincount(graph[source <= destination], minlength=len(collection))


def _label_colourings(collection: GraphCollection) -> Iterator[Colouring]:
    for position, task in enumerate(collection.tasks):
        values = collection.labels[:, position] if collection.labels is not None else np.zeros(0)
        known = values[~np.isnan(values)]
        classes = collection.classes.get(task)
        if classes:
            names = {float(code): name for code, name in enumerate(classes)}
            yield by_name(
                task, [_MISSING if np.isnan(value) else names.get(value, f"{value:g}") for value in values]
            )
        elif len(distinct := np.unique(known)) <= _MAX_CLASSES and (distinct == np.rint(distinct)).all():
            # In numeric order, unlike `by_name`, which would put 10 before 9.
            missing = [_MISSING] if len(known) < len(values) else []
            codes = np.where(np.isnan(values), len(distinct), np.searchsorted(distinct, values))
            yield Colouring(task, (*(f"{value:g}" for value in distinct), *missing), codes.astype(np.uint16))
        else:
            yield by_number(task, values)


def _attribute_colourings(collection: GraphCollection, nodes: NDArray[np.int64]) -> Iterator[Colouring]:
    graph = np.repeat(np.arange(len(collection)), nodes)
    for position, name in enumerate(collection.nodes.float_names):
        total = np.bincount(graph, collection.nodes.floats[:, position], minlength=len(collection))
        yield by_number(f"mean {name} of nodes", np.where(nodes > 0, total / np.maximum(nodes, 1), np.nan))


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """The contents of an explorer of N graphs.

    Attributes:
        positions: N x 2, on the map.
        neighbours: N x k indices of the most similar graphs, nearest first.
        distances: N x k.
        sizes: N x 2, nodes and edges per graph; shown for graphs that are too large to draw.
        outliers: Positions of graphs that are unusually far from their nearest ones, which are flagged.
        smiles: Per graph, to be copied; empty where there is none.
        notes: Sentences on how the map was made.
        left_out: Rows of the source that have no embedding and are not on the map.
    """

    title: str
    ids: Sequence[int | str]
    positions: NDArray[np.floating]
    neighbours: NDArray[np.integer]
    distances: NDArray[np.floating]
    colourings: Sequence[Colouring] = ()
    sizes: NDArray[np.integer] | None = None
    drawings: Drawings | None = None
    outliers: Sequence[int] = ()
    smiles: Sequence[str] | None = None
    notes: Sequence[str] = ()
    left_out: int = 0


def write_explorer(path: str | Path, explorer: Explorer) -> None:
    """Write the explorer as one HTML file; missing folders are created."""
    write_atomic(path, render_explorer(explorer).encode("utf-8", "replace"))


def render_explorer(explorer: Explorer) -> str:
    """Return the explorer as HTML text.

    Raises:
        DataError: If an array does not fit the number of graphs.
    """
    _check(explorer)
    folder = files("graphsc.report").joinpath("templates")
    style = folder.joinpath("explore.css").read_text(encoding="utf-8")
    script = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    template = template_environment().get_template("explore.html.jinja")
    return template.render(
        title=explorer.title,
        graphs=len(explorer.ids),
        notes=explorer.notes,
        style=style,
        style_hash=csp_hash(style),
        script=script,
        script_hash=csp_hash(script),
        data=script_json(_to_json(explorer)),
    )


def script_json(value: object) -> str:
    """Encode a value as JSON that is safe inside a script element: it cannot end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def _to_json(explorer: Explorer) -> dict[str, object]:
    return {
        "title": explorer.title,
        "ids": [_json_id(graph_id) for graph_id in explorer.ids],
        "palette": COLOURS,
        "places": _pack(_fit(explorer.positions), "<f4"),
        "k": explorer.neighbours.shape[1],
        "neighbours": _pack(explorer.neighbours, "<u4"),
        "distances": _pack(explorer.distances, "<f4"),
        "colourings": [_colouring_json(colouring) for colouring in explorer.colourings],
        "outliers": [int(position) for position in explorer.outliers],
        "smiles": None if explorer.smiles is None else list(explorer.smiles),
        "sizes": None if explorer.sizes is None else _pack(explorer.sizes, "<u4"),
        "drawings": None if explorer.drawings is None else _drawings_json(explorer.drawings),
    }


def _json_id(graph_id: int | str) -> int | str:
    """Integers from 2^53 are not exact in JavaScript and are stored as text."""
    if isinstance(graph_id, str):
        return graph_id
    return int(graph_id) if abs(int(graph_id)) < 2**53 else str(graph_id)


def _colouring_json(colouring: Colouring) -> dict[str, object]:
    if colouring.codes is not None:
        return {"title": colouring.title, "names": colouring.names, "codes": _pack(colouring.codes, "<u2")}
    assert colouring.numbers is not None  # noqa: S101 - `_check` has made sure of it
    return {"title": colouring.title, "numbers": _pack(colouring.numbers, "<f4")}


def _drawings_json(drawings: Drawings) -> dict[str, object]:
    return {
        "nodes": _pack(drawings.node_counts, "<u4"),
        "lines": _pack(drawings.edge_counts, "<u4"),
        "places": _pack(drawings.positions, "u1"),
        "codes": _pack(drawings.codes, "<u2"),
        "texts": drawings.texts,
        "edges": _pack(drawings.edges, "u1"),
        "kinds": _pack(drawings.kinds, "u1"),
        "structures": drawings.structures,
        "caption": drawings.caption,
        "svgs": {str(index): _base64(svg.encode("utf-8", "replace")) for index, svg in drawings.svgs.items()},
    }


def _pack(values: NDArray[np.generic], dtype: str) -> str:
    return _base64(np.ascontiguousarray(values, dtype=dtype).tobytes())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _fit(positions: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale positions to 0 to 1 along the longer side, both axes alike."""
    if not len(positions):
        return np.zeros((0, 2))
    low, high = positions.min(axis=0), positions.max(axis=0)
    side = float((high - low).max()) or 1.0
    return np.asarray((positions - (low + high) / 2) / side + 0.5, np.float64)


def _check(explorer: Explorer) -> None:
    graphs = len(explorer.ids)
    shapes = {
        "positions": (np.shape(explorer.positions), (graphs, 2)),
        "neighbours": (np.shape(explorer.neighbours)[:1], (graphs,)),
        "distances": (np.shape(explorer.distances), np.shape(explorer.neighbours)),
    }
    for colouring in explorer.colourings:
        values = colouring.codes if colouring.codes is not None else colouring.numbers
        shapes[f"colouring {colouring.title!r}"] = (np.shape([] if values is None else values), (graphs,))
    if explorer.smiles is not None:
        shapes["smiles"] = ((len(explorer.smiles),), (graphs,))
    if explorer.sizes is not None:
        shapes["sizes"] = (np.shape(explorer.sizes), (graphs, 2))
    if explorer.drawings is not None:
        shapes["drawings"] = (explorer.drawings.node_counts.shape, (graphs,))
    for name, (actual, expected) in shapes.items():
        if actual != expected:
            raise DataError(f"{name} have shape {actual} for {graphs} graphs, not {expected}")
    if not np.isfinite(explorer.positions).all():
        raise DataError("a position on the map is not a finite number")
