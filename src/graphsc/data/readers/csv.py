"""A table of text cells with named columns: CSV or TSV, plain or in .gz or .xz, or Parquet.

Cells are read once, as codes of the distinct texts in a column, so that everything after is arithmetic on
arrays. Every row keeps its line, so that what is wrong with a cell can be said with its place.
"""

from __future__ import annotations

import csv
import gzip
import lzma
import re
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.registry import require
from graphsc.data.arrays import Strings
from graphsc.data.collection import Ids
from graphsc.data.columns import (
    Attribute,
    Category,
    FeatureTable,
    encode_column,
    encode_integers,
    side_by_side,
)

LONGEST_LINE = 2**20  # characters; a file without line ends must not fill the memory
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """A column: row i holds the text `values[codes[i]]`; values are distinct, in order of appearance."""

    codes: Codes
    values: list[str]

    def text(self, row: int) -> str:
        return self.values[int(self.codes[row])]


@dataclass(frozen=True)
class Sheet:
    """A file of named columns."""

    path: Path
    columns: dict[str, Cells]
    lines: Sequence[int]  # of each row, as an editor counts them

    def where(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"

    def where_value(self, column: str, value: str) -> str:
        """The first row with this text in this column."""
        cells = self.columns[column]
        return self.where(int(np.argmax(cells.codes == cells.values.index(value))))

    def pick(self, role: str, asked: str | None, usual: Collection[str] = ()) -> str:
        """The column that plays a role: the one asked for, or the only one with a usual name."""
        listing = f"columns: {', '.join(self.columns)}"
        if asked is not None:
            if asked not in self.columns:
                raise DataError(f"no column {asked!r}", where=str(self.path), hint=listing)
            return asked
        found = [column for column in self.columns if column.lower() in usual]
        if len(found) != 1:
            what = f"{' and '.join(found)} could each be" if found else "none is"
            raise DataError(
                f"which column is the {role}? {what} it",
                where=str(self.path),
                hint=f"set {role}_column; {listing}",
            )
        return found[0]

    def full(self, column: str) -> Cells:
        """A column that may have no empty cell."""
        cells = self.columns[column]
        if "" in cells.values:
            raise DataError(f"cell of {column!r} is empty", where=self.where_value(column, ""))
        return cells

    def rest(self, used: Sequence[str]) -> list[str]:
        return [column for column in self.columns if column not in used]


def kind_of(path: Path) -> str:
    """The suffix that says what a file is, or nothing if it is none of ours."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".xz"):
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in (".csv", ".tsv") else ""
    return suffixes[-1] if suffixes and suffixes[-1] in (".csv", ".tsv", ".parquet") else ""


def stem_of(path: Path) -> str:
    """A sheet's name without its suffixes."""
    return path.name[: path.name.lower().rindex(kind_of(path))]


def peek_header(path: Path) -> list[str]:
    """The names in the first line of a text file, or none if they cannot be read; never an error."""
    try:
        with open_text(path, errors="replace") as file:
            line = file.readline(LONGEST_LINE)
        header = next(csv.reader([line], delimiter=delimiter_of(kind_of(path))), [])
    except (OSError, EOFError, ValueError, csv.Error, lzma.LZMAError, zlib.error):
        return []
    return [cell.strip() for cell in header]


def read_sheet(path: Path) -> Sheet:
    """Read a whole table, or name the line on which it is none."""
    kind = kind_of(path)
    if not kind:
        raise DataError(f"{path.name} is not a table we read", hint="use .csv, .tsv (.gz, .xz) or .parquet")
    try:
        sheet = _read_parquet(path) if kind == ".parquet" else _read_text(path, delimiter_of(kind))
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read table: {reason}", where=str(path), hint="check the path") from error
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError("compressed file is damaged", where=str(path)) from error
    if not len(sheet.lines):
        raise DataError("table has no rows", where=str(path))
    return sheet


def _read_text(path: Path, delimiter: str) -> Sheet:
    lines = array("q")
    with open_text(path) as file:
        reader = csv.reader(_safe_lines(file, path), delimiter=delimiter, strict=True)
        try:
            header = [cell.strip() for cell in next(reader, [])]
            _check_header(header, path)
            codes = [array("q") for _ in header]
            seen: list[dict[str, int]] = [{} for _ in header]
            for row in reader:
                if len(row) != len(header):
                    if not "".join(row).strip() and len(row) < 2:
                        continue  # a blank line
                    raise DataError(
                        f"{len(row)} cells where the header has {len(header)}",
                        where=f"{path}, line {reader.line_num}",
                    )
                for cell, column, distinct in zip(row, codes, seen, strict=True):
                    column.append(distinct.setdefault(cell.strip(), len(distinct)))
                lines.append(reader.line_num)
        except csv.Error as error:
            raise DataError(f"not a table: {error}", where=f"{path}, line {reader.line_num}") from error
        except UnicodeDecodeError as error:
            near = f"{path}, after line {reader.line_num}"
            raise DataError("text is not UTF-8", where=near, hint="save the file as UTF-8") from error
    columns = {
        name: Cells(np.array(column, dtype=np.int64), list(distinct))
        for name, column, distinct in zip(header, codes, seen, strict=True)
    }
    return Sheet(path, columns, lines)


def _safe_lines(file: TextIO, path: Path) -> Iterator[str]:
    number = 0
    while line := file.readline(LONGEST_LINE):
        number += 1
        if "\0" in line:
            raise DataError("NUL byte in a table", where=f"{path}, line {number}", hint="save as UTF-8 text")
        if len(line) == LONGEST_LINE:
            raise DataError("line is longer than a million characters", where=f"{path}, line {number}")
        yield line


def _read_parquet(path: Path) -> Sheet:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a Parquet file: {reason}", where=str(path)) from error
    _check_header(table.column_names, path)
    columns = {}
    for column in table.column_names:
        cells = table.column(column)
        if arrow.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        try:
            coded = cells.combine_chunks().dictionary_encode("encode")
        except arrow.ArrowException as error:
            raise DataError(
                f"column {column!r} has no plain cells",
                where=str(path),
                hint="drop it, or spread it out",
            ) from error
        texts = [
            "" if value is None or value != value else str(value) for value in coded.dictionary.to_pylist()
        ]
        # Two values may have one text (None and ""): code anew, by text.
        distinct: dict[str, int] = {}
        again = np.array([distinct.setdefault(text, len(distinct)) for text in texts], dtype=np.int64)
        columns[column] = Cells(again[coded.indices.to_numpy()], list(distinct))
    return Sheet(path, columns, range(1, table.num_rows + 1))


def _check_header(header: Sequence[str], path: Path) -> None:
    if not header:
        raise DataError("table has no header", where=f"{path}, line 1")
    for place, name in enumerate(header):
        if name in header[:place]:
            raise DataError(f"column {name!r} appears twice", where=f"{path}, line 1", hint="rename one")
        # Names in parentheses are those of computed columns.
        if not name or (name.startswith("(") and name.endswith(")")):
            problem = f"name {name!r} of column {place + 1} cannot be used"
            raise DataError(problem, where=f"{path}, line 1", hint="rename it")


def delimiter_of(kind: str) -> str:
    return "\t" if kind == ".tsv" else ","


def open_text(path: Path, errors: str = "strict") -> TextIO:
    """A file as text; utf-8-sig because Excel begins files with a byte order mark."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    if path.suffix.lower() == ".xz":
        return lzma.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return open(path, encoding="utf-8-sig", errors=errors, newline="")


# What the columns of a sheet mean: categories, attributes, labels, ids.
#
# Whole numbers and words are categories, numbers with a decimal point among them are attributes. An empty
# cell is a word like others, a missing label, or an error among numbers.


# Whole numbers that text and back leaves as they are: "007" is a word, so that it stays one.
WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


def all_whole(texts: Iterable[str]) -> bool:
    return all(map(WHOLE.fullmatch, texts))


def as_table(sheet: Sheet, names: Sequence[str]) -> FeatureTable:
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
