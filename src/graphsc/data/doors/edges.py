"""Edge lists as a data warehouse gives them: CSV, TSV or Parquet with one edge a row.

A row names a graph and two of its nodes; other columns are known of the edge. A second table may list
the nodes, a third the graphs with their labels. Whole numbers and words are categories, numbers with a
decimal point among them are attributes. Cells are read once, as codes of the distinct texts in a
column, so that everything after is arithmetic on arrays.
"""

from __future__ import annotations

import csv
import gzip
import lzma
import re
import zlib
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DataError
from graphsc.core.extras import require
from graphsc.data.assemble import assemble
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.doors import DOORS, Door
from graphsc.data.ragged import pointer
from graphsc.data.strings import Strings
from graphsc.data.table import Column, Table, encode_column, encode_integers

SYNONYMS = {
    "graph": ("graph_id", "graph", "gid"),
    "source": ("source", "src", "from", "u"),
    "target": ("target", "dst", "destination", "to", "v"),
    "node": ("node_id", "node", "nid"),
}
LONGEST_LINE = 2**20  # characters; a file without line ends must not fill the memory
# Whole numbers that text and back leaves as they are: "007" is a word, so that it stays one.
WHOLE = re.compile(r"-?[1-9][0-9]{0,17}|0")
NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Cells:
    """A column: row i holds the text `values[codes[i]]`; values are distinct, in order of appearance."""

    codes: Codes
    values: list[str]

    def all_whole(self) -> bool:
        return all(map(WHOLE.fullmatch, self.values))


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

    def rest(self, used: Sequence[str]) -> list[str]:
        return [column for column in self.columns if column not in used]


def accepts_edges(source: object) -> bool:
    """Whether this is a table with columns that look like the two ends of an edge."""
    if not isinstance(source, (str, Path)) or not (kind := _kind(Path(source))):
        return False
    if kind == ".parquet":
        return True
    try:
        with _open(Path(source), errors="replace") as file:
            header = next(csv.reader([file.readline(LONGEST_LINE)], delimiter=_delimiter(kind)), [])
    except (OSError, EOFError, ValueError, csv.Error, lzma.LZMAError, zlib.error):
        return False
    names = {cell.strip().lower() for cell in header}
    return all(names.intersection(SYNONYMS[role]) for role in ("source", "target"))


def read_edges(
    source: str | Path,
    /,
    *,
    name: str | None = None,
    features: str = "auto",
    nodes: str | Path | None = None,
    graphs: str | Path | None = None,
    graph_column: str | None = None,
    source_column: str | None = None,
    target_column: str | None = None,
    node_column: str | None = None,
    label_columns: tuple[str, ...] | None = None,
    directed: bool = False,
    allow_empty: bool = False,
) -> GraphCollection:
    """Read an edge list; columns not named here are guessed among the usual names.

    `nodes` is a table of graph, node and what is known of it: it decides which nodes there are, and
    their order (else: those with edges, sorted). `graphs` is a table of graph and labels
    (`label_columns`, or all), an empty cell being a missing label. Graphs come in order of first
    appearance in `graphs`, `nodes`, the edges. Unless `directed`, a row stands for both directions,
    and rows that repeat an edge are merged, the first one's columns winning.
    """
    if not isinstance(source, (str, Path)):
        raise DataError(f"a {type(source).__name__} is not the path of an edge list")
    sheet = read_sheet(Path(source))
    graph_name = _column(sheet, "graph", graph_column)
    ends = [_column(sheet, "source", source_column), _column(sheet, "target", target_column)]
    node_sheet = None if nodes is None else read_sheet(Path(nodes))
    graph_sheet = None if graphs is None else read_sheet(Path(graphs))

    known: dict[str, int] = {}
    graph_rows = None if graph_sheet is None else _owners(graph_sheet, graph_column, known)
    node_rows = None if node_sheet is None else _owners(node_sheet, graph_column, known)
    owner = _owners(sheet, graph_name, known)

    if node_sheet is not None and node_rows is not None:
        counts, local, node_table = _listed_nodes(
            node_sheet, node_rows, node_column, graph_column, sheet, owner, ends, list(known)
        )
    else:
        counts, local = _nodes_of_edges(sheet, owner, ends, len(known))
        node_table = None
    empty = np.flatnonzero(counts == 0)
    if len(empty) and not allow_empty:
        raise DataError(
            f"graph {list(known)[int(empty[0])]!r} has no nodes",
            where=str(graph_sheet.path if graph_sheet is not None else sheet.path),
            hint="give it edges or nodes, leave it out, or pass allow_empty",
        )
    labels: NDArray[np.float64] | None = None
    tasks: tuple[str, ...] = ()
    classes: dict[str, tuple[str, ...]] = {}
    notes = []
    if graph_sheet is not None and graph_rows is not None:
        labels, tasks, classes = _labels(
            graph_sheet, graph_rows, graph_column, label_columns, len(known)
        )
        if unlisted := len(known) - len(graph_rows):
            notes.append(f"{unlisted:,} graphs are not in {graph_sheet.path.name} and have no label")

    order = np.argsort(owner, kind="stable")
    one, other = local[0][order], local[1][order]
    rows = order
    if not directed:
        # Row by row, forth and back: merging keeps the first listing, and must keep the same both ways.
        rows = np.repeat(order, 2)
        keep = np.ones(len(rows), dtype=bool)
        keep[1::2] = one != other
        one, other = np.stack([one, other], 1).ravel()[keep], np.stack([other, one], 1).ravel()[keep]
        rows = rows[keep]
    return assemble(
        node_counts=counts,
        edge_counts=np.bincount(owner[rows], minlength=len(known)),
        source=one,
        destination=other,
        nodes=node_table,
        edges=_known(sheet, sheet.rest([graph_name, *ends])).take(rows),
        labels=labels,
        tasks=tasks,
        classes=classes,
        ids=_ids(list(known)),
        name=_stem(sheet.path) if name is None else name,
        features=features,
        merge_duplicates=not directed,
        allow_empty=allow_empty,
        notes=notes,
    )


def read_sheet(path: Path) -> Sheet:
    """Read a whole table, or name the line on which it is none."""
    kind = _kind(path)
    if not kind:
        raise DataError(
            f"{path.name} is not a table we read", hint="use .csv, .tsv (.gz, .xz) or .parquet"
        )
    try:
        sheet = _read_parquet(path) if kind == ".parquet" else _read_text(path, _delimiter(kind))
    except (OSError, ValueError) as error:  # a path with a NUL in it is a ValueError
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(
            f"cannot read table: {reason}", where=str(path), hint="check the path"
        ) from error
    except (EOFError, lzma.LZMAError, zlib.error) as error:
        raise DataError("compressed file is damaged", where=str(path)) from error
    if not len(sheet.lines):
        raise DataError("table has no rows", where=str(path))
    return sheet


def _read_text(path: Path, delimiter: str) -> Sheet:
    lines = array("q")
    with _open(path) as file:
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
            raise DataError(
                "NUL byte in a table", where=f"{path}, line {number}", hint="save as UTF-8 text"
            )
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
            "" if value is None or value != value else str(value)
            for value in coded.dictionary.to_pylist()
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


def _column(sheet: Sheet, role: str, asked: str | None) -> str:
    """The column that plays a role: the one asked for, or the only one with a usual name."""
    listing = f"columns: {', '.join(sheet.columns)}"
    if asked is not None:
        if asked not in sheet.columns:
            raise DataError(f"no column {asked!r}", where=str(sheet.path), hint=listing)
        return asked
    found = [column for column in sheet.columns if column.lower() in SYNONYMS[role]]
    if len(found) != 1:
        what = f"{' and '.join(found)} could each be" if found else "none is"
        raise DataError(
            f"which column is the {role}? {what} it",
            where=str(sheet.path),
            hint=f"set {role}_column; {listing}",
        )
    return found[0]


def _graph_column(sheet: Sheet, asked: str | None) -> str:
    """The graph's column in any of the tables, which need not all call it the same."""
    return _column(sheet, "graph", asked if asked in sheet.columns else None)


def _full(sheet: Sheet, column: str) -> Cells:
    """A column that may have no empty cell."""
    cells = sheet.columns[column]
    if "" in cells.values:
        raise DataError(f"cell of {column!r} is empty", where=sheet.where_value(column, ""))
    return cells


def _owners(sheet: Sheet, column: str | None, known: dict[str, int]) -> Codes:
    """The graph of each row by number; graphs not met before are added to `known`."""
    cells = _full(sheet, _graph_column(sheet, column))
    numbers = np.array([known.setdefault(value, len(known)) for value in cells.values], dtype=np.int64)
    return numbers[cells.codes]


def _nodes_of_edges(
    sheet: Sheet, owner: Codes, ends: Sequence[str], graphs: int
) -> tuple[Codes, list[Codes]]:
    """Nodes a graph, and the local ids of both ends, nodes sorted by their own ids."""
    cells = [_full(sheet, end) for end in ends]
    whole = all(column.all_whole() for column in cells)
    distinct = list({value for column in cells for value in column.values})
    ranked = sorted(distinct, key=int) if whole else sorted(distinct)
    rank = {value: place for place, value in enumerate(ranked)}
    keys = [owner * len(rank) + _translate(column, rank) for column in cells]
    nodes, inverse = np.unique(np.concatenate(keys), return_inverse=True)
    counts = np.bincount(nodes // len(rank), minlength=graphs)
    local = inverse - np.repeat(pointer(counts)[:-1], counts)[inverse]
    return counts, [local[: len(owner)], local[len(owner) :]]


def _listed_nodes(
    listing: Sheet,
    rows: Codes,
    node_column: str | None,
    graph_column: str | None,
    sheet: Sheet,
    owner: Codes,
    ends: Sequence[str],
    graphs: Sequence[str],
) -> tuple[Codes, list[Codes], Table]:
    """The same with the nodes of a table, in its order, and what it knows of them."""
    name = _column(listing, "node", node_column)
    cells = _full(listing, name)
    number = {value: place for place, value in enumerate(cells.values)}
    width = len(number) + 1  # one more, for the nodes that are not listed
    order = np.argsort(rows, kind="stable")
    keys = (rows * width + cells.codes)[order]
    ranking = np.argsort(keys, kind="stable")
    ranked = keys[ranking]
    twice = np.flatnonzero(ranked[1:] == ranked[:-1])
    if len(twice):
        row = int(order[ranking[twice[0] + 1]])
        raise DataError(
            f"node {cells.values[cells.codes[row]]!r} of graph {graphs[rows[row]]!r} is listed twice",
            where=listing.where(row),
        )
    counts = np.bincount(rows, minlength=len(graphs))
    starts = pointer(counts)
    local = []
    for end in ends:
        wanted = owner * width + _translate(_full(sheet, end), number, len(number))
        place = np.minimum(np.searchsorted(ranked, wanted), len(ranked) - 1)
        lost = np.flatnonzero(ranked[place] != wanted)
        if len(lost):
            row = int(lost[0])
            node = sheet.columns[end].values[sheet.columns[end].codes[row]]
            raise DataError(
                f"node {node!r} of graph {graphs[owner[row]]!r} is not in {listing.path.name}",
                where=sheet.where(row),
            )
        local.append(ranking[place] - starts[owner])
    used = [_graph_column(listing, graph_column), name]
    return counts, local, _known(listing, listing.rest(used)).take(order)


def _translate(cells: Cells, number: Mapping[str, int], otherwise: int = -1) -> Codes:
    return np.array([number.get(value, otherwise) for value in cells.values], dtype=np.int64)[
        cells.codes
    ]


def _numeric(sheet: Sheet, column: str) -> bool:
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


def _known(sheet: Sheet, names: Sequence[str]) -> Table:
    """Columns of a sheet as categories and attributes."""
    codes: list[Codes] = []
    columns: list[Column] = []
    floats: list[NDArray[np.float64]] = []
    float_names: list[str] = []
    for name in names:
        cells = sheet.columns[name]
        if _numeric(sheet, name):
            cells = _full(sheet, name)
            numbers = np.array([float(value) for value in cells.values])
            large = np.abs(numbers) > np.finfo(np.float32).max
            if large.any():
                value = cells.values[int(np.argmax(large))]
                raise DataError(
                    f"{value!r} in {name!r} is too large", where=sheet.where_value(name, value)
                )
            floats.append(numbers[cells.codes])
            float_names.append(name)
            continue
        if any(map(WHOLE.fullmatch, cells.values)) and all(
            not v or WHOLE.fullmatch(v) for v in cells.values
        ):
            cells = _full(sheet, name)
            coded = encode_integers(
                name, np.array([int(v) for v in cells.values], dtype=np.int64)[cells.codes]
            )
        else:
            ranks, column = encode_column(name, np.array(cells.values, dtype=object))
            coded = ranks[cells.codes], column
        codes.append(coded[0])
        columns.append(coded[1])
    return Table.of(
        len(sheet.lines),
        np.stack(codes, axis=1) if codes else None,
        columns,
        np.stack(floats, axis=1) if floats else None,
        float_names,
    )


def _labels(
    sheet: Sheet, rows: Codes, graph_column: str | None, asked: tuple[str, ...] | None, graphs: int
) -> tuple[NDArray[np.float64] | None, tuple[str, ...], dict[str, tuple[str, ...]]]:
    """Labels as graphs x tasks, task names, and class names of tasks whose labels are words."""
    graph_name = _graph_column(sheet, graph_column)
    first = np.unique(rows, return_index=True)[1]
    if len(first) < len(rows):
        row = int(np.setdiff1d(np.arange(len(rows)), first)[0])
        graph = sheet.columns[graph_name]
        raise DataError(
            f"graph {graph.values[graph.codes[row]]!r} is listed twice", where=sheet.where(row)
        )
    rest = sheet.rest([graph_name])
    tasks = tuple(rest if asked is None else (_column(sheet, "label", label) for label in asked))
    labels = np.full((graphs, len(tasks)), np.nan)
    classes: dict[str, tuple[str, ...]] = {}
    for k, task in enumerate(tasks):
        cells = sheet.columns[task]
        words = [value for value in cells.values if value]
        if _numeric(sheet, task) or all(map(NUMBER.fullmatch, words)):
            meaning = {value: float(value) for value in words}
        else:
            classes[task] = tuple(sorted(words))
            meaning = {value: float(code) for code, value in enumerate(classes[task])}
        labels[rows, k] = np.array([meaning.get(value, np.nan) for value in cells.values])[cells.codes]
    return (labels, tasks, classes) if tasks else (None, (), {})


def _ids(graphs: list[str]) -> Ids:
    if all(map(WHOLE.fullmatch, graphs)):
        return np.array([int(graph) for graph in graphs], dtype=np.int64)
    return Strings.of(graphs)


def _kind(path: Path) -> str:
    """The suffix that says what a file is, or nothing if it is none of ours."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] in (".gz", ".xz"):
        suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in (".csv", ".tsv") else ""
    return suffixes[-1] if suffixes and suffixes[-1] in (".csv", ".tsv", ".parquet") else ""


def _stem(path: Path) -> str:
    return path.name[: path.name.lower().rindex(_kind(path))]


def _delimiter(kind: str) -> str:
    return "\t" if kind == ".tsv" else ","


def _open(path: Path, errors: str = "strict") -> TextIO:
    """A file as text; utf-8-sig because Excel begins files with a byte order mark."""
    if path.suffix.lower() == ".gz":
        return gzip.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    if path.suffix.lower() == ".xz":
        return lzma.open(path, "rt", encoding="utf-8-sig", errors=errors, newline="")
    return open(path, encoding="utf-8-sig", errors=errors, newline="")


DOORS.register("edges")(
    Door(
        accepts=accepts_edges,
        read=read_edges,
        summary="edge list: CSV, TSV or Parquet with columns graph, source, target",
    )
)
