"""Named tensors in one safetensors file with a hash over everything in it; never pickle."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
from graphsc.core.formats import check_stamp, stamp

if TYPE_CHECKING:
    from torch import Tensor

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
