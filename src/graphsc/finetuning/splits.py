"""Splits of molecules into training, validation and test sets: by scaffold or at random."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DamagedFileError, DataError
from graphsc.core.files import read_rows, write_rows
from graphsc.core.random import numpy_generator
from graphsc.core.registry import require

SplitKind = Literal["scaffold", "random-scaffold", "random"]
Parts = NDArray[np.int64]  # per molecule: TRAIN, VALID or TEST

TRAIN, VALID, TEST = range(3)
NAMES = ("train", "valid", "test")
SHARES = (0.8, 0.1, 0.1)
DESCRIPTIONS = {  # stored with every result
    "scaffold": "molecules that share a scaffold are never on two sides, the largest scaffolds train; "
    "it is deterministic",
    "random-scaffold": "molecules that share a scaffold are never on two sides, scaffolds drawn at random",
    "random": "molecules drawn at random",
}


def split_molecules(smiles: Sequence[str], how: SplitKind = "scaffold", seed: int = 0) -> Parts:
    """Split molecules 80/10/10: TRAIN, VALID or TEST per molecule; the scaffold split ignores the seed."""
    if how not in DESCRIPTIONS:
        raise ConfigError(f"unknown split {how!r}", hint=f"use {', '.join(DESCRIPTIONS)}")
    if len(smiles) < 3:
        raise DataError(f"{len(smiles)} molecules cannot be split in three", hint="label some more")
    if how == "random":
        order = numpy_generator(seed, "random split").permutation(len(smiles))
        parts = np.full(len(smiles), TRAIN, dtype=np.int64)
        first, second = math.floor(SHARES[0] * len(smiles)), math.floor((SHARES[0] + SHARES[1]) * len(smiles))
        parts[order[first:second]], parts[order[second:]] = VALID, TEST
        return parts
    groups = groups_of(scaffolds_of(smiles))
    if how == "scaffold":
        return _largest_first(groups, len(smiles))
    return _random_groups(groups, len(smiles), seed)


def _largest_first(groups: Sequence[Sequence[int]], molecules: int) -> Parts:
    """Put each group, largest first, into train if it fits, else into valid if it fits, else into test."""
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


def _random_groups(groups: Sequence[Sequence[int]], molecules: int, seed: int) -> Parts:
    """Put groups in random order into valid if they fit, else into test if they fit, else into train."""
    parts = np.full(molecules, TRAIN, dtype=np.int64)
    free = {VALID: math.floor(SHARES[1] * molecules), TEST: math.floor(SHARES[2] * molecules)}
    for index in numpy_generator(seed, "random scaffold split").permutation(len(groups)):
        group = groups[index]
        for part in (VALID, TEST):
            if len(group) <= free[part]:
                parts[group] = part
                free[part] -= len(group)
                break
    return parts


def scaffolds_of(smiles: Sequence[str]) -> list[str]:
    """Bemis-Murcko scaffolds as canonical SMILES with chirality; empty for a molecule without rings.

    RDKit first writes each molecule anew, so that the notation of the source makes no difference.
    """
    chem, murcko = require("rdkit.Chem"), require("rdkit.Chem.Scaffolds.MurckoScaffold")
    scaffolds = []
    with require("rdkit.rdBase").BlockLogs():
        for text in smiles:
            molecule = chem.MolFromSmiles(text)
            canonical = None if molecule is None else chem.MolFromSmiles(chem.MolToSmiles(molecule))
            scaffolds.append(
                "" if canonical is None else murcko.MurckoScaffoldSmiles(mol=canonical, includeChirality=True)
            )
    return scaffolds


def groups_of(scaffolds: Sequence[str]) -> list[list[int]]:
    """Positions by scaffold, the largest group first; equal ones by their first position, descending."""
    groups: dict[str, list[int]] = {}
    for position, scaffold in enumerate(scaffolds):
        groups.setdefault(scaffold, []).append(position)
    return sorted(groups.values(), key=lambda group: (len(group), group[0]), reverse=True)


def write_split(path: Path, rows: NDArray[np.int64], parts: Parts) -> None:
    """Write a CSV file with the part of each row of the source."""
    pairs = zip(rows.tolist(), parts.tolist(), strict=True)
    write_rows(path, ["row", "part"], [[str(row), NAMES[part]] for row, part in pairs])


def read_split(path: Path, rows: NDArray[np.int64]) -> Parts:
    """Read a split, checking that it is one of these rows of the source."""
    try:
        stored = [
            (int(row["row"]), NAMES.index(row["part"])) for row in read_rows(path, "the rows of a split")
        ]
    except (KeyError, ValueError) as error:
        raise DamagedFileError("not a split", where=str(path)) from error
    if [row for row, _ in stored] != rows.tolist():
        raise DamagedFileError("this split is of other rows", where=str(path), hint="use another run folder")
    return np.array([part for _, part in stored], dtype=np.int64)
