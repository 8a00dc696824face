"""Molecules of any source that holds SMILES: which reader it needs, and what its rows mean."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphsc.core.errors import DataError
from graphsc.data.molecules.rows import Source, is_strings, rows_of_strings
from graphsc.data.molecules.smiles_file import is_smiles_file, rows_of_file
from graphsc.data.molecules.table_rows import rows_of_table
from graphsc.data.sheet import kind_of


def open_rows(
    source: object,
    *,
    smiles_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
) -> Source:
    """What rows a source has; tables are opened here as far as their header."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        if is_smiles_file(path):
            _refuse_columns(smiles_column, label_columns, id_column, f"{path.name} has no named columns")
            return rows_of_file(path)
        if kind_of(path) in (".csv", ".tsv"):
            return rows_of_table(path, smiles_column, label_columns, id_column)
        raise DataError(f"{path.name} is not a list of molecules", hint="use .smi, .csv or .tsv (.gz, .xz)")
    _refuse_columns(smiles_column, label_columns, id_column, "a list of strings has no named columns")
    if not is_strings(source):
        raise DataError(f"a {type(source).__name__} is not a list of SMILES strings")
    return rows_of_strings(source)


def _refuse_columns(
    smiles: str | None, labels: str | Sequence[str] | None, identity: str | None, why: str
) -> None:
    for option, value in (("smiles_column", smiles), ("label_columns", labels), ("id_column", identity)):
        if value:
            raise DataError(f"{why}, so {option} says nothing", hint=f"leave out {option}")
