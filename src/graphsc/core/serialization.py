"""File formats: named tensors in a hashed safetensors file, arrays packed as text, format versions.

Nothing here reads or writes pickles.
"""

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

from graphsc.core.errors import DamagedFileError, DataError, NotFoundError
from graphsc.core.files import write_if_changed

if TYPE_CHECKING:
    from torch import Tensor

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
    "ensemble",
    "validation-scores",
    "domain",
    "predictions",
    "transfer-result",
)
# Increase a version only when older readers would misread the new file.
VERSIONS = dict.fromkeys(KINDS, 1) | {"result": 2}

HEADER_CAP = 64 * 2**20  # bytes of the header of a safetensors file
UNPACKED_CAP = 64 * 2**20  # bytes; a small file could claim to contain any number of zeros
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


def stamp(kind: str) -> dict[str, str]:
    """The header fields of a file of this kind: format and version."""
    return {"format": f"graphsc-{kind}", "format_version": str(VERSIONS[kind])}


def check_stamp(kind: str, header: Mapping[str, str], where: str) -> None:
    """Check that a file with this header is of this kind, and not from a newer version of this package."""
    file_format = header.get("format")
    if file_format != f"graphsc-{kind}":
        other = str(file_format).removeprefix("graphsc-")
        actual = f" but a {other} file" if other in KINDS else ""
        raise DamagedFileError(f"not a GraphSC {kind} file{actual}", where=where)
    version = header.get("format_version", "")
    if not re.fullmatch("[1-9][0-9]{0,8}", version):
        raise DamagedFileError(f"{kind} file has no format version", where=where)
    if int(version) > VERSIONS[kind]:
        raise DamagedFileError(
            f"{kind} file has format version {int(version)}, this package reads up to {VERSIONS[kind]}",
            where=where,
            hint="upgrade graphsc",
        )


def save_tensors(
    path: str | os.PathLike[str], kind: str, tensors: Mapping[str, Tensor], facts: Mapping[str, object]
) -> None:
    """Write tensors and JSON metadata (`facts`) to a safetensors file, atomically and with a SHA-256 hash."""
    from safetensors.torch import save

    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = stamp(kind) | {"facts": json.dumps(facts)}
    metadata["sha256"] = digest_of(flat, metadata)
    write_if_changed(path, _with_sorted_metadata(save(flat, metadata)))


def _with_sorted_metadata(content: bytes) -> bytes:
    """A safetensors file with its metadata in a fixed order, so that equal tensors give equal files."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    header = {"__metadata__": dict(sorted(header.pop("__metadata__").items())), **header}
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)  # tensors start at a multiple of eight bytes
    return len(text).to_bytes(8, "little") + text + content[8 + length :]


def stored_kind(path: str | os.PathLike[str]) -> str | None:
    """The kind that the header of a file of tensors names; None if it is none of ours or cannot be read."""
    try:
        with open(path, "rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 0 < length <= HEADER_CAP:
                return None
            metadata = json.loads(file.read(length))["__metadata__"]
            kind = str(metadata["format"]).removeprefix("graphsc-")
    except (OSError, ValueError, TypeError, LookupError, RecursionError):
        return None
    return kind if kind in KINDS else None


def load_tensors(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Tensor], dict[str, object]]:
    """Read the tensors and metadata written by `save_tensors`.

    Raises:
        NotFoundError: the file cannot be opened.
        DamagedFileError: it is a pickle, of another kind, or its content does not match its header or hash.
        DataError: it is larger than the memory.
    """
    from safetensors import SafetensorError
    from safetensors.torch import load

    where = str(path)
    damaged = DamagedFileError(f"{kind} file is damaged", where=where)
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            start = file.read(8)
            if start.startswith(_PICKLES):
                raise DamagedFileError(
                    f"this is a pickle, not a {kind} file of ours; it was not run", where=where
                )
            length = int.from_bytes(start, "little")
            if not 0 < length <= min(HEADER_CAP, size - 8):
                raise damaged
            header = json.loads(file.read(length))
            metadata = header.pop("__metadata__", {})
            check_stamp(kind, metadata, where)
            # Before the content is read: a file may be longer than its header says, or than the memory.
            declared = 8 + length + max((spec["data_offsets"][1] for spec in header.values()), default=0)
            if declared != size:
                raise damaged
            check_memory(size, where)
            file.seek(0)
            content = file.read(size)
    except OSError as error:
        raise NotFoundError(f"cannot open {kind} file: {error.strerror}", where=where) from error
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise damaged from error
    try:
        tensors = load(content)
        expected = metadata.pop("sha256")
        if digest_of(tensors, metadata) != expected:
            raise damaged
        facts = json.loads(metadata["facts"])
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError) as error:
        raise damaged from error
    return tensors, facts


def check_memory(size: int, where: str) -> None:
    """Refuse to read more bytes than this machine has memory.

    Raises:
        DataError: The content would not fit.
    """
    try:
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):  # pragma: no cover - Windows does not say
        return
    if size > memory:
        raise DataError(f"{size:,} bytes do not fit the memory of {memory:,} bytes", where=where)


def digest_of(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """SHA-256 over metadata, names, types, shapes and bytes; independent of the order of the tensors."""
    import torch

    digest = hashlib.sha256(json.dumps(dict(metadata), sort_keys=True).encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name}:{tensor.dtype}:{tuple(tensor.shape)}".encode())
        flat = tensor.reshape(-1).view(torch.uint8) if tensor.numel() else tensor.reshape(-1)
        digest.update(flat.numpy().tobytes())
    return digest.hexdigest()


def pack(values: NDArray[np.int64]) -> str:
    """Integers from 0 to 65535 as compressed base-85 text for JSON: one or two bytes each."""
    width = np.uint8 if values.size == 0 or values.max() < 256 else np.uint16
    return f"{np.dtype(width).itemsize}:{_compress(values.astype(width).tobytes())}"


def unpack(text: str) -> NDArray[np.int64]:
    """The inverse of `pack`."""
    size, _, body = text.partition(":")
    return np.frombuffer(_decompress(body), dtype={"1": np.uint8, "2": np.uint16}[size]).astype(np.int64)


def pack_floats(values: NDArray[np.floating]) -> str:
    """Floats as compressed base-85 text for JSON, in their own precision: half, single or double."""
    # Bytes of equal significance are stored together: numbers of similar size then compress well.
    dtype = np.dtype(values.dtype).newbyteorder("<")
    planes = values.astype(dtype).reshape(-1).view(np.uint8).reshape(-1, dtype.itemsize).T
    return f"f{dtype.itemsize}:{_compress(planes.tobytes())}"


def unpack_floats(text: str) -> NDArray[np.floating]:
    """The inverse of `pack_floats`."""
    name, _, body = text.partition(":")
    dtype = np.dtype({"f2": "<f2", "f4": "<f4", "f8": "<f8"}[name])
    planes = np.frombuffer(_decompress(body), dtype=np.uint8).reshape(dtype.itemsize, -1)
    values: NDArray[np.floating] = np.ascontiguousarray(planes.T).reshape(-1).view(dtype)
    return values


def _compress(raw: bytes) -> str:
    return base64.b85encode(zlib.compress(raw, 9)).decode()


def _decompress(body: str) -> bytes:
    decompressor = zlib.decompressobj()
    raw = decompressor.decompress(base64.b85decode(body), UNPACKED_CAP)
    if not decompressor.eof:
        raise ValueError("packed numbers are truncated or too many")
    return raw
