"""What is worked out once for each batch: a batch never changes, and two views of it need the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar
from weakref import WeakKeyDictionary

from graphsc.data.batch import GraphBatch

T = TypeVar("T")


def once_per_batch(function: Callable[[GraphBatch], T]) -> Callable[[GraphBatch], T]:
    """Remember a function's result as long as its batch lives; the result must not hold the batch."""
    known: WeakKeyDictionary[GraphBatch, T] = WeakKeyDictionary()

    def remembered(batch: GraphBatch) -> T:
        result = known.get(batch)
        if result is None:
            result = known[batch] = function(batch)
        return result

    return remembered
