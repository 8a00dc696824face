"""Arrays as text that a JSON file can hold: compressed, base 85, with the type in front."""

from __future__ import annotations

import base64
import zlib

import numpy as np
from numpy.typing import NDArray

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
