"""TU data sets: `NAME_A.txt` and its companion files, in a folder or a zip.

PyG's reader needs minutes and gigabytes for COLLAB, guesses nodes from edges, and unpacks archives
unsafely. Here, graph labels and attributes keep their values; node and edge labels keep their range,
including unused labels; an edge listed twice counts once; self-loops and isolated nodes are kept.

Tables are parsed a few megabytes at a time. Blocks that hold only non-negative integers and commas are parsed
as arrays of bytes; any other block (signs, decimals, blank lines, errors) is parsed line by line, so that an
error can name the first wrong line.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError
from graphsc.data.arrays import pointer, smallest_unsigned
from graphsc.data.builder import build_collection, default_tasks
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable, encode_integers
from graphsc.data.datasets.download import ARCHIVE_ERRORS, open_archive
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.csv import class_names, loses_digits

T = TypeVar("T", int, float)

CHUNK = 4 * 2**20  # bytes read at a time; stays in the CPU cache while it is parsed
LONGEST_LINE = 2**20
INT_LIMIT = 2**62
# Edges may be listed more than once, but not much more often than there are pairs of nodes.
MOST_LISTINGS = 4
ALWAYS_LISTED = 1_000_000  # edges

_DIGIT, _COMMA, _BLANK, _NEWLINE = 1, 2, 3, 4
_CLASS = np.zeros(256, dtype=np.uint8)  # 0: any other character
_CLASS[ord("0") : ord("9") + 1] = _DIGIT
_CLASS[ord(",")] = _COMMA
_CLASS[[ord(" "), ord("\t"), ord("\r")]] = _BLANK
_CLASS[ord("\n")] = _NEWLINE


class Readable(Protocol):
    """A stream of bytes."""

    def read(self, size: int, /) -> bytes: ...


def read_integer_blocks(
    file: Readable, where: str, columns: int | None = None
) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Iterate over blocks of rows of integers, each with the line number of its first row.

    Args:
        file: The table; trailing blank lines are ignored.
        where: Name of the file, for errors.
        columns: Number of columns; that of the first line by default.
    """
    for line, text in line_blocks(file, where):
        columns = columns or _width(text)
        rows = _parse_fast(text, columns)
        if rows is None:
            rows = np.array(_parse_by_line(text, columns, where, line, int), dtype=np.int64)
        yield line, rows


def read_float_table(file: Readable, where: str) -> NDArray[np.float64]:
    """All rows of a table of floats."""
    parts: list[NDArray[np.float64]] = []
    columns: int | None = None
    for line, text in line_blocks(file, where):
        columns = columns or _width(text)
        cells = np.array(text.replace(b"\n", b",").split(b","), dtype=np.bytes_)
        try:
            rows = cells.astype(np.float64).reshape(text.count(b"\n") + 1, columns)
        except ValueError:
            rows = np.array(_parse_by_line(text, columns, where, line, float), dtype=np.float64)
        parts.append(rows)
    return np.concatenate(parts) if parts else np.zeros((0, columns or 1))


def read_integer_table(file: Readable, where: str, columns: int | None = None) -> NDArray[np.int64]:
    """All rows of a table of integers."""
    parts = [rows for _, rows in read_integer_blocks(file, where, columns)]
    return np.concatenate(parts) if parts else np.zeros((0, columns or 1), np.int64)


def line_blocks(file: Readable, where: str) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines without the last line end, each with the number of its first line."""
    line, rest, blank = 1, b"", b""
    while block := file.read(CHUNK):
        head, newline, tail = block.rpartition(b"\n")
        if not newline:
            rest += block
            if len(rest) > LONGEST_LINE + CHUNK:
                raise DataError("line is longer than a megabyte", where=f"{where}, line {line}")
            continue
        text, rest = rest + head, tail
        # Blank lines at the end of a block go to the next one: they are ignored at the end of the file.
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


def _parse_fast(text: bytes, columns: int) -> NDArray[np.int64] | None:
    """Parse rows of non-negative integers; None if the text is anything else."""
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
    if longest > 18:  # may exceed 64 bits
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


def _parse_by_line(text: bytes, columns: int, where: str, first: int, number: type[T]) -> list[list[T]]:
    """Parse line by line; an error names the first wrong line."""
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


class TuFiles:
    """The text files of one TU data set, in a folder or a zip."""

    def __init__(self, path: Path, archive: zipfile.ZipFile | None) -> None:
        self.path = path
        self._archive = archive
        names = (
            [str(child.name) for child in path.iterdir() if child.is_file()]
            if archive is None
            else [name for name in archive.namelist() if not name.startswith("__MACOSX")]
        )
        adjacency = [name for name in names if name.endswith("_A.txt")]
        if len(adjacency) != 1:
            count = f"{len(adjacency)} files" if adjacency else "no"
            raise DataError(f"{count} NAME_A.txt in the TU source", where=str(path))
        self._prefix = adjacency[0].removesuffix("A.txt")
        self._names = set(names)

    @property
    def name(self) -> str:
        """The data set's name, from the names of its files."""
        return self._prefix.rpartition("/")[2].removesuffix("_")

    def has(self, part: str) -> bool:
        return f"{self._prefix}{part}.txt" in self._names

    def where(self, part: str) -> str:
        """Name of the file, for errors."""
        return f"{self._prefix}{part}.txt"

    @contextmanager
    def open(self, part: str) -> Iterator[IO[bytes]]:
        """Open one file for reading; a damaged zip raises `DamagedFileError`."""
        name = self.where(part)
        if name not in self._names:
            raise DataError(f"file {name} is missing", where=str(self.path))
        if self._archive is None:
            with open(self.path / name, "rb") as file:
                yield file
            return
        try:
            with self._archive.open(name) as file:
                yield file
        except ARCHIVE_ERRORS as error:
            raise DamagedFileError(
                f"archive is damaged at {name!r}: {error}", where=str(self.path)
            ) from error

    def integers(self, part: str, rows: int, of: str) -> NDArray[np.int64]:
        """A table of integers with one row per node, edge or graph."""
        with self.open(part) as file:
            table = read_integer_table(file, self.where(part))
        self._check_rows(part, len(table), rows, of)
        return table

    def floats(self, part: str, rows: int, of: str) -> NDArray[np.float64]:
        """A table of floats with one row per node, edge or graph."""
        with self.open(part) as file:
            table = read_float_table(file, self.where(part))
        self._check_rows(part, len(table), rows, of)
        return table

    def _check_rows(self, part: str, count: int, rows: int, of: str) -> None:
        if count != rows:
            line = min(count, rows) + 1
            raise DataError(f"{count} rows for {rows} {of}", where=f"{self.where(part)}, line {line}")


def accepts_tu(source: object) -> bool:
    """Whether this is a TU folder or a zip."""
    if not isinstance(source, (str, Path)):
        return False
    path = Path(source)
    try:
        if path.is_dir():
            # A folder without its edge file is accepted too, so that the error names that file.
            return any(path.glob("*_A.txt")) or any(path.glob("*_graph_indicator.txt"))
        return path.suffix == ".zip" and path.is_file()
    except OSError:
        return False


def read_tu(
    source: str | Path,
    *,
    name: str | None = None,
    features: str = "auto",
    allow_empty: bool = False,
    node_labels: bool = True,
) -> GraphCollection:
    """Read a TU folder or zip.

    Args:
        source: The folder or zip that holds NAME_A.txt.
        name: Name of the collection; that of the files by default.
        features: Feature scheme.
        allow_empty: Accept graphs without nodes.
        node_labels: Whether to read NAME_node_labels.txt; that of a temporal data set is no table.
    """
    path = Path(source)
    if path.is_dir():
        return _read(TuFiles(path, None), name, features, allow_empty, node_labels)
    if not path.is_file():
        raise NotFoundError("no such file or folder", where=str(path))
    with open_archive(path) as archive:
        return _read(TuFiles(path, archive), name, features, allow_empty, node_labels)


def _read(
    files: TuFiles, name: str | None, features: str, allow_empty: bool, node_labels: bool
) -> GraphCollection:
    with files.open("graph_indicator") as file:
        indicator = read_integer_table(file, files.where("graph_indicator"), columns=1)[:, 0]
    labels, classes = _labels(files)
    graphs = len(labels) if labels is not None else int(indicator.max(initial=0))
    invalid = (indicator < 1) | (indicator > (graphs if labels is not None else len(indicator)))
    if invalid.any():
        line = int(np.argmax(invalid))
        raise DataError(
            f"node belongs to graph {int(indicator[line])}, graphs are numbered 1 to {graphs}",
            where=f"{files.where('graph_indicator')}, line {line + 1}",
        )
    node_graph = indicator - 1
    # If the indicator is not sorted, nodes are sorted by graph, stably, with their features.
    order = None if (node_graph[1:] >= node_graph[:-1]).all() else np.argsort(node_graph, kind="stable")
    counts = np.bincount(node_graph, minlength=graphs)
    local = np.empty(len(node_graph), dtype=smallest_unsigned(int(counts.max(initial=1)) - 1))
    ranked = np.arange(len(node_graph)) - np.repeat(pointer(counts)[:-1], counts)
    local[slice(None) if order is None else order] = ranked

    source, destination, edge_graph = _edges(files, node_graph, local)
    nodes = _table(files, "node", len(node_graph), labels=node_labels)
    edges = _table(files, "edge", len(source))
    left_out = not node_labels and files.has("node_labels")
    if (edge_graph[1:] < edge_graph[:-1]).any():
        by_graph = np.argsort(edge_graph, kind="stable")
        source, destination = source[by_graph], destination[by_graph]
        edges = edges.take(by_graph)
    return build_collection(
        node_counts=counts,
        edge_counts=np.bincount(edge_graph, minlength=graphs),
        source=source,
        destination=destination,
        nodes=nodes if order is None else nodes.take(order),
        edges=edges,
        labels=labels,
        classes=classes,
        name=name or files.name,
        features=features,
        merge_duplicates=True,
        allow_empty=allow_empty,
        notes=["node labels were not read"] if left_out else [],
    )


def _edges(
    files: TuFiles, node_graph: NDArray[np.int64], local: NDArray[np.unsignedinteger]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], NDArray[np.int32]]:
    """Source and destination of every listed edge as node numbers within its graph, and its graph."""
    graph_of = node_graph.astype(np.int32)  # narrow types: COLLAB has 25 million edges
    sources, destinations, graphs = [], [], []
    pairs = int((np.bincount(node_graph).astype(np.float64) ** 2).sum())
    most, listed = max(ALWAYS_LISTED, MOST_LISTINGS * pairs), 0
    with files.open("A") as file:
        for line, rows in read_integer_blocks(file, files.where("A"), columns=2):
            wrong = (rows < 1) | (rows > len(node_graph))
            if wrong.any():
                row, column = map(int, np.argwhere(wrong)[0])
                raise DataError(
                    f"edge names node {int(rows[row, column])}, nodes are numbered 1 to {len(node_graph)}",
                    where=f"{files.where('A')}, line {line + row}",
                )
            first, second = rows[:, 0] - 1, rows[:, 1] - 1
            graph = graph_of[first]
            across = graph != graph_of[second]
            if across.any():
                row = int(np.argmax(across))
                raise DataError(
                    f"edge joins graph {int(graph[row]) + 1} and graph {int(graph_of[second[row]]) + 1}",
                    where=f"{files.where('A')}, line {line + row}",
                )
            listed += len(rows)
            if listed > most:
                raise DataError(
                    f"more than {most:,} edges for graphs with {pairs:,} pairs of nodes",
                    where=f"{files.where('A')}, line {line}", hint="list every edge once",
                )  # fmt: skip
            sources.append(local[first])
            destinations.append(local[second])
            graphs.append(graph)
    if not sources:
        return local[:0], local[:0], graph_of[:0]
    return np.concatenate(sources), np.concatenate(destinations), np.concatenate(graphs)


def _table(files: TuFiles, what: str, rows: int, *, labels: bool = True) -> FeatureTable:
    codes, columns, floats = None, [], None
    if labels and files.has(f"{what}_labels"):
        values = files.integers(f"{what}_labels", rows, f"{what}s")
        width = values.shape[1]
        coded = [encode_integers("label" if width == 1 else f"label{k}", values[:, k]) for k in range(width)]
        codes, columns = np.stack([code for code, _ in coded], axis=1), [column for _, column in coded]
    if files.has(f"{what}_attributes"):
        floats = files.floats(f"{what}_attributes", rows, f"{what}s")
    return FeatureTable.of(rows, codes, columns, floats)


def _labels(files: TuFiles) -> tuple[NDArray[np.float64] | None, dict[str, tuple[str, ...]]]:
    """Graph labels, or graph attributes (regression targets) if there are no labels; and class names.

    Whole numbers that floats would merge (2^53 and 2^53 + 1) are read as class names.
    """
    for part in ("graph_labels", "graph_attributes"):
        if not files.has(part):
            continue
        with files.open(part) as file:
            labels = read_float_table(file, files.where(part))
        classes: dict[str, tuple[str, ...]] = {}
        for k, task in enumerate(default_tasks(labels.shape[1])):
            if (np.abs(labels[:, k]) < 2**53).all():
                continue
            with files.open(part) as file:
                lines = [line for _, text in line_blocks(file, part) for line in text.split(b"\n")]
            texts = [line.split(b",")[k].decode("ascii", "replace").strip() for line in lines]
            if loses_digits(set(texts)):
                classes[task] = class_names(set(texts))
                code_of = {text: code for code, text in enumerate(classes[task])}
                labels[:, k] = [code_of[text] for text in texts]
        return labels, classes
    return None, {}


READERS.register("tu")(Reader(accepts=accepts_tu, read=read_tu, summary="a TU folder or zip"))
