"""Rows of a source without a valid molecule: the reason, notes about them, and the file that lists them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, DataError
from graphsc.core.files import write_atomic
from graphsc.core.tables import safe_cell
from graphsc.data.arrays import Strings
from graphsc.data.collection import Ids
from graphsc.data.molecules.rows import Source

SHOWN = 200  # characters of a SMILES or a reason in the list of rejected rows


class Rejected(NamedTuple):
    """A row that was left out."""

    row: int  # from 0, without header and blank lines, like the ids of molecules
    line: int  # line of the file, from 1
    smiles: str  # truncated
    reason: str
    id: str | None = None  # if the source has ids


def refuse_text(text: str, max_length: int) -> str | None:
    """Why a text is rejected before RDKit parses it, or None."""
    if not text:
        return "empty"
    if len(text) > max_length:
        return f"{len(text):,} characters, at most {max_length:,} are taken"
    if "\0" in text:
        return "NUL byte"
    return "text is not UTF-8" if "\ufffd" in text else None


def reason_of(chem: ModuleType, text: str) -> str:
    """Why RDKit returned no molecule for this text."""
    unsanitized = chem.MolFromSmiles(text, sanitize=False)
    if unsanitized is None:
        return "not a SMILES string"
    problems = chem.DetectChemistryProblems(unsanitized)
    reason = " ".join(problems[0].Message().split()) if problems else "RDKit cannot parse it"
    return reason[:SHOWN]


def write_rejected(path: Path, rejected: Iterable[Rejected]) -> None:
    """Write a CSV of row, line, SMILES, reason and, if the source has ids, the id.

    Cells that a spreadsheet would evaluate are escaped.
    """
    entries = list(rejected)
    columns = 4 + any(entry.id is not None for entry in entries)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(Rejected._fields[:columns])
    for row, line, smiles, reason, identity in entries:
        shown = smiles[:SHOWN].replace("\0", "\\0")
        cells = [row, line, safe_cell(shown), safe_cell(reason), safe_cell(identity or "")]
        writer.writerow(cells[:columns])
    write_atomic(path, text.getvalue().encode("utf-8", "replace"))


def read_rejected(path: Path) -> list[Rejected]:
    """Read a list that `write_rejected` wrote.

    Raises:
        DamagedFileError: It is another file.
    """
    try:
        with open(path, encoding="utf-8", newline="") as file:
            header, *rows = csv.reader(file)
        columns = len(header)
        if (
            columns not in (4, 5)
            or header != list(Rejected._fields[:columns])
            or not all(len(row) == columns and row[3] for row in rows)
        ):
            raise ValueError("other columns")
        return [
            Rejected(int(row), int(line), smiles, reason, *(text or None for text in identity))
            for row, line, smiles, reason, *identity in rows
        ]
    except (OSError, ValueError, csv.Error) as error:
        raise DamagedFileError("not a list of rejected rows", where=str(path)) from error


def is_listing(path: Path) -> bool:
    """Whether a file is a list that `write_rejected` wrote, and not another one of that name."""
    try:
        return all(row.row >= 0 and row.line >= 0 for row in read_rejected(path))
    except DamagedFileError:
        return False


@dataclass(frozen=True)
class Outcome:
    """Result of parsing the rows of a chunk."""

    rows: int
    rejected: list[Rejected]
    other_bonds: int  # bonds of other types, read as single
    censored: dict[str, tuple[int, str]] = field(default_factory=dict)  # by task: labels, the first of them


def common_reasons(reasons: Iterable[str], most: int = 3) -> list[tuple[str, int]]:
    """The most frequent reasons and how often each occurs; texts that differ in digits only count as one."""
    counts: dict[str, int] = {}
    first: dict[str, str] = {}
    for reason in reasons:
        key = re.sub(r"[0-9]+", "0", reason)
        counts[key] = counts.get(key, 0) + 1
        first.setdefault(key, reason)
    ordered = sorted(counts, key=lambda key: -counts[key])
    return [(first[key], counts[key]) for key in ordered[:most]]


def all_rejected(outcomes: Sequence[Outcome], source: Source, strict: bool) -> list[Rejected]:
    """The rejected rows of all chunks.

    Raises:
        DataError: If `strict` and a row was rejected, or if every row was rejected.
    """
    rejected = [row for outcome in outcomes for row in outcome.rejected]
    if rejected and strict:
        first = rejected[0]
        raise DataError(
            f"row {first.row} holds no molecule: {first.reason}",
            where=f"{source.where}, line {first.line}",
            hint="correct it, or leave out strict",
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


def notes_of(outcomes: Sequence[Outcome], censored: str = "drop") -> tuple[str, ...]:
    """Notes of a collection about rejected rows, censored labels and bonds of other types."""
    rows = sum(outcome.rows for outcome in outcomes)
    rejected = [row for outcome in outcomes for row in outcome.rejected]
    other_bonds = sum(outcome.other_bonds for outcome in outcomes)
    notes = []
    if rejected:
        first = f"the first being row {rejected[0].row}: {rejected[0].reason}"
        notes.append(f"{len(rejected):,} of {rows:,} rows were left out, {first}")
    for task in dict.fromkeys(task for outcome in outcomes for task in outcome.censored):
        counts = [outcome.censored[task] for outcome in outcomes if task in outcome.censored]
        total, example = sum(count for count, _ in counts), counts[0][1][:40]
        treatment = "are read as their limits" if censored == "keep" else "are left out (censored=drop)"
        notes.append(f"{total:,} labels of {task!r} are censored, such as {example!r}, and {treatment}")
    if other_bonds:
        notes.append(f"{other_bonds:,} bonds of other kinds were read as single")
    return tuple(notes)


def insert_rejected_rows(
    results: NDArray[np.floating], ids: Ids, rejected: Sequence[Rejected]
) -> tuple[NDArray[np.floating], Ids, list[str]]:
    """Extend results to all rows of the source, with NaN for rejected rows.

    Args:
        results: Shape (molecules, ...), in the order of the source.
        ids: Ids of the molecules.
        rejected: The rejected rows.

    Returns:
        Results of shape (rows, ...); the ids of all rows, which are row numbers if the source has none; and
        the reason per row, empty for molecules.
    """
    rows = len(results) + len(rejected)
    is_rejected = np.zeros(rows, dtype=bool)
    reasons = [""] * rows
    for entry in rejected:
        is_rejected[entry.row] = True
        reasons[entry.row] = entry.reason
    full = np.full((rows, *results.shape[1:]), np.nan, dtype=results.dtype)
    full[~is_rejected] = results
    if not isinstance(ids, Strings):
        return full, np.arange(rows, dtype=np.int64), reasons
    rejected_ids = {entry.row: entry.id or str(entry.row) for entry in rejected}
    molecule_ids = iter(ids)
    all_ids = (rejected_ids[row] if row in rejected_ids else next(molecule_ids) for row in range(rows))
    return full, Strings.of(all_ids), reasons
