"""Named tensors in one safetensors file with a hash over everything in it; never pickle."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import zlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic

if TYPE_CHECKING:
    from torch import Tensor


# Arrays as text that a JSON file can hold: compressed, base 85, with the type in front.


UNPACKED_CAP = 64 * 2**20  # bytes; a small file could claim to hold any number of zeros


def pack(values: NDArray[np.int64]) -> str:
    """Small whole numbers as text: one byte each, two where needed."""
    width = np.uint8 if values.size == 0 or values.max() < 256 else np.uint16
    return f"{np.dtype(width).itemsize}:{_text(values.astype(width).tobytes())}"


def unpack(text: str) -> NDArray[np.int64]:
    """What `pack` packed."""
    size, _, body = text.partition(":")
    return np.frombuffer(_raw(body), dtype={"1": np.uint8, "2": np.uint16}[size]).astype(np.int64)


def pack_floats(values: NDArray[np.floating]) -> str:
    """Numbers as text, in the precision they have: half (`f2`), single or double."""
    # Bytes of equal rank lie together, which is what makes numbers of one size compress.
    kind = np.dtype(values.dtype).newbyteorder("<")
    planes = values.astype(kind).reshape(-1).view(np.uint8).reshape(-1, kind.itemsize).T
    return f"f{kind.itemsize}:{_text(planes.tobytes())}"


def unpack_floats(text: str) -> NDArray[np.floating]:
    """What `pack_floats` packed."""
    name, _, body = text.partition(":")
    kind = np.dtype({"f2": "<f2", "f4": "<f4", "f8": "<f8"}[name])
    planes = np.frombuffer(_raw(body), dtype=np.uint8).reshape(kind.itemsize, -1)
    found: NDArray[np.floating] = np.ascontiguousarray(planes.T).reshape(-1).view(kind)
    return found


def _text(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw, 9)).decode()


def _raw(body: str) -> bytes:
    unpacker = zlib.decompressobj()
    raw = unpacker.decompress(base64.b85decode(body), UNPACKED_CAP)
    if not unpacker.eof:
        raise ValueError("packed numbers are cut short or too many")
    return raw


# The version of every file format we write, and the refusal of files from the future.


# Raise a number only when older readers would misread the new file.
KINDS = (
    "collection",
    "checkpoint",
    "model",
    "embeddings",
    "run",
    "environments",
    "result",
    "card",
    "statistics",
    "predictor",
    "predictions",
    "transfer-result",
)
VERSIONS = dict.fromkeys(KINDS, 1) | {"result": 2}


def stamp(kind: str) -> dict[str, str]:
    """The two header fields that every file of ours begins with."""
    return {"format": f"graphsc-{kind}", "format_version": str(VERSIONS[kind])}


def check_stamp(kind: str, header: Mapping[str, str], where: str) -> None:
    """Refuse a file of another kind, or one written by a newer version of this package."""
    found = header.get("format")
    if found != f"graphsc-{kind}":
        other = str(found).removeprefix("graphsc-")
        told = f" but a {other} file" if other in KINDS else ""
        raise DamagedFileError(f"not a GraphSC {kind} file{told}", where=where)
    version = header.get("format_version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise DamagedFileError(f"{kind} file has no format version", where=where)
    if int(version) > VERSIONS[kind]:
        raise DamagedFileError(
            f"{kind} file has format version {int(version)}, this package reads up to {VERSIONS[kind]}",
            where=where,
            hint="upgrade graphsc",
        )


PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def save_tensors(
    path: str | os.PathLike[str], kind: str, tensors: Mapping[str, Tensor], facts: Mapping[str, object]
) -> None:
    """Write tensors and JSON facts, whole or not at all."""
    from safetensors.torch import save

    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = stamp(kind) | {"facts": json.dumps(facts)}
    metadata["sha256"] = digest_of(flat, metadata)
    write_atomic(path, save(flat, metadata))


def load_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Read what `save_tensors` wrote, refusing a file that is damaged or of another kind."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    where = str(path)
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise NotFoundError(f"cannot open {kind} file: {error.strerror}", where=where) from error
    if content.startswith(PICKLES):
        raise DamagedFileError(f"this is a pickle, not a {kind} file of ours; it was not run", where=where)
    damaged = DamagedFileError(f"{kind} file is damaged", where=where)
    try:
        length = int.from_bytes(content[:8], "little")
        header = json.loads(content[8 : 8 + length])
        metadata = header.get("__metadata__", {})
    except (ValueError, AttributeError, RecursionError) as error:
        raise damaged from error
    check_stamp(kind, metadata, where)
    try:
        tensors = load(content)
        expected = metadata.pop("sha256")
        if digest_of(tensors, metadata) != expected:
            raise damaged
        facts = json.loads(metadata["facts"])
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise damaged from error
    return tensors, facts


def digest_of(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    import torch

    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        flat = tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor.reshape(-1)
        digest.update(flat.numpy().tobytes())
    return digest.hexdigest()
