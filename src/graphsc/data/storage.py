"""A collection as one safetensors file, opened by memory map.

The file is plain safetensors, but it is written and read here and not by the safetensors package, which
copies arrays out of the map and needs the whole file in memory to write it. The header stores a SHA-256
hash per 16 MB block of the data section. Small files are verified when they are opened; blocks of large
files are verified when their graphs are first used.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError
from graphsc.core.files import atomic_write
from graphsc.core.serialization import HEADER_CAP, check_stamp, stamp
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable, columns_from_json, columns_to_json
from graphsc.data.features import FeatureScheme
from graphsc.data.validation import check_shapes

BLOCK = 16 * 2**20  # bytes
WHOLE_LIMIT = 64 * 2**20  # bytes; files up to this size are verified when opened

DTYPES: dict[str, np.dtype[np.generic]] = {
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
# NumPy kind (integer, unsigned, float) that each array must have; hashes alone do not make a header valid.
KINDS = {
    "node_ptr": "i", "edge_ptr": "i", "id_ptr": "i", "ids": "i", "edge_index": "u", "node_codes": "u",
    "edge_codes": "u", "id_bytes": "u", "node_floats": "f", "edge_floats": "f", "labels": "f",
    "pos": "f", "edge_weight": "f",
}  # fmt: skip

# Errors that a malformed header may cause anywhere in `_read`.
_MALFORMED = (
    DataError, ValueError, TypeError, AttributeError, LookupError, ArithmeticError, RecursionError,
)  # fmt: skip


def save(collection: GraphCollection, path: str | os.PathLike[str]) -> None:
    """Write a collection, atomically."""
    save_parts([collection], path, collection.name, collection.notes)


def save_parts(
    parts: Sequence[GraphCollection],
    target: str | os.PathLike[str] | BytesIO,
    name: str,
    notes: Sequence[str],
) -> str:
    """Write the graphs of all parts as one file without joining them in memory.

    Args:
        parts: Collections with the same columns, tasks, classes and features.
        target: The file, replaced atomically, or a buffer.
        name: Name of the joined collection.
        notes: Its notes.

    Returns:
        The content hash of the joined collection.
    """
    layout = layout_of(*parts)
    metadata = stamp("collection") | {
        "name": name,
        "notes": json.dumps(list(notes)),
        "meta": layout.meta,
        "blocks": ",".join(layout.blocks),
        "content_hash": layout.content_hash,
    }
    metadata["words_hash"] = _words_hash(metadata)
    header = json.dumps({"__metadata__": metadata, **layout.specs}).encode()
    header += b" " * (-len(header) % 8)  # aligns the data section
    with nullcontext(target) if isinstance(target, BytesIO) else atomic_write(target) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for stream in layout.tensors.values():
            for piece in stream.bytes():
                file.write(piece)
    return layout.content_hash


def load(path: str | os.PathLike[str]) -> GraphCollection:
    """Open a saved collection by memory map.

    Raises:
        NotFoundError: If the file cannot be opened.
        DamagedFileError: If it is not a collection, is malformed, or does not match its hashes.
    """
    where = str(path)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if size < 8:
                raise DamagedFileError("collection is damaged: too short", where=where)
            buffer = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise NotFoundError(f"cannot open collection: {error.strerror}", where=where) from error
    try:
        return _read(buffer, size, Path(path))
    except _MALFORMED as error:
        raise DamagedFileError(f"collection is damaged: {error}", where=where) from error


# Writing


@dataclass(frozen=True)
class Stream:
    """An array to be written piece by piece, without being in memory as a whole."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray[np.generic]]]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def bytes(self) -> Iterator[memoryview]:
        """The bytes in file order, at most one block at a time."""
        for piece in self.pieces():
            flat = np.ascontiguousarray(piece, dtype=self.dtype).reshape(-1).view(np.uint8)
            for start in range(0, len(flat), BLOCK):
                yield flat[start : start + BLOCK].data


@dataclass(frozen=True)
class Layout:
    """The content of a collection file: metadata, arrays in file order, block hashes."""

    meta: str
    tensors: dict[str, Stream]
    blocks: list[str]

    @property
    def specs(self) -> dict[str, dict[str, object]]:
        """dtype, shape and offsets of each array, as in a safetensors header."""
        specs: dict[str, dict[str, object]] = {}
        offset = 0
        for name, stream in self.tensors.items():
            specs[name] = {
                "dtype": DTYPE_NAMES[stream.dtype],
                "shape": list(stream.shape),
                "data_offsets": [offset, offset + stream.nbytes],
            }
            offset += stream.nbytes
        return specs

    @property
    def content_hash(self) -> str:
        return _content_hash(self.meta, self.specs, self.blocks)


def layout_of(*parts: GraphCollection) -> Layout:
    """Lay out the graphs of all parts as one collection, without copying any part.

    Arrays with the largest items come first, so that every array is aligned. The parts must have the same
    columns, tasks, classes and features.
    """
    first = parts[0]
    for part in parts:
        part.verify_hashes()
    tensors = {
        "node_ptr": _joined_pointers([part.node_ptr for part in parts]),
        "edge_ptr": _joined_pointers([part.edge_ptr for part in parts]),
        "edge_index": _joined_columns([part.edge_index for part in parts]),
        "node_codes": _joined_rows([part.nodes.codes for part in parts]),
        "node_floats": _joined_rows([part.nodes.floats for part in parts]),
        "edge_codes": _joined_rows([part.edges.codes for part in parts]),
        "edge_floats": _joined_rows([part.edges.floats for part in parts]),
    }
    if first.labels is not None:
        tensors["labels"] = _joined_rows([part.labels for part in parts if part.labels is not None])
    for name in ("pos", "edge_weight"):  # left out where there are none, so that content hashes stay
        present = [values for part in parts if (values := getattr(part, name)) is not None]
        if present:
            tensors[name] = _joined_rows(present)
    if isinstance(first.ids, Strings):
        strings = [part.ids for part in parts if isinstance(part.ids, Strings)]
        tensors["id_bytes"] = _joined_rows([ids.bytes for ids in strings])
        tensors["id_ptr"] = _joined_pointers([ids.ptr for ids in strings])
    else:
        tensors["ids"] = _joined_rows([part.ids for part in parts if not isinstance(part.ids, Strings)])
    ordered = dict(sorted(tensors.items(), key=lambda item: (-item[1].dtype.itemsize, item[0])))
    meta = {
        "undirected": all(part.undirected for part in parts),
        "node_columns": columns_to_json(first.nodes.columns),
        "node_float_names": list(first.nodes.float_names),
        "edge_columns": columns_to_json(first.edges.columns),
        "edge_float_names": list(first.edges.float_names),
        "tasks": list(first.tasks),
        "classes": {task: list(names) for task, names in first.classes.items()},
        "features": first.features.to_json(),
    }
    return Layout(json.dumps(meta, sort_keys=True), ordered, _block_hashes(ordered))


def _joined_rows(arrays: Sequence[NDArray[np.generic]]) -> Stream:
    rows = sum(len(array) for array in arrays)
    return Stream(_common_dtype(arrays), (rows, *arrays[0].shape[1:]), lambda: arrays)


def _joined_columns(arrays: Sequence[NDArray[np.generic]]) -> Stream:
    if len(arrays) == 1:
        return _joined_rows(arrays)
    columns = sum(array.shape[1] for array in arrays)
    return Stream(_common_dtype(arrays), (2, columns), lambda: (array[k] for k in (0, 1) for array in arrays))


def _joined_pointers(pointers: Sequence[NDArray[np.int64]]) -> Stream:
    if len(pointers) == 1:
        return _joined_rows(pointers)

    def pieces() -> Iterator[NDArray[np.generic]]:
        yield np.zeros(1, dtype=np.int64)
        offset = 0
        for ptr in pointers:
            yield ptr[1:] + offset
            offset += int(ptr[-1])

    return Stream(np.dtype(np.int64), (1 + sum(len(ptr) - 1 for ptr in pointers),), pieces)


def _common_dtype(arrays: Sequence[NDArray[np.generic]]) -> np.dtype[np.generic]:
    return np.result_type(*{array.dtype for array in arrays})


def _block_hashes(tensors: Mapping[str, Stream]) -> list[str]:
    """SHA-256 of each block of the data section; blocks may span several arrays."""
    hashes = []
    digest, remaining = hashlib.sha256(), BLOCK
    for stream in tensors.values():
        for piece in stream.bytes():
            while len(piece) >= remaining:
                digest.update(piece[:remaining])
                hashes.append(digest.hexdigest())
                piece, digest, remaining = piece[remaining:], hashlib.sha256(), BLOCK
            digest.update(piece)
            remaining -= len(piece)
    if remaining < BLOCK:
        hashes.append(digest.hexdigest())
    return hashes


def _content_hash(meta: str, specs: Mapping[str, object], blocks: list[str]) -> str:
    text = json.dumps([meta, specs, blocks], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# Reading


@dataclass(frozen=True)
class Span:
    """Position, dtype and shape of one array in the data section."""

    start: int
    stop: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class BlockVerifier:
    """Compares the blocks of a memory-mapped file with their hashes, each once."""

    def __init__(
        self, buffer: mmap.mmap, start: int, hashes: list[str], spans: dict[str, Span], where: str
    ) -> None:
        self._buffer = buffer
        self._start = start
        self._hashes = hashes
        self._spans = spans
        self._where = where
        self._verified = np.zeros(len(hashes), dtype=bool)

    def verify_graphs(self, collection: GraphCollection, rows: NDArray[np.int64]) -> None:
        """Verify the blocks that hold the nodes and edges of the graphs in these rows."""
        if self._verified.all():
            return
        for name, ptr in (
            ("node_codes", collection.node_ptr),
            ("node_floats", collection.node_ptr),
            ("edge_codes", collection.edge_ptr),
            ("edge_floats", collection.edge_ptr),
            ("pos", collection.node_ptr),
            ("edge_weight", collection.edge_ptr),
        ):
            if name in self._spans:
                span = self._spans[name]
                self._verify_rows(span.start, math.prod(span.shape[1:]) * span.dtype.itemsize, ptr, rows)
        span = self._spans["edge_index"]
        for start in (span.start, span.start + (span.stop - span.start) // 2):  # sources, destinations
            self._verify_rows(start, span.dtype.itemsize, collection.edge_ptr, rows)

    def verify_array(self, name: str) -> None:
        """Verify the blocks of one array."""
        span = self._spans[name]
        for block in range(span.start // BLOCK, -(-span.stop // BLOCK)):
            if not self._verified[block]:
                self._verify(block)

    def verify_all(self) -> None:
        """Verify every block, including those verified before."""
        for block in range(len(self._hashes)):
            self._verify(block)

    def _verify_rows(self, start: int, width: int, ptr: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        rows = rows[ptr[rows] < ptr[rows + 1]]  # a graph without nodes or edges has no bytes
        if width == 0 or not len(rows):
            return
        first = (start + ptr[rows] * width) // BLOCK
        last = (start + ptr[rows + 1] * width - 1) // BLOCK
        needed = np.zeros(len(self._hashes) + 1, dtype=np.int64)
        np.add.at(needed, first, 1)
        np.add.at(needed, last + 1, -1)
        for block in np.flatnonzero((np.cumsum(needed[:-1]) > 0) & ~self._verified):
            self._verify(int(block))

    def _verify(self, block: int) -> None:
        begin = self._start + block * BLOCK
        # A view of the map would keep it from closing; a slice copies at most one block.
        if hashlib.sha256(self._buffer[begin : begin + BLOCK]).hexdigest() != self._hashes[block]:
            raise DamagedFileError(
                f"collection is damaged: block {block} does not match its hash",
                where=self._where,
                hint="convert it again from its source",
            )
        self._verified[block] = True


def _read(buffer: mmap.mmap, size: int, path: Path) -> GraphCollection:
    length = int.from_bytes(buffer[:8], "little")
    if not 0 < length <= min(HEADER_CAP, size - 8):
        raise ValueError("header does not fit")
    header = json.loads(buffer[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict):
        raise ValueError("header has no metadata")
    check_stamp("collection", metadata, str(path))
    start = 8 + length
    spans = _spans(header, size - start)
    blocks = metadata["blocks"].split(",") if metadata["blocks"] else []
    if len(blocks) != -(-(size - start) // BLOCK):
        raise ValueError("number of blocks does not match the file's size")
    if _content_hash(metadata["meta"], header, blocks) != metadata["content_hash"]:
        raise ValueError("header does not match its hash")
    if metadata.get("words_hash", words := _words_hash(metadata)) != words:  # older versions wrote none
        raise ValueError("name and notes do not match their hash")
    verifier = BlockVerifier(buffer, start, blocks, spans, str(path))
    if size <= WHOLE_LIMIT:
        verifier.verify_all()
    else:
        for name in ("node_ptr", "edge_ptr", "labels", "ids", "id_ptr", "id_bytes"):
            if name in spans:
                verifier.verify_array(name)
    arrays = {
        name: np.frombuffer(buffer, span.dtype, span.count, start + span.start).reshape(span.shape)
        for name, span in spans.items()
    }
    for name, array in arrays.items():
        if KINDS.get(name) != array.dtype.kind:
            raise ValueError(f"array {name} has the wrong kind of numbers")
    collection = _collection(arrays, json.loads(metadata["meta"]), metadata, verifier)
    collection.__dict__["content_hash"] = metadata["content_hash"]  # fills the cached property
    return collection


def _words_hash(metadata: Mapping[str, str]) -> str:
    """A hash of what is no part of the content: equal graphs of another name have the same content hash."""
    return hashlib.sha256(json.dumps([metadata["name"], metadata["notes"]]).encode()).hexdigest()


def _spans(header: Mapping[str, Any], data_size: int) -> dict[str, Span]:
    """The span of each array; together they must fill the data section exactly."""
    spans = {}
    expected = 0
    for name, spec in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = spec["data_offsets"]
        span = Span(begin, end, DTYPES[spec["dtype"]], tuple(int(side) for side in spec["shape"]))
        if begin != expected or span.count * span.dtype.itemsize != end - begin or span.count < 0:
            raise ValueError(f"array {name} has wrong offsets")
        spans[name] = span
        expected = end
    if expected != data_size:
        raise ValueError(f"{data_size:,} bytes of data where {expected:,} are declared")
    return spans


def _collection(
    arrays: dict[str, NDArray[Any]],
    meta: dict[str, Any],
    metadata: dict[str, str],
    verifier: BlockVerifier,
) -> GraphCollection:
    def table(kind: str) -> FeatureTable:
        columns, names = columns_from_json(meta[f"{kind}_columns"]), _strings(meta[f"{kind}_float_names"])
        return FeatureTable(arrays[f"{kind}_codes"], columns, arrays[f"{kind}_floats"], names)

    collection = GraphCollection(
        node_ptr=arrays["node_ptr"],
        edge_ptr=arrays["edge_ptr"],
        edge_index=arrays["edge_index"],
        nodes=table("node"),
        edges=table("edge"),
        undirected=bool(meta["undirected"]),
        features=FeatureScheme.from_json(meta["features"]),
        ids=Strings(arrays["id_bytes"], arrays["id_ptr"]) if "id_ptr" in arrays else arrays["ids"],
        labels=arrays.get("labels"),
        tasks=_strings(meta["tasks"]),
        classes={task: _strings(names) for task, names in meta["classes"].items()},
        pos=arrays.get("pos"),
        edge_weight=arrays.get("edge_weight"),
        name=str(metadata["name"]),
        notes=_strings(json.loads(metadata["notes"])),
        verifier=verifier,
    )
    check_shapes(collection)
    return collection


def _strings(stored: object) -> tuple[str, ...]:
    if not isinstance(stored, list) or not all(isinstance(text, str) for text in stored):
        raise ValueError("names are not a list of strings")
    return tuple(stored)
