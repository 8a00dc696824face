"""Tables with named columns: CSV or TSV, plain or compressed (.gz, .xz), or Parquet.

`read_table` keeps each column as integer codes of its distinct texts, so that everything after it is array
arithmetic, and the line of every row, so that errors can name it. `feature_table`, `label_matrix` and
`parse_ids` interpret the columns: integers and words are categories, numbers with a decimal point among
them are attributes. An empty cell is a category of its own, a missing label, or an error among numbers.
The separator of a text table, and commas in the place of decimal points, are detected unless they are set.
"""

from __future__ import annotations

import csv
import gzip
import lzma
import re
import zlib
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError, MissingExtraError
from graphsc.core.files import write_atomic
from graphsc.core.registry import require
from graphsc.core.tables import csv_text
from graphsc.data.arrays import MOST_TIMES, Strings, most_unpacked
from graphsc.data.collection import Ids
from graphsc.data.columns import EncodedColumn, FeatureTable, FloatColumn, encode_column, encode_integers

MAX_LINE = 2**20  # characters; a file without line ends must not fill the memory
SHOWN = 200  # characters of a malformed row in their list
MAX_LISTED = 30  # columns that an error message lists
# Integers that survive int() and str(): "007" is a word.
INTEGER = re.compile(r"-?[1-9][0-9]{0,17}|0")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
WHOLE = re.compile(r"[+-]?[0-9]+")
INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)
# Texts of a missing label: those that pandas reads as missing, and NaN in any case.
MISSING = frozenset(
    ("", "NA", "N/A", "n/a", "#N/A", "#NA", "#N/A N/A", "<NA>", "NULL", "null", "None")
    + ("nan", "NaN", "NAN", "Nan", "-nan", "-NaN", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN")
)
# Separators that are detected, and the words for characters that are hard to type.
SEPARATORS = (",", ";", "\t", "|")
SEPARATOR_NAMES = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "pipe": "|", "space": " "}
INSPECTED = 20  # lines that a separator is detected from
RELATION = r"(?:[<>]=?|[≤≥~≈])\s*"  # before the limit of a measurement
# A number with a comma for its decimal point, perhaps after a relation; and one that may be thousands.
COMMA_NUMBER = re.compile(rf"(?:{RELATION})?[+-]?[0-9]+,[0-9]+(?:[eE][+-]?[0-9]+)?")
THOUSANDS = re.compile(rf"(?:{RELATION})?[+-]?[1-9][0-9]{{0,2}},[0-9]{{3}}")
POINT_NUMBER = re.compile(rf"(?:{RELATION})?{NUMBER.pattern}")
Decimal = Literal[".", ","]
EXACT_DIGITS = 15  # whole numbers of so many digits are exact as floats
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class TextColumn:
    """Row i holds the text `values[codes[i]]`; values are distinct, in order of appearance."""

    codes: Codes
    values: list[str]

    def text(self, row: int) -> str:
        return self.values[int(self.codes[row])]


class Malformed(NamedTuple):
    """A row of a table that was left out."""

    line: int
    text: str
    reason: str


@dataclass(frozen=True)
class TextTable:
    """The columns of a file by name, and the line of each row."""

    path: Path
    columns: dict[str, TextColumn]
    lines: Sequence[int]  # from 1, as in an editor
    malformed: tuple[Malformed, ...] = ()  # rows that were left out, in the order of the file

    def where(self, row: int) -> str:
        return f"{self.path}, line {self.lines[row]}"

    def where_value(self, column: str, value: str) -> str:
        """Location of the first row with this text in this column."""
        cells = self.columns[column]
        return self.where(int(np.argmax(cells.codes == cells.values.index(value))))

    def find_column(self, role: str, requested: str | None, synonyms: Collection[str] = ()) -> str:
        """See `find_column`."""
        return find_column(list(self.columns), role, requested, synonyms, self.path)

    def required(self, column: str) -> TextColumn:
        """A column in which no cell may be empty."""
        cells = self.columns[column]
        if "" in cells.values:
            raise DataError(f"cell of {column!r} is empty", where=self.where_value(column, ""))
        return cells

    def columns_except(self, used: Sequence[str]) -> list[str]:
        return [column for column in self.columns if column not in used]

    def without(self, wrong: Mapping[int, str]) -> TextTable:
        """The table without these rows, which are listed as malformed with their reasons."""
        if not wrong:
            return self
        keep = np.ones(len(self.lines), dtype=bool)
        keep[list(wrong)] = False
        rows = np.flatnonzero(keep)
        lost = [
            Malformed(self.lines[row], ", ".join(cells.text(row) for cells in self.columns.values()), reason)
            for row, reason in wrong.items()
        ]
        columns = {}
        for name, cells in self.columns.items():
            # Values of the other rows only, in order of their appearance there.
            used, codes = np.unique(cells.codes[rows], return_inverse=True)
            columns[name] = TextColumn(codes.astype(np.int64), [cells.values[k] for k in used.tolist()])
        return TextTable(
            self.path, columns, [self.lines[row] for row in rows.tolist()],
            tuple(sorted((*self.malformed, *lost))),
        )  # fmt: skip


def find_column(
    names: Sequence[str], role: str, requested: str | None, synonyms: Collection[str], path: Path
) -> str:
    """Name of the column with a role: the requested one, or the only one with a usual name.

    Args:
        names: Column names of the file.
        role: What the column holds; the option to set it is `{role}_column`.
        requested: The column the user asked for, if any.
        synonyms: Usual names of such a column, in lower case.
        path: The file, for errors.
    """
    listing = ", ".join(name for name in names[:MAX_LISTED] if name)
    if len(names) > MAX_LISTED:
        listing += f" and {len(names) - MAX_LISTED} more"
    if len(names) == 1:
        listing += "; if this is several, set separator"
    if requested is not None:
        if requested not in names or not requested:
            raise DataError(f"no column {requested!r}", where=str(path), hint=f"columns: {listing}")
        return requested
    matches = [name for name in names if name.lower() in synonyms]
    if len(matches) != 1:
        reason = f"{' and '.join(matches)} match" if matches else "none has a usual name"
        raise DataError(
            f"cannot tell which column holds the {role}: {reason}",
            where=str(path),
            hint=f"set {role}_column; columns: {listing}",
        )
    return matches[0]


# Files


def table_suffix(path: Path) -> str:
    """`.csv`, `.tsv` or `.parquet`, without a compression suffix; empty for other files."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".xz"):
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in (".csv", ".tsv") else ""
    return suffixes[-1] if suffixes and suffixes[-1] in (".csv", ".tsv", ".parquet") else ""


def table_stem(path: Path) -> str:
    """File name without its suffixes."""
    return path.name[: path.name.lower().rindex(table_suffix(path))]


def separator_of(path: Path, requested: str | None = None) -> str:
    """The character between the cells of a text table.

    Args:
        path: The table.
        requested: A character, or its name; by default the one that gives the header the most cells, and
            the lines after it as many. A table of one column has a comma (a .tsv file a tab).

    Raises:
        ConfigError: If `requested` is no single character.
    """
    if requested is not None:
        separator = SEPARATOR_NAMES.get(requested, requested)
        if len(separator) != 1 or separator in '"\r\n\0' or separator.isalnum():
            raise ConfigError(
                f"separator is {requested!r}", hint=f"use one character, or {', '.join(SEPARATOR_NAMES)}"
            )
        return separator
    usual = "\t" if table_suffix(path) == ".tsv" else ","
    try:
        with open_text(path, errors="replace") as file:
            lines = [line for _ in range(INSPECTED) if (line := file.readline(MAX_LINE))]
    except (OSError, EOFError, ValueError, lzma.LZMAError, zlib.error):
        return usual  # reading the table names the error
    widths = {separator: _widths(lines, separator) for separator in SEPARATORS}
    several = [separator for separator in SEPARATORS if widths[separator] and widths[separator][0] > 1]
    regular = [separator for separator in several if len(set(widths[separator])) == 1]
    candidates = regular or several
    if not candidates:
        return usual
    return max(candidates, key=lambda separator: (widths[separator][0], separator == usual))


def _widths(lines: Sequence[str], separator: str) -> list[int]:
    """The number of cells in each of some lines, blank ones left out."""
    try:
        rows = list(csv.reader(lines, delimiter=separator))
    except csv.Error:
        return []
    return [len(row) for row in rows if len(row) > 1 or "".join(row).strip()]


def open_text(path: Path, errors: str = "strict") -> TextIO:
    """Open a plain or compressed text file; utf-8-sig because Excel writes a byte order mark."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    if path.suffix.lower() == ".xz":
        return lzma.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return open(path, encoding="utf-8-sig", errors=errors, newline="")


@contextmanager
def reading_errors(path: Path) -> Iterator[None]:
    """Turn any error of reading a file into a `DataError` that names the file."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError("compressed file is damaged", where=str(path)) from error
    except (OSError, ValueError) as error:  # a path that contains NUL is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read: {reason}", where=str(path), hint="check the path") from error


def parquet_header(path: Path) -> list[str]:
    """Column names of a Parquet file."""
    with require("pyarrow.parquet").ParquetFile(path) as file:
        return list(file.schema_arrow.names)


def read_header(path: Path, separator: str | None = None) -> list[str]:
    """Column names of a table, or of the values in an SDF file; an empty list if it cannot be read."""
    from graphsc.data.molecules.sdf import is_sdf, sdf_names

    if is_sdf(path):
        try:
            return sdf_names(path)
        except DataError:
            return []
    if table_suffix(path) == ".parquet":
        try:
            return parquet_header(path)
        except (OSError, ValueError, MissingExtraError):
            return []
    try:
        with open_text(path, errors="replace") as file:
            line = file.readline(MAX_LINE)
        header = next(csv.reader([line], delimiter=separator_of(path, separator)), [])
    except (OSError, EOFError, ValueError, csv.Error, lzma.LZMAError, zlib.error):
        return []
    return [cell.strip() for cell in header]


def read_table(path: Path, *, separator: str | None = None, strict: bool = True) -> TextTable:
    """Read a whole table.

    Args:
        path: A CSV, TSV or Parquet file.
        separator: See `separator_of`.
        strict: Refuse a row that has not the header's number of cells, instead of leaving it out.

    Raises:
        DataError: With the line at which the file is not a table.
    """
    suffix = table_suffix(path)
    if not suffix:
        raise DataError(f"{path.name} is not a table we read", hint="use .csv, .tsv (.gz, .xz) or .parquet")
    with reading_errors(path):
        table = _read_parquet(path) if suffix == ".parquet" else _read_text(path, separator, strict)
    if not len(table.lines):
        if table.malformed:
            line, _, reason = table.malformed[0]
            raise DataError(f"no row is well-formed; the first: {reason}", where=f"{path}, line {line}")
        raise DataError("table has no rows", where=str(path))
    return table


def write_malformed(path: Path, rows: Iterable[Malformed]) -> None:
    """List rows that were left out in a CSV file, with cells escaped that a spreadsheet would evaluate."""
    shown = [(row.line, row.text[:SHOWN].replace("\0", "\\0"), row.reason) for row in rows]
    write_atomic(path, csv_text(("line", "cells", "reason"), shown).encode("utf-8", "replace"))


def _read_text(path: Path, separator: str | None, strict: bool) -> TextTable:
    lines = array("q")
    malformed: list[Malformed] = []
    delimiter = separator_of(path, separator)
    with open_text(path) as file:
        reader = csv.reader(_checked_lines(file, path), delimiter=delimiter, strict=True)
        try:
            header = [cell.strip() for cell in next(reader, [])]
            _check_header(header, path)
            codes = [array("q") for _ in header]
            values: list[dict[str, int]] = [{} for _ in header]
            for row in reader:
                if len(row) != len(header):
                    if not "".join(row).strip() and len(row) < 2:
                        continue  # a blank line
                    reason = f"{len(row)} cells where the header has {len(header)}"
                    if strict:
                        raise DataError(reason, where=f"{path}, line {reader.line_num}")
                    malformed.append(Malformed(reader.line_num, delimiter.join(row), reason))
                    continue
                for cell, column, distinct in zip(row, codes, values, strict=True):
                    column.append(distinct.setdefault(cell.strip(), len(distinct)))
                lines.append(reader.line_num)
        except csv.Error as error:
            raise DataError(f"not a table: {error}", where=f"{path}, line {reader.line_num}") from error
        except UnicodeDecodeError as error:
            where = f"{path}, after line {reader.line_num}"
            raise DataError("text is not UTF-8", where=where, hint="save the file as UTF-8") from error
    columns = {
        name: TextColumn(np.array(column, dtype=np.int64), list(distinct))
        for name, column, distinct in zip(header, codes, values, strict=True)
    }
    return TextTable(path, columns, lines, tuple(malformed))


def _checked_lines(file: TextIO, path: Path) -> Iterator[str]:
    number = size = 0
    most = most_unpacked(path.stat().st_size) if path.suffix.lower() in (".gz", ".xz") else None
    while line := file.readline(MAX_LINE):
        number += 1
        size += len(line)
        if most is not None and size > most:
            raise DataError(
                f"compressed table is more than {MOST_TIMES} times its size", where=f"{path}, line {number}",
                hint="unpack it first",
            )  # fmt: skip
        if "\0" in line:
            raise DataError("NUL byte in a table", where=f"{path}, line {number}", hint="save as UTF-8 text")
        if len(line) == MAX_LINE:
            raise DataError("line is longer than a million characters", where=f"{path}, line {number}")
        yield line


def _read_parquet(path: Path) -> TextTable:
    arrow, parquet = require("pyarrow"), require("pyarrow.parquet")
    try:
        table = parquet.read_table(path)
    except arrow.ArrowException as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a Parquet file: {reason}", where=str(path)) from error
    _check_header(table.column_names, path)
    columns = {}
    for name in table.column_names:
        cells = table.column(name)
        if arrow.types.is_dictionary(cells.type):
            cells = cells.cast(cells.type.value_type)
        try:
            encoded = cells.combine_chunks().dictionary_encode("encode")
        except arrow.ArrowException as error:
            raise DataError(
                f"column {name!r} holds nested values", where=str(path), hint="drop it, or flatten it"
            ) from error
        texts = [
            "" if value is None or value != value else str(value) for value in encoded.dictionary.to_pylist()
        ]
        # Two values may have the same text (None and ""), so the codes are renumbered by text.
        distinct: dict[str, int] = {}
        new_codes = np.array([distinct.setdefault(text, len(distinct)) for text in texts], dtype=np.int64)
        columns[name] = TextColumn(new_codes[encoded.indices.to_numpy()], list(distinct))
    return TextTable(path, columns, range(1, table.num_rows + 1))


def _check_header(header: Sequence[str], path: Path) -> None:
    if not header:
        raise DataError("table has no header", where=f"{path}, line 1")
    for place, name in enumerate(header):
        if name in header[:place]:
            raise DataError(f"column {name!r} appears twice", where=f"{path}, line 1", hint="rename one")
        # Names in parentheses are reserved for computed columns.
        if not name or (name.startswith("(") and name.endswith(")")):
            problem = f"name {name!r} of column {place + 1} cannot be used"
            raise DataError(problem, where=f"{path}, line 1", hint="rename it")


# Meaning of the columns


def has_decimal_commas(texts: Iterable[str], decimal: Decimal | None, column: str, where: str) -> bool:
    """Whether commas in these cells of a column are decimal points.

    Args:
        texts: The cells, or some of them.
        decimal: The character that is set; None decides by the cells.
        column: Name of the column, for errors.
        where: The file, for errors.

    Raises:
        DataError: If the cells may as well be thousands, or have the other decimal point than `decimal`.
    """
    others = [text for text in texts if text not in MISSING and not WHOLE.fullmatch(text)]
    found = [text for text in others if COMMA_NUMBER.fullmatch(text)]
    # A few words among the numbers, such as 'n.d.', do not decide; a single number with a point does.
    with_point = [text for text in others if "." in text and POINT_NUMBER.fullmatch(text)]
    if decimal is not None:
        wrong, other = (with_point, ".") if decimal == "," else (found, ",")
        if 2 * len(wrong) > len(others) and len(wrong) == len(found) + len(with_point):
            raise DataError(
                f"{wrong[0]!r} in {column!r} has a {other!r}, but decimal is {decimal!r}", where=where,
                hint=f"set decimal to {other!r}; if it separates thousands, remove it",
            )  # fmt: skip
        return decimal == ","
    if 2 * len(found) <= len(others) or with_point:
        return False
    if all(map(THOUSANDS.fullmatch, found)):
        raise DataError(
            f"{found[0]!r} in {column!r} may be a decimal number or thousands", where=where,
            hint="set decimal to , for decimals; for thousands, remove the commas",
        )  # fmt: skip
    return True


def decimal_point(text: str) -> str:
    """A number with a decimal comma as one with a point; other texts as they are."""
    return text.replace(",", ".") if COMMA_NUMBER.fullmatch(text) else text


def with_decimal_points(table: TextTable, names: Sequence[str], decimal: Decimal | None = None) -> TextTable:
    """The table with points for the decimal commas in these columns."""
    columns = {}
    for name in names:
        cells = table.columns[name]
        if has_decimal_commas(cells.values, decimal, name, str(table.path)):
            distinct: dict[str, int] = {}
            codes = [distinct.setdefault(decimal_point(text), len(distinct)) for text in cells.values]
            columns[name] = TextColumn(np.array(codes, dtype=np.int64)[cells.codes], list(distinct))
    return replace(table, columns={**table.columns, **columns})


def feature_table(table: TextTable, names: Sequence[str], *, numbers: bool = False) -> FeatureTable:
    """These columns as categories and attributes, one row per row of the file.

    With `numbers`, columns of whole numbers are attributes, too.
    """
    categories: list[EncodedColumn] = []
    attributes: list[FloatColumn] = []
    for name in names:
        values = [value for value in table.columns[name].values if value]
        if _is_numeric(table, name) or (numbers and values and all(map(WHOLE.fullmatch, values))):
            attributes.append((name, _floats(table, name)))
        elif values and all_integers(values):
            cells = table.required(name)
            integers = np.array([int(value) for value in cells.values], dtype=np.int64)
            categories.append(encode_integers(name, integers[cells.codes]))
        else:
            cells = table.columns[name]
            ranks, column = encode_column(name, np.array(cells.values, dtype=object))
            categories.append((ranks[cells.codes], column))
    return FeatureTable.from_columns(len(table.lines), categories, attributes)


def label_matrix(
    table: TextTable, tasks: Sequence[str]
) -> tuple[NDArray[np.float64], dict[str, tuple[str, ...]]]:
    """Labels of shape (rows, tasks), NaN for missing ones, and class names of tasks that have classes.

    A column of words has classes. So has one of whole numbers that floats would merge (2^53 and 2^53 + 1).
    """
    labels = np.zeros((len(table.lines), len(tasks)))
    classes: dict[str, tuple[str, ...]] = {}
    for k, task in enumerate(tasks):
        cells = table.columns[task]
        texts = [value for value in cells.values if value not in MISSING]
        numbers = [text for text in texts if NUMBER.fullmatch(text)]
        for text in texts:
            if INFINITE.fullmatch(text) or (NUMBER.fullmatch(text) and np.isinf(float(text))):
                raise DataError(f"label {text[:40]!r} is infinite", where=table.where_value(task, text))
        # Words among numbers with a decimal point are an error; among whole numbers, all are classes.
        if any(not WHOLE.fullmatch(text) for text in numbers) and len(numbers) < len(texts):
            word = next(text for text in texts if not NUMBER.fullmatch(text))
            raise DataError(
                f"{word!r} is not a number, as other cells of {task!r} are",
                where=table.where_value(task, word),
            )
        if len(numbers) == len(texts) and not loses_digits(texts):
            number_of = {text: float(text) for text in texts}
        else:
            classes[task] = class_names(texts)
            number_of = {text: float(code) for code, text in enumerate(classes[task])}
        labels[:, k] = np.array([number_of.get(value, np.nan) for value in cells.values])[cells.codes]
    return labels, classes


def is_inexact(text: str) -> bool:
    """Whether a text is a whole number that no float equals."""
    if len(text) <= EXACT_DIGITS or not WHOLE.fullmatch(text):
        return False
    value = float(text)
    return not np.isinf(value) and int(text) != value


def loses_digits(texts: Collection[str]) -> bool:
    """Whether texts are whole numbers, some of which no float equals, so that two could become one."""
    return any(map(is_inexact, texts)) and all(map(WHOLE.fullmatch, texts))


def class_names(texts: Iterable[str]) -> tuple[str, ...]:
    """Class names in the order of their codes: whole numbers by size, words by the alphabet."""
    names = sorted(texts)
    return tuple(sorted(names, key=int) if all(map(WHOLE.fullmatch, names)) else names)


def parse_ids(texts: Sequence[str]) -> Ids:
    """Integer ids if all texts are integers, else strings."""
    if all_integers(texts):
        return np.array([int(text) for text in texts], dtype=np.int64)
    return Strings.of(texts)


def all_integers(texts: Iterable[str]) -> bool:
    return all(map(INTEGER.fullmatch, texts))


def rows_without_a_number(table: TextTable, names: Sequence[str]) -> dict[int, str]:
    """Rows with an empty cell or a word where most rows have a number with a decimal point, or with an empty
    cell in a column of whole numbers.
    """
    wrong: dict[int, str] = {}
    for name in names:
        cells = table.columns[name]
        is_number = np.array([bool(NUMBER.fullmatch(value)) for value in cells.values])
        numeric = _has_decimals(cells.values) or all_integers(value for value in cells.values if value)
        if not numeric or 2 * is_number[cells.codes].sum() <= len(cells.codes):
            continue
        for row in np.flatnonzero(~is_number[cells.codes]).tolist():
            text = cells.text(row)
            wrong[row] = (
                f"{text[:40]!r} in {name!r} is not a number" if text else f"cell of {name!r} is empty"
            )
    return wrong


def _has_decimals(values: Iterable[str]) -> bool:
    return any(NUMBER.fullmatch(value) and not value.lstrip("+-").isdecimal() for value in values)


def _is_numeric(table: TextTable, column: str) -> bool:
    """Whether a column holds numbers, some of them with a decimal point; an error if it holds both."""
    values = [value for value in table.columns[column].values if value]
    if not _has_decimals(values):
        return False
    for value in values:
        if not NUMBER.fullmatch(value):
            raise DataError(
                f"{value!r} is not a number, as other cells of {column!r} are",
                where=table.where_value(column, value),
            )
    return True


def _floats(table: TextTable, column: str) -> NDArray[np.float64]:
    cells = table.required(column)
    numbers = np.array([float(value) for value in cells.values])
    too_large = np.abs(numbers) > np.finfo(np.float32).max
    if too_large.any():
        value = cells.values[int(np.argmax(too_large))]
        raise DataError(f"{value!r} in {column!r} is too large", where=table.where_value(column, value))
    return numbers[cells.codes]
