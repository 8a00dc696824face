"""Numbers that RDKit computes from a molecule alone, as label-free targets of pre-training.

The selection leaves out slow descriptors: with it a molecule takes less than half a millisecond. It has
lipophilicity, refractivity, surface areas by partial charge, by refractivity and by lipophilicity, charges,
shape, connectivity, and counts of atoms, bonds, rings and polar groups (molecular quantum numbers).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.files import file_lock
from graphsc.core.registry import require

if TYPE_CHECKING:
    from rdkit.Chem import Mol

_SINGLE = (
    "CalcExactMolWt", "CalcTPSA", "CalcLabuteASA", "CalcFractionCSP3", "CalcHallKierAlpha", "CalcKappa1",
    "CalcKappa2", "CalcKappa3", "CalcChi0v", "CalcChi1v", "CalcChi2v", "CalcNumAromaticRings",
    "CalcNumHeterocycles", "CalcNumAmideBonds", "CalcNumAtomStereoCenters",
)  # fmt: skip
_BLOCKS = {"PEOE_VSA": 14, "SMR_VSA": 10, "SlogP_VSA": 12, "MQN": 42}
DESCRIPTORS = (
    "MolLogP", "MolMR", "MaxPartialCharge", "MinPartialCharge",
    *(name.removeprefix("Calc") for name in _SINGLE),
    *(f"{block}{number}" for block, count in _BLOCKS.items() for number in range(1, count + 1)),
)  # fmt: skip
CHUNK = 2_000  # molecules at once

Progress = Callable[[int, int], None]  # molecules done, molecules in total


def molecule_descriptors(smiles: Iterable[str]) -> NDArray[np.float32]:
    """Molecules x `DESCRIPTORS`; NaN where one cannot be computed, and for text that is no molecule."""
    chem, blocked = require("rdkit.Chem"), require("rdkit.rdBase").BlockLogs
    with blocked():
        rows = [_of_molecule(chem.MolFromSmiles(text)) for text in smiles]
    values = np.array(rows, dtype=np.float64).reshape(-1, len(DESCRIPTORS))
    usable = np.isfinite(values) & (np.abs(values) < float(np.finfo(np.float32).max))
    return np.where(usable, values, np.nan).astype(np.float32)


def _of_molecule(molecule: Mol | None) -> list[float]:
    if molecule is None:
        return [np.nan] * len(DESCRIPTORS)
    rdkit = require("rdkit.Chem.rdMolDescriptors")
    values = [*rdkit.CalcCrippenDescriptors(molecule)]
    areas = rdkit.PEOE_VSA_(molecule)  # leaves partial charges on the atoms
    charges = [atom.GetDoubleProp("_GasteigerCharge") for atom in molecule.GetAtoms()] or [np.nan]
    values += [max(charges), min(charges)]
    values += [getattr(rdkit, name)(molecule) for name in _SINGLE]
    return [*values, *areas, *rdkit.SMR_VSA_(molecule), *rdkit.SlogP_VSA_(molecule), *rdkit.MQNs_(molecule)]


def stored_descriptors(
    path: Path,
    total: int,
    rows: NDArray[np.int64],
    texts: Callable[[NDArray[np.int64]], Iterator[str]],
    *,
    progress: Progress = lambda done, total: None,
) -> NDArray[np.float32]:
    """Descriptors of all molecules of a source in a memory-mapped file, computed for these rows at least.

    Rows computed by an earlier call are not computed again, also if it was interrupted. The file is sparse:
    rows that no call asked for take no space. They are zero.

    Args:
        path: The file, an array of total x (1 + descriptors) whose first column is 1 for a computed row.
        total: Molecules of the source.
        rows: Positions of molecules, ascending.
        texts: Gives the SMILES of the molecules at some ascending positions.
        progress: Called after each chunk.

    Returns:
        Total x descriptors, read-only.
    """
    shape = (total, 1 + len(DESCRIPTORS))
    with file_lock(path.with_suffix(".lock")):
        if not path.exists():
            making = path.with_suffix(".building")
            np.lib.format.open_memmap(making, mode="w+", dtype=np.float32, shape=shape).flush()
            making.replace(path)
        values = np.lib.format.open_memmap(path, mode="r+")
        if values.shape != shape or values.dtype != np.float32:
            raise DataError(
                "this file has descriptors of other molecules", where=str(path), hint="remove the file"
            )
        missing = rows[values[rows, 0] != 1]
        smiles = texts(missing)
        for start in range(0, len(missing), CHUNK):
            here = missing[start : start + CHUNK]
            found = molecule_descriptors(next(smiles) for _ in here)
            values[here, 1:] = found
            values.flush()
            values[here, 0] = 1
            progress(start + len(here), len(missing))
        values.flush()
    stored: NDArray[np.float32] = np.lib.format.open_memmap(path, mode="r")[:, 1:]
    return stored
