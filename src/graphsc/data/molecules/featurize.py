"""SMILES strings to flat arrays of atoms and bonds.

Atoms have a type, a chirality, a charge and a number of hydrogens, bonds a type and a direction. Hu et al.
(2020) have the first two of atoms and those of bonds. Asking RDKit for each atom and bond is slow, so most
molecules take three short cuts:

- Atom types and charges are read from the SMILES text, in which the atoms are tokens in the order of the
  molecule (`C`, `Cl`, `[nH]`, `[C@@H]`). RDKit is asked for each distinct token once. Where the number of
  tokens is not the number of atoms (hydrogens that RDKit removes, names after a space), a loop over the atoms
  is used.
- The hydrogens of an atom in brackets are part of its token. Those of others fill up its valence, as SMILES
  defines it. Where that is not enough (a nitro group written with five bonds at the nitrogen, a ring written
  with single and double bonds that RDKit makes aromatic), a loop over the atoms is used.
- Bonds come from RDKit's matrix of bond orders, whose nonzero entries, row by row, are the edges sorted by
  (destination, source). Where the matrix is incomplete (dative bonds have an order in one direction only,
  unspecified bonds have none), a loop over the bonds is used.
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
from graphsc.data.molecules.guard import ParserGuard, is_suspicious
from graphsc.data.molecules.rejected import reason_of, refuse_text

if TYPE_CHECKING:
    from rdkit.Chem import Bond, Mol


# The columns are the same for every source, so that all collections of molecules share one feature scheme
# and a model trained on one can embed the other.
_ELEMENTS = (
    "H He Li Be B C N O F Ne Na Mg Al Si P S Cl Ar K Ca Sc Ti V Cr Mn Fe Co Ni Cu Zn Ga Ge As Se Br Kr "
    "Rb Sr Y Zr Nb Mo Tc Ru Rh Pd Ag Cd In Sn Sb Te I Xe Cs Ba La Ce Pr Nd Pm Sm Eu Gd Tb Dy Ho Er Tm Yb "
    "Lu Hf Ta W Re Os Ir Pt Au Hg Tl Pb Bi Po At Rn Fr Ra Ac Th Pa U Np Pu Am Cm Bk Cf Es Fm Md No Lr Rf "
    "Db Sg Bh Hs Mt Ds Rg Cn Nh Fl Mc Lv Ts Og"
)
_SYMBOLS = _ELEMENTS.split()

# Code = atomic number - 1. The published encoder has 120 rows: the elements, one that it leaves unused, which
# is the dummy atom `*` (atomic number 0) here, and that of masked atoms.
DUMMY = len(_SYMBOLS)
ATOM = Column("atom", DUMMY + 2, (*_SYMBOLS, "*", HIDDEN))

# Codes 0 to 2 are RDKit's; allenes, square planes and so on are `other`.
OTHER_CHIRALITY = 3
CHIRALITY = Column("chirality", 4, ("unspecified", "clockwise", "counterclockwise", "other"))

# The first code is the most frequent one, which a masked atom has too.
CHARGE = Column("charge", 6, ("0", "+1", "-1", "+2", "-2", "other"))
OTHER_CHARGE = 5
_CHARGE_CODES = {0: 0, 1: 1, -1: 2, 2: 3, -2: 4}
# On an atom, without those that are atoms of their own; the last code stands for more as well.
MOST_HYDROGENS = 4
HYDROGENS = Column("hydrogens", MOST_HYDROGENS + 1, ("0", "1", "2", "3", "4"))

ATOM_COLUMNS = (ATOM, CHIRALITY, CHARGE, HYDROGENS)
PUBLISHED_ATOM_COLUMNS = (ATOM, CHIRALITY)  # of Hu et al.

# Other bonds (dative, quadruple, unspecified) are read as single and counted.
SINGLE, DOUBLE, TRIPLE, AROMATIC = range(4)
BOND = Column("bond", 4, ("single", "double", "triple", "aromatic"))

# Direction of a single bond next to a double bond; wedges of drawings count as none.
NO_DIRECTION, UP, DOWN = range(3)
DIRECTION = Column("direction", 3, ("none", "up", "down"))


BREAK = "\n"  # between the texts of several molecules
TOKEN = re.compile(r"\[[^\]\n]*\]|Br|Cl|[A-Za-z*\n]")
# What a token says of its atom, as one number: type + 256 * charge + 65,536 * hydrogens.
AT_BREAK, UNKNOWN = -1, -2
IMPLICIT, AROMATIC_IMPLICIT = 254, 255  # hydrogens that fill up the valence of a capital or a small letter
MAX_TOKENS = 100_000  # in the cache; atom map numbers make any number of different tokens

MAX_ATOMS = 1_000
MAX_LENGTH = 20_000  # characters of a SMILES string
MATRIX_LIMIT = 200  # atoms; a larger matrix costs more than a loop over bonds

# Twice the bond order (aromatic is 1.5) to bond code; all other orders are read as single.
_OF_ORDER = {2: SINGLE, 3: AROMATIC, 4: DOUBLE, 6: TRIPLE}
_BOND_CODES = np.array([_OF_ORDER.get(order, SINGLE) for order in range(256)], dtype=np.uint8)
_IS_KNOWN = np.array([order in _OF_ORDER for order in range(256)])

# The valences that hydrogens fill up, by SMILES: the smallest one that is not below the bonds of the atom.
_VALENCES = {"B": (3,), "C": (4,), "N": (3,), "O": (2,), "P": (3, 5), "S": (2, 4, 6),
             "F": (1,), "Cl": (1,), "Br": (1,), "I": (1,)}  # fmt: skip
_MOST_BONDS = 8  # an atom without brackets that has more is left to RDKit
_CARBON, _PHOSPHORUS = (_SYMBOLS.index(symbol) for symbol in ("C", "P"))
_ORDERS = np.array([1.0, 2.0, 3.0, 1.5])  # of bond codes


def _hydrogen_table() -> NDArray[np.int64]:
    """Hydrogens by atom code and sum of bond orders; -1 where the bonds exceed every valence."""
    table = np.full((len(ATOM.values or ()), _MOST_BONDS + 1), -1, dtype=np.int64)
    for symbol, valences in _VALENCES.items():
        for total in range(max(valences) + 1):
            table[_SYMBOLS.index(symbol), total] = min(v for v in valences if v >= total) - total
    table[DUMMY] = 0
    return table


_HYDROGENS = _hydrogen_table()


@dataclass(frozen=True)
class Molecules:
    """Molecules stored end to end; every input is either in `kept` or in `rejected`."""

    kept: NDArray[np.int64]  # positions in the input
    rejected: list[tuple[int, str]]  # position and reason
    node_counts: NDArray[np.int64]
    edge_counts: NDArray[np.int64]
    source: NDArray[np.int64]
    destination: NDArray[np.int64]
    atoms: NDArray[np.uint8]  # atoms x (type, chirality, charge, hydrogens)
    bonds: NDArray[np.uint8]  # edges x (type, direction); each bond in both directions
    other_bonds: int  # bonds of other types, read as single


def featurize(
    smiles: Sequence[str], *, max_atoms: int = MAX_ATOMS, max_length: int = MAX_LENGTH
) -> Molecules:
    """Parse and featurize SMILES strings; invalid ones are rejected with a reason and never raise."""
    chem = require("rdkit.Chem")
    featurizer = _Featurizer(chem)
    kept: list[int] = []
    rejected: list[tuple[int, str]] = []
    # BlockLogs silences RDKit here only.
    with require("rdkit.rdBase").BlockLogs(), ParserGuard() as guard:
        for position, text in enumerate(smiles):
            reason = refuse_text(text, max_length)
            if reason is None and is_suspicious(text):
                reason = guard.refuse(text, max_atoms)
            reason = reason or featurizer.add(text, max_atoms)
            if reason is None:
                kept.append(position)
            else:
                rejected.append((position, reason))
        return featurizer.finish(np.array(kept, dtype=np.int64), rejected)


def atom_code(number: int) -> int:
    """Atom code of an atomic number; 0 is the dummy atom."""
    return number - 1 if 0 < number <= DUMMY else DUMMY


def charge_code(charge: int) -> int:
    """Charge code of a formal charge."""
    return _CHARGE_CODES.get(charge, OTHER_CHARGE)


def charge_of(code: int) -> int:
    """The formal charge that a code stands for; 0 for `other`."""
    return next((charge for charge, known in _CHARGE_CODES.items() if known == code), 0)


class TokenCodes(dict[str, int]):
    """Cache of token to what it says of its atom."""

    def __init__(self, chem: ModuleType) -> None:
        super().__init__({BREAK: AT_BREAK})
        self._chem = chem

    def __missing__(self, token: str) -> int:
        if len(self) >= MAX_TOKENS:
            self.clear()
            self[BREAK] = AT_BREAK
        molecule = self._chem.MolFromSmiles(token, sanitize=False)
        code = UNKNOWN
        if molecule is not None and molecule.GetNumAtoms() == 1:
            atom = molecule.GetAtomWithIdx(0)
            hydrogens = AROMATIC_IMPLICIT if token.islower() else IMPLICIT
            if token.startswith("["):
                hydrogens = min(atom.GetNumExplicitHs(), MOST_HYDROGENS)
            code = atom_code(atom.GetAtomicNum()) | charge_code(atom.GetFormalCharge()) << 8 | hydrogens << 16
        self[token] = code
        return code


class _Featurizer:
    """Collects molecules one by one and converts them to arrays in batches."""

    def __init__(self, chem: ModuleType) -> None:
        self.chem = chem
        self.parse: Callable[[str], Mol | None] = chem.MolFromSmiles
        self.matrix_of = require("rdkit.Chem.rdmolops").GetAdjacencyMatrix
        self.token_codes = TokenCodes(chem)
        bond, way = chem.BondType, chem.BondDir
        self.bond_types = {
            bond.SINGLE: SINGLE,
            bond.DOUBLE: DOUBLE,
            bond.TRIPLE: TRIPLE,
            bond.AROMATIC: AROMATIC,
        }
        self.directions = {way.ENDUPRIGHT: UP, way.ENDDOWNRIGHT: DOWN}
        self.sizes: list[int] = []
        self.texts: list[str] = []  # of molecules whose atom types are pending
        self.all_texts: list[str] = []
        self.types: list[NDArray[np.int64]] = []  # what tokens say, see `IMPLICIT`
        self.atoms = 0  # whose types are read
        self.added = 0  # atoms of all molecules, with those whose types are pending
        self.chiral: list[tuple[int, int]] = []  # position among all atoms, code
        self.widths: list[int] = []  # of the pending bond matrices
        self.entries: list[NDArray[np.int64]] = []  # flat positions of their nonzero entries
        self.orders: list[NDArray[np.float64]] = []  # the bond orders there
        self.directed: list[tuple[int, int, int, int]] = []  # pending molecule, atom, atom, direction
        self.edges: list[tuple[NDArray[np.integer], ...]] = []  # counts, source, destination, type, direction
        self.other_bonds = 0

    def add(self, text: str, max_atoms: int) -> str | None:
        """Add one molecule, or return the reason why it is rejected."""
        try:
            molecule = self.parse(text)
        except Exception as error:  # an RDKit error on one string must not stop the others
            return f"RDKit: {type(error).__name__}: {error}"[:200]
        if molecule is None:
            return reason_of(self.chem, text)
        atoms: int = molecule.GetNumAtoms()
        if not 0 < atoms <= max_atoms:
            return f"{atoms:,} atoms, at most {max_atoms:,} are taken" if atoms else "no atoms"
        complete = self._add_bonds(molecule, text, atoms)
        plain = complete and " " not in text and text.isprintable()
        if plain and ("@" not in text or self._add_marked(molecule, text)):
            self.texts.append(text)
        else:
            self._read_texts()
            self._add_atoms(molecule)
        self.sizes.append(atoms)
        self.all_texts.append(text)
        self.added += atoms
        return None

    def _read_texts(self) -> None:
        """Read the atom types of all pending texts."""
        texts, self.texts = self.texts, []
        if not texts:
            return
        tokens = TOKEN.findall(BREAK.join([*texts, ""]))
        codes = np.fromiter(map(self.token_codes.__getitem__, tokens), dtype=np.int64, count=len(tokens))
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

    def _add_marked(self, molecule: Mol, text: str) -> bool:
        """Add the chiral tags of the atoms marked with `@`, if the tokens of the text are the atoms."""
        tokens = TOKEN.findall(text)
        if len(tokens) != molecule.GetNumAtoms():
            return False
        at = molecule.GetAtomWithIdx
        tags = [(place, int(at(place).GetChiralTag())) for place, token in enumerate(tokens) if "@" in token]
        self._add_tags(self.added, tags)
        return True

    def _add_types(self, codes: NDArray[np.int64]) -> None:
        self.types.append(codes)
        self.atoms += len(codes)

    def _add_atoms(self, molecule: Mol) -> None:
        """Add the atoms of one molecule by a loop over RDKit's atoms."""
        atoms = list(molecule.GetAtoms())
        tags = [(place, int(atom.GetChiralTag())) for place, atom in enumerate(atoms)]
        self._add_tags(self.atoms, tags)
        self._add_types(self._read_atoms(molecule))

    def _read_atoms(self, molecule: Mol) -> NDArray[np.int64]:
        """What tokens would say, asked of RDKit atom by atom."""
        codes = [
            atom_code(atom.GetAtomicNum())
            | charge_code(atom.GetFormalCharge()) << 8
            | min(atom.GetTotalNumHs(), MOST_HYDROGENS) << 16
            for atom in molecule.GetAtoms()
        ]
        return np.array(codes, dtype=np.int64)

    def _add_tags(self, first: int, tags: list[tuple[int, int]]) -> None:
        self.chiral += [(first + place, min(tag, OTHER_CHIRALITY)) for place, tag in tags if tag]

    def _add_bonds(self, molecule: Mol, text: str, atoms: int) -> bool:
        """Add the bonds of one molecule; whether they are all of usual types."""
        # Keep only the nonzero entries: whole matrices would push RDKit's data out of the CPU cache.
        flat = self.matrix_of(molecule, useBO=True).ravel() if atoms <= MATRIX_LIMIT else None
        entries = None if flat is None else flat.nonzero()[0]
        # A complete matrix has every bond in both halves; sanitizing may make dative bonds, which have not.
        if flat is None or entries is None or len(entries) != 2 * molecule.GetNumBonds():
            self._read_matrices()
            self._loop_over_bonds(molecule)
            return False
        if "/" in text or "\\" in text or " " in text:
            self.directed += [
                (len(self.widths), bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), direction)
                for bond in molecule.GetBonds()
                if (direction := self._direction(bond))
            ]
        self.widths.append(atoms)
        self.entries.append(entries)
        self.orders.append(flat[entries])
        return True

    def _direction(self, bond: Bond) -> int:
        return self.directions.get(bond.GetBondDir(), NO_DIRECTION)

    def _loop_over_bonds(self, molecule: Mol) -> None:
        """Add the bonds of one molecule by a loop over RDKit's bonds."""
        rows = []
        for bond in molecule.GetBonds():
            bond_type = self.bond_types.get(bond.GetBondType())
            self.other_bonds += bond_type is None
            features = (SINGLE if bond_type is None else bond_type, self._direction(bond))
            begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            rows += [(end, begin, *features), (begin, end, *features)]
        destination, source, types, directions = np.array(sorted(rows), dtype=np.int64).reshape(-1, 4).T
        self.edges.append((np.array([len(rows)]), source, destination, types, directions))

    def _read_matrices(self) -> None:
        """Add the bonds of all pending matrices."""
        if not self.widths:
            return
        counts = np.fromiter(map(len, self.entries), dtype=np.int64, count=len(self.entries))
        width = np.repeat(self.widths, counts)
        row, column = np.divmod(np.concatenate(self.entries), width)
        orders = (2 * np.concatenate(self.orders)).astype(np.uint8)
        self.other_bonds += int((~_IS_KNOWN[orders]).sum()) // 2
        directions = np.zeros(len(orders), dtype=np.uint8)
        starts = pointer(counts)
        for molecule, begin, end, direction in self.directed:
            atoms = self.widths[molecule]
            both = np.searchsorted(self.entries[molecule], [begin * atoms + end, end * atoms + begin])
            directions[starts[molecule] + both] = direction
        self.edges.append((counts, column, row, _BOND_CODES[orders], directions))
        self.widths, self.entries, self.orders, self.directed = [], [], [], []

    def finish(self, kept: NDArray[np.int64], rejected: list[tuple[int, str]]) -> Molecules:
        """All molecules stored end to end."""
        self._read_texts()
        self._read_matrices()
        empty = np.zeros(0, dtype=np.int64)
        counts, source, destination, types, directions = (
            np.concatenate(parts) for parts in zip((empty,) * 5, *self.edges, strict=True)
        )
        tags = np.zeros(self.atoms, dtype=np.uint8)
        if self.chiral:
            places, codes = zip(*self.chiral, strict=True)
            tags[list(places)] = codes
        said = self._fill_hydrogens(counts, destination, types)
        return Molecules(
            kept=kept,
            rejected=rejected,
            node_counts=np.array(self.sizes, dtype=np.int64),
            edge_counts=counts,
            source=source,
            destination=destination,
            atoms=np.stack([said & 255, tags, said >> 8 & 255, said >> 16], axis=1).astype(np.uint8),
            bonds=np.stack([types, directions], axis=1).astype(np.uint8),
            other_bonds=self.other_bonds,
        )

    def _fill_hydrogens(
        self,
        edge_counts: NDArray[np.int64],
        destination: NDArray[np.integer],
        bonds: NDArray[np.integer],
    ) -> NDArray[np.int64]:
        """What tokens say of all atoms, with implicit hydrogens as numbers."""
        said = np.concatenate([np.zeros(0, dtype=np.int64), *self.types])
        starts = pointer(np.array(self.sizes, dtype=np.int64))
        atom = destination + np.repeat(starts[:-1], edge_counts)
        total = np.bincount(atom, _ORDERS[bonds], minlength=len(said))
        aromatic = np.bincount(atom[bonds == AROMATIC], minlength=len(said)) > 0
        kind, hydrogens = said & 255, said >> 16
        implicit, small = hydrogens >= IMPLICIT, hydrogens == AROMATIC_IMPLICIT
        # Half an order is left over where an atom has one or three aromatic bonds; the valence is then full.
        bonds_made = np.minimum(np.ceil(total).astype(np.int64), _MOST_BONDS)
        filled = _HYDROGENS[kind, bonds_made]
        # A carbon in an aromatic ring has bonds for four at most, with or without one to hydrogen. A small
        # letter for another element has no hydrogens.
        filled = np.where(aromatic & (kind == _CARBON), np.maximum(filled, 0), filled)
        filled = np.where(small & (kind != _CARBON), 0, filled)
        degree = np.bincount(atom, minlength=len(said))
        unusual = (
            (filled < 0)
            | (aromatic & ~small & (kind != _CARBON))
            | ((kind == _PHOSPHORUS) & (bonds_made >= 5) & (degree < 4))
        )
        said = np.where(implicit, said & 0xFFFF | np.minimum(filled, MOST_HYDROGENS) << 16, said)
        # RDKit may have changed charges and bonds of these, and of neutral atoms in brackets with many bonds.
        many = (said >> 8 & 255 == 0) & (filled < 0) & (_HYDROGENS[kind, 0] >= 0)
        odd = np.flatnonzero((implicit & unusual) | many)
        for place in np.unique(np.searchsorted(starts, odd, "right") - 1).tolist():
            molecule = self.chem.MolFromSmiles(self.all_texts[place])
            said[starts[place] : starts[place + 1]] = self._read_atoms(molecule)
        return said
