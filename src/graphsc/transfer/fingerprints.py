"""Extended-connectivity fingerprints: what chemists describe molecules by when they train nothing."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from graphsc.core.extras import require

RADIUS, BITS = 2, 2048


def ecfp(smiles: Sequence[str], radius: int = RADIUS, bits: int = BITS) -> NDArray[np.uint8]:
    """Molecules x bits: which circular neighbourhoods up to this radius occur; zeros without a molecule."""
    chem, generators = require("rdkit.Chem"), require("rdkit.Chem.rdFingerprintGenerator")
    generator = generators.GetMorganGenerator(radius=radius, fpSize=bits)
    found = np.zeros((len(smiles), bits), dtype=np.uint8)
    with require("rdkit.rdBase").BlockLogs():
        for place, text in enumerate(smiles):
            molecule = chem.MolFromSmiles(text)
            if molecule is not None:
                found[place] = generator.GetFingerprintAsNumPy(molecule)
    return found
