"""Graphlet counts against enumeration of all sets of three and four nodes."""

from itertools import combinations
from math import comb

import networkx
import numpy as np
import pytest
from hypothesis import given

from graphsc.data.readers import open_collection
from graphsc.kernels import graphlets
from graphsc.kernels.graphlets import (
    GRAPHLETS,
    RankedGraphs,
    _by_listing,
    _by_products,
    _count,
    graphlet_counts,
    graphlet_frequencies,
)

# Graphs of up to four nodes are determined by their degrees.
BY_DEGREES = {
    (0, 0, 0): "empty3",
    (0, 1, 1): "edge3",
    (1, 1, 2): "wedge",
    (2, 2, 2): "triangle",
    (0, 0, 0, 0): "empty4",
    (0, 0, 1, 1): "edge4",
    (1, 1, 1, 1): "edges",
    (0, 1, 1, 2): "wedge4",
    (0, 2, 2, 2): "triangle4",
    (1, 1, 2, 2): "path",
    (1, 1, 1, 3): "claw",
    (1, 2, 2, 3): "paw",
    (2, 2, 2, 2): "cycle",
    (2, 2, 3, 3): "diamond",
    (3, 3, 3, 3): "clique",
}


def by_enumeration(nodes, edges):
    adjacent = {frozenset(edge) for edge in edges if edge[0] != edge[1]}
    counts = dict.fromkeys(GRAPHLETS, 0)
    for size in (3, 4):
        for chosen in combinations(range(nodes), size):
            inside = [pair for pair in combinations(chosen, 2) if frozenset(pair) in adjacent]
            counts[BY_DEGREES[tuple(sorted(sum(node in pair for pair in inside) for node in chosen))]] += 1
    return list(counts.values())


def named(row):
    return {name: int(value) for name, value in zip(GRAPHLETS, row, strict=True) if value}


def test_small_graphs_with_loops_and_single_directions(make, graph_lists):
    @given(graph_lists)
    def check(graphs):
        expected = [by_enumeration(*graph) for graph in graphs]
        np.testing.assert_array_equal(graphlet_counts(make(graphs, allow_empty=True)), expected)

    check()


def test_random_graphs_of_all_densities():
    graphs = [networkx.gnp_random_graph(n, p, seed=n) for n in (9, 17, 24) for p in (0.1, 0.3, 0.6, 0.9)]
    expected = [by_enumeration(len(graph), graph.edges) for graph in graphs]
    np.testing.assert_array_equal(graphlet_counts(open_collection(graphs)), expected)


def test_small_chunks_and_slices_give_the_same_counts(monkeypatch):
    collection = open_collection("motifs:12")
    whole = graphlet_counts(collection)
    monkeypatch.setattr(graphlets, "_LISTED", 100)
    np.testing.assert_array_equal(_count(RankedGraphs.of(collection, slice(3, 9))), whole[3:9])


@pytest.mark.parametrize("p", [0.2, 0.5, 0.8, 0.95])
def test_both_algorithms_agree(p):
    low, high = np.array(sorted(networkx.gnp_random_graph(30, p, seed=1).edges)).T
    triangles, cycles, cliques = _by_products(30, low, high)
    listed, at_cycle, at_clique = _by_listing(30, low, high)
    np.testing.assert_array_equal(triangles, listed)
    assert (cycles, cliques) == (at_cycle.sum(), at_clique.sum())


def test_counts_in_a_large_clique_are_exact():
    graphs = open_collection([networkx.complete_graph(150)])
    assert named(graphlet_counts(graphs)[0]) == {"triangle": comb(150, 3), "clique": comb(150, 4)}


def test_counts_in_a_large_star_are_exact():
    graphs = open_collection([networkx.star_graph(2000)])
    assert named(graphlet_counts(graphs)[0]) == {
        "wedge": comb(2000, 2),
        "empty3": comb(2000, 3),
        "claw": comb(2000, 3),
        "empty4": comb(2000, 4),
    }


def test_frequencies_sum_to_one_for_each_size(three):
    # A triangle, an edge, a node: only the first has three nodes, none has four.
    np.testing.assert_array_equal(
        graphlet_frequencies(graphlet_counts(three)), [[1] + 14 * [0], 15 * [0], 15 * [0]]
    )


def test_disconnected_graphlets_are_optional():
    # A path of three and a node: a wedge among four sets of three nodes, one set of four nodes.
    graph = networkx.Graph([(0, 1), (1, 2)])
    graph.add_node(3)
    counts = graphlet_counts(open_collection([graph]))
    assert named(counts[0]) == {"wedge": 1, "edge3": 2, "empty3": 1, "wedge4": 1}
    np.testing.assert_array_equal(graphlet_frequencies(counts)[0, :4], [0, 0.25, 0.5, 0.25])
    np.testing.assert_array_equal(graphlet_frequencies(counts, connected=True)[0], [0, 1] + 6 * [0])
