"""Properties of every view: names, odd graphs at any rate, compiled loops against torch, molecules."""

from __future__ import annotations

from dataclasses import replace

import networkx
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from graphsc.core.config import build
from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.features import resolve_scheme
from graphsc.data.readers import open_collection
from graphsc.views import (
    VIEWS,
    Choice,
    Compose,
    DropNodes,
    MaskAttributes,
    PerturbEdges,
    View,
    weak_and_strong,
)
from graphsc.views.sampling import sample_subgraphs


def test_all_views_are_registered():
    assert set(VIEWS) >= {
        "identity",
        "drop-nodes",
        "perturb-edges",
        "mask-attributes",
        "subgraph",
        "graphcl-drop-nodes",
        "graphcl-perturb-edges",
        "graphcl-mask-attributes",
        "graphcl-subgraph",
    }
    assert all(isinstance(VIEWS.get(name)(), View) for name in VIEWS)


def test_settings_from_a_config_are_checked():
    view = build(VIEWS.get("mask-attributes"), {"token": 3}, "mask-attributes")
    assert isinstance(view, MaskAttributes)
    assert view.token == 3
    assert isinstance(build(VIEWS.get("perturb-edges"), {"mode": "drop"}, "edges"), PerturbEdges)
    for invalid in ({"mode": "add"}, {"mood": "drop"}, {"mode": 3}):
        with pytest.raises(ConfigError, match="mo"):
            build(VIEWS.get("perturb-edges"), invalid, "edges")
    with pytest.raises(ConfigError, match="std"):
        build(VIEWS.get("mask-attributes"), {"std": -0.5}, "mask-attributes")


@pytest.mark.parametrize("rate", [-0.1, 1.01, float("nan")])
def test_a_rate_outside_0_to_1_is_refused(make, seeded, rate):
    with pytest.raises(ConfigError, match="between 0 and 1"):
        DropNodes()(make([(3, [])]), rate, seeded(0))


OPERATIONS = ["identity", "drop-nodes", "perturb-edges", "mask-attributes", "subgraph"]
ALL_VIEWS = {
    **{name: VIEWS.get(name)() for name in VIEWS},
    "edges-drop": PerturbEdges(mode="drop"),
    "token": MaskAttributes(token=0),
    "choice": Choice(OPERATIONS),
    "choice-graphcl": Choice([name for name in VIEWS if name.startswith("graphcl")]),
    "compose": Compose(["perturb-edges", "mask-attributes", "drop-nodes", "perturb-edges"]),
    "compose-choice": Compose(["mask-attributes", Choice(OPERATIONS)]),
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
ODD_GRAPHS = [
    (1, []),
    (4, []),
    (1, [(0, 0), (0, 0)]),
    (5, [(0, 1), (2, 3)]),
    (0, []),
    (4, [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]),
    (3, [(0, 1), (0, 1), (1, 1), (1, 2), (2, 1)]),
]


@pytest.mark.parametrize("name", sorted(ALL_VIEWS))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(graphs=ODD_GRAPHS, rate=0.5, directed=False, plain=False, seed=0)
@example(graphs=ODD_GRAPHS, rate=1.0, directed=True, plain=False, seed=0)
@example(graphs=[(0, [])], rate=0.5, directed=False, plain=True, seed=0)
@given(GRAPHS, RATES, st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_any_graph_at_any_rate(name, make, check, tensors, graphs, rate, directed, plain, seed):
    batch = make(graphs, directed=directed, plain=plain)
    before = tensors(batch)
    view = ALL_VIEWS[name]
    result = view(batch, rate, torch.Generator().manual_seed(seed))

    check(result)
    assert result.num_graphs == batch.num_graphs
    assert torch.equal(result.ptr.diff() > 0, batch.ptr.diff() > 0)
    after = tensors(batch)
    assert all(torch.equal(after[key], value) for key, value in before.items())
    if rate == 0:
        assert all(torch.equal(tensors(result)[key], value) for key, value in before.items())
    if not name.endswith("graphcl") and not name.startswith("graphcl"):
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
        name: ALL_VIEWS[name](batch, rate, torch.Generator().manual_seed(seed))
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


COMPARED_VIEWS = {
    **ALL_VIEWS,
    "compose-unsorted": Compose(["perturb-edges", "subgraph", "perturb-edges"]),
    "compose-noise": Compose(["mask-attributes", "subgraph", "drop-nodes"]),
}


def weighted(batch):
    return replace(batch, edge_weight=torch.arange(batch.num_edges, dtype=torch.float32) + 2)


def assert_same(tensors, compiled, in_torch):
    first, second = tensors(compiled), tensors(in_torch)
    assert first.keys() == second.keys()
    for key, value in first.items():
        assert value.dtype == second[key].dtype, key
        assert torch.equal(value, second[key]), key
    assert compiled.undirected == in_torch.undirected
    assert compiled.sorted_sources == in_torch.sorted_sources


@pytest.mark.usefixtures("with_loops")
@pytest.mark.parametrize("name", sorted(COMPARED_VIEWS))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(graphs=ODD_GRAPHS, rate=0.5, directed=False, plain=False, seed=0)
@example(graphs=ODD_GRAPHS, rate=0.5, directed=True, plain=False, seed=0)
@given(GRAPHS, RATES, st.booleans(), st.booleans(), st.integers(0, 2**31))
def test_compiled_loops_choose_and_build_the_same_as_torch(
    name, make, tensors, without_loops, graphs, rate, directed, plain, seed
):
    view = COMPARED_VIEWS[name]

    def run():
        generator = torch.Generator().manual_seed(seed)
        # A new batch, without cached results.
        result = view(weighted(make(graphs, directed=directed, plain=plain)), rate, generator)
        return result, generator.get_state()

    compiled, state = run()
    with without_loops():
        in_torch, torch_state = run()
    assert_same(tensors, compiled, in_torch)
    assert torch.equal(state, torch_state)


@pytest.mark.usefixtures("with_loops")
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
def test_both_strengths_are_the_same_in_torch(make, tensors, seeded, without_loops, coupling, directed):
    graphs = [(1, []), (6, [(0, 1), (0, 1), (2, 2), (3, 4)]), (0, []), (90, [(0, 1), (4, 70)])]
    for seed, chance in enumerate((0.02, 0.1, 0.3, 0.95)):
        graph = networkx.gnp_random_graph(60, chance, seed=seed)
        graphs.append((60, list(graph.edges)))
    view = Choice(["drop-nodes", "perturb-edges", "mask-attributes", "subgraph"])
    for seed in range(5):

        def run(seed=seed):
            batch = weighted(make(graphs, directed=directed))
            return weak_and_strong(view, batch, 0.15, 0.6, seeded(seed), coupling)

        compiled = run()
        with without_loops():
            in_torch = run()
        for one, other in zip(compiled, in_torch, strict=True):
            assert_same(tensors, one, other)


SMILES = ["F/C=C/F", "CC(=O)Oc1ccccc1C(=O)O", "C#CC=C", "O", "C1CC1N", "C/C(F)=C(\\Cl)Br", "[Na+].[Cl-]"]


@pytest.fixture(scope="module")
def molecules():
    """Real bonds; every atom's code is its position in the batch, which identifies it in any view."""
    pytest.importorskip("rdkit")
    graphs = open_collection(SMILES)
    places = np.arange(graphs.num_nodes)[:, None]
    nodes = FeatureTable.of(graphs.num_nodes, places, [Column("place", graphs.num_nodes)])
    return GraphBatch.of(replace(graphs, nodes=nodes, features=resolve_scheme("labels", nodes)))


def bonds_of(batch, places):
    ends = zip(places[batch.source.long()].tolist(), places[batch.destination.long()].tolist(), strict=True)
    return list(zip(ends, map(tuple, batch.edge_codes.tolist()), strict=True))


def check_bonds(molecules, view):
    # Only masking changes codes, and it moves no atom.
    kept = torch.equal(view.ptr, molecules.ptr)
    places = molecules.codes[:, 0] if kept else view.codes[:, 0]
    own = dict(bonds_of(molecules, molecules.codes[:, 0]))
    graph = dict(zip(molecules.codes[:, 0].tolist(), molecules.batch.tolist(), strict=True))
    known = {(graph[start], bond) for (start, _), bond in own.items()}
    bonds = bonds_of(view, places)
    both = dict(bonds)
    for (start, end), bond in bonds:
        if (start, end) in own:
            assert bond == own[start, end]
        else:
            assert (graph[start], bond) in known  # an added bond copies one of its molecule
        if view.undirected:
            assert both[end, start] == bond


BOND_RATES = (0.1, 0.4, 1.0)


@pytest.mark.parametrize("name", list(VIEWS))
def test_bonds_in_every_view(molecules, name):
    for seed in range(6):
        for rate in BOND_RATES:
            check_bonds(molecules, VIEWS.get(name)()(molecules, rate, torch.Generator().manual_seed(seed)))


def test_bonds_in_a_choice_and_at_both_strengths(molecules):
    view = Choice(["drop-nodes", "subgraph", "perturb-edges", "mask-attributes", "identity"])
    for seed in range(6):
        for coupling in ("same", "independent", "nested"):
            generator = torch.Generator().manual_seed(seed)
            for changed in weak_and_strong(view, molecules, 0.1, 0.4, generator, coupling):
                check_bonds(molecules, changed)


def test_bonds_in_sampled_subgraphs(molecules):
    weight = torch.rand(molecules.num_nodes, generator=torch.Generator().manual_seed(0)) + 0.01
    counts = (molecules.ptr.diff() + 1) // 2
    check_bonds(molecules, sample_subgraphs(molecules, weight, counts, torch.Generator().manual_seed(1)))
