"""Tables of numbers in text, read fast when they are plain and patiently when they are not.

The fast way looks at a few megabytes at a time as an array of bytes and accepts only lines of
non-negative integers between commas; anything else (signs, decimals, blank lines, nonsense) goes
through the patient way, which names the first line that is wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError

T = TypeVar("T", int, float)

CHUNK = 4 * 2**20  # bytes read at a time; small enough to stay in cache while it is parsed
LONGEST_LINE = 2**20
INT_LIMIT = 2**62

_DIGIT, _COMMA, _BLANK, _NEWLINE = 1, 2, 3, 4
_CLASS = np.zeros(256, dtype=np.uint8)  # 0: not part of a plain table
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_CLASS[ord(",")] = _COMMA
_CLASS[[ord(" "), ord("\t"), ord("\r")]] = _BLANK
_CLASS[ord("\n")] = _NEWLINE


def read_integers(
    file: IO[bytes], where: str, columns: int | None = None
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Rows of integers, some thousands at a time, each with the number of its first line.

    Trailing blank lines are no rows. `columns` is taken from the first line when it is not given.
    """
    for line, text in _lines(file, where):
        width = columns or _width(text)
        columns = width
        rows = _plain(text, width)
        if rows is None:
            rows = np.array(_patient(text, width, where, line, int), dtype=np.int64)
        yield line, rows


def read_numbers(file: IO[bytes], where: str) -> NDArray[np.float64]:
    """All rows of a table of floats."""
    parts: list[NDArray[np.float64]] = []
    columns: int | None = None
    for line, text in _lines(file, where):
        columns = columns or _width(text)
        cells = np.array(text.replace(b"\n", b",").split(b","), dtype=np.bytes_)
        try:
            rows = cells.astype(np.float64).reshape(text.count(b"\n") + 1, columns)
        except ValueError:
            rows = np.array(_patient(text, columns, where, line, float), dtype=np.float64)
        parts.append(rows)
    return np.concatenate(parts) if parts else np.zeros((0, columns or 1))


def all_integers(file: IO[bytes], where: str, columns: int | None = None) -> NDArray[np.int64]:
    """All rows of a table of integers."""
    parts = [rows for _, rows in read_integers(file, where, columns)]
    return np.concatenate(parts) if parts else np.zeros((0, columns or 1), np.int64)


def _lines(file: IO[bytes], where: str) -> Iterator[tuple[int, bytes]]:
    """Runs of whole lines without the last line's end, each with its first line's number."""
    line, rest, blank = 1, b"", b""
    while block := file.read(CHUNK):
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            rest += block
            if len(rest) > LONGEST_LINE + CHUNK:
                raise DataError("line is longer than a megabyte", where=f"{where}, line {line}")
            continue
        text, rest = rest + head, tail
        # Blank lines at the end of a run belong to the next one: they may be the file's last.
        stripped = text.rstrip()
        if stripped:
            yield line, blank + stripped
            line += blank.count(b"\n") + stripped.count(b"\n") + 1
            blank = b"\n" * text[len(stripped) :].count(b"\n")
        else:
            blank += b"\n" * (text.count(b"\n") + 1)
    if rest.strip():
        yield line, blank + rest.rstrip()


def _width(text: bytes) -> int:
    return text.partition(b"\n")[0].count(b",") + 1


def _plain(text: bytes, columns: int) -> NDArray[np.int64] | None:
    """Rows of non-negative integers, or None where the text is anything else."""
    buffer = np.frombuffer(b"\n" + text + b"\n", dtype=np.uint8)
    kind = _CLASS[buffer]
    if not kind.all():
        return None
    digit = kind == _DIGIT
    borders = np.flatnonzero(digit[1:] != digit[:-1]) + 1
    starts, ends = borders[0::2], borders[1::2]
    newlines = np.flatnonzero(kind == _NEWLINE)
    commas = np.flatnonzero(kind == _COMMA)
    lines = len(newlines) - 1
    if len(starts) != lines * columns or len(commas) != lines * (columns - 1):
        return None
    starts, ends = starts.reshape(lines, columns), ends.reshape(lines, columns)
    inside = (
        (starts[:, 0] > newlines[:-1]).all()
        and (ends[:, -1] <= newlines[1:]).all()
        and (ends[:, :-1].ravel() <= commas).all()
        and (commas < starts[:, 1:].ravel()).all()
    )
    if not inside:
        return None
    start = starts.ravel()
    length = ends.ravel() - start
    shortest, longest = int(length.min()), int(length.max())
    if longest > 18:  # beyond what 64 bits hold
        return None
    digits = buffer - np.uint8(ord("0"))
    value = digits[start].astype(np.int64)
    for place in range(1, longest):
        if place < shortest:
            value *= 10
            value += digits[start + place]
        else:
            longer = np.flatnonzero(length > place)
            value[longer] = value[longer] * 10 + digits[start[longer] + place]
    return value.reshape(lines, columns)


def _patient(text: bytes, columns: int, where: str, first: int, number: type[T]) -> list[list[T]]:
    """The same line by line, in Python, naming the first line that is wrong."""
    rows = []
    for offset, line in enumerate(text.split(b"\n")):
        place = f"{where}, line {first + offset}"
        cells = line.split(b",")
        if not line.strip():
            raise DataError("blank line inside the table", where=place, hint="remove it")
        if len(cells) != columns:
            raise DataError(f"{len(cells)} cells where {columns} are expected", where=place)
        try:
            values = [number(cell) for cell in cells]
        except ValueError:
            what = "a whole number" if number is int else "a number"
            shown = line[:60].decode("utf-8", "replace").strip()
            raise DataError(f"{shown!r} is not {what}", where=place) from None
        if number is int and any(abs(value) >= INT_LIMIT for value in values):
            raise DataError("number is too large", where=place)
        rows.append(values)
    return rows
