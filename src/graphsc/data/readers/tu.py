"""The TU layout: `NAME_A.txt` and its siblings, in a folder or in a zip.

Own reader, because the usual one needs minutes and gigabytes for COLLAB, guesses nodes from edges, and
unpacks archives unsafely. Graph labels and attributes keep their values; node and edge labels keep their
range, gaps included; an edge listed twice counts once; self-loops and isolated nodes stay.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError
from graphsc.data.arrays import pointer, smallest_unsigned
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable, encode_integers
from graphsc.data.datasets.download import ARCHIVE_ERRORS, open_archive
from graphsc.data.readers import READERS, Reader

# Tables of numbers in text, read fast when they are plain and patiently when they are not.
#
# The fast way looks at a few megabytes at a time as an array of bytes and accepts only lines of
# non-negative integers between commas; anything else (signs, decimals, blank lines, nonsense) goes
# through the patient way, which names the first line that is wrong.


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


class TuFiles:
    """The text files of one TU data set, wherever they lie."""

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
            found = "no" if not adjacency else f"{len(adjacency)} files"
            raise DataError(f"{found} NAME_A.txt in the TU source", where=str(path))
        self._prefix = adjacency[0].removesuffix("A.txt")
        self._names = set(names)

    @property
    def name(self) -> str:
        """The data set's name, as its files carry it."""
        return self._prefix.rpartition("/")[2].removesuffix("_")

    def has(self, part: str) -> bool:
        return f"{self._prefix}{part}.txt" in self._names

    def where(self, part: str) -> str:
        """How an error names the file."""
        return f"{self._prefix}{part}.txt"

    @contextmanager
    def open(self, part: str) -> Iterator[IO[bytes]]:
        """Open one file for reading; damage inside a zip shows as one error."""
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
        """A table of integers with one row a node, edge or graph."""
        with self.open(part) as file:
            table = all_integers(file, self.where(part))
        self._expect(part, len(table), rows, of)
        return table

    def numbers(self, part: str, rows: int, of: str) -> NDArray[np.float64]:
        """A table of floats with one row a node, edge or graph."""
        with self.open(part) as file:
            table = read_numbers(file, self.where(part))
        self._expect(part, len(table), rows, of)
        return table

    def _expect(self, part: str, found: int, rows: int, of: str) -> None:
        if found != rows:
            line = min(found, rows) + 1
            raise DataError(f"{found} rows for {rows} {of}", where=f"{self.where(part)}, line {line}")


def read_tu(
    source: str | Path, *, name: str | None = None, features: str = "auto", allow_empty: bool = False
) -> GraphCollection:
    """Read a TU folder or zip."""
    path = Path(source)
    if path.is_dir():
        return _read(TuFiles(path, None), name, features, allow_empty)
    if not path.is_file():
        raise NotFoundError("no such file or folder", where=str(path))
    with open_archive(path) as archive:
        return _read(TuFiles(path, archive), name, features, allow_empty)


def _read(files: TuFiles, name: str | None, features: str, allow_empty: bool) -> GraphCollection:
    with files.open("graph_indicator") as file:
        indicator = all_integers(file, files.where("graph_indicator"), columns=1)[:, 0]
    labels = _labels(files)
    graphs = len(labels) if labels is not None else int(indicator.max(initial=0))
    beyond = (indicator < 1) | (indicator > (graphs if labels is not None else len(indicator)))
    if beyond.any():
        line = int(np.argmax(beyond))
        raise DataError(
            f"node belongs to graph {int(indicator[line])}, graphs are numbered 1 to {graphs}",
            where=f"{files.where('graph_indicator')}, line {line + 1}",
        )
    owner = indicator - 1
    # An unsorted indicator is sorted here, stably, with everything that hangs on the nodes.
    order = None if (owner[1:] >= owner[:-1]).all() else np.argsort(owner, kind="stable")
    counts = np.bincount(owner, minlength=graphs)
    local = np.empty(len(owner), dtype=smallest_unsigned(int(counts.max(initial=1)) - 1))
    ranked = np.arange(len(owner)) - np.repeat(pointer(counts)[:-1], counts)
    local[slice(None) if order is None else order] = ranked

    source, destination, edge_owner = _edges(files, owner, local)
    nodes = _table(files, "node", len(owner), "nodes")
    edges = _table(files, "edge", len(source), "edges")
    if (edge_owner[1:] < edge_owner[:-1]).any():
        by_graph = np.argsort(edge_owner, kind="stable")
        source, destination = source[by_graph], destination[by_graph]
        edges = edges.take(by_graph)
    return build_collection(
        node_counts=counts,
        edge_counts=np.bincount(edge_owner, minlength=graphs),
        source=source,
        destination=destination,
        nodes=nodes if order is None else nodes.take(order),
        edges=edges,
        labels=labels,
        name=name or files.name,
        features=features,
        merge_duplicates=True,
        allow_empty=allow_empty,
    )


def _edges(
    files: TuFiles, owner: NDArray[np.int64], local: NDArray[np.unsignedinteger]
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], NDArray[np.int32]]:
    """Local ids of every listed edge, and its graph; line by line errors."""
    # Names "first, second" in the file are source, destination; kept narrow, COLLAB has 25 million.
    graph_of = owner.astype(np.int32)
    sources, destinations, owners = [], [], []
    with files.open("A") as file:
        for line, rows in read_integers(file, files.where("A"), columns=2):
            wrong = (rows < 1) | (rows > len(owner))
            if wrong.any():
                row, column = map(int, np.argwhere(wrong)[0])
                raise DataError(
                    f"edge names node {int(rows[row, column])}, nodes are numbered 1 to {len(owner)}",
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
            sources.append(local[first])
            destinations.append(local[second])
            owners.append(graph)
    if not sources:
        return local[:0], local[:0], graph_of[:0]
    return np.concatenate(sources), np.concatenate(destinations), np.concatenate(owners)


def _table(files: TuFiles, what: str, rows: int, of: str) -> FeatureTable:
    codes, columns, floats = None, [], None
    if files.has(f"{what}_labels"):
        values = files.integers(f"{what}_labels", rows, of)
        width = values.shape[1]
        coded = [encode_integers("label" if width == 1 else f"label{k}", values[:, k]) for k in range(width)]
        codes = np.stack([code for code, _ in coded], axis=1)
        columns = [column for _, column in coded]
    if files.has(f"{what}_attributes"):
        floats = files.numbers(f"{what}_attributes", rows, of)
    return FeatureTable.of(rows, codes, columns, floats)


def _labels(files: TuFiles) -> NDArray[np.float64] | None:
    """Graph labels, or graph attributes (targets of a regression) where there are no labels."""
    for part in ("graph_labels", "graph_attributes"):
        if files.has(part):
            with files.open(part) as file:
                return read_numbers(file, files.where(part))
    return None


def _accepts(source: object) -> bool:
    if not isinstance(source, (str, Path)):
        return False
    path = Path(source)
    try:
        if path.is_dir():
            # A folder without its edges is ours to refuse by name.
            return any(path.glob("*_A.txt")) or any(path.glob("*_graph_indicator.txt"))
        return path.suffix == ".zip" and path.is_file()
    except OSError:
        return False


READERS.register("tu")(Reader(_accepts, read_tu, "a TU folder or zip"))
