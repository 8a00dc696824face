"""Structural formulas of molecules: RDKit's coordinates, kekulised bonds, hydrogens as chemists write them.

Charges and hydrogens are those of the graph. Where it has none (features of Hu et al., files of an earlier
version), both are restored where valences require them: a nitrogen with four bonds is positive, a terminal
oxygen beside it negative. A molecule that RDKit still rejects is drawn with its bonds as they are, aromatic
ones dashed. There are no stereo wedges: they depend on an order of neighbours that a graph does not keep.

`formula_svg` writes its own SVG. RDKit's takes about seven times as many bytes per molecule, and its letters
are hard to read at the size of a report's cards.
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
from graphsc.data.molecules.featurize import AROMATIC, ATOM_COLUMNS, DUMMY, charge_of
from graphsc.report.drawings import DASHED, DOUBLE, DOUBLE_LEFT, DOUBLE_RIGHT, PLAIN, TRIPLE, Drawing

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Mol, RWMol


WIDTH, HEIGHT = 240, 180  # of the SVG
# On a light and on a dark page.
INK = ("#1b1f24", "#e8eaed")
GROUND = ("#ffffff", "#1e2229")
ATOM_COLOURS = {
    "N": ("#1f5fbf", "#7db0ff"), "O": ("#c5221f", "#ff8a80"), "S": ("#8a6500", "#e8c547"),
    "P": ("#a85100", "#ffb26b"), "F": ("#1a7a3c", "#7fdc9c"), "Cl": ("#1a7a3c", "#7fdc9c"),
    "Br": ("#8c3b2a", "#e59b86"), "I": ("#6a3d9a", "#c6a5ee"),
}  # fmt: skip
_MAX_BOND_LENGTH = 34.0  # so that a molecule of two atoms does not fill the picture
_BOND_GAP = 0.16  # between the lines of a double bond, as a share of its length
# The lines of a bond: offset in gaps, shortening at each end, whether dashed.
_BOND_LINES = {
    PLAIN: ((0, 0, False),),
    DOUBLE: ((0.5, 0, False), (-0.5, 0, False)),
    DOUBLE_LEFT: ((0, 0, False), (-1, 0.14, False)),
    DOUBLE_RIGHT: ((0, 0, False), (1, 0.14, False)),
    TRIPLE: ((0, 0, False), (1, 0.1, False), (-1, 0.1, False)),
    DASHED: ((0, 0, False), (1, 0.14, True)),
}
_ATOM_TEXT = re.compile(r"^([A-Z][a-z]?|\*)(H[₀-₉]*)?(.*)$")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
# On other lone atoms, such as halogens or metals, a hydrogen would be a guess: they may be ions of a salt.
_HYDROGEN_BEARERS = ("C", "N", "O", "P", "S")
_MAX_RING_NITROGENS = 6  # up to which positions of a missing ring hydrogen are tried


def draw_structure(graph: Graph) -> Drawing:
    """Draw a molecular graph with the columns of `graphsc.data.molecules.featurize`."""
    with require("rdkit.rdBase").BlockLogs():
        return _drawing(*_to_molecule(graph))


def draw_smiles(smiles: str) -> Drawing | None:
    """Draw a SMILES string with its own charges and hydrogens; None if it is not a molecule."""
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        molecule = chem.MolFromSmiles(smiles)
        if molecule is None or not molecule.GetNumAtoms():
            return None
        chem.Kekulize(molecule, clearAromaticFlags=True)
        return _drawing(molecule, True)


def smiles_of(graph: Graph) -> str:
    """A SMILES string of a molecular graph as it is drawn: without stereochemistry.

    Empty where the graph is no valid molecule.
    """
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        molecule, valid = _to_molecule(graph)
        if not valid:
            return ""
        chem.SanitizeMol(molecule)  # its rings are kekulised for the drawing
        return str(chem.MolToSmiles(molecule))


def _to_molecule(graph: Graph) -> tuple[Mol, bool]:
    """The kekulised molecule and True, or the molecule as the graph has it and False."""
    chem = require("rdkit.Chem")
    molecule = _assemble(graph)
    for hydrogens in _ring_hydrogens(molecule):
        candidate = chem.RWMol(molecule)
        for index in hydrogens:
            candidate.GetAtomWithIdx(index).SetNumExplicitHs(1)
        try:
            chem.SanitizeMol(candidate)
            chem.Kekulize(candidate, clearAromaticFlags=True)
        except (ValueError, RuntimeError):
            continue
        return candidate, True
    molecule.UpdatePropertyCache(strict=False)
    chem.FastFindRings(molecule)
    return molecule, False


def _assemble(graph: Graph) -> RWMol:
    chem = require("rdkit.Chem")
    bond_types = (chem.BondType.SINGLE, chem.BondType.DOUBLE, chem.BondType.TRIPLE, chem.BondType.AROMATIC)
    molecule: RWMol = chem.RWMol()
    for code in graph.nodes.codes[:, 0].tolist():
        molecule.AddAtom(chem.Atom(0 if code >= DUMMY else code + 1))
    source, destination = graph.edge_index.astype(np.int64)
    for edge in np.flatnonzero(source < destination).tolist():
        u, v = int(source[edge]), int(destination[edge])
        bond = int(graph.edges.codes[edge, 0])
        molecule.AddBond(u, v, bond_types[bond])
        if bond == AROMATIC:
            molecule.GetBondBetweenAtoms(u, v).SetIsAromatic(True)
            for index in (u, v):
                molecule.GetAtomWithIdx(index).SetIsAromatic(True)
    if tuple(column.name for column in graph.nodes.columns) == tuple(column.name for column in ATOM_COLUMNS):
        for atom, (charge, hydrogens) in zip(
            molecule.GetAtoms(), graph.nodes.codes[:, 2:].tolist(), strict=True
        ):
            atom.SetFormalCharge(charge_of(charge))
            atom.SetNumExplicitHs(hydrogens)
            atom.SetNoImplicit(True)
        return molecule
    for atom in molecule.GetAtoms():
        if atom.GetAtomicNum() != 7 or sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds()) < 4.0:
            continue
        atom.SetFormalCharge(1)
        for bond in atom.GetBonds():
            other = bond.GetOtherAtom(atom)
            if other.GetAtomicNum() == 8 and other.GetDegree() == 1 and bond.GetBondTypeAsDouble() == 1.0:
                other.SetFormalCharge(-1)
                break
    return molecule


def _ring_hydrogens(molecule: Mol) -> Iterator[tuple[int, ...]]:
    """Sets of aromatic nitrogens that may carry a hydrogen: none first, then one, then two of them."""
    nitrogens = [
        atom.GetIdx()
        for atom in molecule.GetAtoms()
        if atom.GetIsAromatic() and atom.GetAtomicNum() == 7 and atom.GetDegree() == 2
    ]
    yield ()
    if len(nitrogens) <= _MAX_RING_NITROGENS:
        yield from combinations(nitrogens, 1)
        yield from combinations(nitrogens, 2)


def _drawing(molecule: Mol, valid: bool) -> Drawing:
    require("rdkit.Chem.rdDepictor").Compute2DCoords(molecule, canonOrient=True)
    positions: NDArray[np.float64] = molecule.GetConformer().GetPositions()[:, :2] * (1.0, -1.0)
    edges, kinds = _bonds(molecule, positions)
    return Drawing(positions, edges, [_atom_text(atom, valid) for atom in molecule.GetAtoms()], kinds)


def _bonds(molecule: Mol, positions: NDArray[np.float64]) -> tuple[NDArray[np.int64], list[int]]:
    """2 x bonds atom indices, and the kind of line of each."""
    bond_type = require("rdkit.Chem").BondType
    kind_of = {bond_type.DOUBLE: DOUBLE, bond_type.TRIPLE: TRIPLE, bond_type.AROMATIC: DASHED}
    rings = [(set(ring), positions[list(ring)].mean(axis=0)) for ring in molecule.GetRingInfo().AtomRings()]
    edges, kinds = [], []
    for bond in molecule.GetBonds():
        u, v = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kind = kind_of.get(bond.GetBondType(), PLAIN)
        centres = [centre for ring, centre in rings if u in ring and v in ring]
        if centres and kind in (DOUBLE, DASHED):
            # The second line is on the side of the ring.
            along, inwards = positions[v] - positions[u], centres[0] - positions[u]
            right = along[0] * inwards[1] - along[1] * inwards[0] > 0
            if kind == DOUBLE:
                kind = DOUBLE_RIGHT if right else DOUBLE_LEFT
            elif not right:
                u, v = v, u
        edges.append((u, v))
        kinds.append(kind)
    return np.array(edges, np.int64).reshape(-1, 2).T, kinds


def _atom_text(atom: Atom, valid: bool) -> str:
    """Nothing for a carbon with bonds, else symbol, hydrogens and charge."""
    symbol, charge = atom.GetSymbol(), atom.GetFormalCharge()
    if symbol == "C" and not charge and atom.GetDegree():
        return ""
    count = atom.GetTotalNumHs() if valid and symbol in _HYDROGEN_BEARERS else 0
    hydrogens = "" if not count else "H" if count == 1 else "H" + str(count).translate(_SUBSCRIPTS)
    sign = "" if not charge else "+" if charge > 0 else "\N{MINUS SIGN}"
    return f"{symbol}{hydrogens}{abs(charge) if abs(charge) > 1 else ''}{sign}"


def formula_svg(drawing: Drawing, contributions: NDArray[np.floating] | None = None) -> str:
    """Write a structural formula as SVG, for pages without a script; the explorer's script draws the same.

    Args:
        drawing: The formula.
        contributions: One number per atom. Atoms get discs behind them: orange and solid where they raise
            the prediction, blue and ringed where they lower it, so that colour is not the only cue; the area
            is as large as the contribution beside the largest one of the molecule.
    """
    positions, length = _fit(drawing)
    stroke = max(0.8, min(1.6, 0.06 * length))
    size = _font_size(length)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}">',
        f"<style>{_style(drawing)}{_CONTRIBUTION_STYLE if contributions is not None else ''}</style>",
        *([] if contributions is None else _discs(positions, contributions, length)),
        f'<g class="bonds" stroke-width="{stroke:.1f}" stroke-linecap="round" fill="none">',
    ]
    for (u, v), kind in zip(drawing.edges.T.tolist(), drawing.kinds, strict=True):
        parts += _bond_paths(positions[u], positions[v], kind)
    parts.append(
        f'</g><g font-family="system-ui, sans-serif" font-weight="600" font-size="{size:.1f}" '
        f'class="atoms" stroke-width="{0.35 * size:.1f}" stroke-linejoin="round" paint-order="stroke">'
    )
    u, v = np.asarray(drawing.edges)
    for node, text in enumerate(drawing.texts):
        if text:
            neighbours = positions[np.concatenate([v[u == node], u[v == node]]), 0]
            bonds_right = bool(len(neighbours)) and float(neighbours.mean()) > positions[node, 0] + 1
            parts.append(_text_element(text, positions[node], bonds_right, size))
    return "".join([*parts, "</g></svg>"])


# Discs of atoms that raise and lower a prediction, on a light and on a dark page.
_CONTRIBUTION_STYLE = (
    ".up{fill:#f6a04d}.down{fill:#cfe0fb;stroke:#2f6fd0;stroke-width:1.2}"
    "@media(prefers-color-scheme:dark){.up{fill:#a8590f}.down{fill:#1d3457;stroke:#7db0ff}}"
)
_SMALLEST_DISC = 0.04  # share of the largest contribution, below which an atom gets no disc


def _discs(
    positions: NDArray[np.float64], contributions: NDArray[np.floating], length: float
) -> Iterator[str]:
    largest = float(np.abs(contributions).max(initial=0.0))
    for (x, y), value in zip(positions, np.asarray(contributions, np.float64).tolist(), strict=True):
        share = abs(value) / largest if largest > 0 else 0.0
        if share >= _SMALLEST_DISC:
            radius = 0.55 * length * np.sqrt(share)
            way = "up" if value > 0 else "down"
            yield f'<circle class="{way}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"/>'


def _style(drawing: Drawing) -> str:
    """The colours of bonds, of the ground behind letters, and of the elements that occur, for both themes."""
    symbols = sorted({match[1] for text in drawing.texts if (match := _ATOM_TEXT.match(text))})
    colours = {name: ATOM_COLOURS[name] for name in symbols if name in ATOM_COLOURS}

    def rules(theme: int) -> str:
        atoms = "".join(f".{name}{{fill:{shades[theme]}}}" for name, shades in colours.items())
        return f".bonds{{stroke:{INK[theme]}}}.atoms{{stroke:{GROUND[theme]};fill:{INK[theme]}}}{atoms}"

    return f"{rules(0)}@media(prefers-color-scheme:dark){{{rules(1)}}}"


def _fit(drawing: Drawing) -> tuple[NDArray[np.float64], float]:
    """Positions scaled to the picture, and the mean bond length there."""
    positions = np.asarray(drawing.positions, np.float64)
    low, high = positions.min(axis=0), positions.max(axis=0)
    ends = positions[np.asarray(drawing.edges, np.int64)]
    mean = float(np.linalg.norm(ends[0] - ends[1], axis=1).mean()) if drawing.edges.size else 0.0
    frame, scale, size = np.array([WIDTH, HEIGHT]), 0.0, 0.0
    for _ in range(2):  # the margin depends on the font size, and that on the scale
        room = frame - 2 * (8 + size * np.array([2.0, 0.6]))  # texts such as H₂N+ are wide
        largest = _MAX_BOND_LENGTH / mean if mean else _MAX_BOND_LENGTH
        scale = min(float((room / np.maximum(high - low, 1e-9)).min()), largest)
        size = _font_size(mean * scale)
    return (positions - (low + high) / 2) * scale + frame / 2, mean * scale or _MAX_BOND_LENGTH


def _font_size(bond_length: float) -> float:
    return max(6.0, min(14.0, 0.5 * bond_length))


def _bond_paths(start: NDArray[np.float64], end: NDArray[np.float64], kind: int) -> Iterator[str]:
    along = end - start
    gap = _BOND_GAP * np.array([-along[1], along[0]])
    for offset, shortening, dashed in _BOND_LINES[kind]:
        (x, y), (u, v) = start + offset * gap + shortening * along, end + offset * gap - shortening * along
        dashes = ' stroke-dasharray="2 3"' if dashed else ""
        yield f'<path d="M{x:.1f} {y:.1f}L{u:.1f} {v:.1f}"{dashes}/>'


def _text_element(text: str, position: NDArray[np.float64], bonds_right: bool, size: float) -> str:
    """The symbol at its position; hydrogens after it, or before it where the bonds are on the right."""
    match = _ATOM_TEXT.match(text)
    symbol, hydrogens, charge = match.groups(default="") if match else (text, "", "")
    x, y = position
    css_class = f' class="{symbol}"' if symbol in ATOM_COLOURS else ""
    half = 0.5 * size * sum(0.72 if letter.isupper() else 0.5 for letter in symbol)
    if hydrogens and bonds_right:
        # The charge stays after the symbol.
        anchor, x, text = "end", x + half + 0.5 * size * len(charge), hydrogens + symbol + charge
    elif hydrogens or charge:
        anchor, x = "start", x - half
    else:
        anchor = "middle"
    return (
        f'<text x="{x:.1f}" y="{y + 0.35 * size:.1f}" text-anchor="{anchor}"{css_class}>{escape(text)}</text>'
    )
