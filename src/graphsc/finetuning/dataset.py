"""Labelled molecules: reading a table, the balance of its labels, and training with fewer of them."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal, cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.files import write_atomic
from graphsc.core.random import numpy_generator
from graphsc.core.tables import safe_cell
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.conversion import read_molecules
from graphsc.data.molecules.featurize import ATOM_COLUMNS, PUBLISHED_ATOM_COLUMNS
from graphsc.data.molecules.labels import CENSORED, Censored
from graphsc.data.molecules.rejected import Rejected
from graphsc.data.molecules.rows import open_rows, smiles_columns
from graphsc.data.readers import Reading, find_reader
from graphsc.data.readers.csv import Decimal, read_header, table_suffix
from graphsc.evaluation.metrics import Kind
from graphsc.finetuning.splits import NAMES, Parts

AskedKind = Literal["auto", "classification", "regression"]
MOST_CLASSES = 30  # of one column
ID_COLUMN = "id"  # a column of this name holds the ids, unless another is named


@dataclass(frozen=True)
class MoleculeDataset:
    """Molecules with labels: 0 or 1 in a classification, numbers in a regression, NaN where missing."""

    collection: GraphCollection
    smiles: list[str]  # per molecule, as written in the source
    rows: NDArray[np.int64]  # the row of each molecule in the source
    kind: Kind
    classes: Mapping[str, tuple[str, str]]  # by task, the names of classes 0 and 1 in the source
    rejected: tuple[Rejected, ...]
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # tasks by column of several classes
    reading: Mapping[str, object] = field(default_factory=dict)  # the arguments of `read_dataset`
    # Censored labels that were dropped, as texts such as ">8.4", by molecule and task.
    limits: Mapping[tuple[int, str], str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.collection.name

    @property
    def tasks(self) -> tuple[str, ...]:
        return self.collection.tasks

    @property
    def ids(self) -> list[str] | None:
        """The id of each molecule, if the source has ids."""
        return list(self.collection.ids) if isinstance(self.collection.ids, Strings) else None

    @cached_property
    def content_hash(self) -> str:
        """Identifies the molecules and their labels, by the features of Hu et al.

        Whatever else is stored of atoms does not change it, so that results stay comparable.
        """
        names = tuple(column.name for column in self.collection.nodes.columns)
        if names != tuple(column.name for column in ATOM_COLUMNS):
            return self.collection.content_hash
        added = set(ATOM_COLUMNS) - set(PUBLISHED_ATOM_COLUMNS)
        scheme = self.collection.features
        published = replace(scheme, columns=tuple(column for column in scheme.columns if column not in added))
        return self.collection.with_features(published).content_hash

    @property
    def labels(self) -> NDArray[np.floating]:
        """Molecules x tasks."""
        labels = self.collection.labels
        assert labels is not None  # noqa: S101 - read_dataset refuses molecules without labels
        return labels


def read_dataset(
    source: str | Path,
    *,
    labels: str | Sequence[str] | None = None,
    smiles_column: str | None = None,
    id_column: str | None = None,
    separator: str | None = None,
    decimal: Decimal | None = None,
    kind: AskedKind = "auto",
    censored: Censored = "drop",
) -> MoleculeDataset:
    """Read the molecules and labels of a table, or of a MoleculeNet data set by name.

    A column of three or more classes becomes one task per class, that class against all others.

    Args:
        source: A CSV, TSV, Parquet or SDF file, or the name of a data set.
        labels: The columns to predict; `"*"` for all but the SMILES. By default those of the named data set,
            or the only column besides the SMILES.
        smiles_column: The column of the SMILES, if not found by its name.
        id_column: The column of the ids; by default one called `id`, if there is one.
        separator: The character between cells, or `tab`; detected by default.
        decimal: `,` or `.`, the decimal point of labels; detected by default.
        kind: With `auto`, columns of 0 and 1, of two integers or of words are a classification, all others a
            regression.
        censored: Whether a label such as ">8.4" is missing (`drop`) or read as its limit (`keep`).
    """
    options = {
        "smiles_column": smiles_column, "id_column": id_column, "separator": separator, "decimal": decimal
    }  # fmt: skip
    reading = _reading(source, labels, {name: value for name, value in options.items() if value is not None})
    reading.options["censored"] = censored
    table = read_molecules(reading.source, **reading.options)  # type: ignore[arg-type]
    collection = table.collection
    if collection.labels is None or not collection.tasks:
        raise DataError(
            "these molecules have no labels", where=str(source), hint="name columns with --labels"
        )
    given = np.array(collection.labels, dtype=np.float64)
    kinds: list[Kind] = []
    classes: dict[str, tuple[str, str]] = {}
    groups: dict[str, tuple[str, ...]] = {}
    columns: dict[str, NDArray[np.float64]] = {}
    for k, task in enumerate(collection.tasks):
        values, words = given[:, k], collection.classes.get(task)
        names = _class_names(task, values, words, kind, str(source))
        kinds.append("classification" if names else "regression")
        if len(names) > 2:
            groups[task] = tuple(f"{task}={name}" for name in names)
            distinct = np.arange(len(names)) if words is not None else np.unique(values[~np.isnan(values)])
            for value, name, own in zip(distinct, names, groups[task], strict=True):
                classes[own] = f"not {name}", name
                columns[own] = np.where(np.isnan(values), np.nan, values == value)
        elif names:
            classes[task] = names[0], names[1]
            positive = _positive(values, classes[task], words)
            columns[task] = np.where(np.isnan(values), np.nan, values == positive)
        else:
            columns[task] = values
    if len(set(kinds)) > 1:
        classified, measured = (collection.tasks[kinds.index(k)] for k in ("classification", "regression"))
        raise DataError(
            f"{classified!r} holds classes and {measured!r} numbers", where=str(source),
            hint="name columns of one kind with --labels, or set --kind regression",
        )  # fmt: skip
    return MoleculeDataset(
        collection=replace(
            collection,
            labels=np.stack(list(columns.values()), axis=1).astype(np.float32),
            tasks=tuple(columns),
            classes={},
        ),
        smiles=table.smiles,
        rows=np.array(table.kept, dtype=np.int64),
        kind=kinds[0],
        classes=classes,
        rejected=tuple(table.rejected),
        groups=groups,
        reading={
            "data": str(Path(source).resolve() if Path(source).exists() else source),
            "labels": labels if labels is None or isinstance(labels, str) else list(labels),
            **options,
            "id_column": reading.options.get("id_column"),
            "kind": kind,
            "censored": censored,
        },
        limits=_limits(reading, table.kept) if censored == "drop" and np.isnan(given).any() else {},
    )


def _limits(reading: Reading, kept: Iterable[int]) -> dict[tuple[int, str], str]:
    """The censored labels of these rows of a table, by position and column."""
    known = ("smiles_column", "label_columns", "id_column", "separator", "decimal")
    options = {name: reading.options[name] for name in known if name in reading.options}
    rows = open_rows(reading.source, **options)  # type: ignore[arg-type]
    position = {int(row): place for place, row in enumerate(kept)}
    return {
        (position[row.number], task): label
        for row in rows.rows()
        if row.number in position
        for task, label in zip(rows.tasks, row.labels, strict=True)
        if CENSORED.fullmatch(label)
    }


def _reading(source: str | Path, labels: str | Sequence[str] | None, given: Mapping[str, object]) -> Reading:
    """How to read the table, with the columns to predict."""
    options = dict(given)
    if labels is not None:
        options["label_columns"] = labels if isinstance(labels, str) else tuple(labels)
    # Any table is read as one of molecules, whatever its columns: the reader names a missing SMILES column.
    table = Path(source).is_file() and bool(table_suffix(Path(source)))
    reading = find_reader(str(source), "smiles" if table else None, options)
    if reading.reader != "smiles":
        raise DataError(
            "fine-tuning takes molecules with labels", where=str(source),
            hint="give a CSV with a column of SMILES, an SDF file, or a name such as bbbp",
        )  # fmt: skip
    separator = cast("str | None", given.get("separator"))
    header = [name for name in read_header(Path(str(reading.source)), separator) if name]
    if "id_column" not in given and ID_COLUMN in header and ID_COLUMN not in (labels, *(labels or ())):
        reading.options["id_column"] = ID_COLUMN
    if "label_columns" not in reading.options:
        usual = next(iter(smiles_columns(header)), None)
        used = (given.get("smiles_column", usual), reading.options.get("id_column"))
        others = [name for name in header if name not in used]
        if len(others) != 1:
            raise DataError(
                "which columns are to be predicted?" if others else "there is no column to predict",
                where=str(source),
                hint=f"name them with --labels; columns: {', '.join(others[:30]) or 'none'}",
            )  # fmt: skip
        reading.options["label_columns"] = others[0]
    return reading


def _class_names(
    task: str, values: NDArray[np.float64], words: tuple[str, ...] | None, kind: AskedKind, where: str
) -> tuple[str, ...]:
    """The names of two or more classes, or none for a column of numbers."""
    distinct = np.unique(values[~np.isnan(values)])
    if not len(distinct):
        raise DataError(f"column {task!r} holds no label", where=where, hint="leave it out of --labels")
    if words is not None:
        if len(words) > MOST_CLASSES:
            raise DataError(
                f"column {task!r} holds {len(words)} classes: {', '.join(words[:5])} ...", where=where,
                hint=f"at most {MOST_CLASSES} are taken; leave it out of --labels",
            )  # fmt: skip
        if kind == "regression":
            raise ConfigError(
                f"column {task!r} holds words, such as {words[0]!r}, and cannot be a regression", where=where
            )
        if len(words) == 2 and _negates(words[1], words[0]):
            return words[1], words[0]  # "active" is the positive class, also before "inactive"
        return words if len(words) > 1 else (f"not {words[0]}", words[0])
    if kind == "regression":
        return ()
    if set(distinct.tolist()) <= {0.0, 1.0}:
        return "0", "1"
    if len(distinct) == 2 and (distinct == distinct.round()).all():
        return f"{distinct[0]:.0f}", f"{distinct[1]:.0f}"
    if kind == "auto":
        return ()
    if len(distinct) > MOST_CLASSES or (distinct != distinct.round()).any():
        raise ConfigError(
            f"column {task!r} holds {len(distinct)} different numbers, not classes", where=where,
            hint="cut them into 0 and 1, or leave out --kind",
        )  # fmt: skip
    return tuple(f"{value:.0f}" for value in distinct)


def _negates(word: str, other: str) -> bool:
    """Whether a class is named as the opposite of another, such as `inactive`."""
    own = re.fullmatch(r"(?:in|un|non|not|no)[ _-]?(.+)", word.lower())
    return own is not None and own[1] == other.lower()


def _positive(values: NDArray[np.float64], names: tuple[str, str], words: tuple[str, ...] | None) -> float:
    """The value that stands for the second class."""
    if words is not None and len(words) == 2:
        return float(words.index(names[1]))  # also if no molecule of one class is left
    distinct = np.unique(values[~np.isnan(values)])
    if len(distinct) == 2:
        return float(distinct[1])
    # One class only: 0 and 1 say which; the only word of a column is the class itself.
    return 1.0 if names == ("0", "1") else float(distinct[0])


@dataclass(frozen=True)
class Balance:
    """Counts of the labels of one task in one part of a split.

    A classification has positives and negatives, a regression has values.
    """

    task: str
    part: str
    missing: int
    positives: int | None = None
    negatives: int | None = None
    values: int | None = None

    @property
    def one_class(self) -> bool:
        """Whether a class is missing, so that ROC-AUC is undefined."""
        return self.values is None and not (self.positives and self.negatives)

    def to_json(self) -> dict[str, object]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def label_balance(
    labels: NDArray[np.floating], tasks: tuple[str, ...], parts: Parts, kind: Kind
) -> list[Balance]:
    """Count the labels (molecules x tasks) of every task in every part of a split."""
    balances = []
    for k, task in enumerate(tasks):
        for part, name in enumerate(NAMES):
            column = labels[parts == part, k]
            missing = int(np.isnan(column).sum())
            if kind == "regression":
                balances.append(Balance(task, name, missing, values=len(column) - missing))
            else:
                ones = int((column == 1).sum())
                balances.append(Balance(task, name, missing, ones, len(column) - missing - ones))
    return balances


def write_balance(path: Path, balances: Sequence[Balance]) -> None:
    """Write the counts as a CSV file, one row per task and part."""
    names = list(balances[0].to_json())
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows([{**balance.to_json(), "task": safe_cell(balance.task)} for balance in balances])
    write_atomic(path, text.getvalue())


def label_warnings(balances: list[Balance], fewest: int = 10) -> list[str]:
    """Warnings about tasks that cannot be learned or scored, or whose score is unreliable."""
    train = [balance for balance in balances if balance.part == "train"]
    test = [balance for balance in balances if balance.part == "test"]
    unlearnable = [balance.task for balance in train if balance.one_class]
    unscored = [balance.task for balance in test if balance.one_class]
    few = [
        balance.task
        for balance in test
        if not balance.one_class and balance.values is None
        and min(balance.positives or 0, balance.negatives or 0) < fewest
    ]  # fmt: skip
    problems = {
        "only one class in the training set": unlearnable,
        "only one class in the test set, no score": unscored,
        f"fewer than {fewest} test molecules of one class, scores are noise": few,
    }
    return [f"{_names(tasks)}: {problem}" for problem, tasks in problems.items() if tasks]


def _names(tasks: list[str]) -> str:
    return ", ".join(tasks[:5]) + (f" and {len(tasks) - 5} more" if len(tasks) > 5 else "")


def select_labelled(
    labels: NDArray[np.floating], rows: NDArray[np.int64], kind: Kind, fraction: float = 1.0, seed: int = 0
) -> NDArray[np.int64]:
    """Select the rows that have a label, or a random fraction of them.

    With the same seed, smaller fractions are subsets of larger ones. For a single classification task both
    classes are kept if possible: if all selected rows are of one class, the last one is replaced by the
    first of the other class.
    """
    if not 0 < fraction <= 1:
        raise ConfigError(f"a label fraction lies above 0 and up to 1, not {fraction:g}")
    rows = rows[~np.isnan(labels[rows]).all(axis=1)]
    if fraction == 1 or not len(rows):
        return rows
    order = rows[numpy_generator(seed, "label fraction").permutation(len(rows))]
    count = min(len(rows), max(2, round(fraction * len(rows))))
    selected = order[:count]
    if kind == "classification" and labels.shape[1] == 1:
        others = order[labels[order, 0] != labels[selected[0], 0]]
        if len(others) and (labels[selected, 0] == labels[selected[0], 0]).all():
            selected = np.append(selected[:-1], others[0])
    return np.sort(selected)
