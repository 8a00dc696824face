"""Make `data/molecules/test_keys.txt.xz`: what tells a molecule of a downstream test set.

    python -m graphsc.experiments.test_keys FILE

A line per molecule of the scaffold-split test parts of the eight MoleculeNet sets: the first block of its
InChIKey, and the hash of its skeleton. Pre-training leaves these molecules out (`data/molecules/union.py`).
"""

from __future__ import annotations

import lzma
import sys
from pathlib import Path

import numpy as np

from graphsc.core.files import write_atomic
from graphsc.core.registry import require
from graphsc.data.molecules.union import hash_graphs, inchi_block
from graphsc.data.readers.smiles import read_smiles
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.splits import TEST, split_molecules

SETS = ("BBBP", "Tox21", "ToxCast", "SIDER", "ClinTox", "MUV", "HIV", "BACE")


def lines_of(name: str) -> set[str]:
    """The lines of the test part of one set."""
    molecules = read_dataset(name)
    rows = np.flatnonzero(split_molecules(molecules.smiles) == TEST)
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        parsed = [chem.MolFromSmiles(molecules.smiles[row]) for row in rows.tolist()]
        blocks = [inchi_block(chem, molecule) for molecule in parsed]
        # Isotopes of hydrogen are atoms in SMILES, and not in a skeleton.
        bare = [chem.MolToSmiles(chem.RemoveAllHs(molecule)) for molecule in parsed]
    _, skeletons, _ = hash_graphs(read_smiles(bare, strict=True))
    pairs = zip(blocks, skeletons.view(np.uint64).tolist(), strict=True)
    return {f"{block} {skeleton:016x}" for block, skeleton in pairs if block}


def main(path: Path) -> None:
    """Write the file."""
    lines: set[str] = set()
    for name in SETS:
        own = lines_of(name)
        lines |= own
        sys.stderr.write(f"{name}: {len(own):,} test molecules, {len(lines):,} in all\n")
    write_atomic(path, lzma.compress("\n".join(sorted(lines)).encode("ascii")))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
