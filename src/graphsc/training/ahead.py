"""The next step's graphs and views, made while this step learns.

A thread and not processes: gathering and perturbing are array operations that let go of the interpreter,
and nothing has to be copied. What is made depends on (seed, epoch, step) alone, so the result is the same
as without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from graphsc.data.collection import GraphCollection

T = TypeVar("T")


# Nodes and edges in a batch. Small batches are mostly Python, and two threads of Python take turns.
WORTH = 100_000


def worth_a_thread(collection: GraphCollection, batch_size: int) -> bool:
    """Whether batches of this collection are large enough for making them ahead to save time."""
    share = min(1.0, batch_size / max(len(collection), 1))
    return (collection.num_nodes + collection.num_edges) * share > WORTH


def one_ahead(make: Callable[[int], T], start: int, stop: int, *, thread: bool = True) -> Iterator[T]:
    """`make(start)`, ..., `make(stop - 1)`, each begun before the one before it is used."""
    if start >= stop or not thread:
        yield from map(make, range(start, stop))
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="graphsc-ahead")
    try:
        coming = pool.submit(make, start)
        for step in range(start, stop):
            ready = coming.result()
            if step + 1 < stop:
                coming = pool.submit(make, step + 1)
            yield ready
    finally:
        # Left early (an error, a stop): do not wait for work that nobody will use.
        pool.shutdown(wait=False, cancel_futures=True)
