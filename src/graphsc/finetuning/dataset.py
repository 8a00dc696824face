"""A table of molecules with labels: what is to be predicted, and of which kind it is."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.files import write_atomic
from graphsc.core.random import numpy_generator
from graphsc.core.tables import safe_cell
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.conversion import read_molecules
from graphsc.data.molecules.rejected import Rejected
from graphsc.data.molecules.rows import SMILES_COLUMNS
from graphsc.data.readers import Reading, find_reader
from graphsc.data.readers.csv import read_header, table_suffix
from graphsc.evaluation.metrics import Kind
from graphsc.finetuning.splits import NAMES, Parts

AskedKind = Literal["auto", "classification", "regression"]


@dataclass(frozen=True)
class MoleculeDataset:
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
        assert found is not None  # noqa: S101 - read_dataset refuses molecules without labels
        return found


def read_dataset(
    source: str | Path,
    *,
    labels: str | Sequence[str] | None = None,
    smiles_column: str | None = None,
    kind: AskedKind = "auto",
) -> MoleculeDataset:
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
    return MoleculeDataset(
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
    table = Path(source).is_file() and table_suffix(Path(source)) in (".csv", ".tsv")
    reading = find_reader(str(source), "smiles" if table else None, options)
    if reading.reader != "smiles":
        raise DataError(
            "fine-tuning takes molecules with labels", where=str(source),
            hint="give a CSV with a column of SMILES, or a name such as bbbp",
        )  # fmt: skip
    if "label_columns" not in reading.options:
        header = [name for name in read_header(Path(str(reading.source))) if name]
        molecules = smiles_column or next((name for name in header if name.lower() in SMILES_COLUMNS), None)
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


# How many labels there are, of which class, on each side of a split.


@dataclass(frozen=True)
class Balance:
    """The labels of one task on one side; a regression has values, not positives and negatives."""

    task: str
    part: str
    missing: int
    positives: int | None = None
    negatives: int | None = None
    values: int | None = None

    @property
    def one_class(self) -> bool:
        """Whether no ROC-AUC can be had here."""
        return self.values is None and not (self.positives and self.negatives)

    def to_json(self) -> dict[str, object]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def balance_of(
    labels: NDArray[np.floating], tasks: tuple[str, ...], parts: Parts, kind: Kind
) -> list[Balance]:
    """Counts for every task and side."""
    found = []
    for k, task in enumerate(tasks):
        for part, name in enumerate(NAMES):
            column = labels[parts == part, k]
            missing = int(np.isnan(column).sum())
            if kind == "regression":
                found.append(Balance(task, name, missing, values=len(column) - missing))
            else:
                ones = int((column == 1).sum())
                found.append(Balance(task, name, missing, ones, len(column) - missing - ones))
    return found


def write_balance(path: Path, balances: Sequence[Balance]) -> None:
    """The counts as a table, however many tasks there are."""
    names = list(balances[0].to_json())
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{**one.to_json(), "task": safe_cell(one.task)} for one in balances])
    write_atomic(path, text.getvalue())


def warnings_of(balances: list[Balance], fewest: int = 10) -> list[str]:
    """What a reader must know of the labels before believing a score, in words."""
    found = []
    untrained = [one.task for one in balances if one.part == "train" and one.one_class]
    unjudged = [one.task for one in balances if one.part == "test" and one.one_class]
    few = [
        one.task
        for one in balances
        if one.part == "test" and not one.one_class and one.values is None
        and min(one.positives or 0, one.negatives or 0) < fewest
    ]  # fmt: skip
    if untrained:
        found.append(f"{_names(untrained)}: only one class to learn from")
    if unjudged:
        found.append(f"{_names(unjudged)}: only one class to judge by, no score")
    if few:
        found.append(f"{_names(few)}: fewer than {fewest} test molecules of one class, scores are noise")
    return found


def _names(tasks: list[str]) -> str:
    return ", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")


# Fewer labels to learn from: what a model is worth when a laboratory has tested only some molecules.


def rows_to_train(
    labels: NDArray[np.floating], rows: NDArray[np.int64], kind: Kind, fraction: float = 1.0, seed: int = 0
) -> NDArray[np.int64]:
    """The rows that have a label at all, or a fraction of them drawn by the seed.

    Smaller fractions are part of larger ones. With a single task both classes are among them where they can
    be: if all that were drawn are of one class, the last makes room for the first of the other.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"a label fraction lies above 0 and up to 1, not {fraction:g}")
    rows = rows[~np.isnan(labels[rows]).all(axis=1)]
    if fraction == 1 or not len(rows):
        return rows
    order = rows[numpy_generator(seed, "label fraction").permutation(len(rows))]
    count = min(len(rows), max(2, round(fraction * len(rows))))
    drawn = order[:count]
    if kind == "classification" and labels.shape[1] == 1:
        others = order[labels[order, 0] != labels[drawn[0], 0]]
        if len(others) and (labels[drawn, 0] == labels[drawn[0], 0]).all():
            drawn = np.append(drawn[:-1], others[0])
    return np.sort(drawn)
