"""A collection as a map to walk in: one HTML file with its own script, without a network.

Data are in the file as JSON that is never run, flat arrays as base64 inside it. The file's policy allows its
own script and style, by their hashes, and nothing else; the script writes text as text only.
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
from graphsc.report.html import digest, templates

# What the graphs of a map can be coloured by: names or numbers, one a graph.


MOST_NAMES = 30  # distinct whole numbers up to which a label counts as a class
MISSING = "(missing)"


@dataclass(frozen=True)
class Colouring:
    """A column: `codes` into `names`, or `numbers`, NaN where there is none."""

    title: str
    names: tuple[str, ...] = ()
    codes: NDArray[np.uint16] | None = None
    numbers: NDArray[np.float32] | None = None


def by_name(title: str, values: Sequence[str]) -> Colouring:
    """A colouring by names, in sorted order."""
    names, codes = np.unique(np.array([str(value) for value in values], dtype=object), return_inverse=True)
    if len(names) > 65_535:
        raise DataError(f"{title} has {len(names):,} different values", hint="colour by fewer, or by numbers")
    return Colouring(title, tuple(names.tolist()), codes.astype(np.uint16))


def by_number(title: str, values: NDArray[np.generic]) -> Colouring:
    return Colouring(title, numbers=np.asarray(values, dtype=np.float32))


def by_cell(title: str, cells: Sequence[str]) -> Colouring:
    """A colouring from text: by numbers where every cell that is not empty is one, else by names."""
    try:
        return by_number(title, np.array([float(cell) if cell.strip() else np.nan for cell in cells]))
    except ValueError:
        return by_name(title, [cell or MISSING for cell in cells])


def colourings_of(collection: GraphCollection) -> list[Colouring]:
    """All that a collection says of its graphs: labels first, then sizes, then means of node attributes."""
    nodes = np.diff(collection.node_ptr)
    return [
        *_labels(collection),
        by_number("nodes", nodes),
        by_number("edges", line_counts(collection)),
        by_number("mean degree", np.diff(collection.edge_ptr) / np.maximum(nodes, 1)),
        *_attributes(collection, nodes),
    ]


def line_counts(collection: GraphCollection) -> NDArray[np.int64]:
    """Edges of each graph; where edges have no direction, both entries count once."""
    if not collection.undirected:
        return np.diff(collection.edge_ptr)
    source, destination = collection.edge_index
    graph = np.repeat(np.arange(len(collection)), np.diff(collection.edge_ptr))
    return np.bincount(graph[source <= destination], minlength=len(collection))


def _labels(collection: GraphCollection) -> Iterator[Colouring]:
    for position, task in enumerate(collection.tasks):
        values = collection.labels[:, position] if collection.labels is not None else np.zeros(0)
        known = values[~np.isnan(values)]
        classes = collection.classes.get(task)
        if classes:
            named = {float(code): name for code, name in enumerate(classes)}
            yield by_name(
                task, [MISSING if np.isnan(value) else named.get(value, f"{value:g}") for value in values]
            )
        elif len(distinct := np.unique(known)) <= MOST_NAMES and (distinct == np.rint(distinct)).all():
            # The order of numbers, which that of their digits is not.
            gaps = [MISSING] if len(known) < len(values) else []
            codes = np.where(np.isnan(values), len(distinct), np.searchsorted(distinct, values))
            yield Colouring(task, (*(f"{value:g}" for value in distinct), *gaps), codes.astype(np.uint16))
        else:
            yield by_number(task, values)


def _attributes(collection: GraphCollection, nodes: NDArray[np.int64]) -> Iterator[Colouring]:
    graph = np.repeat(np.arange(len(collection)), nodes)
    for position, name in enumerate(collection.nodes.float_names):
        total = np.bincount(graph, collection.nodes.floats[:, position], minlength=len(collection))
        yield by_number(f"mean {name} of nodes", np.where(nodes > 0, total / np.maximum(nodes, 1), np.nan))


_SCRIPTS = ("explore-data.js", "explore-draw.js", "explore.js")


@dataclass(frozen=True, kw_only=True)
class Explorer:
    """What an explorer shows, of N graphs.

    `places` are N x 2, `neighbours` and `distances` N x k, nearest first. `sizes` are the nodes and edges of
    each graph, N x 2, for those that are too large to draw. `notes` say how the map was made.
    """

    title: str
    ids: Sequence[int | str]
    places: NDArray[np.floating]
    neighbours: NDArray[np.integer]
    distances: NDArray[np.floating]
    colourings: Sequence[Colouring] = ()
    sizes: NDArray[np.integer] | None = None
    drawings: Drawings | None = None
    notes: Sequence[str] = ()


def write_explorer(path: str | Path, explorer: Explorer) -> None:
    """Write the explorer as one HTML file; folders are made."""
    write_atomic(path, render_explorer(explorer).encode("utf-8", "replace"))


def render_explorer(explorer: Explorer) -> str:
    """Return the explorer as the text of an HTML file."""
    _check(explorer)
    folder = files("graphsc.report").joinpath("templates")
    style = folder.joinpath("explore.css").read_text(encoding="utf-8")
    script = "\n".join(folder.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    script = f'"use strict";\n(() => {{\n{script}\n}})();\n'
    return (
        templates()
        .get_template("explore.html.jinja")
        .render(
            title=explorer.title,
            graphs=len(explorer.ids),
            notes=explorer.notes,
            style=style,
            style_hash=digest(style),
            script=script,
            script_hash=digest(script),
            data=script_json(as_json(explorer)),
        )
    )


def script_json(value: object) -> str:
    """JSON that can stand inside a script element: nothing in it ends the element or a line."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026")


def as_json(explorer: Explorer) -> dict[str, object]:
    """The explorer as the page's script reads it."""
    return {
        "title": explorer.title,
        "ids": [_identity(identity) for identity in explorer.ids],
        "palette": COLOURS,
        "places": _packed(_fitted(explorer.places), "<f4"),
        "k": explorer.neighbours.shape[1],
        "neighbours": _packed(explorer.neighbours, "<u4"),
        "distances": _packed(explorer.distances, "<f4"),
        "colourings": [_column(colouring) for colouring in explorer.colourings],
        "sizes": None if explorer.sizes is None else _packed(explorer.sizes, "<u4"),
        "drawings": None if explorer.drawings is None else _drawings(explorer.drawings),
    }


def _identity(identity: int | str) -> int | str:
    """A script's whole numbers are exact up to 2^53; larger ones travel as text."""
    if isinstance(identity, str):
        return identity
    return int(identity) if abs(int(identity)) < 2**53 else str(identity)


def _column(colouring: Colouring) -> dict[str, object]:
    if colouring.codes is not None:
        return {"title": colouring.title, "names": colouring.names, "codes": _packed(colouring.codes, "<u2")}
    assert colouring.numbers is not None  # noqa: S101 - checked before
    return {"title": colouring.title, "numbers": _packed(colouring.numbers, "<f4")}


def _drawings(found: Drawings) -> dict[str, object]:
    return {
        "nodes": _packed(found.node_counts, "<u4"),
        "lines": _packed(found.edge_counts, "<u4"),
        "places": _packed(found.places, "u1"),
        "codes": _packed(found.codes, "<u2"),
        "texts": found.texts,
        "edges": _packed(found.edges, "u1"),
        "kinds": _packed(found.kinds, "u1"),
        "structures": found.structures,
        "caption": found.caption,
        "svgs": {str(index): _base64(svg.encode("utf-8", "replace")) for index, svg in found.svgs.items()},
    }


def _packed(values: NDArray[np.generic], kind: str) -> str:
    return _base64(np.ascontiguousarray(values, dtype=kind).tobytes())


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _fitted(places: NDArray[np.floating]) -> NDArray[np.float64]:
    """Places between 0 and 1 along the longer side, the same scale on both."""
    if not len(places):
        return np.zeros((0, 2))
    low, high = places.min(axis=0), places.max(axis=0)
    side = float((high - low).max()) or 1.0
    return np.asarray((places - (low + high) / 2) / side + 0.5, np.float64)


def _check(explorer: Explorer) -> None:
    graphs = len(explorer.ids)
    shapes = {
        "places": (np.shape(explorer.places), (graphs, 2)),
        "neighbours": (np.shape(explorer.neighbours)[:1], (graphs,)),
        "distances": (np.shape(explorer.distances), np.shape(explorer.neighbours)),
    }
    for colouring in explorer.colourings:
        values = colouring.codes if colouring.codes is not None else colouring.numbers
        shapes[f"colouring {colouring.title!r}"] = (np.shape([] if values is None else values), (graphs,))
    if explorer.sizes is not None:
        shapes["sizes"] = (np.shape(explorer.sizes), (graphs, 2))
    if explorer.drawings is not None:
        shapes["drawings"] = (explorer.drawings.node_counts.shape, (graphs,))
    for name, (found, wanted) in shapes.items():
        if found != wanted:
            raise DataError(f"{name} of shape {found} for {graphs} graphs, not {wanted}")
    if not np.isfinite(explorer.places).all():
        raise DataError("a place on the map is not a number")
