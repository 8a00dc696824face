"""Rows of molecules, streamed from a list of SMILES, a .smi or .sdf file, or a table.

An invalid row is passed on with its problem, so that it can be listed; only an unreadable file is an error.
"""

from __future__ import annotations

import csv
import hashlib
import re
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TextIO

from graphsc.core.chunks import ChunkStore
from graphsc.core.errors import DataError
from graphsc.core.parts import FileTask, Payload, file_hash, source_changed
from graphsc.core.registry import require
from graphsc.data.molecules.sdf import is_sdf, records_of, sdf_names, smiles_of
from graphsc.data.readers.csv import (
    Decimal,
    decimal_point,
    find_column,
    has_decimal_commas,
    open_text,
    parquet_header,
    reading_errors,
    separator_of,
    table_stem,
    table_suffix,
)

# Names under which a column is taken to hold SMILES.
SMILES_COLUMNS = (
    "smiles", "smile", "smiles_string", "canonical_smiles", "canonicalsmiles", "isomeric_smiles",
    "isomericsmiles", "mol", "molecule", "structure",
)  # fmt: skip
ID = "id"  # a column of this name, in any case, holds the ids by default
ALL = "*"  # as label column: every column except those of SMILES and ids
SMILES_SUFFIXES = (".smi", ".smiles")
SMILES_HEADERS = ("smiles", "canonical_smiles", "isomeric_smiles")  # first word of a .smi file's header line
INSPECTED = 1_000  # entries that decide whether a list holds strings, or a column decimal commas
LONGEST_LINE = 100_000  # characters; below the field limit of Python's csv module
PARQUET_BATCH = 4_096  # rows
TOO_LONG = "\0too long"  # replaces a longer line; a text with NUL is never a molecule


def smiles_columns(header: Sequence[str]) -> list[str]:
    """The columns with a usual name for SMILES; if none has one, those with this word in their name."""
    usual = [name for name in header if name.lower() in SMILES_COLUMNS]
    return usual or [name for name in header if "smiles" in re.split(r"[\s_.()\[\]-]+", name.lower())]


class Row(NamedTuple):
    """One row of a source."""

    number: int  # from 0
    line: int  # line of the file, from 1
    smiles: str
    id: str | None = None
    labels: tuple[str, ...] = ()
    problem: str | None = None  # why the row is invalid
    cells: tuple[str, ...] = ()  # all of the row, also of one whose length is not the header's, if asked for


@dataclass(frozen=True)
class Source:
    """A source of rows; reading starts anew with every call of `rows`."""

    name: str
    where: str
    rows: Callable[[], Iterator[Row]]
    fingerprint: Callable[[], str]
    tasks: tuple[str, ...] = ()
    has_ids: bool = False
    columns: tuple[str, ...] = ()  # names of the cells; "" where a column has none


def open_rows(
    source: object,
    *,
    smiles_column: str | None = None,
    label_columns: str | Sequence[str] | None = None,
    id_column: str | None = None,
    separator: str | None = None,
    decimal: Decimal | None = None,
    keep_cells: bool = False,
) -> Source:
    """Open a list of SMILES, a .smi or .sdf file or a table, of which only the start is read here.

    With `keep_cells`, a row of a file has all its cells as they are in the file. `id_column` is a column
    called `id` by default, if there is one.
    """
    if isinstance(source, (str, Path)):
        path = Path(source)
        if is_smiles_file(path):
            _refuse_columns(smiles_column, label_columns, id_column, f"{path.name} has no named columns")
            return rows_of_file(path, keep_cells)
        if is_sdf(path):
            _refuse_columns(smiles_column, None, None, f"{path.name} has structures")
            return rows_of_sdf(path, label_columns, id_column, decimal, keep_cells)
        if table_suffix(path):
            return rows_of_table(
                path,
                smiles_column,
                label_columns,
                id_column,
                keep_cells,
                separator=separator,
                decimal=decimal,
            )
        hint = "use .smi, .sdf, .csv or .tsv (.gz, .xz), or .parquet"
        raise DataError(f"{path.name} is not a list of molecules", hint=hint)
    _refuse_columns(smiles_column, label_columns, id_column, "a list of strings has no named columns")
    if not is_strings(source):
        raise DataError(f"a {type(source).__name__} is not a list of SMILES strings")
    return rows_of_strings(source)


def molecule_ids(
    source: str | Path,
    *,
    smiles_column: str | None = None,
    id_column: str | None = None,
    separator: str | None = None,
) -> list[str]:
    """The id of each row of a file, or its number where it has none; no molecule is read."""
    path = Path(source)
    if is_sdf(path):
        _, ids = _labels_and_ids(sdf_names(path), None, id_column, None, path)
        records = list(records_of(path))
        titled = ids is None and bool(records) and bool(records[0].title)
        texts = [record.values.get(ids, "") if ids else record.title if titled else "" for record in records]
        return [text or str(number) for number, text in enumerate(texts)]
    table = open_rows(path, smiles_column=smiles_column, id_column=id_column, separator=separator)
    return [row.id or str(row.number) for row in table.rows()]


def _refuse_columns(
    smiles: str | None, labels: str | Sequence[str] | None, ids: str | None, reason: str
) -> None:
    for option, value in (("smiles_column", smiles), ("label_columns", labels), ("id_column", ids)):
        if value:
            raise DataError(f"{reason}, so {option} has no effect", hint=f"leave out {option}")


def is_strings(source: object) -> bool:
    """Whether this is a list, tuple, array or pandas column whose first non-missing entry is a string."""
    if isinstance(source, (list, tuple)):
        start: list[object] = list(source[:INSPECTED])
    elif getattr(source, "ndim", 0) == 1 and hasattr(source, "tolist"):
        start = source[:INSPECTED].tolist()  # type: ignore[index]
    else:
        return False
    return isinstance(next((text for text in start if not _missing(text)), None), str)


def _missing(text: object) -> bool:
    return text is None or (isinstance(text, float) and text != text)  # pandas uses NaN


def rows_of_strings(strings: object) -> Source:
    """The entries of a list; one that is not a string, such as None, is an invalid row."""
    texts: list[object] = list(strings if isinstance(strings, (list, tuple)) else strings.tolist())  # type: ignore[attr-defined]

    def rows() -> Iterator[Row]:
        for number, text in enumerate(texts):
            if isinstance(text, str):
                yield Row(number, number + 1, text.strip())
            else:
                problem = "empty" if _missing(text) else f"not text but {type(text).__name__}"
                yield Row(number, number + 1, "", problem=problem)

    def fingerprint() -> str:
        return hashlib.sha256(repr(texts).encode("utf-8", "replace")).hexdigest()

    return Source("molecules", "list", rows, fingerprint)


def is_smiles_file(path: Path) -> bool:
    """Whether the name ends in .smi or .smiles, possibly followed by .gz or .xz."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".xz"):
        suffixes.pop()
    return bool(suffixes) and suffixes[-1] in SMILES_SUFFIXES


def rows_of_file(path: Path, keep_cells: bool = False) -> Source:
    """The lines of a .smi file: a SMILES, and an id after a space or tab if the first line has one."""
    with reading_errors(path), open_text(path, errors="replace") as file:
        first = next((line for line in bounded_lines(file) if line.strip()), "").split(maxsplit=1)
    stem = path.name[: max(path.name.lower().rfind(suffix) for suffix in SMILES_SUFFIXES)]
    header = bool(first) and first[0].lower() in SMILES_HEADERS
    has_ids = len(first) > 1 and not first[1].startswith("|")

    def rows() -> Iterator[Row]:
        number = 0
        skip = header
        with reading_errors(path), open_text(path, errors="replace") as file:
            for line, text in enumerate(bounded_lines(file), start=1):
                text = text.strip()
                if not text:
                    continue
                if skip:
                    skip = False
                    continue
                if text == TOO_LONG:
                    yield Row(number, line, "", problem=f"line is longer than {LONGEST_LINE:,} characters")
                else:
                    smiles, *rest = text.split(maxsplit=1)
                    others = rest[0].split("\t") if rest else []
                    row_id = others[0].strip() if has_ids and rest else None  # it ends at the next tab
                    yield Row(number, line, smiles, row_id, cells=(smiles, *others) if keep_cells else ())
                number += 1

    columns = ("smiles", "id") if has_ids else ("smiles",)
    return Source(stem, str(path), rows, lambda: hash_of(path), has_ids=has_ids, columns=columns)


def rows_of_table(
    path: Path,
    smiles_column: str | None,
    label_columns: str | Sequence[str] | None,
    id_column: str | None,
    keep_cells: bool = False,
    *,
    separator: str | None = None,
    decimal: Decimal | None = None,
) -> Source:
    """The rows of a CSV, TSV or Parquet table."""
    is_parquet = table_suffix(path) == ".parquet"
    delimiter = "" if is_parquet else separator_of(path, separator)
    with reading_errors(path):
        header = parquet_header(path) if is_parquet else _text_header(path, delimiter)
    if not any(header):
        raise DataError("table has no header", where=f"{path}, line 1")
    for place, name in enumerate(header):
        if name and name in header[:place]:
            raise DataError(f"column {name!r} appears twice", where=f"{path}, line 1", hint="rename one")
    smiles = find_column(
        header, "smiles", smiles_column, [name.lower() for name in smiles_columns(header)], path
    )
    tasks, ids = _labels_and_ids(header, label_columns, id_column, smiles, path)
    if smiles in tasks:
        raise DataError(f"column {smiles!r} holds the molecules and cannot be a label", where=str(path))
    at = header.index(smiles)
    at_id = None if ids is None else header.index(ids)
    at_labels = [header.index(task) for task in tasks]
    width = len(header)

    def all_lines() -> Iterator[tuple[int, list[str]]]:
        return _parquet_lines(path) if is_parquet else _text_lines(path, delimiter)

    with reading_errors(path):
        first = [cells for _, cells in islice(all_lines(), INSPECTED) if len(cells) == width] if tasks else []
    point = [
        has_decimal_commas([cells[place].strip() for cells in first], decimal, task, str(path))
        for task, place in zip(tasks, at_labels, strict=True)
    ]

    def labels_of(cells: Sequence[str]) -> tuple[str, ...]:
        texts = tuple([cells[place].strip() for place in at_labels])
        if not any(point):
            return texts
        return tuple(decimal_point(text) if comma else text for text, comma in zip(texts, point, strict=True))

    def rows() -> Iterator[Row]:
        with reading_errors(path):
            lines = all_lines()
            for number, (line, cells) in enumerate(lines):
                too_long = bool(cells) and cells[-1] == TOO_LONG
                kept = tuple(cells) if keep_cells and not too_long else ()
                if too_long or len(cells) != width:
                    problem = (
                        f"line is longer than {LONGEST_LINE:,} characters" if too_long
                        else f"{len(cells)} cells where the header has {width}"
                    )  # fmt: skip
                    text = cells[at] if at < len(cells) and not too_long else ""
                    yield Row(number, line, text, str(number), ("",) * len(tasks), problem, kept)
                    continue
                yield Row(
                    number,
                    line,
                    cells[at].strip(),
                    None if at_id is None else cells[at_id].strip(),
                    labels_of(cells),
                    None,
                    kept,
                )

    return Source(
        table_stem(path), str(path), rows, lambda: hash_of(path), tasks, at_id is not None, tuple(header)
    )


def _labels_and_ids(
    header: Sequence[str],
    label_columns: str | Sequence[str] | None,
    id_column: str | None,
    smiles: str | None,
    path: Path,
) -> tuple[tuple[str, ...], str | None]:
    """The columns of labels, and that of the ids, which is one called `id` unless it is a label."""
    requested = (label_columns,) if isinstance(label_columns, str) else tuple(label_columns or ())
    every = requested == (ALL,)
    tasks = () if every else tuple(find_column(header, "label", name, (), path) for name in requested)
    if id_column is not None:
        ids: str | None = find_column(header, "id", id_column, (), path)
    else:
        usual = [name for name in header if name.lower() == ID and name not in (smiles, *tasks)]
        ids = usual[0] if len(usual) == 1 else None
    if every:
        tasks = tuple(name for name in header if name and name not in (smiles, ids))
    return tasks, ids


def rows_of_sdf(
    path: Path,
    label_columns: str | Sequence[str] | None,
    id_column: str | None,
    decimal: Decimal | None = None,
    keep_cells: bool = False,
) -> Source:
    """The records of an SDF file; ids are its values called `id`, or its titles if the first one has one."""
    names = sdf_names(path)
    tasks, ids = _labels_and_ids(names, label_columns, id_column, None, path)
    first = list(islice(records_of(path), INSPECTED))
    titled = bool(first) and bool(first[0].title)
    point = [
        has_decimal_commas([record.values.get(task, "") for record in first], decimal, task, str(path))
        for task in tasks
    ]
    own = []
    for name in ("smiles", "title"):
        while name in names:
            name += "_"
        own.append(name)

    def rows() -> Iterator[Row]:
        for number, record in enumerate(records_of(path)):
            smiles, problem = smiles_of(record)
            row_id = record.values.get(ids, "") if ids is not None else record.title if titled else None
            labels = [record.values.get(task, "") for task in tasks]
            labels = [
                decimal_point(text) if comma else text for text, comma in zip(labels, point, strict=True)
            ]
            cells = (smiles, record.title, *(record.values.get(name, "") for name in names))
            yield Row(
                number, record.line, smiles, row_id, tuple(labels), problem, cells if keep_cells else ()
            )

    stem = path.name[: path.name.lower().rindex(".sdf")]
    has_ids = ids is not None or titled
    return Source(stem, str(path), rows, lambda: hash_of(path), tasks, has_ids, (*own, *names))


def _text_header(path: Path, delimiter: str) -> list[str]:
    with open_text(path, errors="replace") as file:
        lines = csv.reader(bounded_lines(file), delimiter=delimiter)
        return [cell.strip() for cell in next(lines, [])]


def _text_lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a text table, without header and blank lines."""
    with open_text(path, errors="replace") as file:
        reader = csv.reader(bounded_lines(file), delimiter=delimiter, strict=True)
        try:
            next(reader)
            for cells in reader:
                if len(cells) >= 2 or "".join(cells).strip():
                    yield reader.line_num, cells
        except csv.Error as error:
            where = f"{path}, line {reader.line_num}"
            raise DataError(f"not a table: {error}", where=where, hint="correct the quotes there") from error


def _parquet_lines(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Row number from 1 and cells of each row of a Parquet file; a missing value is an empty text."""
    line = 0
    with require("pyarrow.parquet").ParquetFile(path) as file:
        for batch in file.iter_batches(PARQUET_BATCH):
            for values in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                line += 1
                yield line, ["" if value is None or value != value else str(value) for value in values]


def bounded_lines(file: TextIO) -> Iterator[str]:
    """Lines of bounded length, so that a file without line ends does not fill the memory."""
    while line := file.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith("\n"):
            while (more := file.readline(LONGEST_LINE)) and not more.endswith("\n"):
                pass
            line = TOO_LONG + "\n"
        yield line


def hash_of(path: Path) -> str:
    """SHA-256 of a file's bytes."""
    with reading_errors(path):
        return file_hash(path)


def chunks_of(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Lists of `size` rows; the last may be shorter."""
    while chunk := list(islice(rows, size)):
        yield chunk


# Number of the first row, lines, texts, ids, labels, problems by position; None if no row has any.
Packed = tuple[
    int, list[int], list[str], list[str | None] | None, list[list[str]] | None, list[tuple[int, str]]
]


def pack(rows: Sequence[Row]) -> Packed:
    """Consecutive rows as columns, which take a third of the time to send to another process."""
    return (
        rows[0].number,
        [row.line for row in rows],
        [row.smiles for row in rows],
        [row.id for row in rows] if any(row.id is not None for row in rows) else None,
        [list(row.labels) for row in rows] if rows[0].labels else None,
        [(place, row.problem) for place, row in enumerate(rows) if row.problem is not None],
    )


def unpack(packed: Packed) -> list[Row]:
    """Inverse of `pack`."""
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


class RowsTask(FileTask[Payload]):
    """A file that is computed from the molecules of a table or a .smi file.

    A worker gets the SMILES of a chunk, without ids and labels. Its facts must have the hash of these rows
    under `sha256`: the second pass, which writes the target, refuses rows that are not those of the first.
    """

    table: Source  # set by `open`

    def __init__(self, path: Path, target: Path) -> None:
        super().__init__(str(path), target)
        self.path = path

    def fingerprint(self) -> str:
        return hash_of(self.path)

    @abstractmethod
    def piece(self, rows: Packed) -> Payload:
        """What a worker gets for a chunk of rows."""

    def pieces(self, missing: Collection[int]) -> Iterator[tuple[int, Payload]]:
        for index, rows in enumerate(chunks_of(self.table.rows(), self.chunk)):
            if index in missing:
                yield index, self.piece(_molecules_of(rows))

    def stored_rows(self, chunks: ChunkStore) -> Iterator[tuple[int, list[Row]]]:
        """Index and rows of every chunk, which are checked against those that were computed.

        Raises:
            DataError: The source was replaced meanwhile.
        """
        seen = 0
        for index, rows in enumerate(chunks_of(self.table.rows(), self.chunk)):
            if index not in chunks or chunks.facts(index).get("sha256") != hash_of_rows(_molecules_of(rows)):
                raise source_changed(self.source)
            seen += len(rows)
            yield index, rows
        if seen != self.rows:
            raise source_changed(self.source)


def _molecules_of(rows: Sequence[Row]) -> Packed:
    return pack([row._replace(labels=(), id=None) for row in rows])


def hash_of_rows(rows: Packed) -> str:
    """SHA-256 of packed rows."""
    return hashlib.sha256(repr(rows).encode("utf-8", "replace")).hexdigest()
