"""Some graphs of a collection, in place: to train on most of a file without a copy of it in memory."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from graphsc.data.collection import GraphCollection

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from graphsc.data.describe import Statistics


@dataclass(frozen=True, eq=False, repr=False)
class ChosenGraphs(GraphCollection):
    """Graphs `rows` of the collection whose arrays these are; `choose` makes one.

    Batches are gathered straight from the arrays. Whatever needs arrays of its own (`take`, `save`,
    statistics) copies the chosen graphs first.
    """

    rows: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))
    whole_hash: str | None = None  # content hash of the collection, where it was known already

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def num_nodes(self) -> int:
        return int((self.node_ptr[self.rows + 1] - self.node_ptr[self.rows]).sum())

    @property
    def num_edges(self) -> int:
        return int((self.edge_ptr[self.rows + 1] - self.edge_ptr[self.rows]).sum())

    @cached_property
    def content_hash(self) -> str:
        """SHA-256 of the collection's hash and of which graphs are chosen."""
        whole = self.whole_hash or self._whole().content_hash
        return hashlib.sha256(whole.encode() + self.rows.astype("<i8").tobytes()).hexdigest()

    @cached_property
    def degrees(self) -> NDArray[np.integer]:
        """Of all nodes in the arrays."""
        return self._whole().degrees

    def stored(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.rows[positions]

    def take(self, index: Sequence[int] | NDArray[np.generic]) -> GraphCollection:
        """A copy of some of the chosen graphs."""
        return self._whole().take(self.rows[self.positions(index)])

    def _slice(self, start: int, stop: int) -> GraphCollection:
        return self.take(np.arange(start, stop))

    def copy(self) -> GraphCollection:
        """The chosen graphs in arrays of their own."""
        return self.take(np.arange(len(self)))

    def __eq__(self, other: object) -> bool:
        return self.copy() == (other.copy() if isinstance(other, ChosenGraphs) else other)

    __hash__ = None

    def __getstate__(self) -> dict[str, object]:
        return {**self._whole().__getstate__(), "rows": self.rows, "whole_hash": self.whole_hash}

    def describe(self) -> Statistics:
        return self.copy().describe()

    def check(self) -> None:
        self.copy().check()

    def save(self, path: str | os.PathLike[str]) -> None:
        self.copy().save(path)

    def to_pyg(self) -> list[Data]:
        return self.copy().to_pyg()

    def _whole(self) -> GraphCollection:
        return GraphCollection(**{item.name: getattr(self, item.name) for item in fields(GraphCollection)})


def choose(collection: GraphCollection, rows: Sequence[int] | NDArray[np.generic]) -> ChosenGraphs:
    """The graphs at these positions, in this order, without a copy of any array."""
    positions = collection.stored(collection.positions(rows))
    return ChosenGraphs(
        **{item.name: getattr(collection, item.name) for item in fields(GraphCollection)},
        rows=positions,
        whole_hash=collection.whole_hash
        if isinstance(collection, ChosenGraphs)
        else collection.__dict__.get("content_hash"),
    )
