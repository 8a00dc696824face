"""Subgraph growth in distribution over whole kept sets, and distances against NetworkX."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import networkx
import pytest
import torch
from scipy.stats import chi2_contingency, chisquare, kstest

from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.views import Subgraph
from graphsc.views.subgraph import (
    Growth,
    hop_distances,
    induced_subgraphs,
    node_mask,
    random_nodes,
    walks_with_restart,
)

PATH = (5, [(0, 1), (1, 2), (2, 3), (3, 4)])
STAR = (6, [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)])
PARTS = (6, [(0, 1), (1, 2), (2, 0), (3, 4)])  # a triangle, an edge, a lone node
CHORD = (6, [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (1, 4)])
SHAPES = {"path": PATH, "star": STAR, "parts": PARTS, "chord": CHORD}


def grown_by_hand(n, neighbours, size, rng):
    """From a random root add a uniform frontier node; when there is none, a uniform unused node."""
    kept = {rng.randrange(n)}
    while len(kept) < size:
        frontier = sorted({v for u in kept for v in neighbours[u]} - kept)
        kept.add(rng.choice(frontier or sorted(set(range(n)) - kept)))
    return tuple(sorted(kept))


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("dropped", [1, 2, 3])
@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_kept_sets_have_the_distribution_of_growing_node_by_node(
    make, seeded, without_loops, shape, dropped, directed
):
    n, edges = SHAPES[shape]
    neighbours = {u: set() for u in range(n)}
    for u, v in edges:
        neighbours[u].add(v)
        if not directed:
            neighbours[v].add(u)
    rng = random.Random(f"{shape} {dropped}")
    trials = 4000
    expected = Counter(grown_by_hand(n, neighbours, n - dropped, rng) for _ in range(trials))

    batch = make([(n, edges)] * trials, directed=directed)
    with without_loops() if dropped == 2 else nullcontext():
        view = Subgraph()(batch, dropped / n, seeded(7))
    names = view.codes[:, 0].tolist()  # a node's code is its number
    ptr = view.ptr.tolist()
    observed = Counter(tuple(names[a:b]) for a, b in itertools.pairwise(ptr))

    kinds = sorted(expected | observed)
    table = [[expected[kind] for kind in kinds], [observed[kind] for kind in kinds]]
    assert len(kinds) > 1
    assert chi2_contingency(table).pvalue > 0.005


def test_the_subgraph_of_a_connected_graph_is_connected(make, seeded):
    graph = networkx.connected_watts_strogatz_graph(60, 4, 0.3, seed=0)
    batch = make([(60, list(graph.edges))] * 20, plain=True)
    for rate in (0.2, 0.7):
        view = Subgraph()(batch, rate, seeded(0))
        kept = networkx.Graph()
        kept.add_nodes_from(range(view.num_nodes))
        kept.add_edges_from(view.edge_index.T.tolist())
        assert networkx.number_connected_components(kept) == 20


def growth_by_hand(web, order):
    """The nodes as they are reached: by NetworkX's shortest paths from each start among the nodes left."""
    left, reached = set(web), []
    for start in order:
        if start in left:
            lengths = networkx.single_source_dijkstra_path_length(web.subgraph(left), start)
            reached += sorted(lengths, key=lengths.get)
            left -= set(lengths)
    return reached


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("chance", [0.01, 0.03, 0.2, 0.8])
def test_growth_follows_shortest_paths_and_restarts_in_order(
    make, seeded, without_loops, chance, directed, loops
):
    graphs = []
    for seed in range(6):
        graph = networkx.gnp_random_graph(40, chance, seed=seed, directed=directed)
        graphs.append((40, list(graph.edges)))
    batch = make(graphs, directed=directed, plain=True)
    growth = Growth(batch, seeded(0))
    expected = []
    for g, (n, _) in enumerate(graphs):
        web = networkx.DiGraph()
        web.add_nodes_from(range(40 * g, 40 * g + n))
        for u, v in batch.edge_index.T.tolist():
            if u in web and v in web:
                web.add_edge(u, v, weight=float(growth.delay[v]))
        expected.append(growth_by_hand(web, [node for node in growth.order.tolist() if node in web]))
    for count in (0, 1, 7, 20, 39, 40):
        with nullcontext() if loops else without_loops():
            first = growth.first(torch.full((6,), count)).view(6, 40)
        for g, nodes in enumerate(expected):
            assert (first[g].nonzero().flatten() + 40 * g).tolist() == sorted(nodes[:count])


def test_delays_are_exponential_and_roots_uniform(make, seeded):
    growth = Growth(make([(5, [])] * 4000, plain=True), seeded(0))
    assert kstest(growth.delay.numpy(), "expon").pvalue > 0.01
    roots = growth.first(torch.ones(4000, dtype=torch.int64)).view(4000, 5)
    assert (roots.sum(1) == 1).all()
    assert chisquare(roots.sum(0)).pvalue > 0.01


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize("max_hops", [0, 1, 3, 20])
@pytest.mark.parametrize("kind", [networkx.Graph, networkx.DiGraph])
def test_hop_distances_equal_networkx(without_loops, max_hops, kind, loops):
    graphs = [
        networkx.gnp_random_graph(12, 0.15, seed=s, directed=kind is networkx.DiGraph) for s in range(6)
    ]
    batch = GraphBatch.of(open_collection(graphs))
    start = random_nodes(batch, torch.Generator().manual_seed(0))
    assert torch.equal(batch.batch[start], torch.arange(6))
    with nullcontext() if loops else without_loops():
        distances = hop_distances(batch, start, max_hops)
    for g, graph in enumerate(graphs):
        near = networkx.single_source_shortest_path_length(graph, int(start[g]) - 12 * g, cutoff=max_hops)
        expected = [near.get(node, max_hops + 1) for node in range(12)]
        assert distances[12 * g : 12 * g + 12].tolist() == expected


def test_random_nodes_are_uniform(make):
    batch = make([(3, []), (0, []), (2, [])])
    generator = torch.Generator().manual_seed(0)
    draws = torch.stack([random_nodes(batch, generator) for _ in range(3000)])
    assert draws.shape == (3000, 2)  # none from the empty graph
    for column, nodes in zip(draws.T, ([0, 1, 2], [3, 4]), strict=True):
        shares = [(column == node).double().mean().item() for node in nodes]
        assert shares == pytest.approx([1 / len(nodes)] * len(nodes), abs=0.05)


def test_induced_subgraphs_of_selected_graphs(make):
    path = [(0, 1), (1, 2), (2, 3)]
    batch = replace(make([(4, path), (2, [(0, 1)]), (4, path)]), y=torch.tensor([[5.0], [6.0], [7.0]]))
    nodes = node_mask(batch, torch.tensor([1, 2, 4, 7, 8, 9]))
    parts = induced_subgraphs(batch, nodes, torch.tensor([True, False, True]))
    assert parts.ptr.tolist() == [0, 2, 5]
    assert parts.edge_index.tolist() == [[1, 0, 3, 2, 4, 3], [0, 1, 2, 3, 3, 4]]
    assert parts.codes[:, 0].tolist() == [1, 2, 1, 2, 3]  # node numbers in the original graphs
    assert parts.y.flatten().tolist() == [5.0, 7.0]
    assert parts.index.tolist() == [0, 2]


def walked(make, shape, *, steps, restart, start, walks=1, seed=0, directed=False):
    batch = make([SHAPES[shape]], directed=directed)
    starts = torch.full((walks,), start)
    return batch, walks_with_restart(batch, starts, steps, restart, torch.Generator().manual_seed(seed))


@pytest.mark.usefixtures("with_loops")
@pytest.mark.parametrize("shape", sorted(SHAPES))
@pytest.mark.parametrize("directed", [False, True])
def test_compiled_walks_are_those_of_torch(make, without_loops, shape, directed):
    options = {"steps": 50, "restart": 0.3, "start": 1, "walks": 7, "directed": directed}
    _, compiled = walked(make, shape, **options)
    with without_loops():
        assert torch.equal(walked(make, shape, **options)[1], compiled)


@pytest.mark.parametrize("shape", sorted(SHAPES))
def test_a_walk_moves_along_edges_or_returns(make, shape):
    batch, walks = walked(make, shape, steps=300, restart=0.2, start=1)
    edges = set(zip(batch.destination.tolist(), batch.source.tolist(), strict=True))
    path = walks[:, 0].tolist()
    assert path[0] == 1
    for one, other in itertools.pairwise(path):
        assert (one, other) in edges or other == 1


def test_returns_and_neighbours_have_their_probabilities(make):
    # From the centre of a star with five leaves; each leaf goes back to it in any case.
    _, walks = walked(make, "star", steps=1, restart=0.25, start=0, walks=20_000)
    found = torch.bincount(walks[1], minlength=6) / 20_000
    assert float(found[0]) == pytest.approx(0.25, abs=0.015)
    assert found[1:].tolist() == pytest.approx([0.15] * 5, abs=0.015)


def test_a_walk_from_a_lone_node_stays(make):
    _, walks = walked(make, "parts", steps=5, restart=0.0, start=5)
    assert walks[:, 0].tolist() == [5] * 6
