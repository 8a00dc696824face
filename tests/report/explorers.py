"""A small explorer for tests: six graphs on a cross, of which the last is too large to draw."""

import numpy as np

from graphsc.data.arrays import Strings
from graphsc.data.builder import build_collection
from graphsc.report.drawings import draw_all
from graphsc.report.explorer import Explorer, by_name, by_number

# Middle, left, right, above, below, and a corner that makes the map a square.
POSITIONS = np.array([[5, 5], [0, 5], [10, 5], [5, 0], [5, 10], [10, 10]], float)
IDS = ["middle", "left", "right", "above", "=below", "corner"]


def explorer(ids=IDS, title="Cross", kinds=("a", "b", "b", "a", "a", "b"), **changes):
    rings = [np.stack([np.arange(n), (np.arange(n) + 1) % n]) for n in (5, 6, 3, 4, 7, 200)]
    edges = np.concatenate([np.concatenate([ring, ring[::-1]], axis=1) for ring in rings], axis=1)
    collection = build_collection(
        node_counts=np.array([5, 6, 3, 4, 7, 200]), edge_counts=np.array([10, 12, 6, 8, 14, 400]),
        source=edges[0], destination=edges[1], ids=Strings.of(map(str, ids)),
    )  # fmt: skip
    index = np.array([[1, 2], [0, 3], [0, 5], [0, 1], [0, 5], [2, 4]], np.uint32)
    sizes = np.array([[n, n] for n in (5, 6, 3, 4, 7, 200)])
    parts = {
        "title": title, "ids": ids, "positions": POSITIONS, "neighbours": index,
        "distances": np.full((6, 2), 1.5),
        "colourings": [by_name("kind", kinds), by_number("nodes", sizes[:, 0])], "sizes": sizes,
        "drawings": draw_all(collection), "notes": ["Made by hand."],
    }  # fmt: skip
    return Explorer(**{**parts, **changes})
