"""A molecule as a structural formula: RDKit's places, kekulised bonds, hydrogens where chemists write them.

The graph is what we have, and it holds no charges and no hydrogens: both are put back where a valence asks
for them (a nitrogen of four bonds is positive, its lone oxygen negative). A molecule that still makes no
sense to RDKit is drawn with its bonds as they are, aromatic ones dashed. There are no wedges: which way a
centre turns depends on an order of its neighbours that a graph does not keep.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.registry import require
from graphsc.data.collection import Graph
from graphsc.data.molecules.featurize import AROMATIC, DUMMY
from graphsc.report import drawings
from graphsc.report.drawings import Drawing

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Mol, RWMol


_BEARERS = 6  # ring nitrogens tried for a lost hydrogen; more of them are drawn dashed
_BEARS_HYDROGEN = ("C", "N", "O", "P", "S")
_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def draw_structure(graph: Graph) -> drawings.Drawing:
    """A drawing of one molecule, its nodes and bonds coded as in `graphsc.data.molecules.featurize`."""
    with require("rdkit.rdBase").BlockLogs():
        return _drawing(*molecule_of(graph))


def draw_smiles(smiles: str) -> drawings.Drawing | None:
    """The same drawing of a molecule as SMILES, with its own charges and hydrogens; None if it is none."""
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        molecule = chem.MolFromSmiles(smiles)
        if molecule is None or not molecule.GetNumAtoms():
            return None
        chem.Kekulize(molecule, clearAromaticFlags=True)
        return _drawing(molecule, True)


def _drawing(molecule: Mol, sound: bool) -> drawings.Drawing:
    places = _places(molecule)
    edges, kinds = _bonds(molecule, places)
    return drawings.Drawing(places, edges, [_text(atom, sound) for atom in molecule.GetAtoms()], kinds)


def molecule_of(graph: Graph) -> tuple[Mol, bool]:
    """The molecule, kekulised, and whether it makes sense; one that does not is as the graph has it."""
    chem = require("rdkit.Chem")
    plain = _assemble(graph)
    for hydrogens in _guesses(plain):
        tried = chem.RWMol(plain)
        for index in hydrogens:
            tried.GetAtomWithIdx(index).SetNumExplicitHs(1)
        try:
            chem.SanitizeMol(tried)
            chem.Kekulize(tried, clearAromaticFlags=True)
        except (ValueError, RuntimeError):
            continue
        return tried, True
    plain.UpdatePropertyCache(strict=False)
    chem.FastFindRings(plain)
    return plain, False


def _assemble(graph: Graph) -> RWMol:
    chem = require("rdkit.Chem")
    kind = chem.BondType
    of_bond = (kind.SINGLE, kind.DOUBLE, kind.TRIPLE, kind.AROMATIC)
    molecule: RWMol = chem.RWMol()
    for code in graph.nodes.codes[:, 0].tolist():
        molecule.AddAtom(chem.Atom(0 if code >= DUMMY else code + 1))
    source, destination = graph.edge_index.astype(np.int64)
    for column in np.flatnonzero(source < destination).tolist():
        one, other = int(source[column]), int(destination[column])
        bond = int(graph.edges.codes[column, 0])
        molecule.AddBond(one, other, of_bond[bond])
        if bond == AROMATIC:
            molecule.GetBondBetweenAtoms(one, other).SetIsAromatic(True)
            for index in (one, other):
                molecule.GetAtomWithIdx(index).SetIsAromatic(True)
    _charge(molecule)
    return molecule


def _charge(molecule: Mol) -> None:
    """Nitrogens of four bonds lack an electron; a lone oxygen beside one has it."""
    for atom in molecule.GetAtoms():
        if atom.GetAtomicNum() != 7 or atom.GetFormalCharge():
            continue
        if sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds()) < 4.0:
            continue
        atom.SetFormalCharge(1)
        for bond in atom.GetBonds():
            other = bond.GetOtherAtom(atom)
            if other.GetAtomicNum() == 8 and other.GetDegree() == 1 and bond.GetBondTypeAsDouble() == 1.0:
                other.SetFormalCharge(-1)
                break


def _guesses(molecule: Mol) -> Iterator[tuple[int, ...]]:
    """Which ring nitrogens may carry a hydrogen: none first, then one, then two of them."""
    bearers = [
        atom.GetIdx()
        for atom in molecule.GetAtoms()
        if atom.GetIsAromatic() and atom.GetAtomicNum() == 7 and atom.GetDegree() == 2
    ]
    yield ()
    if len(bearers) <= _BEARERS:
        yield from combinations(bearers, 1)
        yield from combinations(bearers, 2)


def _places(molecule: Mol) -> NDArray[np.float64]:
    depictor = require("rdkit.Chem.rdDepictor")
    depictor.Compute2DCoords(molecule, canonOrient=True)
    places: NDArray[np.float64] = molecule.GetConformer().GetPositions()[:, :2] * (1.0, -1.0)
    return places


def _bonds(molecule: Mol, places: NDArray[np.float64]) -> tuple[NDArray[np.int64], list[int]]:
    chem = require("rdkit.Chem")
    of_kind = {
        chem.BondType.DOUBLE: drawings.DOUBLE,
        chem.BondType.TRIPLE: drawings.TRIPLE,
        chem.BondType.AROMATIC: drawings.DASHED,
    }
    rings = [places[list(ring)].mean(axis=0) for ring in molecule.GetRingInfo().AtomRings()]
    members = [set(ring) for ring in molecule.GetRingInfo().AtomRings()]
    edges, kinds = [], []
    for bond in molecule.GetBonds():
        one, other = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kind = of_kind.get(bond.GetBondType(), drawings.PLAIN)
        centres = [rings[k] for k, ring in enumerate(members) if one in ring and other in ring]
        if centres and kind in (drawings.DOUBLE, drawings.DASHED):
            # Seen along the bond, the ring lies to one side, and so does the second line.
            along, aside = places[other] - places[one], centres[0] - places[one]
            right = along[0] * aside[1] - along[1] * aside[0] > 0
            if kind == drawings.DOUBLE:
                kind = drawings.DOUBLE_RIGHT if right else drawings.DOUBLE_LEFT
            elif not right:
                one, other = other, one
        edges.append((one, other))
        kinds.append(kind)
    return np.array(edges, np.int64).reshape(-1, 2).T, kinds


def _text(atom: Atom, sound: bool) -> str:
    """What stands at an atom: nothing for a carbon with bonds, else its symbol, hydrogens and charge."""
    symbol, charge = atom.GetSymbol(), atom.GetFormalCharge()
    if symbol == "C" and not charge and atom.GetDegree():
        return ""
    # On a lone halogen or metal a hydrogen would be a guess: it is as likely the ion of a salt.
    hydrogens = atom.GetTotalNumHs() if sound and symbol in _BEARS_HYDROGEN else 0
    carried = "" if not hydrogens else "H" if hydrogens == 1 else "H" + str(hydrogens).translate(_LOW)
    sign = "" if not charge else "+" if charge > 0 else "\N{MINUS SIGN}"
    return f"{symbol}{carried}{abs(charge) if abs(charge) > 1 else ''}{sign}"


# A structural formula as SVG text, for pages without a script; the explorer draws the same by itself.


WIDTH, HEIGHT = 240, 180
LONGEST = 34.0  # of a bond: two atoms need not fill the picture
GAP = 0.16  # between the lines of a double bond, as a share of its length
INK = "#1b1f24"
SHADES = {
    "N": "#1f5fbf", "O": "#c5221f", "S": "#8a6500", "P": "#a85100", "F": "#1a7a3c", "Cl": "#1a7a3c",
    "Br": "#8c3b2a", "I": "#6a3d9a",
}  # fmt: skip
_TEXT = re.compile(r"^([A-Z][a-z]?|\*)(H[₀-₉]*)?(.*)$")
# Where the lines of a bond run: how many gaps aside, how much shorter at each end, and dashed or not.
_RUNS = {
    drawings.PLAIN: ((0, 0, False),),
    drawings.DOUBLE: ((0.5, 0, False), (-0.5, 0, False)),
    drawings.DOUBLE_LEFT: ((0, 0, False), (-1, 0.14, False)),
    drawings.DOUBLE_RIGHT: ((0, 0, False), (1, 0.14, False)),
    drawings.TRIPLE: ((0, 0, False), (1, 0.1, False), (-1, 0.1, False)),
    drawings.DASHED: ((0, 0, False), (1, 0.14, True)),
}


def formula_svg(drawing: Drawing) -> str:
    """The drawing on white, letters in front of lines, sized to one frame."""
    places, length = _fitted(drawing)
    stroke = max(0.8, min(1.6, 0.06 * length))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f'<g stroke="{INK}" stroke-width="{stroke:.1f}" stroke-linecap="round" fill="none">',
    ]
    for (one, other), kind in zip(drawing.edges.T.tolist(), drawing.kinds, strict=True):
        parts += _bond(places[one], places[other], kind)
    size = _size(length)
    parts.append(
        f'</g><g font-family="system-ui, sans-serif" font-weight="600" font-size="{size:.1f}" '
        f'stroke="#ffffff" stroke-width="{0.35 * size:.1f}" stroke-linejoin="round" paint-order="stroke">'
    )
    for node, text in enumerate(drawing.texts):
        if text:
            parts.append(_letters(text, places[node], _mean_beside(drawing, places, node), size))
    return "".join([*parts, "</g></svg>"])


def _fitted(drawing: Drawing) -> tuple[NDArray[np.float64], float]:
    """Places in the frame, and the mean length of a bond there."""
    places = np.asarray(drawing.places, np.float64)
    low, high = places.min(axis=0), places.max(axis=0)
    ends = places[np.asarray(drawing.edges, np.int64)]
    mean = float(np.linalg.norm(ends[0] - ends[1], axis=1).mean()) if drawing.edges.size else 0.0
    frame, scale, size = np.array([WIDTH, HEIGHT]), 0.0, 0.0
    for _ in range(2):  # how much room the letters need is known once there is a scale
        room = frame - 2 * (8 + size * np.array([2.0, 0.6]))  # words like H₂N+ reach out sideways
        scale = min(float((room / np.maximum(high - low, 1e-9)).min()), LONGEST / mean if mean else LONGEST)
        size = _size(mean * scale)
    return (places - (low + high) / 2) * scale + frame / 2, mean * scale or LONGEST


def _size(length: float) -> float:
    """Of letters, where a bond is so long."""
    return max(6.0, min(14.0, 0.5 * length))


def _bond(start: NDArray[np.float64], end: NDArray[np.float64], kind: int) -> Iterator[str]:
    along = end - start
    aside = GAP * np.array([-along[1], along[0]])
    for gaps, shorter, dashed in _RUNS[kind]:
        (x, y), (u, v) = start + gaps * aside + shorter * along, end + gaps * aside - shorter * along
        dashes = ' stroke-dasharray="2 3"' if dashed else ""
        yield f'<path d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"{dashes}/>'


def _mean_beside(drawing: Drawing, places: NDArray[np.float64], node: int) -> float | None:
    """Where the neighbours of a node lie from left to right; None where it has none."""
    one, other = np.asarray(drawing.edges)
    beside = [*places[other[one == node], 0], *places[one[other == node], 0]]
    return float(np.mean(beside)) if beside else None


def _letters(text: str, place: NDArray[np.float64], beside: float | None, size: float) -> str:
    """The symbol on its place; hydrogens behind it, or before it where the bonds are on the right."""
    match = _TEXT.match(text)
    symbol, hydrogens, rest = match.groups(default="") if match else (text, "", "")
    x, y = place
    half = 0.5 * size * sum(0.72 if letter.isupper() else 0.5 for letter in symbol)
    if hydrogens and beside is not None and beside > x + 1:
        anchor, start, shown = "end", x + half, hydrogens + symbol
        if rest:  # a charge stays behind the symbol
            shown += rest
            start += 0.5 * size * len(rest)
    elif hydrogens or rest:
        anchor, start, shown = "start", x - half, text
    else:
        anchor, start, shown = "middle", x, text
    colour = SHADES.get(symbol, INK)
    return (
        f'<text x="{start:.1f}" y="{y + 0.35 * size:.1f}" text-anchor="{anchor}" fill="{colour}">'
        f"{escape(shown)}</text>"
    )
