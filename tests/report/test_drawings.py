"""Drawings of graphs: which graphs are drawn, and how drawings are packed."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.data.readers import open_collection
from graphsc.report.drawings import Drawing, draw_all, draw_graphs, is_molecular


def test_nodes_and_edges_are_concatenated(three):
    drawings = draw_all(three)
    assert drawings.node_counts.tolist() == [3, 2, 1]
    assert drawings.edge_counts.tolist() == [3, 1, 0]
    assert sorted(map(tuple, drawings.edges[:3].tolist())) == [(0, 1), (0, 2), (1, 2)]
    assert drawings.positions.dtype == np.uint8
    # The longer side of each drawing spans all steps.
    assert np.ptp(drawings.positions[:3], axis=0).max() == 255


def test_node_labels_are_texts_in_the_order_of_the_column(mixed):
    drawings = draw_all(mixed)
    assert drawings.texts == ("C", "N", "O")
    assert drawings.caption == "node atom"
    assert [drawings.texts[code] for code in drawings.codes] == [
        ("C", "N", "O")[node % 3] for node in range(10)
    ]


def test_empty_and_large_graphs_are_not_drawn(make):
    path = [(node, node + 1) for node in range(199)]
    dense = [(a, b) for a in range(40) for b in range(a + 1, 40)]
    drawings = draw_all(make([(0, []), (200, path), (40, dense), (2, [(0, 1)])], allow_empty=True))
    assert drawings.node_counts.tolist() == [0, 0, 0, 2]


def test_a_user_s_function_draws_the_graphs(three):
    def draw(graph):
        if graph.num_nodes == 3:
            return "<svg></svg>"
        return Drawing(np.zeros((1, 2)), np.zeros((2, 0), int), ["x"]) if graph.num_nodes == 2 else None

    drawings = draw_all(three, draw)
    assert drawings.svgs == {0: "<svg></svg>"}
    assert drawings.node_counts.tolist() == [0, 1, 0]
    assert drawings.texts == ("x",)


@pytest.mark.parametrize("drawing", ["PNG", Drawing(np.zeros((300, 2)), np.zeros((2, 0), int))])
def test_drawings_that_cannot_be_shown_are_refused(three, drawing):
    with pytest.raises(DataError):
        draw_all(three, lambda graph: drawing)


def test_single_node_disconnected_loop_and_large_graphs_are_drawn(make, tmp_path):
    ring = [(i, (i + 1) % 200) for i in range(200)]
    collection = make(
        [(1, []), (4, [(0, 1), (1, 0)]), (2, [(0, 0)]), (200, ring + [(b, a) for a, b in ring])],
        labels=np.array([0.0, 1.0, np.nan, 1.0]),
    )
    draw_graphs(collection, range(4), tmp_path / "g.png")
    assert (tmp_path / "g.png").stat().st_size > 5000


def test_collections_of_molecules_are_drawn_as_structures(three):
    pytest.importorskip("rdkit")
    molecules = open_collection(["CCO", "c1ccccc1"])
    assert is_molecular(molecules)
    assert not is_molecular(three)
    assert draw_all(molecules).structures
