"""The Weisfeiler-Lehman Gram matrix of a whole data set, five rounds from degrees, against GraKeL's."""

from __future__ import annotations

import numpy as np
from grakel import WeisfeilerLehman as Peer
from threadpoolctl import threadpool_limits

from benchmarks.cases import collection_of, present
from benchmarks.measure import Result, interleave
from graphsc.data.collection import GraphCollection
from graphsc.methods.wl import WeisfeilerLehman

ROUNDS = 5


def neighbours_of(collection: GraphCollection) -> list[list[dict[int, object]]]:
    """The graphs as GraKeL takes them, made before anything is timed: neighbours and labels by node."""
    inputs = []
    degrees = np.split(collection.degrees, collection.node_ptr[1:-1])
    for graph, degree in zip(collection.graphs(), degrees, strict=True):
        around: dict[int, list[int]] = {node: [] for node in range(graph.num_nodes)}
        for source, end in graph.edge_index.T.tolist():
            around[end].append(source)
        inputs.append([around, dict(enumerate(degree.tolist()))])
    return inputs


def run() -> list[Result]:
    results = []
    for name in present(("reddit-binary", "collab")):
        collection = collection_of(name)
        inputs = neighbours_of(collection)
        found: dict[str, np.ndarray] = {}

        def ours(collection=collection, found=found) -> None:
            found["ours"] = WeisfeilerLehman(iterations=ROUNDS, start="degree").fit(collection, 0)

        def peer(inputs=inputs, found=found) -> None:
            found["peer"] = Peer(n_iter=ROUNDS, normalize=True).fit_transform(inputs)

        with threadpool_limits(1):  # NumPy's products too
            result = interleave(
                "wl", f"{name} ({len(collection):,} graphs)", ours, peer, bar=1.0, goal=10.0,
                better="higher", against="GraKeL WeisfeilerLehman", repeats=2, warm_up=0,
            )  # fmt: skip
        results.append(result)
        assert np.allclose(found["ours"], found["peer"], atol=1e-6), name
    return results
