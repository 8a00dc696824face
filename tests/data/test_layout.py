"""Layouts: distances and stress against networkx, and shapes of known graphs."""

import networkx
import numpy as np
import pytest

from graphsc.data.layout import graph_distances, stress_layout


def edges_of(graph):
    return np.array(list(graph.edges), dtype=np.int64).reshape(-1, 2).T


GRAPHS = [
    networkx.cycle_graph(6), networkx.path_graph(9), networkx.complete_graph(4),
    networkx.random_labeled_tree(17, seed=1),
    networkx.disjoint_union(networkx.cycle_graph(3), networkx.path_graph(2)),
]  # fmt: skip


def layout(graphs, **options):
    return stress_layout([len(graph) for graph in graphs], [edges_of(graph) for graph in graphs], **options)


def stress(graph, positions):
    """Of all pairs with a path between them, by an explicit loop."""
    total = 0.0
    for source, lengths in networkx.all_pairs_shortest_path_length(graph):
        for target, length in lengths.items():
            if source < target:
                total += (np.linalg.norm(positions[source] - positions[target]) - length) ** 2 / length**2
    return total


def test_distances_are_shortest_paths():
    distances = graph_distances([len(graph) for graph in GRAPHS], [edges_of(graph) for graph in GRAPHS])
    for row, graph in enumerate(GRAPHS):
        expected = np.full((17, 17), np.inf)
        for source, lengths in networkx.all_pairs_shortest_path_length(graph):
            expected[source, list(lengths)] = list(lengths.values())
        expected[np.arange(17), np.arange(17)] = 0
        np.testing.assert_array_equal(distances[row], expected)


def test_more_steps_never_increase_the_stress():
    tree = GRAPHS[3]
    values = [stress(tree, layout([tree], steps=steps)[0]) for steps in (0, 1, 5, 60)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < 0.7 * values[0]


def test_the_stress_is_close_to_that_of_networkx():
    for graph in GRAPHS[:4]:
        reference = np.array(list(networkx.kamada_kawai_layout(graph).values()))
        # The reference is scaled to a square; compare with the scale that suits it best.
        best = min(stress(graph, scale * reference) for scale in np.linspace(0.5, len(graph), 40))
        assert stress(graph, layout([graph])[0]) <= 1.3 * best + 0.1


def test_a_ring_is_drawn_as_a_ring():
    (positions,) = layout([networkx.cycle_graph(6)])
    radius = np.linalg.norm(positions - positions.mean(axis=0), axis=1)
    np.testing.assert_allclose(radius, radius.mean(), rtol=0.02)


def test_a_graph_s_layout_does_not_depend_on_its_batch():
    alone = [layout([graph])[0] for graph in GRAPHS]
    together = layout(GRAPHS)
    for graph, single, batched in zip(GRAPHS, alone, together, strict=True):
        assert stress(graph, batched) == pytest.approx(stress(graph, single), rel=0.02, abs=0.02)


def test_structurally_equal_nodes_get_distinct_positions():
    (positions,) = stress_layout([5], [np.zeros((2, 0), np.int64)])
    apart = np.linalg.norm(positions[:, None] - positions[None], axis=2)[np.triu_indices(5, 1)]
    assert apart.min() > 0.3


@pytest.mark.parametrize("size", [0, 1])
def test_graphs_of_zero_or_one_node_have_positions(size):
    (positions,) = stress_layout([size], [np.zeros((2, 0), np.int64)])
    assert positions.shape == (size, 2)
    assert np.isfinite(positions).all()
