"""What may stand in a saved collection; hashes that fit do not make it true."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray


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
