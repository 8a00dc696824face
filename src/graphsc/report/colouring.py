"""What the graphs of a map can be coloured by: names or numbers, one a graph."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.collection import GraphCollection

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
