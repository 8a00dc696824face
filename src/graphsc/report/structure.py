"""A molecule as a structural formula: RDKit's places, kekulised bonds, hydrogens where chemists write them.

The graph is what we have, and it holds no charges and no hydrogens: both are put back where a valence asks
for them (a nitrogen of four bonds is positive, its lone oxygen negative). A molecule that still makes no
sense to RDKit is drawn with its bonds as they are, aromatic ones dashed. There are no wedges: which way a
centre turns depends on an order of its neighbours that a graph does not keep.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.extras import require
from graphsc.data.collection import Graph
from graphsc.data.molecules.columns import AROMATIC, DUMMY
from graphsc.report import drawings as lines

if TYPE_CHECKING:
    from rdkit.Chem import Atom, Mol, RWMol

_BEARERS = 6  # ring nitrogens tried for a lost hydrogen; more of them are drawn dashed
_BEARS_HYDROGEN = ("C", "N", "O", "P", "S")
_LOW = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def draw_structure(graph: Graph) -> lines.Drawing:
    """A drawing of one molecule, its nodes and bonds coded as in `graphsc.data.molecules.columns`."""
    with require("rdkit.rdBase").BlockLogs():
        return _drawing(*molecule_of(graph))


def draw_smiles(smiles: str) -> lines.Drawing | None:
    """The same drawing of a molecule as SMILES, with its own charges and hydrogens; None if it is none."""
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        molecule = chem.MolFromSmiles(smiles)
        if molecule is None or not molecule.GetNumAtoms():
            return None
        chem.Kekulize(molecule, clearAromaticFlags=True)
        return _drawing(molecule, True)


def _drawing(molecule: Mol, sound: bool) -> lines.Drawing:
    places = _places(molecule)
    edges, kinds = _bonds(molecule, places)
    return lines.Drawing(places, edges, [_text(atom, sound) for atom in molecule.GetAtoms()], kinds)


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
        chem.BondType.DOUBLE: lines.DOUBLE,
        chem.BondType.TRIPLE: lines.TRIPLE,
        chem.BondType.AROMATIC: lines.DASHED,
    }
    rings = [places[list(ring)].mean(axis=0) for ring in molecule.GetRingInfo().AtomRings()]
    members = [set(ring) for ring in molecule.GetRingInfo().AtomRings()]
    edges, kinds = [], []
    for bond in molecule.GetBonds():
        one, other = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kind = of_kind.get(bond.GetBondType(), lines.PLAIN)
        centres = [rings[k] for k, ring in enumerate(members) if one in ring and other in ring]
        if centres and kind in (lines.DOUBLE, lines.DASHED):
            # Seen along the bond, the ring lies to one side, and so does the second line.
            along, aside = places[other] - places[one], centres[0] - places[one]
            right = along[0] * aside[1] - along[1] * aside[0] > 0
            if kind == lines.DOUBLE:
                kind = lines.DOUBLE_RIGHT if right else lines.DOUBLE_LEFT
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
