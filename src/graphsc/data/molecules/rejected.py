"""Rows that hold no molecule: why, and a file that lists them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.files import write_atomic
from graphsc.core.tables import safe_cell
from graphsc.data.arrays import Strings
from graphsc.data.collection import Ids
from graphsc.data.molecules.rows import Source

SHOWN = 200  # characters of a text or a reason that a list of rejects shows


class Rejected(NamedTuple):
    """A row that was left out."""

    row: int  # as the ids of the molecules count them: from 0, without header and blank lines
    line: int  # of the file, as an editor counts them
    smiles: str  # its beginning
    reason: str
    id: str | None = None  # where the source has ids


def refuse_text(text: str, max_length: int) -> str | None:
    """Why a text need not be shown to RDKit, or None."""
    if not text:
        return "empty"
    if len(text) > max_length:
        return f"{len(text):,} characters, at most {max_length:,} are taken"
    if "\0" in text:
        return "NUL byte"
    return "text is not UTF-8" if "\ufffd" in text else None


def reason_of(chem: ModuleType, text: str) -> str:
    """Why RDKit gave no molecule for this text."""
    loose = chem.MolFromSmiles(text, sanitize=False)
    if loose is None:
        return "not a SMILES string"
    problems = chem.DetectChemistryProblems(loose)
    said = " ".join(problems[0].Message().split()) if problems else "RDKit cannot make sense of it"
    return said[:SHOWN]


def write_rejected(path: Path, rejected: Iterable[Rejected]) -> None:
    """A table of row, line, text and reason that no spreadsheet takes for formulas."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Rejected._fields[:4])
    for row, line, smiles, reason, _ in rejected:
        shown = smiles[:SHOWN].replace("\0", "\\0")
        writer.writerow([row, line, safe_cell(shown), safe_cell(reason)])
    write_atomic(path, text.getvalue().encode("utf-8", "replace"))


# What became of rows: how many were molecules, which were not, and what to say of it.


@dataclass(frozen=True)
class Outcome:
    """What became of the rows of a chunk."""

    rows: int
    rejected: list[Rejected]
    other_bonds: int


def all_rejected(outcomes: Sequence[Outcome], source: Source, strict: bool) -> list[Rejected]:
    """The rows that were left out; an error where none was to be, or where no row is left."""
    rejected = [one for outcome in outcomes for one in outcome.rejected]
    if rejected and strict:
        first = rejected[0]
        raise DataError(
            f"row {first.row} holds no molecule: {first.reason}",
            where=f"{source.where}, line {first.line}",
            hint="mend it, or leave out strict",
        )
    rows = sum(outcome.rows for outcome in outcomes)
    if len(rejected) == rows:
        raise DataError(
            f"none of {rows:,} rows holds a molecule; the first, {rejected[0].smiles[:60]!r}: "
            f"{rejected[0].reason}",
            where=source.where,
            hint="a list holds SMILES strings; files are opened one by one"
            if source.where == "list"
            else None,
        )
    return rejected


def notes_of(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    """What was left out and what was changed, in words."""
    rows = sum(outcome.rows for outcome in outcomes)
    lost = [one for outcome in outcomes for one in outcome.rejected]
    others = sum(outcome.other_bonds for outcome in outcomes)
    notes = []
    if lost:
        why = f"the first being row {lost[0].row}: {lost[0].reason}"
        notes.append(f"{len(lost):,} of {rows:,} rows were left out, {why}")
    if others:
        notes.append(f"{others:,} bonds of other kinds were read as single")
    return tuple(notes)


# Results of molecules back in the rows of their source, those without a molecule among them.


def every_row(
    results: NDArray[np.floating], ids: Ids, rejected: Sequence[Rejected]
) -> tuple[NDArray[np.floating], Ids, list[str]]:
    """Rows x columns for all rows of a source: NaN and a reason where one holds no molecule.

    `results` has a row for each molecule, in the order of the source. A row without a molecule keeps its
    own id; where the source has none, ids are row numbers.
    """
    rows = len(results) + len(rejected)
    lost = np.zeros(rows, dtype=bool)
    lost[[one.row for one in rejected]] = True
    full = np.full((rows, *results.shape[1:]), np.nan, dtype=results.dtype)
    full[~lost] = results
    reasons = [""] * rows
    for one in rejected:
        reasons[one.row] = one.reason
    if not isinstance(ids, Strings):
        return full, np.arange(rows, dtype=np.int64), reasons
    own = {one.row: one.id or str(one.row) for one in rejected}
    kept = iter(ids)
    return full, Strings.of(own[row] if row in own else next(kept) for row in range(rows)), reasons
