"""Every view, at every rate, on every odd graph: defined, safe and repeatable."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graphsc.views import VIEWS, Choice, Compose, MaskAttributes, PerturbEdges

SOUND = ["identity", "drop-nodes", "perturb-edges", "mask-attributes", "subgraph"]
OWN = {
    **{name: VIEWS.get(name)() for name in VIEWS},
    "edges-drop": PerturbEdges(mode="drop"),
    "token": MaskAttributes(token=0),
    "choice": Choice(SOUND),
    "choice-historic": Choice([name for name in VIEWS if name.startswith("graphcl")]),
    "compose": Compose(["perturb-edges", "mask-attributes", "drop-nodes", "perturb-edges"]),
    "compose-choice": Compose(["mask-attributes", Choice(SOUND)]),
}


@st.composite
def graph(draw):
    n = draw(st.integers(0, 7))
    if n == 0:
        return 0, []
    node = st.integers(0, n - 1)
    kind = draw(st.sampled_from(["any", "none", "complete", "path"]))
    if kind == "complete":
        return n, [(u, v) for v in range(n) for u in range(v)]
    if kind == "path":
        return n, [(u, u + 1) for u in range(n - 1)]
    if kind == "none":
        return n, []
    return n, draw(st.lists(st.tuples(node, node), max_size=14))


GRAPHS = st.lists(graph(), min_size=1, max_size=5)
RATES = st.sampled_from([0.0, 1e-6, 0.5, 1.0])
EVERYTHING = [
    (1, []),
    (4, []),
    (1, [(0, 0), (0, 0)]),
    (5, [(0, 1), (2, 3)]),
    (0, []),
    (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    (3, [(0, 1), (0, 1), (1, 1), (1, 2), (2, 1)]),
]


@pytest.mark.parametrize("name", sorted(OWN))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(graphs=EVERYTHING, rate=0.5, directed=False, plain=False, seed=0)
@example(graphs=EVERYTHING, rate=1.0, directed=True, plain=False, seed=0)
@example(graphs=[(0, [])], rate=0.5, directed=False, plain=True, seed=0)
@given(GRAPHS, RATES, st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_any_graph_at_any_rate(name, make, check, tensors, graphs, rate, directed, plain, seed):
    batch = make(graphs, directed=directed, plain=plain)
    before = tensors(batch)
    view = OWN[name]
    result = view(batch, rate, torch.Generator().manual_seed(seed))

    check(result)
    assert result.num_graphs == batch.num_graphs
    assert torch.equal(result.ptr.diff() > 0, batch.ptr.diff() > 0)
    after = tensors(batch)
    assert all(torch.equal(after[key], value) for key, value in before.items())
    if rate == 0:
        assert all(torch.equal(tensors(result)[key], value) for key, value in before.items())
    if not name.endswith("historic") and not name.startswith("graphcl"):
        assert result.undirected == batch.undirected
    again = tensors(view(batch, rate, torch.Generator().manual_seed(seed)))
    first = tensors(result)
    assert first.keys() == again.keys()
    assert all(torch.equal(again[key], value) for key, value in first.items())


@settings(max_examples=40, deadline=None)
@given(GRAPHS, RATES, st.integers(0, 2**31))
def test_counts_are_exact(make, graphs, rate, seed):
    batch = make(graphs)
    changed = {
        name: OWN[name](batch, rate, torch.Generator().manual_seed(seed))
        for name in ("drop-nodes", "subgraph", "mask-attributes", "perturb-edges", "edges-drop")
    }
    for g, (n, edges) in enumerate(graphs):
        nodes = max(1, round(rate * n)) if rate else 0
        for name in ("drop-nodes", "subgraph"):
            assert n - int(changed[name].ptr.diff()[g]) == min(nodes, max(n - 1, 0))
        masked = changed["mask-attributes"].replaced
        count = 0 if masked is None else int((batch.batch[masked] == g).sum())
        assert count == min(nodes, n)
        # The reverse of (u, v) listed too makes two undirected edges of them.
        loops = sum(u == v for u, v in edges)
        gone = min(max(1, round(rate * len(edges))), len(edges)) if rate else 0
        left = int(changed["edges-drop"].edge_ptr.diff()[g])
        entries = 2 * len(edges) - loops
        assert entries - 2 * gone <= left <= entries - gone
        if not loops:
            assert left == entries - 2 * gone
            absent = n * (n - 1) // 2 - len({(min(e), max(e)) for e in edges})
            replaced = int(changed["perturb-edges"].edge_ptr.diff()[g])
            assert replaced == left + 2 * min(gone, absent)
