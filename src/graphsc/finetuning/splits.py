"""Which molecules train, which choose, which judge."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DamagedFileError, DataError
from graphsc.core.files import write_atomic
from graphsc.core.random import numpy_generator
from graphsc.core.registry import require

# Bemis-Murcko scaffolds, and the groups of molecules that share one.


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


How = Literal["scaffold", "random-scaffold", "random"]
Parts = NDArray[np.int64]  # 0, 1 or 2 for each molecule

TRAIN, VALID, TEST = range(3)
NAMES = ("train", "valid", "test")
SHARES = (0.8, 0.1, 0.1)
WORDS = {
    "scaffold": "molecules that share a scaffold are never on two sides, the largest scaffolds train, "
    "no chance involved",
    "random-scaffold": "molecules that share a scaffold are never on two sides, scaffolds drawn at random",
    "random": "molecules drawn at random",
}


def split_molecules(smiles: Sequence[str], how: How = "scaffold", seed: int = 0) -> Parts:
    """80 % to train, 10 % to choose by, 10 % to judge by; `seed` says nothing to the scaffold split."""
    if how not in WORDS:
        raise ConfigError(f"unknown split {how!r}", hint=f"use {', '.join(WORDS)}")
    if len(smiles) < 3:
        raise DataError(f"{len(smiles)} molecules cannot be split in three", hint="label some more")
    if how == "random":
        order = numpy_generator(seed, "random split").permutation(len(smiles))
        parts = np.full(len(smiles), TRAIN, dtype=np.int64)
        first, second = math.floor(SHARES[0] * len(smiles)), math.floor((SHARES[0] + SHARES[1]) * len(smiles))
        parts[order[first:second]], parts[order[second:]] = VALID, TEST
        return parts
    groups = groups_of(scaffolds_of(smiles))
    return _by_size(groups, len(smiles)) if how == "scaffold" else _drawn(groups, len(smiles), seed)


def _by_size(groups: Sequence[Sequence[int]], molecules: int) -> Parts:
    """Each group, largest first, goes to train while it fits, else to valid while it fits, else to test."""
    parts = np.full(molecules, TRAIN, dtype=np.int64)
    train, valid = 0, 0
    for group in groups:
        if train + len(group) <= SHARES[0] * molecules:
            train += len(group)
        elif train + valid + len(group) <= (SHARES[0] + SHARES[1]) * molecules:
            parts[group] = VALID
            valid += len(group)
        else:
            parts[group] = TEST
    return parts


def _drawn(groups: Sequence[Sequence[int]], molecules: int, seed: int) -> Parts:
    """Groups in random order fill valid, then test, as far as each fits; the rest trains."""
    parts = np.full(molecules, TRAIN, dtype=np.int64)
    room = {VALID: math.floor(SHARES[1] * molecules), TEST: math.floor(SHARES[2] * molecules)}
    for index in numpy_generator(seed, "random scaffold split").permutation(len(groups)):
        group = groups[index]
        for part in (VALID, TEST):
            if len(group) <= room[part]:
                parts[group] = part
                room[part] -= len(group)
                break
    return parts


def write_split(path: Path, rows: NDArray[np.int64], parts: Parts) -> None:
    """A table of the source's rows and their parts."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["row", "part"])
    writer.writerows((row, NAMES[part]) for row, part in zip(rows.tolist(), parts.tolist(), strict=True))
    write_atomic(path, text.getvalue())


def read_split(path: Path, rows: NDArray[np.int64]) -> Parts:
    """What `write_split` wrote for these rows."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            found = [(int(row["row"]), NAMES.index(row["part"])) for row in csv.DictReader(file)]
    except (OSError, KeyError, ValueError, csv.Error) as error:
        raise DamagedFileError("not a split", where=str(path)) from error
    if [row for row, _ in found] != rows.tolist():
        raise DamagedFileError("this split is of other rows", where=str(path), hint="use another run folder")
    return np.array([part for _, part in found], dtype=np.int64)
