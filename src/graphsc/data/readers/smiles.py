"""Molecules as SMILES strings: a list, a .smi file, or a table with a SMILES column; and SDF files.

Features are those of Hu et al. (2020): atom type and chirality, bond type and direction. All are
categorical, with the same categories for every source. Needs the extra `chem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.featurize import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.rows import is_smiles_file, is_strings, smiles_columns
from graphsc.data.molecules.sdf import is_sdf
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import Decimal, read_header, table_suffix


def accepts_smiles(source: object) -> bool:
    """Whether this is a list of strings, a .smi or .sdf file, or a table with a usual SMILES column."""
    if not isinstance(source, (str, Path)):
        return is_strings(source)
    path = Path(source)
    if is_smiles_file(path) or is_sdf(path):
        return True
    if not table_suffix(path):
        return False
    return bool(smiles_columns(read_header(path)))


def read_smiles(
    source: str | Path | Sequence[str],
    /,
    *,
    name: str | None = None,
    features: str = "auto",
    smiles_column: str | None = None,
    label_columns: str | tuple[str, ...] | None = None,
    id_column: str | None = None,
    separator: str | None = None,
    decimal: Decimal | None = None,
    max_atoms: int = MAX_ATOMS,
    max_length: int = MAX_LENGTH,
    censored: Literal["drop", "keep"] = "drop",
    strict: bool = False,
    rejected: str | Path | None = None,
    workers: int | None = None,
) -> GraphCollection:
    """Read molecules; rows without a valid molecule are left out, and a note says how many and why.

    Args:
        source: A list of SMILES strings, a .smi or .sdf file, or a CSV, TSV or Parquet table. The columns of
            an SDF file are the values of its records.
        name: Name of the collection; the file's name by default.
        features: Feature scheme.
        smiles_column: Column of the SMILES; guessed by its usual names.
        label_columns: Label columns; none by default, `"*"` for all except those of SMILES and ids. An empty
            cell is a missing label; a column of words holds classes.
        id_column: Column of the ids. By default ids come from a column called `id`, the second column of a
            .smi file or the titles of an SDF file, or are row numbers from 0.
        separator: The character between cells, or `tab`; detected by default.
        decimal: `,` or `.`, the decimal point of labels; detected by default.
        max_atoms: Reject larger molecules.
        max_length: Reject longer SMILES.
        censored: How a label such as ">8.4" is read: as missing (`drop`) or as its limit (`keep`). A note
            says how many there are.
        strict: Raise an error at the first row without a valid molecule.
        rejected: A CSV file to list the rejected rows in.
        workers: Number of processes for more than 8,000 rows; one per core by default.
    """
    from graphsc.data.molecules.conversion import load, prepare

    rows, plan, number = prepare(
        source,
        name=name,
        features=features,
        smiles_column=smiles_column,
        label_columns=label_columns,
        id_column=id_column,
        separator=separator,
        decimal=decimal,
        max_atoms=max_atoms,
        max_length=max_length,
        censored=censored,
    )
    listing = None if rejected is None else Path(rejected)
    return load(rows, plan, number, strict=strict, rejected=listing, workers=workers)[0]


READERS.register("smiles")(
    Reader(
        accepts=accepts_smiles,
        read=read_smiles,
        summary="molecules: a list of SMILES, a .smi or .sdf file, or a CSV, TSV or Parquet table",
    )
)
