"""What every trial needs around it: one thread, and graphs that neighbouring trials share."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache

from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread of torch, so that the number of trials at once changes no number."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


@lru_cache(maxsize=2)
def shared_collection(data: str, features: str) -> GraphCollection:
    """Neighbouring trials share their graphs; a large data set takes seconds to read."""
    return open_collection(data, features=features)
