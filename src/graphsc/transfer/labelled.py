"""A table of molecules with labels: what is to be predicted, and of which kind it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.read import read_molecules
from graphsc.data.molecules.rejects import Rejected
from graphsc.data.molecules.table_rows import USUAL
from graphsc.data.sheet import kind_of, peek_header
from graphsc.data.sources import Reading, find_door
from graphsc.evaluation.tasks import Kind

AskedKind = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class Labelled:
    """Molecules with labels: 0, 1 or NaN for a classification, numbers or NaN for a regression."""

    collection: GraphCollection
    smiles: list[str]  # of each molecule, as it stands in the source
    rows: NDArray[np.int64]  # of the source, of each molecule
    kind: Kind
    classes: Mapping[str, tuple[str, str]]  # what 0 and 1 are called in the source, by task
    rejected: tuple[Rejected, ...]

    @property
    def name(self) -> str:
        return self.collection.name

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.collection.tasks

    @property
    def labels(self) -> NDArray[np.floating]:
        found = self.collection.labels
        assert found is not None  # noqa: S101 - read_labelled refuses molecules without labels
        return found


def read_labelled(
    source: str | Path,
    *,
    labels: str | Sequence[str] | None = None,
    smiles_column: str | None = None,
    kind: AskedKind = "auto",
) -> Labelled:
    """Molecules and labels of a table, or of one of MoleculeNet's sets by name.

    `labels` names the columns to predict, `"*"` being all but the SMILES; without it they are those of the
    named set, or the only other column. Columns of 0 and 1, of two whole numbers or of two words make a
    classification, numbers a regression; `kind` overrides the guess.
    """
    reading = _reading(source, labels, smiles_column)
    table = read_molecules(reading.source, **reading.options)  # type: ignore[arg-type]
    collection = table.collection
    if collection.labels is None or not collection.tasks:
        raise DataError(
            "these molecules have no labels", where=str(source), hint="name columns with --labels"
        )
    values = np.array(collection.labels, dtype=np.float64)
    found: list[Kind] = []
    classes: dict[str, tuple[str, str]] = {}
    for k, task in enumerate(collection.tasks):
        names = _two_classes(task, values[:, k], collection.classes.get(task), kind, str(source))
        found.append("regression" if names is None else "classification")
        if names is not None:
            classes[task] = names
            values[:, k] = np.where(
                np.isnan(values[:, k]), np.nan, values[:, k] == _larger(values[:, k], names)
            )
    if len(set(found)) > 1:
        one, other = (collection.tasks[found.index(what)] for what in ("classification", "regression"))
        raise DataError(
            f"{one!r} holds classes and {other!r} numbers", where=str(source),
            hint="name columns of one kind with --labels, or set --kind regression",
        )  # fmt: skip
    return Labelled(
        collection=replace(collection, labels=values.astype(np.float32), classes={}),
        smiles=table.smiles,
        rows=np.array(table.kept, dtype=np.int64),
        kind=found[0],
        classes=classes,
        rejected=tuple(table.rejected),
    )


def _reading(source: str | Path, labels: str | Sequence[str] | None, smiles_column: str | None) -> Reading:
    """How to read the table, with the columns to predict settled."""
    options: dict[str, object] = {}
    if smiles_column is not None:
        options["smiles_column"] = smiles_column
    if labels is not None:
        options["label_columns"] = labels if isinstance(labels, str) else tuple(labels)
    # A table is one of molecules here, whatever its columns are called: the reader names what it misses.
    table = Path(source).is_file() and kind_of(Path(source)) in (".csv", ".tsv")
    reading = find_door(str(source), "smiles" if table else None, options)
    if reading.door != "smiles":
        raise DataError(
            "fine-tuning takes molecules with labels", where=str(source),
            hint="give a CSV with a column of SMILES, or a name such as bbbp",
        )  # fmt: skip
    if "label_columns" not in reading.options:
        header = [name for name in peek_header(Path(str(reading.source))) if name]
        molecules = smiles_column or next((name for name in header if name.lower() in USUAL), None)
        others = [name for name in header if name != molecules]
        if len(others) != 1:
            raise DataError(
                "which columns are to be predicted?" if others else "there is no column to predict",
                where=str(source),
                hint=f"name them with --labels; columns: {', '.join(others[:30]) or 'none'}",
            )  # fmt: skip
        reading.options["label_columns"] = others[0]
    return reading


def _two_classes(
    task: str, values: NDArray[np.float64], words: tuple[str, ...] | None, kind: AskedKind, where: str
) -> tuple[str, str] | None:
    """What 0 and 1 are called, or None where the column is one of numbers."""
    distinct = np.unique(values[~np.isnan(values)])
    if not len(distinct):
        raise DataError(f"column {task!r} holds no label", where=where, hint="leave it out of --labels")
    if words is not None:
        if len(words) > 2:
            raise DataError(
                f"column {task!r} holds {len(words)} classes: {', '.join(words[:5])}", where=where,
                hint="make a column of 0 and 1 for each class",
            )  # fmt: skip
        if kind == "regression":
            raise ConfigError(f"column {task!r} holds words and cannot be a regression", where=where)
        return (words[0], words[1]) if len(words) == 2 else (f"not {words[0]}", words[0])
    if kind == "regression":
        return None
    if set(distinct.tolist()) <= {0.0, 1.0}:
        return "0", "1"
    if len(distinct) == 2 and (distinct == distinct.round()).all():
        return f"{distinct[0]:.0f}", f"{distinct[1]:.0f}"
    if kind == "classification":
        raise ConfigError(
            f"column {task!r} holds {len(distinct)} different numbers, not two classes", where=where,
            hint="cut them into 0 and 1, or leave out --kind",
        )  # fmt: skip
    return None


def _larger(values: NDArray[np.float64], names: tuple[str, str]) -> float:
    """The value that stands for the second class."""
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) == 2:
        return float(distinct[1])
    # One class only: 0 and 1 say which; the only word of a column is the class itself.
    return 1.0 if names == ("0", "1") else float(distinct[0])
