"""Rows that hold no molecule: why, and a file that lists them."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from graphsc.core.cells import safe_cell
from graphsc.core.files import write_atomic

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
