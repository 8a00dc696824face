"""SMILES strings to flat arrays of atoms and bonds, as Hu et al. (2020) featurize them.

Atoms carry their type and chirality, bonds their type and direction (`columns.py`). Bonds come from
RDKit's matrix of bond orders: what is not 0 in it, row by row, already are the edges sorted by
(destination, source). Molecules for which the matrix does not say all (dative bonds have an order
one way only, unspecified ones have none) take a loop over their bonds.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.registry import require
from graphsc.data.arrays import pointer
from graphsc.data.columns import Column
from graphsc.data.features import HIDDEN
from graphsc.data.molecules.rejected import reason_of, refuse_text

if TYPE_CHECKING:
    from rdkit.Chem import Bond, Mol


# What is known of an atom and of a bond: four categorical columns, the same for every source.
#
# Cardinalities do not depend on what a source holds, so that any two collections of molecules have one
# feature scheme and a model trained on one reads the other.


_TABLE = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb "
    "Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf "
    "Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
)
_SYMBOLS = _TABLE.split()

# Code = atomic number - 1. The dummy atom `*` (atomic number 0) comes behind the elements, in the one row of
# the published encoder's 120 that it leaves unused; the last is that of an atom hidden in training.
DUMMY = len(_SYMBOLS)
ATOM = Column("atom", DUMMY + 2, (*_SYMBOLS, "*", HIDDEN))

# RDKit's own numbers 0 to 2; allenes, square planes and the like are all `other`.
OTHER_CHIRALITY = 3
CHIRALITY = Column("chirality", 4, ("unspecified", "clockwise", "counterclockwise", "other"))

# Any other kind of bond (dative, quadruple, unspecified) is read as single, and a note counts them.
SINGLE, DOUBLE, TRIPLE, AROMATIC = range(4)
BOND = Column("bond", 4, ("single", "double", "triple", "aromatic"))

# Which way a single bond beside a double bond points; wedges of drawings count as none.
NO_DIRECTION, UP, DOWN = range(3)
DIRECTION = Column("direction", 3, ("none", "up", "down"))


# The atoms of a SMILES string read from its text, because asking RDKit for each atom is slow.
#
# Atoms of a molecule stand in the order of its text, each as one token: `C`, `Cl`, `[nH]`, `[C@@H]`. What a
# token stands for is asked of RDKit once and remembered. Texts this does not hold for (hydrogens that
# RDKit removes, names and extensions behind a space) have another number of tokens than atoms, and are left
# to a loop over the atoms.


BREAK = "\n"  # between the texts of several molecules
TOKEN = re.compile(r"\[[^\]\n]*\]|Br|Cl|[A-Za-z*\n]")
AT_BREAK, UNKNOWN = 254, 255
_MOST = 100_000  # tokens remembered; atom map numbers make endlessly many


def atom_code(number: int) -> int:
    """The code of an atomic number; 0 is the dummy atom."""
    return number - 1 if 0 < number <= DUMMY else DUMMY


class TokenCodes(dict[str, int]):
    """Token to atom code, filled as tokens are met."""

    def __init__(self, chem: ModuleType) -> None:
        super().__init__({BREAK: AT_BREAK})
        self._chem = chem

    def __missing__(self, token: str) -> int:
        if len(self) >= _MOST:
            self.clear()
            self[BREAK] = AT_BREAK
        alone = self._chem.MolFromSmiles(token, sanitize=False)
        known = alone is not None and alone.GetNumAtoms() == 1
        self[token] = code = atom_code(alone.GetAtomWithIdx(0).GetAtomicNum()) if known else UNKNOWN
        return code


MAX_ATOMS = 1_000
MAX_LENGTH = 20_000  # characters of a SMILES string that RDKit gets to see
MATRIX_LIMIT = 200  # atoms; beyond, a matrix costs more than a loop over bonds

# Twice the bond order (aromatic is 1.5) to our code; whatever is not here is read as single.
_OF_ORDER = {2: SINGLE, 3: AROMATIC, 4: DOUBLE, 6: TRIPLE}
_BOND_CODES = np.array([_OF_ORDER.get(order, SINGLE) for order in range(256)], dtype=np.uint8)
_IS_KNOWN = np.array([order in _OF_ORDER for order in range(256)])


@dataclass(frozen=True)
class Molecules:
    """Molecules laid end to end; every input is either in `kept` or in `rejected`."""

    kept: NDArray[np.int64]  # positions in the input
    rejected: list[tuple[int, str]]  # position and reason
    node_counts: NDArray[np.int64]
    edge_counts: NDArray[np.int64]
    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    atoms: NDArray[np.uint8]  # atoms x (type, chirality)
    bonds: NDArray[np.uint8]  # edges x (type, direction); each bond in both directions
    other_bonds: int  # read as single, because they are of no kind we have


def featurize(
    smiles: Sequence[str], *, max_atoms: int = MAX_ATOMS, max_length: int = MAX_LENGTH
) -> Molecules:
    """Parse and featurize; what is no molecule is rejected with a reason, never an error."""
    chem = require("rdkit.Chem")
    work = _Work(chem)
    kept: list[int] = []
    rejected: list[tuple[int, str]] = []
    with require("rdkit.rdBase").BlockLogs():  # quiet here only; the user's own RDKit keeps its log
        for position, text in enumerate(smiles):
            reason = refuse_text(text, max_length) or work.add(text, max_atoms)
            if reason is None:
                kept.append(position)
            else:
                rejected.append((position, reason))
        return work.finish(np.array(kept, dtype=np.int64), rejected)


class _Work:
    """Molecules on their way into arrays."""

    def __init__(self, chem: ModuleType) -> None:
        self.chem = chem
        self.parse: Callable[[str], Mol | None] = chem.MolFromSmiles
        self.matrix_of = require("rdkit.Chem.rdmolops").GetAdjacencyMatrix
        self.token_codes = TokenCodes(chem)
        bond, way = chem.BondType, chem.BondDir
        self.kinds = {bond.SINGLE: SINGLE, bond.DOUBLE: DOUBLE, bond.TRIPLE: TRIPLE, bond.AROMATIC: AROMATIC}
        self.directions = {way.ENDUPRIGHT: UP, way.ENDDOWNRIGHT: DOWN}
        self.sizes: list[int] = []
        self.texts: list[str] = []  # of molecules whose atoms are not read yet
        self.types: list[NDArray[np.uint8]] = []
        self.atoms = 0
        self.chiral: list[tuple[int, int]] = []  # position among all atoms, code
        self.widths: list[int] = []  # of the matrices that wait
        self.entries: list[NDArray[np.int64]] = []  # places of what is not 0 in each, row by row
        self.orders: list[NDArray[np.float64]] = []  # and what stands there
        self.directed: list[tuple[int, int, int, int]] = []  # molecule of the batch, atom, atom, code
        self.edges: list[tuple[NDArray[np.integer], ...]] = []  # counts, source, destination, type, direction
        self.other_bonds = 0

    def add(self, text: str, max_atoms: int) -> str | None:
        """Take one molecule in, or say why not."""
        try:
            molecule = self.parse(text)
        except Exception as error:  # whatever RDKit makes of one string must not end the work on others
            return f"RDKit: {type(error).__name__}: {error}"[:200]
        if molecule is None:
            return reason_of(self.chem, text)
        atoms: int = molecule.GetNumAtoms()
        if not 0 < atoms <= max_atoms:
            return f"{atoms:,} atoms, at most {max_atoms:,} are taken" if atoms else "no atoms"
        if "@" in text or " " in text or not text.isprintable():
            self._read_texts()
            self._add_marked(molecule, text, atoms)
        else:
            self.texts.append(text)
        self.sizes.append(atoms)
        self._add_bonds(molecule, text, atoms)
        return None

    def _read_texts(self) -> None:
        """The atoms of all molecules whose texts wait, read from the texts."""
        texts, self.texts = self.texts, []
        if not texts:
            return
        tokens = TOKEN.findall(BREAK.join([*texts, ""]))
        codes = np.fromiter(map(self.token_codes.__getitem__, tokens), dtype=np.uint8, count=len(tokens))
        breaks = np.flatnonzero(codes == AT_BREAK)
        counts = np.diff(breaks, prepend=-1) - 1
        sizes = self.sizes[-len(texts) :]
        if np.array_equal(counts, sizes) and not (codes == UNKNOWN).any():
            self._add_types(codes[codes != AT_BREAK])
            return
        for text, size, end, count in zip(texts, sizes, breaks.tolist(), counts.tolist(), strict=True):
            part = codes[end - count : end]
            if count == size and UNKNOWN not in part:
                self._add_types(part)
            else:
                self._add_atoms(self.chem.MolFromSmiles(text))

    def _add_marked(self, molecule: Mol, text: str, atoms: int) -> None:
        """The atoms of one molecule, of which only those marked as chiral are asked for their tag."""
        tokens = TOKEN.findall(text)
        codes = np.array(list(map(self.token_codes.__getitem__, tokens)), dtype=np.uint8)
        if len(tokens) != atoms or (codes >= AT_BREAK).any() or " " in text:
            self._add_atoms(molecule)
            return
        at = molecule.GetAtomWithIdx
        tags = [(place, int(at(place).GetChiralTag())) for place, token in enumerate(tokens) if "@" in token]
        self._add_tags(self.atoms, tags)
        self._add_types(codes)

    def _add_types(self, codes: NDArray[np.uint8]) -> None:
        self.types.append(codes)
        self.atoms += len(codes)

    def _add_atoms(self, molecule: Mol) -> None:
        """The atoms of one molecule, asked of RDKit one by one."""
        atoms = list(molecule.GetAtoms())
        tags = [(place, int(atom.GetChiralTag())) for place, atom in enumerate(atoms)]
        self._add_tags(self.atoms, tags)
        self._add_types(np.array([atom_code(atom.GetAtomicNum()) for atom in atoms], dtype=np.uint8))

    def _add_tags(self, first: int, tags: list[tuple[int, int]]) -> None:
        self.chiral += [(first + place, min(tag, OTHER_CHIRALITY)) for place, tag in tags if tag]

    def _add_bonds(self, molecule: Mol, text: str, atoms: int) -> None:
        # Only what is not 0 is kept: matrices held until later would push RDKit's data out of the cache.
        flat = self.matrix_of(molecule, useBO=True).ravel() if atoms <= MATRIX_LIMIT else None
        entries = None if flat is None else flat.nonzero()[0]
        # A bond with an order has it in both halves; RDKit's clean-up makes dative bonds unasked.
        if flat is None or entries is None or len(entries) != 2 * molecule.GetNumBonds():
            self._flush()
            self._loop(molecule)
            return
        if "/" in text or "\\" in text or " " in text:
            self.directed += [
                (len(self.widths), bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), direction)
                for bond in molecule.GetBonds()
                if (direction := self._direction(bond))
            ]
        self.widths.append(atoms)
        self.entries.append(entries)
        self.orders.append(flat[entries])

    def _direction(self, bond: Bond) -> int:
        return self.directions.get(bond.GetBondDir(), NO_DIRECTION)

    def _loop(self, molecule: Mol) -> None:
        """The bonds of one molecule, asked of RDKit one by one."""
        rows = []
        for bond in molecule.GetBonds():
            kind = self.kinds.get(bond.GetBondType())
            self.other_bonds += kind is None
            known = (SINGLE if kind is None else kind, self._direction(bond))
            one, other = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            rows += [(other, one, *known), (one, other, *known)]
        destination, source, kinds, directions = np.array(sorted(rows), dtype=np.int64).reshape(-1, 4).T
        self.edges.append((np.array([len(rows)]), source, destination, kinds, directions))

    def _flush(self) -> None:
        """The bonds of all molecules whose matrices wait."""
        if not self.widths:
            return
        counts = np.fromiter(map(len, self.entries), dtype=np.int64, count=len(self.entries))
        width = np.repeat(self.widths, counts)
        row, column = np.divmod(np.concatenate(self.entries), width)
        orders = (2 * np.concatenate(self.orders)).astype(np.uint8)
        self.other_bonds += int((~_IS_KNOWN[orders]).sum()) // 2
        directions = np.zeros(len(orders), dtype=np.uint8)
        starts = pointer(counts)
        for molecule, one, other, direction in self.directed:
            wide = self.widths[molecule]
            both = np.searchsorted(self.entries[molecule], [one * wide + other, other * wide + one])
            directions[starts[molecule] + both] = direction
        self.edges.append((counts, column, row, _BOND_CODES[orders], directions))
        self.widths, self.entries, self.orders, self.directed = [], [], [], []

    def finish(self, kept: NDArray[np.int64], rejected: list[tuple[int, str]]) -> Molecules:
        """Everything laid end to end."""
        self._read_texts()
        self._flush()
        none = np.zeros(0, dtype=np.int64)
        counts, source, destination, kinds, directions = (
            np.concatenate(parts) for parts in zip((none,) * 5, *self.edges, strict=True)
        )
        tags = np.zeros(self.atoms, dtype=np.uint8)
        if self.chiral:
            places, codes = zip(*self.chiral, strict=True)
            tags[list(places)] = codes
        return Molecules(
            kept=kept,
            rejected=rejected,
            node_counts=np.array(self.sizes, dtype=np.int64),
            edge_counts=counts,
            source=source,
            destination=destination,
            atoms=np.stack([np.concatenate([tags[:0], *self.types]), tags], axis=1),
            bonds=np.stack([kinds, directions], axis=1).astype(np.uint8),
            other_bonds=self.other_bonds,
        )
