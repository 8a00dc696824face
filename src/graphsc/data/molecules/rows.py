"""Rows of molecules as they stand in a source, read as a stream.

A row that cannot be used is handed on with its problem, to be listed with the others; only what makes a whole
file unreadable is an error.
"""

from __future__ import annotations

import csv
import hashlib
import lzma
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from graphsc.core.errors import DataError
from graphsc.data.readers.csv import delimiter_of, kind_of, open_text, stem_of

LOOK_AT = 1_000  # entries of a list, to see what it holds


class Row(NamedTuple):
    """One row: its number from 0, its line, its text, and why it cannot be used, if so."""

    number: int
    line: int
    smiles: str
    id: str | None = None
    labels: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True)
class Source:
    """Where rows come from, and what their cells mean."""

    name: str
    where: str
    rows: Callable[[], Iterator[Row]]  # from the start, each time it is called
    fingerprint: Callable[[], str]
    tasks: tuple[str, ...] = ()
    has_ids: bool = False


def is_strings(source: object) -> bool:
    """Whether this is a list (tuple, array, pandas column) of strings, by its first entry that is there."""
    if isinstance(source, (list, tuple)):
        start: list[object] = list(source[:LOOK_AT])
    elif getattr(source, "ndim", 0) == 1 and hasattr(source, "tolist"):
        start = source[:LOOK_AT].tolist()  # type: ignore[index]
    else:
        return False
    return isinstance(next((text for text in start if not _missing(text)), None), str)


def _missing(text: object) -> bool:
    return text is None or (isinstance(text, float) and text != text)  # NaN is how pandas says it


def rows_of_strings(strings: object) -> Source:
    """A list of strings; anything else in it, such as None, is a row that cannot be used."""
    texts: list[object] = list(strings if isinstance(strings, (list, tuple)) else strings.tolist())  # type: ignore[attr-defined]

    def rows() -> Iterator[Row]:
        for number, text in enumerate(texts):
            if isinstance(text, str):
                yield Row(number, number + 1, text.strip())
            else:
                problem = "empty" if _missing(text) else f"not text but {type(text).__name__}"
                yield Row(number, number + 1, "", problem=problem)

    return Source(
        "molecules", "list", rows, lambda: sha256(repr(texts).encode("utf-8", "replace")).hexdigest()
    )


def chunks_of(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Rows by so many at a time."""
    while chunk := list(islice(rows, size)):
        yield chunk


# Number of the first row, lines, texts, ids, labels, problems by position; None where no row has any.
Packed = tuple[
    int, list[int], list[str], list[str | None] | None, list[list[str]] | None, list[tuple[int, str]]
]


def pack(rows: Sequence[Row]) -> Packed:
    """Rows that follow each other as columns: a third of the work of sending them one by one."""
    return (
        rows[0].number,
        [row.line for row in rows],
        [row.smiles for row in rows],
        [row.id for row in rows] if any(row.id is not None for row in rows) else None,
        [list(row.labels) for row in rows] if rows[0].labels else None,
        [(place, row.problem) for place, row in enumerate(rows) if row.problem is not None],
    )


def unpack(packed: Packed) -> list[Row]:
    """What `pack` packed."""
    first, lines, texts, ids, labels, problems = packed
    problem_of = dict(problems)
    return [
        Row(
            first + place,
            lines[place],
            text,
            None if ids is None else ids[place],
            () if labels is None else tuple(labels[place]),
            problem_of.get(place),
        )
        for place, text in enumerate(texts)
    ]


# Lines and errors of text files that people bring: bounded, and told in a sentence.


LONGEST_LINE = 100_000  # characters; under the limit of Python's csv module for one cell
TOO_LONG = "\0too long"  # stands for a longer line; no text with a NUL is taken for a molecule


def bounded_lines(file: TextIO) -> Iterator[str]:
    """Lines of bounded length, so that a file without line ends does not fill the memory."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            while (more := file.readline(LONGEST_LINE)) and not more.endswith("\n"):
                pass
            line = TOO_LONG + "\n"
        yield line


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Whatever reading this file may raise, as one sentence with its place."""
    try:
        yield
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError("compressed file is damaged", where=str(path)) from error
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"cannot read: {reason}", where=str(path), hint="check the path") from error


def hash_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with readable(path), open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Files of one SMILES string a line, with or without an id behind it.


ENDINGS = (".smi", ".smiles")
HEADERS = ("smiles", "canonical_smiles", "isomeric_smiles")  # some files begin with a line of names


def is_smiles_file(path: Path) -> bool:
    """Whether a file is a list of SMILES by its name: .smi or .smiles, also with .gz or .xz."""
    endings = [ending.lower() for ending in path.suffixes]
    if endings and endings[-1] in (".gz", ".xz"):
        endings.pop()
    return bool(endings) and endings[-1] in ENDINGS


def rows_of_file(path: Path) -> Source:
    """One molecule a line, its id behind a space or tab where the first line has one."""
    with readable(path), open_text(path, errors="replace") as file:
        first = next((line for line in bounded_lines(file) if line.strip()), "").split(maxsplit=1)
    stem = path.name[: max(path.name.lower().rfind(ending) for ending in ENDINGS)]
    header = bool(first) and first[0].lower() in HEADERS
    has_ids = len(first) > 1 and not first[1].startswith("|")

    def rows() -> Iterator[Row]:
        number = 0
        skip = header
        with readable(path), open_text(path, errors="replace") as file:
            for line, text in enumerate(bounded_lines(file), start=1):
                text = text.strip()
                if not text:
                    continue
                if skip:
                    skip = False
                    continue
                if text == TOO_LONG:
                    problem = f"line is longer than {LONGEST_LINE:,} characters"
                    yield Row(number, line, "", problem=problem)
                else:
                    smiles, *rest = text.split(maxsplit=1)
                    # The id is what stands behind the SMILES, up to the next tab.
                    identity = rest[0].split("\t")[0].strip() if has_ids and rest else None
                    yield Row(number, line, smiles, identity)
                number += 1

    return Source(stem, str(path), rows, lambda: hash_of(path), has_ids=has_ids)


# Tables with a column of SMILES: CSV or TSV, plain or in .gz or .xz.


# Names under which a column is taken for SMILES without being asked for.
USUAL = (
    "smiles", "smile", "smiles_string", "canonical_smiles", "canonicalsmiles", "isomeric_smiles",
    "isomericsmiles", "mol", "molecule", "structure",
)  # fmt: skip
ALL = "*"  # as label column: every one but those of SMILES and ids


def rows_of_table(
    path: Path, smiles_column: str | None, label_columns: str | Sequence[str] | None, id_column: str | None
) -> Source:
    """The rows of a table; its header is read here, and decides what each column is."""
    delimiter = delimiter_of(kind_of(path))
    with readable(path), open_text(path, errors="replace") as file:
        header = [cell.strip() for cell in next(csv.reader(bounded_lines(file), delimiter=delimiter), [])]
    if not any(header):
        raise DataError("table has no header", where=f"{path}, line 1")
    for place, name in enumerate(header):
        if name and name in header[:place]:
            raise DataError(f"column {name!r} appears twice", where=f"{path}, line 1", hint="rename one")
    smiles = _pick_smiles(header, smiles_column, path)
    identity = None if id_column is None else _column(header, id_column, path)
    asked = (label_columns,) if isinstance(label_columns, str) else tuple(label_columns or ())
    rest = [name for name in header if name and name not in (smiles, identity)]
    tasks = tuple(rest) if asked == (ALL,) else tuple(_column(header, name, path) for name in asked)
    if smiles in tasks:
        raise DataError(f"column {smiles!r} holds the molecules and cannot be a label", where=str(path))
    at = header.index(smiles)
    at_id = None if identity is None else header.index(identity)
    at_labels = [header.index(task) for task in tasks]
    width = len(header)

    def rows() -> Iterator[Row]:
        with readable(path), open_text(path, errors="replace") as file:
            reader = csv.reader(bounded_lines(file), delimiter=delimiter, strict=True)
            number = -1
            try:
                next(reader)
                for cells in reader:
                    if len(cells) < 2 and not "".join(cells).strip():
                        continue  # a blank line
                    number += 1
                    long = cells[-1] == TOO_LONG
                    if long or len(cells) != width:
                        problem = (
                            f"line is longer than {LONGEST_LINE:,} characters" if long
                            else f"{len(cells)} cells where the header has {width}"
                        )  # fmt: skip
                        text = cells[at] if at < len(cells) and not long else ""
                        yield Row(number, reader.line_num, text, str(number), ("",) * len(tasks), problem)
                        continue
                    yield Row(
                        number,
                        reader.line_num,
                        cells[at].strip(),
                        None if at_id is None else cells[at_id].strip(),
                        tuple([cells[place].strip() for place in at_labels]),
                    )
            except csv.Error as error:
                where = f"{path}, line {reader.line_num}"
                raise DataError(f"not a table: {error}", where=where, hint="mend the quotes there") from error

    return Source(stem_of(path), str(path), rows, lambda: hash_of(path), tasks, at_id is not None)


def _pick_smiles(header: Sequence[str], asked: str | None, path: Path) -> str:
    if asked is not None:
        return _column(header, asked, path)
    found = [name for name in header if name.lower() in USUAL]
    if len(found) == 1:
        return found[0]
    which = f"{' and '.join(found)} could each be it" if found else "none has a usual name"
    raise DataError(
        f"which column holds the SMILES? {which}",
        where=str(path),
        hint=f"set smiles_column; columns: {_listing(header)}",
    )


def _column(header: Sequence[str], asked: str, path: Path) -> str:
    if asked not in header or not asked:
        raise DataError(f"no column {asked!r}", where=str(path), hint=f"columns: {_listing(header)}")
    return asked


def _listing(header: Sequence[str]) -> str:
    shown = ", ".join(name for name in header[:30] if name)
    return f"{shown} and {len(header) - 30} more" if len(header) > 30 else shown


# Molecules of any source that holds SMILES: which reader it needs, and what its rows mean.


def open_rows(
    source: object,
    *,
    smiles_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
) -> Source:
    """What rows a source has; tables are opened here as far as their header."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        if is_smiles_file(path):
            _refuse_columns(smiles_column, label_columns, id_column, f"{path.name} has no named columns")
            return rows_of_file(path)
        if kind_of(path) in (".csv", ".tsv"):
            return rows_of_table(path, smiles_column, label_columns, id_column)
        raise DataError(f"{path.name} is not a list of molecules", hint="use .smi, .csv or .tsv (.gz, .xz)")
    _refuse_columns(smiles_column, label_columns, id_column, "a list of strings has no named columns")
    if not is_strings(source):
        raise DataError(f"a {type(source).__name__} is not a list of SMILES strings")
    return rows_of_strings(source)


def _refuse_columns(
    smiles: str | None, labels: str | Sequence[str] | None, identity: str | None, why: str
) -> None:
    for option, value in (("smiles_column", smiles), ("label_columns", labels), ("id_column", identity)):
        if value:
            raise DataError(f"{why}, so {option} says nothing", hint=f"leave out {option}")
