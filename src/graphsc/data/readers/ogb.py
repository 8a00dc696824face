"""Reader for the graph property sets of OGB, in the layout of their archives.

A folder or zip has `raw/edge.csv.gz` (one row per edge, nodes numbered within the graph), `num-node-list`
and `num-edge-list` (one number per graph), `node-feat` and `edge-feat` (whole numbers), and `graph-label` (an
empty cell is a missing label), all of them without a header. `split/NAME/` has the official split.
"""

from __future__ import annotations

import gzip
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable, encode_integers
from graphsc.data.datasets.catalog import NAMED, locate
from graphsc.data.datasets.download import ARCHIVE_ERRORS, open_archive
from graphsc.data.readers import READERS, Reader
from graphsc.data.readers.tu import Readable, line_blocks, read_integer_blocks

EDGES = "raw/edge.csv.gz"
MOST_TIMES = 300  # a file may be so many times its size unpacked; mostly empty labels compress well
ALWAYS_UNPACKED = 2**26
# OGB's names of its features, in the order of the columns.
ATOM = (
    "atomic_number", "chirality", "degree", "formal_charge", "hydrogens", "radical_electrons",
    "hybridization", "is_aromatic", "is_in_ring",
)  # fmt: skip
BOND = ("bond_type", "bond_stereo", "is_conjugated")


def accepts_ogb(source: object) -> bool:
    """Whether this is a folder or zip of OGB."""
    if not isinstance(source, (str, Path)):
        return False
    path = Path(source)
    try:
        if path.is_dir():
            return (path / EDGES).is_file()
        if path.suffix != ".zip" or not path.is_file():
            return False
        with zipfile.ZipFile(path) as archive:
            return any(name.endswith(EDGES) for name in archive.namelist())
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


def read_ogb(
    source: str | Path,
    *,
    name: str | None = None,
    features: str = "auto",
    allow_empty: bool = False,
    add_inverse_edges: bool = True,
) -> GraphCollection:
    """Read a folder or zip of OGB.

    Args:
        source: The folder that has `raw`, or the downloaded zip.
        name: Name of the collection; that of the folder or zip by default.
        features: Feature scheme.
        allow_empty: Accept graphs without nodes.
        add_inverse_edges: Whether the files list an undirected edge once, as those of molecules do.
    """
    path = Path(source)
    with _open_files(path) as files:
        node_counts = files.integers("raw/num-node-list.csv.gz", columns=1)[:, 0]
        edge_counts = files.integers("raw/num-edge-list.csv.gz", columns=1)[:, 0]
        pairs = files.integers(EDGES, columns=2)
        nodes = files.table("raw/node-feat.csv.gz", int(node_counts.sum()), "node", ATOM)
        edges = files.table("raw/edge-feat.csv.gz", int(edge_counts.sum()), "edge", BOND)
        labels = files.labels("raw/graph-label.csv.gz")
    if len(pairs) != edge_counts.sum():
        raise DataError(f"{len(pairs)} rows for {edge_counts.sum()} edges", where=EDGES)
    if add_inverse_edges:
        pairs = np.stack([pairs, pairs[:, ::-1]], axis=1).reshape(-1, 2)
        edges, edge_counts = edges.take(np.repeat(np.arange(len(edges)), 2)), 2 * edge_counts
    return build_collection(
        node_counts=node_counts,
        edge_counts=edge_counts,
        source=pairs[:, 0],
        destination=pairs[:, 1],
        nodes=nodes,
        edges=edges,
        labels=labels,
        name=name or path.stem,
        features=features,
        merge_duplicates=add_inverse_edges,
        allow_empty=allow_empty,
    )


def read_ogb_split(source: str | Path, split: str = "scaffold") -> dict[str, NDArray[np.int64]]:
    """The official split: positions of the graphs under "train", "valid" and "test".

    Args:
        source: The folder that has `split`, the downloaded zip, or the name of a data set.
        split: Name of its folder.
    """
    entry = NAMED.get(str(source).lower())
    path = Path(source) if entry is None or Path(source).exists() else locate(entry)
    with _open_files(path) as files:
        return {
            part: files.integers(f"split/{split}/{part}.csv.gz", columns=1)[:, 0]
            for part in ("train", "valid", "test")
        }


class _Files:
    """The compressed tables of one data set, in a folder or a zip."""

    def __init__(self, path: Path, archive: zipfile.ZipFile | None) -> None:
        self.path = path
        self._archive = archive
        self._prefix = ""
        if archive is not None:
            found = [name for name in archive.namelist() if name.endswith(EDGES)]
            if len(found) != 1:
                raise DataError(f"{len(found) or 'no'} files {EDGES} in the archive", where=str(path))
            self._prefix = found[0].removesuffix(EDGES)

    @contextmanager
    def open(self, name: str) -> Iterator[Readable]:
        """One table, unpacked as it is read."""
        try:
            if self._archive is None:
                size = (self.path / name).stat().st_size
                with gzip.open(self.path / name) as file:
                    yield _Bounded(file, size, name)
            else:
                info = self._archive.getinfo(self._prefix + name)
                with self._archive.open(info) as packed, gzip.open(packed) as file:
                    yield _Bounded(file, info.file_size, name)
        except (FileNotFoundError, KeyError) as error:
            raise DataError(f"file {name} is missing", where=str(self.path)) from error
        except (*ARCHIVE_ERRORS, zlib.error) as error:
            raise DamagedFileError(f"damaged at {name!r}: {error}", where=str(self.path)) from error

    def integers(self, name: str, columns: int) -> NDArray[np.int64]:
        with self.open(name) as file:
            parts = [rows for _, rows in read_integer_blocks(file, name, columns)]
        table = np.concatenate(parts) if parts else np.zeros((0, columns), np.int64)
        if (table < 0).any():
            raise DataError("negative number", where=f"{name}, line {int((table < 0).any(1).argmax()) + 1}")
        return table

    def table(self, name: str, rows: int, what: str, names: tuple[str, ...]) -> FeatureTable:
        """Features of nodes or edges as categories."""
        with self.open(name) as file:
            parts = [block.astype(np.int32) for _, block in read_integer_blocks(file, name)]
        values = np.concatenate(parts) if parts else np.zeros((0, len(names)), np.int32)
        if len(values) != rows:
            line = min(len(values), rows) + 1
            raise DataError(f"{len(values)} rows for {rows} {what}s", where=f"{name}, line {line}")
        width = values.shape[1]
        titles = names if width == len(names) else tuple(f"feature{k}" for k in range(width))
        coded = [encode_integers(title, values[:, k]) for k, title in enumerate(titles)]
        codes = np.stack([code for code, _ in coded], axis=1)
        return FeatureTable.of(rows, codes, [column for _, column in coded])

    def labels(self, name: str) -> NDArray[np.float64]:
        """Graphs x tasks; NaN for an empty cell."""
        parts: list[NDArray[np.float64]] = []
        with self.open(name) as file:
            width = 0
            for line, text in line_blocks(file, name):
                rows = text.replace(b"\r", b"").split(b"\n")
                width = width or rows[0].count(b",") + 1
                wrong = next((k for k, row in enumerate(rows) if row.count(b",") + 1 != width), None)
                if wrong is not None:
                    cells = rows[wrong].count(b",") + 1
                    where = f"{name}, line {line + wrong}"
                    raise DataError(f"{cells} cells where {width} are expected", where=where)
                cells_ = np.array(b",".join(rows).split(b","), dtype=np.bytes_)
                try:
                    parts.append(
                        np.where(cells_ == b"", b"nan", cells_).astype(np.float64).reshape(-1, width)
                    )
                except ValueError as error:
                    raise DataError(
                        f"not a table of numbers: {error}", where=f"{name}, line {line}"
                    ) from None
        return np.concatenate(parts) if parts else np.zeros((0, 1))


class _Bounded:
    """A stream that ends with an error instead of filling the memory."""

    def __init__(self, file: gzip.GzipFile, packed: int, name: str) -> None:
        self._file = file
        self._left = max(ALWAYS_UNPACKED, MOST_TIMES * packed)
        self._name = name

    def read(self, size: int) -> bytes:
        block = self._file.read(size)
        self._left -= len(block)
        if self._left < 0:
            raise DataError("file is too large unpacked", where=self._name)
        return block


@contextmanager
def _open_files(path: Path) -> Iterator[_Files]:
    if path.is_dir():
        yield _Files(path, None)
        return
    if not path.is_file():
        raise NotFoundError("no such file or folder", where=str(path))
    with open_archive(path) as archive:
        yield _Files(path, archive)


READERS.register("ogb")(Reader(accepts=accepts_ogb, read=read_ogb, summary="a folder or zip of OGB"))
