"""Drawings of graphs: what is drawn, what is too large, and molecules as chemists write them."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.data.readers import open_collection
from graphsc.report import drawings
from graphsc.report.drawings import Drawing, draw_all, is_molecular


def test_nodes_and_edges_are_laid_end_to_end(three):
    found = draw_all(three)
    assert found.node_counts.tolist() == [3, 2, 1]
    assert found.edge_counts.tolist() == [3, 1, 0]
    assert sorted(map(tuple, found.edges[:3].tolist())) == [(0, 1), (0, 2), (1, 2)]
    assert found.places.dtype == np.uint8
    # The longer side of each drawing is used in full.
    assert np.ptp(found.places[:3], axis=0).max() == 255


def test_node_labels_are_texts_in_their_own_order(mixed):
    found = draw_all(mixed)
    assert found.texts == ("C", "N", "O")
    assert found.caption == "node atom"
    assert [found.texts[code] for code in found.codes] == [("C", "N", "O")[node % 3] for node in range(10)]


def test_empty_and_large_graphs_are_not_drawn(make):
    path = [(node, node + 1) for node in range(199)]
    dense = [(a, b) for a in range(40) for b in range(a + 1, 40)]
    found = draw_all(make([(0, []), (200, path), (40, dense), (2, [(0, 1)])], allow_empty=True))
    assert found.node_counts.tolist() == [0, 0, 0, 2]


def test_another_s_function_decides(three):
    def draw(graph):
        if graph.num_nodes == 3:
            return "<svg></svg>"
        return Drawing(np.zeros((1, 2)), np.zeros((2, 0), int), ["x"]) if graph.num_nodes == 2 else None

    found = draw_all(three, draw)
    assert found.svgs == {0: "<svg></svg>"}
    assert found.node_counts.tolist() == [0, 1, 0]
    assert found.texts == ("x",)


@pytest.mark.parametrize("drawing", ["PNG", Drawing(np.zeros((300, 2)), np.zeros((2, 0), int))])
def test_what_cannot_be_shown_is_refused(three, drawing):
    with pytest.raises(DataError):
        draw_all(three, lambda graph: drawing)


class TestMolecules:
    """As structural formulas."""

    @pytest.fixture(autouse=True)
    def _rdkit(self):
        pytest.importorskip("rdkit")

    @staticmethod
    def formula(smiles):
        """Texts other than bare corners, sorted, and how often each kind of line is there."""
        from graphsc.report.molecules import draw_structure

        drawing = draw_structure(open_collection([smiles]).graph(0))
        kinds = np.bincount(drawing.kinds, minlength=6)
        in_ring = int(kinds[drawings.DOUBLE_LEFT] + kinds[drawings.DOUBLE_RIGHT])
        texts = sorted(text for text in drawing.texts if text)
        return texts, (
            int(kinds[drawings.DOUBLE]),
            in_ring,
            int(kinds[drawings.TRIPLE]),
            int(kinds[drawings.DASHED]),
        )

    @pytest.mark.parametrize(
        ("smiles", "texts", "doubles"),
        [
            ("CC(=O)Nc1ccc(O)cc1", ["NH", "O", "OH"], (1, 3, 0, 0)),
            ("c1ccc2[nH]ccc2c1", ["NH"], (0, 4, 0, 0)),  # the hydrogen is not in the graph
            ("O=[N+]([O-])c1ccccc1", ["N+", "O", "O\N{MINUS SIGN}"], (1, 3, 0, 0)),  # nor are the charges
            ("CC#N", ["N"], (0, 0, 1, 0)),
            ("CN", ["NH₂"], (0, 0, 0, 0)),
            ("C", ["CH₄"], (0, 0, 0, 0)),
            ("[Na+].[Cl-]", ["Cl", "Na"], (0, 0, 0, 0)),
        ],
    )
    def test_formulas_as_chemists_write_them(self, smiles, texts, doubles):
        assert self.formula(smiles) == (texts, doubles)

    def test_the_second_line_of_a_ring_s_double_bond_is_inside(self):
        from graphsc.report.molecules import draw_structure

        drawing = draw_structure(open_collection(["c1ccccc1"]).graph(0))
        for (one, other), kind in zip(drawing.edges.T, drawing.kinds, strict=True):
            if kind == drawings.PLAIN:
                continue
            # With y downwards, what is to the right of a line is a quarter turn by (x, y) -> (-y, x).
            along = drawing.places[other] - drawing.places[one]
            right = np.array([-along[1], along[0]])
            inwards = drawing.places.mean(axis=0) - drawing.places[one]
            assert (kind == drawings.DOUBLE_RIGHT) == (right @ inwards > 0)

    def test_a_molecule_beyond_repair_is_drawn_with_dashes(self):
        # Five bonds at an aromatic carbon: no charge or hydrogen makes sense of it.
        graph = open_collection(["c1ccccc1"]).graph(0)
        graph.edges.codes.setflags(write=True)
        graph.nodes.codes.setflags(write=True)
        graph.nodes.codes[0, 0] = 8  # a fluorine in the ring
        from graphsc.report.molecules import draw_structure

        assert set(draw_structure(graph).kinds) == {drawings.DASHED}

    def test_a_collection_of_molecules_is_known_as_one(self, three):
        molecules = open_collection(["CCO", "c1ccccc1"])
        assert is_molecular(molecules)
        assert not is_molecular(three)
        assert draw_all(molecules).structures
