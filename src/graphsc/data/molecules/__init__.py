"""Molecules: SMILES strings to graphs with the features of Hu et al. (2020)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.data.molecules.conversion import Converted as Converted
    from graphsc.data.molecules.conversion import MoleculeTable as MoleculeTable
    from graphsc.data.molecules.conversion import convert_smiles as convert_smiles
    from graphsc.data.molecules.conversion import read_molecules as read_molecules
    from graphsc.data.molecules.rejected import Rejected as Rejected

__all__ = export_lazily(
    __name__,
    {
        "conversion": "Converted MoleculeTable convert_smiles read_molecules",
        "rejected": "Rejected",
    },
)
