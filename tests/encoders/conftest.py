"""Small collections that the encoder tests share."""

import numpy as np
import pytest

from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable


def random_collection(
    seed: int = 0, graphs: int = 6, undirected: bool = True, floats: int = 0
) -> GraphCollection:
    """Random graphs of 1 to 9 nodes with two label columns and some float attributes."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(1, 10, graphs)
    sources, destinations, edge_counts = [], [], []
    for count in counts:
        pairs = rng.integers(0, count, (2, int(rng.integers(0, 2 * count + 1))))
        if undirected:
            pairs = np.concatenate([pairs, pairs[::-1]], axis=1)
        sources.append(pairs[0])
        destinations.append(pairs[1])
        edge_counts.append(pairs.shape[1])
    total = int(counts.sum())
    codes = np.stack([rng.integers(0, 4, total), rng.integers(0, 3, total)], axis=1)
    table = FeatureTable.of(
        total,
        codes,
        [Column("atom", 4), Column("chirality", 3)],
        rng.normal(size=(total, floats)) if floats else None,
    )
    return build_collection(
        node_counts=counts,
        edge_counts=np.array(edge_counts),
        source=np.concatenate(sources),
        destination=np.concatenate(destinations),
        nodes=table,
        features="labels+attributes" if floats else "labels",
        merge_duplicates=True,
    )


@pytest.fixture
def make_collection():
    return random_collection
