"""Bemis-Murcko scaffolds, and the groups of molecules that share one."""

from __future__ import annotations

from collections.abc import Sequence

from graphsc.core.extras import require


def scaffolds_of(smiles: Sequence[str]) -> list[str]:
    """The ring systems and linkers of each molecule as canonical SMILES, with chirality; empty without rings.

    Molecules are written anew by RDKit first, so that how a source writes them does not decide.
    """
    chem, murcko = require("rdkit.Chem"), require("rdkit.Chem.Scaffolds.MurckoScaffold")
    found = []
    with require("rdkit.rdBase").BlockLogs():
        for text in smiles:
            molecule = chem.MolFromSmiles(text)
            again = None if molecule is None else chem.MolFromSmiles(chem.MolToSmiles(molecule))
            found.append(
                "" if again is None else murcko.MurckoScaffoldSmiles(mol=again, includeChirality=True)
            )
    return found


def groups_of(scaffolds: Sequence[str]) -> list[list[int]]:
    """Positions by scaffold: largest group first, of equal ones that whose first molecule comes last."""
    groups: dict[str, list[int]] = {}
    for position, scaffold in enumerate(scaffolds):
        groups.setdefault(scaffold, []).append(position)
    return sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True)
