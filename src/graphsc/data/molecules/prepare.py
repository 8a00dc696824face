"""A first look through a source: its rows, what they mean, how many there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from graphsc.core.errors import ConfigError
from graphsc.core.extras import require
from graphsc.data.molecules.chunk import Plan
from graphsc.data.molecules.featurise import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.labels import survey
from graphsc.data.molecules.rows import Source
from graphsc.data.molecules.source import open_rows


class RowOptions(TypedDict, total=False):
    """What can be said of the rows of a source; the `smiles` door explains each."""

    name: str | None
    features: str
    smiles_column: str | None
    label_columns: str | Sequence[str] | None
    id_column: str | None
    max_atoms: int
    max_length: int


def prepare(
    source: object,
    *,
    name: str | None = None,
    features: str = "auto",
    smiles_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    max_atoms: int = MAX_ATOMS,
    max_length: int = MAX_LENGTH,
) -> tuple[Source, Plan, int]:
    """Look through a source once: its rows, what they mean, how many there are."""
    require("rdkit")
    if max_atoms < 1 or max_length < 1:
        raise ConfigError("max_atoms and max_length must be at least 1")
    rows = open_rows(source, smiles_column=smiles_column, label_columns=label_columns, id_column=id_column)
    found = survey(rows)
    plan = Plan(name or rows.name, features, rows.tasks, found.classes, rows.has_ids, max_atoms, max_length)
    return rows, plan, found.rows
