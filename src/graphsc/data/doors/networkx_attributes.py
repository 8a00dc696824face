"""Attributes of NetworkX nodes or edges as columns: which are taken, and what they are.

Words, whole numbers and bools are categories, numbers with a float among them are attributes.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence

import numpy as np

from graphsc.core.errors import DataError
from graphsc.data.columns import Attribute, Category, side_by_side
from graphsc.data.table import Table, encode_column, encode_integers

Rows = list[Mapping[object, object]]  # the attributes of each node, or of each edge
Problem = tuple[str, str] | None  # what is wrong, and where
INT64 = np.iinfo(np.int64)


def attribute_table(
    what: str,
    rows: Rows,
    names: Sequence[str],
    label: str | None,
    attributes: tuple[str, ...] | None,
    notes: list[str],
) -> Table:
    """The columns asked for, or all that every row has."""
    categories: list[Category] = []
    numeric: list[Attribute] = []
    automatic = label is None and attributes is None
    # A dict keeps the order in which keys were first met; a set would make it a matter of chance.
    keys = dict.fromkeys(key for row in rows for key in row) if automatic else {}
    wanted = list(keys) if automatic else [*([] if label is None else [label]), *(attributes or ())]
    for place, key in enumerate(wanted):
        as_label = None if automatic else label is not None and place == 0
        problem, values = _values(key, rows, names)
        if not problem:
            problem, category = _kind(values, names, as_label)
        if problem and not automatic:
            raise DataError(
                f"{what} attribute {key!r} {problem[0]}",
                where=problem[1],
                hint="mend it, or choose others",
            )
        if problem:
            notes.append(f"{what} attribute {key!r} {problem[0]} ({problem[1]}) and was left out")
        elif category:
            categories.append(_encode(str(key), values))
        else:
            numeric.append((str(key), np.array(values, dtype=np.float64)))
    return side_by_side(len(rows), categories, numeric)


def _values(key: object, rows: Rows, names: Sequence[str]) -> tuple[Problem, list[object]]:
    if not isinstance(key, str) or (key.startswith("(") and key.endswith(")")):
        return ("has a name that is no word or is reserved", "rename it"), []
    missing = object()
    values = [row.get(key, missing) for row in rows]
    for place, value in enumerate(values):
        if value is missing:
            return ("is missing", names[place]), []
    return None, values


def _kind(values: list[object], names: Sequence[str], as_label: bool | None) -> tuple[Problem, bool]:
    """Whether values are categories (True) or numbers (False), or why they are neither."""
    whole = (str, numbers.Integral, np.bool_)
    number = (numbers.Real, np.bool_)
    if as_label is None:
        as_label = all(isinstance(value, whole) for value in values)
    allowed = whole if as_label else number
    for place, value in enumerate(values):
        if not isinstance(value, allowed):
            needed = "a word or whole number" if as_label else "a number"
            return (f"is {short(value)}, not {needed}", names[place]), as_label
    return None, as_label


def _encode(name: str, values: list[object]) -> Category:
    """Codes in sorted order; whole numbers keep their gaps, as everywhere."""
    if all(is_whole(value) for value in values):
        return encode_integers(name, np.array(values, dtype=np.int64))
    return encode_column(name, np.array([str(value) for value in values], dtype=object))


def is_whole(value: object) -> bool:
    """A whole number that fits; a bool is a word here, "True" or "False"."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return False
    return INT64.min <= int(value) <= INT64.max


def short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"a {type(value).__name__}"
