"""A structural formula as SVG: lines and letters where the drawing has them, inside the frame."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

from graphsc.report import drawings
from graphsc.report.drawings import Drawing
from graphsc.report.molecules import HEIGHT, SHADES, WIDTH, formula_svg

SVG = "{http://www.w3.org/2000/svg}"


def paths(svg):
    """Each line as (x, y, u, v)."""
    found = ElementTree.fromstring(svg).iter(f"{SVG}path")
    return [tuple(map(float, re.findall(r"-?[\d.]+", path.get("d")))) for path in found]


def letters(svg):
    return {text.text: text for text in ElementTree.fromstring(svg).iter(f"{SVG}text")}


def two_atoms(kind, texts=("", "")):
    return Drawing(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[0], [1]]), texts, [kind])


@pytest.mark.parametrize(
    ("kind", "above", "on", "below"),
    [
        (drawings.PLAIN, 0, 1, 0),
        (drawings.DOUBLE, 1, 0, 1),
        (drawings.DOUBLE_LEFT, 1, 1, 0),
        (drawings.DOUBLE_RIGHT, 0, 1, 1),
        (drawings.TRIPLE, 1, 1, 1),
        (drawings.DASHED, 0, 1, 1),
    ],
)
def test_a_bond_has_its_lines_on_their_sides(kind, above, on, below):
    """Seen from left to right with y downwards, left of the bond is above it."""
    heights = [round(y - HEIGHT / 2, 3) for _, y, _, _ in paths(formula_svg(two_atoms(kind)))]
    assert sum(height < 0 for height in heights) == above
    assert heights.count(0) == on
    assert sum(height > 0 for height in heights) == below


def test_a_small_molecule_does_not_fill_the_frame_and_a_large_one_stays_in_it():
    ((x, y, u, v),) = paths(formula_svg(two_atoms(drawings.PLAIN)))
    assert np.hypot(u - x, v - y) == pytest.approx(34, abs=0.2)
    chain = np.stack([np.arange(80.0), np.arange(80) % 2], axis=1)
    bonds = np.stack([np.arange(79), np.arange(1, 80)])
    drawn = np.array(paths(formula_svg(Drawing(chain, bonds, [""] * 80, [drawings.PLAIN] * 79))))
    assert drawn.min() >= 0
    assert drawn[:, [0, 2]].max() <= WIDTH
    assert drawn[:, [1, 3]].max() <= HEIGHT


def test_hydrogens_are_on_the_side_without_bonds():
    found = letters(formula_svg(two_atoms(drawings.PLAIN, ("OH", "NH₂"))))
    assert set(found) == {"HO", "NH₂"}
    assert found["HO"].get("text-anchor") == "end"
    assert found["NH₂"].get("text-anchor") == "start"
    assert (found["HO"].get("fill"), found["NH₂"].get("fill")) == (SHADES["O"], SHADES["N"])


def test_a_lone_atom_is_in_the_middle():
    alone = Drawing(np.zeros((1, 2)), np.zeros((2, 0), int), ["Na+"], [])
    (text,) = letters(formula_svg(alone)).values()
    assert text.text == "Na+"
    assert float(text.get("x")) == pytest.approx(WIDTH / 2, abs=12)


def test_texts_are_escaped():
    svg = formula_svg(two_atoms(drawings.PLAIN, ("<script>", "&")))
    assert "<script>" not in svg
    assert set(letters(svg)) == {"<script>", "&"}


@pytest.mark.parametrize(
    ("smiles", "texts"),
    [
        ("C[N+](C)(C)CC(=O)[O-]", ["N+", "O", "O\N{MINUS SIGN}"]),
        ("[Ca+2].[Cl-]", ["Ca2+", "Cl\N{MINUS SIGN}"]),
        ("c1cc[nH]c1", ["NH"]),
        ("OCC", ["OH"]),
    ],
)
def test_smiles_keep_their_own_charges_and_hydrogens(smiles, texts):
    pytest.importorskip("rdkit")
    from graphsc.report.molecules import draw_smiles

    assert [text for text in draw_smiles(smiles).texts if text] == texts


def test_what_is_no_smiles_has_no_drawing():
    pytest.importorskip("rdkit")
    from graphsc.report.molecules import draw_smiles

    assert draw_smiles("not a molecule") is None
    assert draw_smiles("") is None
