"""What a collection looks like as a file: its arrays in file order, in pieces, with their hashes.

Parts are laid out as one collection without a copy of any, so that a file can be larger than memory.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection
from graphsc.data.guard import BLOCK
from graphsc.data.strings import Strings
from graphsc.data.table import columns_to_json

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
