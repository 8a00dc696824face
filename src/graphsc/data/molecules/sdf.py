"""Molecules of an SDF file: records of a title, a structure and named values, separated by `$$$$`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import NamedTuple, TextIO

from graphsc.core.registry import require
from graphsc.data.molecules.guard import MAX_RINGS
from graphsc.data.readers.csv import open_text, reading_errors

SUFFIX = ".sdf"
END = "$$$$"
LONGEST_RECORD = 2_000_000  # characters; a structure of 999 atoms has 100,000
MAX_ATOMS = 10_000  # of a structure that is turned into SMILES; the reader's own limit is lower
_NAME = re.compile(r"^>.*<(?P<name>[^>]*)>")


class Record(NamedTuple):
    """One record of a file."""

    line: int  # of its title, from 1
    title: str
    structure: str  # the lines up to `M  END`
    values: dict[str, str]
    problem: str | None = None


def is_sdf(path: Path) -> bool:
    """Whether the name ends in .sdf, possibly followed by .gz or .xz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".xz"):
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] == SUFFIX


def sdf_names(path: Path) -> list[str]:
    """The names of the values that the records have, in order of their first appearance."""
    return list(dict.fromkeys(name for record in records_of(path) for name in record.values))


def records_of(path: Path) -> Iterator[Record]:
    """The records of a file. One that is too long has a problem in the place of its structure."""
    with reading_errors(path), open_text(path, errors="replace") as file:
        for first, lines, too_long in _blocks(file):
            if too_long:
                problem = f"record is longer than {LONGEST_RECORD:,} characters"
                yield Record(first, lines[0].strip(), "", {}, problem)
                continue
            end = next((k + 1 for k, line in enumerate(lines) if line.startswith("M  END")), len(lines))
            structure = "\n".join(lines[:end]) + "\n"
            yield Record(first, lines[0].strip(), structure, _values(lines[end:]))


def _blocks(file: TextIO) -> Iterator[tuple[int, list[str], bool]]:
    """The line number and lines of each record, and whether it was cut off because of its length."""
    lines: list[str] = []
    number, size = 0, 0
    while line := file.readline(LONGEST_RECORD):
        number += 1
        text = line.rstrip("\r\n")
        if text.startswith(END):
            yield (
                number - len(lines) if size <= LONGEST_RECORD else number,
                lines or [""],
                size > LONGEST_RECORD,
            )
            lines, size = [], 0
            continue
        size += len(line)
        if size <= LONGEST_RECORD or not lines:
            lines.append(text[:LONGEST_RECORD])
    if any(text.strip() for text in lines):  # the last record may lack its end
        yield number - len(lines) + 1, lines, size > LONGEST_RECORD


def _values(lines: list[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    name = None
    for line in lines:
        if (found := _NAME.match(line)) is not None:
            name = found["name"].strip()
            values.setdefault(name, "")
        elif not line.strip():
            name = None
        elif name is not None:
            values[name] = f"{values[name]} {line.strip()}".strip()
    return values


def smiles_of(record: Record) -> tuple[str, str | None]:
    """The SMILES of a record, or an empty text and the reason why there is none."""
    if record.problem is not None:
        return "", record.problem
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        try:
            return _smiles(chem, record.structure)
        except (ValueError, RuntimeError) as error:  # RDKit's errors of valence and kekulisation
            return "", " ".join(str(error).split())[:200] or "RDKit cannot read the structure"


def _smiles(chem: ModuleType, structure: str) -> tuple[str, str | None]:
    molecule = chem.MolFromMolBlock(structure, sanitize=False, removeHs=False)
    if molecule is None:
        return "", "not a structure of an SDF file"
    atoms = molecule.GetNumAtoms()
    if not atoms:
        return "", "empty"
    if atoms > MAX_ATOMS:
        return "", f"{atoms:,} atoms, at most {MAX_ATOMS:,} are taken"
    rings = molecule.GetNumBonds() - atoms + len(chem.GetMolFrags(molecule))
    if rings > MAX_RINGS:  # RDKit takes gigabytes to find so many
        return "", f"{rings:,} rings, at most {MAX_RINGS:,} are taken"
    molecule = chem.MolFromMolBlock(structure)
    if molecule is None:
        problems = chem.DetectChemistryProblems(chem.MolFromMolBlock(structure, sanitize=False))
        return "", " ".join(problems[0].Message().split())[:200] if problems else "RDKit cannot read it"
    return chem.MolToSmiles(molecule), None
