"""Finished chunks on disk: each a collection of its own, with a note beside it that says it is whole.

The note is written last and holds the hashes of both, so that what a killed process left half done is seen
and done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import cast

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.files import write_atomic
from graphsc.data.collection import GraphCollection
from graphsc.data.molecules.outcome import Outcome
from graphsc.data.molecules.rejects import Rejected


class Parts:
    """The folder of a conversion's finished chunks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, index: int) -> Path:
        """The collection of a chunk."""
        return self.folder / f"part-{index:06d}.safetensors"

    def keep(self, index: int, collection: GraphCollection | None, outcome: Outcome) -> None:
        """Store a finished chunk; a chunk without a molecule has no collection."""
        content = None
        if collection is not None:
            collection.save(self.path(index))
            content = collection.content_hash
        told = json.dumps([content, outcome.rows, outcome.rejected, outcome.other_bonds])
        write_atomic(self._note(index), json.dumps({"sha256": _hash(told), "told": told}))

    def outcome(self, index: int) -> Outcome | None:
        """What became of a chunk, or None where it is not there or not whole."""
        told = self._told(index)
        if told is None:
            return None
        content, rows, rejected, other_bonds = told
        try:
            if content is not None and GraphCollection.open(self.path(index)).content_hash != content:
                return None
        except (DamagedFileError, NotFoundError):
            return None
        return Outcome(
            cast(int, rows),
            [Rejected(*row) for row in cast(list[tuple[int, int, str, str, str | None]], rejected)],
            cast(int, other_bonds),
        )

    def collections(self, indices: Sequence[int]) -> Iterator[GraphCollection]:
        """The collections of these chunks, in order, without those that hold nothing."""
        for index in indices:
            told = self._told(index)
            if told is not None and told[0] is not None:
                yield GraphCollection.open(self.path(index))

    def _note(self, index: int) -> Path:
        return self.folder / f"part-{index:06d}.json"

    def _told(self, index: int) -> list[object] | None:
        try:
            note = json.loads(self._note(index).read_bytes())
            told = note["told"]
            return cast(list[object], json.loads(told)) if _hash(told) == note["sha256"] else None
        except (OSError, ValueError, LookupError, TypeError, AttributeError):
            return None


def begin(folder: Path, wanted: str) -> None:
    """Keep the parts of interrupted work that was the same as the one `wanted` names, throw away others'.

    For whoever holds the folder's file `lock`.
    """
    told = folder / "plan.json"
    try:
        found = told.read_text()
    except OSError:
        found = ""
    if found != wanted:
        for path in folder.iterdir():
            if path.name != "lock":
                path.unlink()
        write_atomic(told, wanted)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
