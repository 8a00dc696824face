"""The atoms of a SMILES string read from its text, because asking RDKit for each atom is slow.

Atoms of a molecule stand in the order of its text, each as one token: `C`, `Cl`, `[nH]`, `[C@@H]`. What a
token stands for is asked of RDKit once and remembered. Texts this does not hold for (hydrogens that
RDKit removes, names and extensions behind a space) have another number of tokens than atoms, and are left
to a loop over the atoms.
"""

from __future__ import annotations

import re
from types import ModuleType

from graphsc.data.molecules.columns import DUMMY

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
