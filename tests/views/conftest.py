"""Small batches written out as lists, and invariants of every batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace

import numpy as np
import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.builder import build_collection
from graphsc.data.columns import Column, FeatureTable
from graphsc.views import array_ops

Edges = list[tuple[int, int]]


def _make(graphs: list[tuple[int, Edges]], *, directed: bool = False, plain: bool = False) -> GraphBatch:
    """Graphs as (nodes, edges). Node i has its own code and float; an edge's float encodes its ends."""
    counts, sizes, sources, targets, edge_floats = [], [], [], [], []
    for number, (n, edges) in enumerate(graphs):
        entries = list(edges)
        if not directed:
            entries += [(v, u) for u, v in edges if u != v]
        counts.append(n)
        sizes.append(len(entries))
        for u, v in entries:
            sources.append(u)
            targets.append(v)
            a, b = (u, v) if directed else (min(u, v), max(u, v))
            edge_floats.append([number * 10_000 + a * 100 + b])
    total = sum(counts)
    local = np.concatenate([np.arange(n) for n in counts]) if counts else np.zeros(0)
    nodes = edges_table = None
    if not plain:
        nodes = FeatureTable.of(
            total,
            np.stack([local, local % 3], 1).astype(np.int64),
            [Column("name", max([*counts, 1]) + 1), Column("third", 3)],
            np.arange(total, dtype=np.float32)[:, None],
        )
        values = np.array(edge_floats, dtype=np.float32).reshape(-1, 1)
        edges_table = FeatureTable.of(
            len(values), (values % 5).astype(np.int64), [Column("bond", 5)], values, ["ends"]
        )
    collection = build_collection(
        node_counts=np.array(counts, dtype=np.int64),
        edge_counts=np.array(sizes, dtype=np.int64),
        source=np.array(sources, dtype=np.int64),
        destination=np.array(targets, dtype=np.int64),
        nodes=nodes,
        edges=edges_table,
        features="degree:4" if plain else "labels+attributes",
        allow_empty=True,
    )
    batch = GraphBatch.of(collection)
    if not directed:
        assert batch.undirected
    elif batch.undirected:  # symmetric by chance
        batch = replace(batch, undirected=False)
    return batch


def _edges_of(batch: GraphBatch) -> list[Counter[tuple[int, int]]]:
    """Per graph, its directed edges with local node numbers, and their multiplicities."""
    result: list[Counter[tuple[int, int]]] = [Counter() for _ in range(batch.num_graphs)]
    ptr, graph = batch.ptr.tolist(), batch.batch.tolist()
    for u, v in batch.edge_index.T.tolist():
        assert graph[u] == graph[v]
        result[graph[v]][u - ptr[graph[v]], v - ptr[graph[v]]] += 1
    return result


def _check(batch: GraphBatch) -> None:
    """Assert the invariants of a batch, tensor by tensor."""
    n, e = batch.num_nodes, batch.num_edges
    assert batch.rowptr.dtype == torch.int32
    assert batch.source.dtype == torch.int32
    assert batch.ptr.dtype == torch.int64
    assert batch.rowptr.shape == (n + 1,)
    assert batch.rowptr[0] == 0
    assert batch.rowptr[-1] == e
    assert (batch.rowptr.diff() >= 0).all()
    assert batch.ptr[0] == 0
    assert batch.ptr[-1] == n
    assert (batch.ptr.diff() >= 0).all()
    assert len(batch.floats) == n
    if e:
        assert 0 <= int(batch.source.min()) <= int(batch.source.max()) < n
    for values in (batch.edge_codes, batch.edge_floats, batch.edge_weight):
        assert values is None or len(values) == e
    if batch.sorted_sources:
        same_row = batch.destination[1:] == batch.destination[:-1]
        assert (batch.source.diff()[same_row] >= 0).all()
    if batch.undirected:
        for edges in _edges_of(batch):
            assert edges == Counter({(v, u): times for (u, v), times in edges.items()})
    if batch.replaced is not None:
        assert batch.replacement is not None
        assert batch.replacement.shape == (len(batch.replaced), batch.features.width)
        assert len(set(batch.replaced.tolist())) == len(batch.replaced)
        if len(batch.replaced):
            assert 0 <= int(batch.replaced.min()) <= int(batch.replaced.max()) < n


def _tensors(batch: GraphBatch) -> dict[str, torch.Tensor]:
    return {
        item.name: value.clone()
        for item in fields(batch)
        if isinstance(value := getattr(batch, item.name), torch.Tensor)
    }


@pytest.fixture(scope="session")
def make() -> Callable[..., GraphBatch]:
    return _make


@pytest.fixture(scope="session")
def edges_of() -> Callable[[GraphBatch], list[Counter[tuple[int, int]]]]:
    return _edges_of


@pytest.fixture(scope="session")
def check() -> Callable[[GraphBatch], None]:
    return _check


@pytest.fixture(scope="session")
def tensors() -> Callable[[GraphBatch], dict[str, torch.Tensor]]:
    return _tensors


@pytest.fixture(scope="session")
def seeded() -> Callable[[int], torch.Generator]:
    return lambda seed: torch.Generator().manual_seed(seed)


@contextmanager
def _without_loops() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(array_ops, "use_loops", lambda values: False)
        yield


@pytest.fixture(scope="session")
def without_loops() -> Callable[[], object]:
    """A context in which views run in torch alone, as on a GPU."""
    return _without_loops


@pytest.fixture(scope="session")
def with_loops() -> None:
    """Skip where there are no compiled loops to compare with."""
    if not array_ops.use_loops(torch.zeros(0)):
        pytest.skip("numba cannot be used")
