"""A collection as one safetensors file, opened by memory map.

Written here and not by the safetensors package, because that package copies arrays out of the map and
needs the whole file in memory to write it; the file itself is plain safetensors, which a test reads with
that package. The data section is hashed in 16 MB blocks: small files are verified whole at opening,
large ones block by block as they are touched.
"""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import atomic_write
from graphsc.core.formats import check_stamp, stamp
from graphsc.data.collection import GraphCollection, Ids
from graphsc.data.features import FeatureScheme
from graphsc.data.guard import BLOCK, BlockGuard, Span
from graphsc.data.layout import DTYPES, content_hash_of, layout_of
from graphsc.data.stored import check_kinds, texts_of
from graphsc.data.strings import Strings
from graphsc.data.table import Table, columns_from_json

WHOLE_LIMIT = 64 * 2**20  # bytes; files up to here are verified at opening
HEADER_CAP = 64 * 2**20
SUFFIX = ".safetensors"


def save(collection: GraphCollection, path: str | os.PathLike[str]) -> None:
    """Write the file, whole or not at all."""
    save_parts([collection], path, collection.name, collection.notes)


def save_parts(
    parts: Sequence[GraphCollection], path: str | os.PathLike[str], name: str, notes: Sequence[str]
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
    with atomic_write(path) as file:
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
    def table(which: str) -> Table:
        columns = columns_from_json(meta[f"{which}_columns"])
        names = texts_of(meta[f"{which}_float_names"])
        codes = cast(NDArray[np.unsignedinteger], arrays[f"{which}_codes"])
        floats = cast(NDArray[np.float32], arrays[f"{which}_floats"])
        if codes.shape[1:] != (len(columns),) or floats.shape != (len(codes), len(names)):
            raise ValueError(f"{which} columns do not match their names")
        return Table(codes, columns, floats, names)

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
