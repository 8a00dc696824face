"""What became of rows: how many were molecules, which were not, and what to say of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from graphsc.core.errors import DataError
from graphsc.data.molecules.rejects import Rejected
from graphsc.data.molecules.rows import Source


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
