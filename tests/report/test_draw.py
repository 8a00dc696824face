"""Drawings of awkward graphs."""

import numpy as np

from graphsc.report.drawings import draw_graphs


def test_single_node_disconnected_loop_and_large_graphs_are_drawn(make, tmp_path):
    ring = [(i, (i + 1) % 200) for i in range(200)]
    collection = make(
        [(1, []), (4, [(0, 1), (1, 0)]), (2, [(0, 0)]), (200, ring + [(b, a) for a, b in ring])],
        labels=np.array([0.0, 1.0, np.nan, 1.0]),
    )
    draw_graphs(collection, range(4), tmp_path / "g.png")
    assert (tmp_path / "g.png").stat().st_size > 5000
