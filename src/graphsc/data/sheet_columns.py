"""What the columns of a sheet mean: categories, attributes, labels, ids.

Whole numbers and words are categories, numbers with a decimal point among them are attributes. An empty
cell is a word like others, a missing label, or an error among numbers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.data.collection import Ids
from graphsc.data.columns import Attribute, Category, side_by_side
from graphsc.data.sheet import Sheet
from graphsc.data.strings import Strings
from graphsc.data.table import Table, encode_column, encode_integers

# Whole numbers that text and back leaves as they are: "007" is a word, so that it stays one.
WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def all_whole(texts: Iterable[str]) -> bool:
    return all(map(WHOLE.fullmatch, texts))


def as_table(sheet: Sheet, names: Sequence[str]) -> Table:
    """These columns as categories and attributes, a row each."""
    categories: list[Category] = []
    attributes: list[Attribute] = []
    for name in names:
        values = [value for value in sheet.columns[name].values if value]
        if _are_numbers(sheet, name):
            attributes.append((name, _numbers(sheet, name)))
        elif values and all_whole(values):
            cells = sheet.full(name)
            numbers = np.array([int(value) for value in cells.values], dtype=np.int64)
            categories.append(encode_integers(name, numbers[cells.codes]))
        else:
            cells = sheet.columns[name]
            ranks, column = encode_column(name, np.array(cells.values, dtype=object))
            categories.append((ranks[cells.codes], column))
    return side_by_side(len(sheet.lines), categories, attributes)


def as_labels(sheet: Sheet, tasks: Sequence[str]) -> tuple[NDArray[np.float64], dict[str, tuple[str, ...]]]:
    """Rows x tasks, NaN where a cell is empty, and class names of the tasks whose labels are words."""
    labels = np.zeros((len(sheet.lines), len(tasks)))
    classes: dict[str, tuple[str, ...]] = {}
    for k, task in enumerate(tasks):
        cells = sheet.columns[task]
        words = [value for value in cells.values if value]
        if _are_numbers(sheet, task) or all(map(NUMBER.fullmatch, words)):
            meaning = {value: float(value) for value in words}
        else:
            classes[task] = tuple(sorted(words))
            meaning = {value: float(code) for code, value in enumerate(classes[task])}
        labels[:, k] = np.array([meaning.get(value, np.nan) for value in cells.values])[cells.codes]
    return labels, classes


def as_ids(texts: Sequence[str]) -> Ids:
    """Numbers where all are whole, else words."""
    if all_whole(texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    return Strings.of(texts)


def _are_numbers(sheet: Sheet, column: str) -> bool:
    """Whether a column is made of numbers, some with a decimal point; an error if only nearly so."""
    values = [value for value in sheet.columns[column].values if value]
    if not any(NUMBER.fullmatch(value) and not value.lstrip("+-").isdecimal() for value in values):
        return False
    for value in values:
        if not NUMBER.fullmatch(value):
            raise DataError(
                f"{value!r} is not a number, as other cells of {column!r} are",
                where=sheet.where_value(column, value),
            )
    return True


def _numbers(sheet: Sheet, column: str) -> NDArray[np.float64]:
    cells = sheet.full(column)
    numbers = np.array([float(value) for value in cells.values])
    large = np.abs(numbers) > np.finfo(np.float32).max
    if large.any():
        value = cells.values[int(np.argmax(large))]
        raise DataError(f"{value!r} in {column!r} is too large", where=sheet.where_value(column, value))
    return numbers[cells.codes]
