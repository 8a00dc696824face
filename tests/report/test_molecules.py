"""Structural formulas of molecules: atoms and bonds as chemists write them, and their SVG."""

import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest

from graphsc.data.readers import open_collection
from graphsc.report.drawings import DASHED, DOUBLE, DOUBLE_LEFT, DOUBLE_RIGHT, PLAIN, TRIPLE, Drawing
from graphsc.report.molecules import (
    ATOM_COLOURS,
    HEIGHT,
    WIDTH,
    draw_smiles,
    draw_structure,
    formula_svg,
    smiles_of,
)

SVG = "{http://www.w3.org/2000/svg}"
MINUS = "\N{MINUS SIGN}"


@pytest.fixture
def _rdkit():
    pytest.importorskip("rdkit")


def structure(smiles):
    return draw_structure(open_collection([smiles]).graph(0))


@pytest.mark.usefixtures("_rdkit")
@pytest.mark.parametrize(
    ("smiles", "texts", "doubles"),
    [
        ("CC(=O)Nc1ccc(O)cc1", ["NH", "O", "OH"], (1, 3, 0, 0)),
        ("c1ccc2[nH]ccc2c1", ["NH"], (0, 4, 0, 0)),
        ("O=[N+]([O-])c1ccccc1", ["N+", "O", f"O{MINUS}"], (1, 3, 0, 0)),
        ("CC#N", ["N"], (0, 0, 1, 0)),
        ("CN", ["NH₂"], (0, 0, 0, 0)),
        ("C", ["CH₄"], (0, 0, 0, 0)),
        ("[Na+].[Cl-]", ["Cl", "Na"], (0, 0, 0, 0)),
    ],
)
def test_graphs_without_charges_are_drawn_as_chemists_write_them(smiles, texts, doubles):
    """Texts of the atoms, and the numbers of double bonds, those in rings, triple and dashed bonds."""
    graphs = open_collection([smiles])
    scheme = replace(graphs.features, columns=graphs.features.columns[:2])
    assert_drawn(draw_structure(graphs.with_features(scheme).graph(0)), texts, doubles)


@pytest.mark.usefixtures("_rdkit")
@pytest.mark.parametrize(
    ("smiles", "texts", "doubles"),
    [
        ("CC(=O)[O-]", ["O", f"O{MINUS}"], (1, 0, 0, 0)),
        ("c1ccc2[nH]ccc2c1", ["NH"], (0, 4, 0, 0)),
        ("CC[NH3+]", ["NH₃+"], (0, 0, 0, 0)),
        ("[Na+].[Cl-]", [f"Cl{MINUS}", "Na+"], (0, 0, 0, 0)),
        ("O=[N+]([O-])c1ccccc1", ["N+", "O", f"O{MINUS}"], (1, 3, 0, 0)),
    ],
)
def test_graphs_are_drawn_with_their_charges_and_hydrogens(smiles, texts, doubles):
    assert_drawn(structure(smiles), texts, doubles)


@pytest.mark.usefixtures("_rdkit")
@pytest.mark.parametrize(
    "smiles", ["CC(=O)[O-]", "C[NH3+]", "c1cc[nH]c1", "Cn1cnc2c1c(=O)[nH]c(=O)n2C", "[Ca+2]"]
)
def test_smiles_of_a_graph_are_those_it_was_made_from(smiles):
    from rdkit import Chem

    assert smiles_of(open_collection([smiles]).graph(0)) == Chem.CanonSmiles(smiles)


def assert_drawn(drawing, texts, doubles):
    assert sorted(text for text in drawing.texts if text) == texts
    count = np.bincount(drawing.kinds, minlength=6)
    in_ring = count[DOUBLE_LEFT] + count[DOUBLE_RIGHT]
    assert (count[DOUBLE], in_ring, count[TRIPLE], count[DASHED]) == doubles


@pytest.mark.usefixtures("_rdkit")
def test_the_second_line_of_a_double_bond_is_inside_its_ring():
    drawing = structure("c1ccccc1")
    for (u, v), kind in zip(drawing.edges.T, drawing.kinds, strict=True):
        if kind == PLAIN:
            continue
        # With y downwards, the right of a line is a quarter turn by (x, y) -> (-y, x).
        along = drawing.positions[v] - drawing.positions[u]
        right = np.array([-along[1], along[0]])
        inwards = drawing.positions.mean(axis=0) - drawing.positions[u]
        assert (kind == DOUBLE_RIGHT) == (right @ inwards > 0)


@pytest.mark.usefixtures("_rdkit")
def test_a_molecule_that_rdkit_rejects_is_drawn_dashed():
    graph = open_collection(["c1ccccc1"]).graph(0)
    graph.edges.codes.setflags(write=True)
    graph.nodes.codes.setflags(write=True)
    graph.nodes.codes[0, 0] = 8  # a fluorine in an aromatic ring: no charge or hydrogen makes it valid
    assert set(draw_structure(graph).kinds) == {DASHED}


@pytest.mark.usefixtures("_rdkit")
@pytest.mark.parametrize(
    ("smiles", "texts"),
    [
        ("C[N+](C)(C)CC(=O)[O-]", ["N+", "O", f"O{MINUS}"]),
        ("[Ca+2].[Cl-]", ["Ca2+", f"Cl{MINUS}"]),
        ("c1cc[nH]c1", ["NH"]),
        ("OCC", ["OH"]),
    ],
)
def test_smiles_keep_their_own_charges_and_hydrogens(smiles, texts):
    assert [text for text in draw_smiles(smiles).texts if text] == texts


@pytest.mark.usefixtures("_rdkit")
def test_text_that_is_not_smiles_has_no_drawing():
    assert draw_smiles("not a molecule") is None
    assert draw_smiles("") is None


def paths(svg):
    """Each line as (x, y, u, v)."""
    elements = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [tuple(map(float, re.findall(r"-?[\d.]+", path.get("d")))) for path in elements]


def letters(svg):
    return {text.text: text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}


def two_atoms(kind, texts=("", "")):
    return Drawing(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0], [1]]), texts, [kind])


@pytest.mark.parametrize(
    ("kind", "above", "on", "below"),
    [
        (PLAIN, 0, 1, 0),
        (DOUBLE, 1, 0, 1),
        (DOUBLE_LEFT, 1, 1, 0),
        (DOUBLE_RIGHT, 0, 1, 1),
        (TRIPLE, 1, 1, 1),
        (DASHED, 0, 1, 1),
    ],
)
def test_the_lines_of_a_bond_are_on_the_right_sides(kind, above, on, below):
    """Going from left to right with y downwards, the left of the bond is above it."""
    heights = [round(y - HEIGHT / 2, 3) for _, y, _, _ in paths(formula_svg(two_atoms(kind)))]
    assert sum(height < 0 for height in heights) == above
    assert heights.count(0) == on
    assert sum(height > 0 for height in heights) == below


def test_a_small_molecule_does_not_fill_the_picture_and_a_large_one_fits():
    ((x, y, u, v),) = paths(formula_svg(two_atoms(PLAIN)))
    assert np.hypot(u - x, v - y) == pytest.approx(34, abs=0.2)
    chain = np.stack([np.arange(80.0), np.arange(80) % 2], axis=1)
    bonds = np.stack([np.arange(79), np.arange(1, 80)])
    lines = np.array(paths(formula_svg(Drawing(chain, bonds, [""] * 80, [PLAIN] * 79))))
    assert lines.min() >= 0
    assert lines[:, [0, 2]].max() <= WIDTH
    assert lines[:, [1, 3]].max() <= HEIGHT


def test_hydrogens_are_on_the_side_without_bonds():
    texts = letters(formula_svg(two_atoms(PLAIN, ("OH", "NH₂"))))
    assert set(texts) == {"HO", "NH₂"}
    assert texts["HO"].get("text-anchor") == "end"
    assert texts["NH₂"].get("text-anchor") == "start"
    assert (texts["HO"].get("class"), texts["NH₂"].get("class")) == ("O", "N")


def test_a_formula_has_the_colours_of_its_elements_for_a_light_and_a_dark_page():
    svg = formula_svg(two_atoms(PLAIN, ("OH", "NH₂")))
    style = ElementTree.fromstring(svg).find(f"{SVG}style").text
    light, _, dark = style.partition("@media(prefers-color-scheme:dark)")
    for theme, rules in enumerate((light, dark)):
        for symbol in ("O", "N"):
            assert f".{symbol}{{fill:{ATOM_COLOURS[symbol][theme]}}}" in rules
        assert ".Cl{" not in rules


def test_a_single_atom_is_in_the_middle():
    atom = Drawing(np.zeros((1, 2)), np.zeros((2, 0), int), ["Na+"], [])
    (text,) = letters(formula_svg(atom)).values()
    assert text.text == "Na+"
    assert float(text.get("x")) == pytest.approx(WIDTH / 2, abs=12)


def test_texts_are_escaped():
    svg = formula_svg(two_atoms(PLAIN, ("<script>", "&")))
    assert "<script>" not in svg
    assert set(letters(svg)) == {"<script>", "&"}


@pytest.mark.usefixtures("_rdkit")
def test_discs_have_areas_as_large_as_contributions_and_two_looks():
    drawing = draw_smiles("CCO")
    svg = formula_svg(drawing, np.array([0.01, 1.0, -0.25]))
    found = re.findall(r'<circle class="(\w+)" cx="[\d.]+" cy="[\d.]+" r="([\d.]+)"', svg)
    # The first is below a twenty-fifth of the largest; areas are as 4 to 1, radii as 2 to 1.
    assert [way for way, _ in found] == ["up", "down"]
    assert float(found[0][1]) == pytest.approx(2 * float(found[1][1]), rel=0.02)
    assert "prefers-color-scheme:dark){.up{" in svg
    assert "<circle" not in formula_svg(drawing)
    assert "<circle" not in formula_svg(drawing, np.zeros(3))
