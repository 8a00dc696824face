"""A collection as one safetensors file, opened by memory map.

Written here and not by the safetensors package, because that package copies arrays out of the map and
needs the whole file in memory to write it; the file itself is plain safetensors, which a test reads with
that package. The data section is hashed in 16 MB blocks: small files are verified whole at opening,
large ones block by block as they are touched.
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
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import atomic_write
from graphsc.core.serialization import check_stamp, stamp
from graphsc.data.arrays import Strings
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.columns import FeatureTable, columns_from_json, columns_to_json
from graphsc.data.features import FeatureScheme

if TYPE_CHECKING:
    from graphsc.data.collection import GraphCollection


# What may stand in a saved collection; hashes that fit do not make it true.


def texts_of(stored: object) -> tuple[str, ...]:
    """A list of names, and of nothing else."""
    if not isinstance(stored, list) or not all(isinstance(text, str) for text in stored):
        raise ValueError("names are not a list of texts")
    return tuple(stored)


# What kind of number each array may hold; a pointer of floats would be found out much later.
KINDS = {
    "node_ptr": "i", "edge_ptr": "i", "id_ptr": "i", "ids": "i", "edge_index": "u", "node_codes": "u",
    "edge_codes": "u", "id_bytes": "u", "node_floats": "f", "edge_floats": "f", "labels": "f",
}  # fmt: skip


def check_kinds(arrays: Mapping[str, NDArray[np.generic]]) -> None:
    """Refuse an array that holds another kind of number than its name says."""
    for name, array in arrays.items():
        if KINDS.get(name) != array.dtype.kind:
            raise ValueError(f"array {name} is of another kind than it should be")


# Verifies the blocks of a large memory-mapped file when they are first touched.


BLOCK = 16 * 2**20  # bytes


@dataclass(frozen=True)
class Span:
    """Where one array lies in the data section."""

    start: int
    stop: int
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class BlockGuard:
    """Knows which 16 MB blocks of a file have been seen to match their hash."""

    def __init__(
        self, buffer: mmap.mmap, start: int, hashes: list[str], spans: dict[str, Span], where: str
    ) -> None:
        self._buffer = buffer
        self._start = start
        self._hashes = hashes
        self._spans = spans
        self._where = where
        self._verified = np.zeros(len(hashes), dtype=bool)

    def touch_graphs(self, collection: GraphCollection, rows: NDArray[np.int64]) -> None:
        """Verify the blocks that hold the nodes and edges of these graphs."""
        if self._verified.all():
            return
        for name, ptr in (
            ("node_codes", collection.node_ptr),
            ("node_floats", collection.node_ptr),
            ("edge_codes", collection.edge_ptr),
            ("edge_floats", collection.edge_ptr),
        ):
            span = self._spans[name]
            self._touch_rows(span.start, span.shape[1] * span.dtype.itemsize, ptr, rows)
        span = self._spans["edge_index"]
        for half in (span.start, span.start + (span.stop - span.start) // 2):
            self._touch_rows(half, span.dtype.itemsize, collection.edge_ptr, rows)

    def _touch_rows(self, start: int, width: int, ptr: NDArray[np.int64], rows: NDArray[np.int64]) -> None:
        rows = rows[ptr[rows] < ptr[rows + 1]]  # what has no bytes lies in no block
        if width == 0 or not len(rows):
            return
        first = (start + ptr[rows] * width) // BLOCK
        last = (start + ptr[rows + 1] * width - 1) // BLOCK
        needed = np.zeros(len(self._hashes) + 1, dtype=np.int64)
        np.add.at(needed, first, 1)
        np.add.at(needed, last + 1, -1)
        for block in np.flatnonzero((np.cumsum(needed[:-1]) > 0) & ~self._verified):
            self._verify(int(block))

    def touch_bytes(self, start: int, stop: int) -> None:
        """Verify the blocks of a range of the data section."""
        for block in range(start // BLOCK, -(-stop // BLOCK)):
            if not self._verified[block]:
                self._verify(block)

    def verify_all(self) -> None:
        """Verify every block, whatever was verified before."""
        for block in range(len(self._hashes)):
            self._verify(block)

    def _verify(self, block: int) -> None:
        begin = self._start + block * BLOCK
        # A view of the map would keep it from closing; hashing a slice copies 16 MB at most.
        if hashlib.sha256(self._buffer[begin : begin + BLOCK]).hexdigest() != self._hashes[block]:
            raise DamagedFileError(
                f"collection is damaged: block {block} does not match its hash",
                where=self._where,
                hint="convert it again from its source",
            )
        self._verified[block] = True


# What a collection looks like as a file: its arrays in file order, in pieces, with their hashes.
#
# Parts are laid out as one collection without a copy of any, so that a file can be larger than memory.


DTYPES: dict[str, np.dtype[np.generic]] = {
    "U8": np.dtype("u1"),
    "U16": np.dtype("<u2"),
    "U32": np.dtype("<u4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
CODE_OF = {dtype: code for code, dtype in DTYPES.items()}


@dataclass(frozen=True)
class Stream:
    """An array as a file holds it, without having it whole: type, shape, and its pieces in order."""

    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]
    pieces: Callable[[], Iterable[NDArray[np.generic]]]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize

    def bytes(self) -> Iterator[memoryview]:
        """Its bytes in file order, at most one block at a time."""
        for piece in self.pieces():
            flat = np.ascontiguousarray(piece, dtype=self.dtype).reshape(-1).view(np.uint8)
            for start in range(0, len(flat), BLOCK):
                yield flat[start : start + BLOCK].data


@dataclass(frozen=True)
class Layout:
    """What a collection looks like as a file: meaning, arrays in file order, hashes."""

    meta: str
    tensors: dict[str, Stream]
    blocks: list[str]

    @property
    def specs(self) -> dict[str, dict[str, object]]:
        """dtype, shape and place of each array, as a safetensors header wants them."""
        found: dict[str, dict[str, object]] = {}
        offset = 0
        for name, stream in self.tensors.items():
            found[name] = {
                "dtype": CODE_OF[stream.dtype],
                "shape": list(stream.shape),
                "data_offsets": [offset, offset + stream.nbytes],
            }
            offset += stream.nbytes
        return found

    @property
    def content_hash(self) -> str:
        return content_hash_of(self.meta, self.specs, self.blocks)


def layout_of(*parts: GraphCollection) -> Layout:
    """Lay out the graphs of all parts as one collection: widest items first, so that every array is aligned.

    The parts agree in columns, tasks, classes and features; none is copied.
    """
    first = parts[0]
    for part in parts:
        part.touch(np.arange(len(part)))
    tensors = {
        "node_ptr": _pointers([part.node_ptr for part in parts]),
        "edge_ptr": _pointers([part.edge_ptr for part in parts]),
        "edge_index": _side_by_side([part.edge_index for part in parts]),
        "node_codes": _rows([part.nodes.codes for part in parts]),
        "node_floats": _rows([part.nodes.floats for part in parts]),
        "edge_codes": _rows([part.edges.codes for part in parts]),
        "edge_floats": _rows([part.edges.floats for part in parts]),
    }
    if first.labels is not None:
        tensors["labels"] = _rows([part.labels for part in parts if part.labels is not None])
    if isinstance(first.ids, Strings):
        words = [part.ids for part in parts if isinstance(part.ids, Strings)]
        tensors["id_bytes"] = _rows([ids.bytes for ids in words])
        tensors["id_ptr"] = _pointers([ids.ptr for ids in words])
    else:
        tensors["ids"] = _rows([part.ids for part in parts if not isinstance(part.ids, Strings)])
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


def _rows(arrays: Sequence[NDArray[np.generic]]) -> Stream:
    rows = sum(len(array) for array in arrays)
    return Stream(_common_type(arrays), (rows, *arrays[0].shape[1:]), lambda: arrays)


def _pointers(pointers: Sequence[NDArray[np.int64]]) -> Stream:
    if len(pointers) == 1:
        return _rows(pointers)

    def pieces() -> Iterator[NDArray[np.generic]]:
        yield np.zeros(1, dtype=np.int64)
        offset = 0
        for ptr in pointers:
            yield ptr[1:] + offset
            offset += int(ptr[-1])

    return Stream(np.dtype(np.int64), (1 + sum(len(ptr) - 1 for ptr in pointers),), pieces)


def _side_by_side(arrays: Sequence[NDArray[np.generic]]) -> Stream:
    if len(arrays) == 1:
        return _rows(arrays)
    columns = sum(array.shape[1] for array in arrays)
    return Stream(_common_type(arrays), (2, columns), lambda: (array[k] for k in (0, 1) for array in arrays))


def _common_type(arrays: Sequence[NDArray[np.generic]]) -> np.dtype[np.generic]:
    return np.result_type(*{array.dtype for array in arrays})


def _block_hashes(tensors: Mapping[str, Stream]) -> list[str]:
    """SHA-256 of each 16 MB of the data section, across array borders."""
    hashes = []
    digest, room = hashlib.sha256(), BLOCK
    for stream in tensors.values():
        for part in stream.bytes():
            while len(part) >= room:
                digest.update(part[:room])
                hashes.append(digest.hexdigest())
                part, digest, room = part[room:], hashlib.sha256(), BLOCK
            digest.update(part)
            room -= len(part)
    if room < BLOCK:
        hashes.append(digest.hexdigest())
    return hashes


def content_hash_of(meta: str, specs: Mapping[str, object], blocks: list[str]) -> str:
    text = json.dumps([meta, specs, blocks], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


WHOLE_LIMIT = 64 * 2**20  # bytes; files up to here are verified at opening
HEADER_CAP = 64 * 2**20
SUFFIX = ".safetensors"


def save(collection: GraphCollection, path: str | os.PathLike[str]) -> None:
    """Write the file, whole or not at all."""
    save_parts([collection], path, collection.name, collection.notes)


def save_parts(
    parts: Sequence[GraphCollection],
    target: str | os.PathLike[str] | BytesIO,
    name: str,
    notes: Sequence[str],
) -> str:
    """Write the graphs of all parts as one file, without a copy in memory; return its content hash."""
    layout = layout_of(*parts)
    metadata = stamp("collection") | {
        "name": name,
        "notes": json.dumps(list(notes)),
        "meta": layout.meta,
        "blocks": ",".join(layout.blocks),
        "content_hash": layout.content_hash,
    }
    header = json.dumps({"__metadata__": metadata, **layout.specs}).encode()
    header += b" " * (-len(header) % 8)  # the data section must start aligned
    with nullcontext(target) if isinstance(target, BytesIO) else atomic_write(target) as file:
        file.write(len(header).to_bytes(8, "little"))
        file.write(header)
        for stream in layout.tensors.values():
            for part in stream.bytes():
                file.write(part)
    return layout.content_hash


def load(path: str | os.PathLike[str]) -> GraphCollection:
    """Map a saved collection into memory, refusing one that is damaged."""
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
    except (
        ValueError,
        TypeError,
        AttributeError,
        LookupError,
        ArithmeticError,
        RecursionError,
    ) as error:
        # Every wrong shape of a header ends here: what it says is not what we write.
        raise DamagedFileError(f"collection is damaged: {error}", where=where) from error


def is_collection_file(path: Path) -> bool:
    """Whether a file looks like one of ours, by its name."""
    return path.suffix == SUFFIX


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
    if content_hash_of(metadata["meta"], header, blocks) != metadata["content_hash"]:
        raise ValueError("header does not match its hash")
    guard = BlockGuard(buffer, start, blocks, spans, str(path))
    if size <= WHOLE_LIMIT:
        guard.verify_all()
    else:
        for name in ("node_ptr", "edge_ptr", "labels", "ids", "id_ptr", "id_bytes"):
            if name in spans:
                guard.touch_bytes(spans[name].start, spans[name].stop)
    arrays = {
        name: np.frombuffer(buffer, span.dtype, span.count, start + span.start).reshape(span.shape)
        for name, span in spans.items()
    }
    check_kinds(arrays)
    collection = _collection(arrays, json.loads(metadata["meta"]), metadata, guard)
    collection.__dict__["content_hash"] = metadata["content_hash"]  # fills the cached property
    return collection


def _spans(header: Mapping[str, dict[str, object]], data_size: int) -> dict[str, Span]:
    """Where each array lies; together they must fill the data section exactly."""
    spans = {}
    expected = 0
    for name, spec in sorted(header.items(), key=lambda item: cast(list[int], item[1]["data_offsets"])):
        begin, end = cast(list[int], spec["data_offsets"])
        shape = tuple(int(side) for side in cast(list[int], spec["shape"]))
        span = Span(begin, end, DTYPES[cast(str, spec["dtype"])], shape)
        if begin != expected or span.count * span.dtype.itemsize != end - begin or span.count < 0:
            raise ValueError(f"array {name} does not lie where it should")
        spans[name] = span
        expected = end
    if expected != data_size:
        raise ValueError(f"{data_size:,} bytes of data where {expected:,} are declared")
    return spans


def _collection(
    arrays: dict[str, NDArray[np.generic]],
    meta: dict[str, object],
    metadata: dict[str, str],
    guard: BlockGuard,
) -> GraphCollection:
    def table(which: str) -> FeatureTable:
        columns = columns_from_json(meta[f"{which}_columns"])
        names = texts_of(meta[f"{which}_float_names"])
        codes = cast(NDArray[np.unsignedinteger], arrays[f"{which}_codes"])
        floats = cast(NDArray[np.float32], arrays[f"{which}_floats"])
        if codes.shape[1:] != (len(columns),) or floats.shape != (len(codes), len(names)):
            raise ValueError(f"{which} columns do not match their names")
        return FeatureTable(codes, columns, floats, names)

    node_ptr = cast(NDArray[np.int64], arrays["node_ptr"])
    edge_ptr = cast(NDArray[np.int64], arrays["edge_ptr"])
    edge_index = cast(NDArray[np.unsignedinteger], arrays["edge_index"])
    nodes, edges = table("node"), table("edge")
    for name, ptr, rows in (("node_ptr", node_ptr, len(nodes)), ("edge_ptr", edge_ptr, len(edges))):
        if ptr.ndim != 1 or not len(ptr) or ptr[0] != 0 or ptr[-1] != rows or (np.diff(ptr) < 0).any():
            raise ValueError(f"{name} does not fit its arrays")
    graphs = len(node_ptr) - 1
    ids: Ids = (
        Strings(cast(NDArray[np.uint8], arrays["id_bytes"]), cast(NDArray[np.int64], arrays["id_ptr"]))
        if "id_ptr" in arrays
        else cast(NDArray[np.int64], arrays["ids"])
    )
    if isinstance(ids, Strings) and (ids.ptr[-1] != len(ids.bytes) or (np.diff(ids.ptr) < 0).any()):
        raise ValueError("id_ptr does not fit its array")
    labels = cast("NDArray[np.floating] | None", arrays.get("labels"))
    tasks = texts_of(meta["tasks"])
    if len(edge_ptr) != len(node_ptr) or len(ids) != graphs or edge_index.shape != (2, len(edges)):
        raise ValueError("arrays are of differing length")
    if labels is not None and labels.shape != (graphs, len(tasks)):
        raise ValueError("labels do not match their tasks")
    classes = cast(dict[str, list[str]], meta["classes"])
    features = FeatureScheme.from_json(cast(dict[str, object], meta["features"]))
    if len(nodes) and not features.fits(nodes):
        raise ValueError("features do not fit the nodes")
    return GraphCollection(
        node_ptr=node_ptr,
        edge_ptr=edge_ptr,
        edge_index=edge_index,
        nodes=nodes,
        edges=edges,
        undirected=bool(meta["undirected"]),
        features=features,
        ids=ids,
        labels=labels,
        tasks=tasks,
        classes={task: texts_of(names) for task, names in classes.items()},
        name=str(metadata["name"]),
        notes=texts_of(json.loads(metadata["notes"])),
        guard=guard,
    )
