"""Molecules as SMILES strings: a list, a .smi file, or a table with a column of them.

Atoms and bonds are featurised as Hu et al. (2020) do: atom type and chirality, bond type and direction, all
categories, the same ones for every source. Needs the extra `chem`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.featurize import MAX_ATOMS, MAX_LENGTH
from graphsc.data.molecules.rows import USUAL, is_smiles_file, is_strings
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import kind_of, peek_header


def accepts_smiles(source: object) -> bool:
    """Whether this is a list of strings, a .smi file, or a table with a column called SMILES or the like."""
    if not isinstance(source, (str, Path)):
        return is_strings(source)
    path = Path(source)
    if is_smiles_file(path):
        return True
    if kind_of(path) not in (".csv", ".tsv"):
        return False
    return any(cell.lower() in USUAL for cell in peek_header(path))


def read_smiles(
    source: str | Path | Sequence[str],
    /,
    *,
    name: str | None = None,
    features: str = "auto",
    smiles_column: str | None = None,
    label_columns: str | tuple[str, ...] | None = None,
    id_column: str | None = None,
    max_atoms: int = MAX_ATOMS,
    max_length: int = MAX_LENGTH,
    strict: bool = False,
    rejected: str | Path | None = None,
    workers: int | None = None,
) -> GraphCollection:
    """Read molecules; rows that hold none are left out, and a note says how many and why.

    `smiles_column` is guessed among the usual names. `label_columns` names labels, none by default, `"*"`
    being every column but those of SMILES and ids; an empty cell is a missing label, and words are
    classes. Ids are those of `id_column`, of a .smi file's second column, or row numbers from 0. A text
    longer than `max_length` characters or with more than `max_atoms` atoms is no molecule to us. `strict`
    makes the first row without a molecule an error; `rejected` is a CSV file to list them in. Beyond 8,000
    rows, `workers` processes share the work, by default one a core.
    """
    from graphsc.data.molecules.conversion import load, prepare

    rows, plan, number = prepare(
        source,
        name=name,
        features=features,
        smiles_column=smiles_column,
        label_columns=label_columns,
        id_column=id_column,
        max_atoms=max_atoms,
        max_length=max_length,
    )
    listing = None if rejected is None else Path(rejected)
    return load(rows, plan, number, strict=strict, rejected=listing, workers=workers)[0]


READERS.register("smiles")(
    Reader(
        accepts=accepts_smiles,
        read=read_smiles,
        summary="molecules: a list of SMILES, a .smi file, or a CSV or TSV with a column of them",
    )
)
