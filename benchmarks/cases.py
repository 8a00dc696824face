"""The batches that every benchmark measures on: 128 graphs of four real sets of very different shape."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from functools import cache

import numpy as np
import torch

from graphsc.core.errors import NotFoundError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.readers import open_collection
from graphsc.encoders import Gin

SETS = ("nci1", "dd", "reddit-binary", "collab")
BATCH_SIZE = 128
FRESH = 17  # calls of one side: 2 to warm up, 15 timed


@cache
def collection_of(name: str) -> GraphCollection:
    return open_collection(name)


def present(names: Iterable[str] = SETS) -> Iterator[str]:
    """The data sets that are on this machine; a line says which others were not found."""
    for name in names:
        try:
            collection_of(name)
        except NotFoundError as error:
            print(f"{name}: skipped: {error}", file=sys.stderr, flush=True)
            continue
        yield name


@cache
def sample_of(name: str, batches: int = 10) -> GraphCollection:
    """Graphs for some batches, drawn at random: files are sorted by class, and classes differ in size."""
    collection = collection_of(name)
    chosen = np.random.default_rng(0).permutation(len(collection))[: batches * BATCH_SIZE]
    return collection[chosen]


@cache
def batch_of(name: str) -> GraphBatch:
    collection = collection_of(name)
    rows = np.random.default_rng(0).permutation(len(collection))[:BATCH_SIZE]
    return GraphBatch.gather(collection, rows)


def fresh_batches(name: str, count: int = FRESH) -> Callable[[], GraphBatch]:
    """The set's batch, gathered anew each time but before it is timed: what a view remembers of a batch
    must not make its second call look fast.
    """
    batch = batch_of(name)
    assert batch.index is not None
    ready = [GraphBatch.gather(collection_of(name), batch.index.numpy()) for _ in range(count)]
    return ready.pop


@cache
def encoder_of(name: str) -> Gin:
    torch.manual_seed(0)
    return Gin(collection_of(name).features)


def encoder_pass(name: str) -> None:
    """One forward and backward pass of the default encoder on the set's batch."""
    encoder = encoder_of(name)
    encoder.zero_grad(set_to_none=True)
    encoder(batch_of(name)).sum().backward()


def shape_of(name: str) -> str:
    batch = batch_of(name)
    return f"{name} ({batch.num_nodes:,} nodes, {batch.num_edges:,} edges)"
