"""The Weisfeiler-Lehman kernel: its values by hand and by GraKeL."""

import networkx
import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.readers import open_collection
from graphsc.methods.wl import WeisfeilerLehman


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:60]


@pytest.fixture(scope="module")
def grakel_inputs(graphs):
    inputs = []
    for graph in graphs.graphs():
        edges = [tuple(edge) for edge in graph.edge_index.T.tolist()]
        inputs.append([edges, dict(enumerate(graph.nodes.codes[:, 0].tolist()))])
    return inputs


@pytest.mark.parametrize("iterations", [1, 4])
def test_kernel_equals_grakels(graphs, grakel_inputs, iterations):
    grakel = pytest.importorskip("grakel")
    expected = grakel.WeisfeilerLehman(n_iter=iterations, normalize=True).fit_transform(grakel_inputs)
    result = WeisfeilerLehman(iterations=iterations).fit(graphs, 0)
    np.testing.assert_allclose(result, expected, atol=1e-6)


def test_kernel_of_unseen_graphs_equals_grakels(graphs, grakel_inputs):
    grakel = pytest.importorskip("grakel")
    peer, method = grakel.WeisfeilerLehman(n_iter=3, normalize=True), WeisfeilerLehman(iterations=3)
    peer.fit(grakel_inputs[:40])
    method.fit(graphs[:40], 0)
    expected = peer.transform(grakel_inputs[40:])
    np.testing.assert_allclose(method.transform(graphs[40:]), expected, atol=1e-6)


def test_kernel_by_hand(three):
    # Without labels: round 0 counts nodes; round 1 tells nodes of two, one and no neighbours apart.
    method = WeisfeilerLehman(iterations=1, start="constant", normalise=False)
    np.testing.assert_array_equal(method.fit(three, 0), [[18, 6, 3], [6, 8, 2], [3, 2, 2]])


def test_kernel_of_unseen_colours_by_hand(make, three):
    method = WeisfeilerLehman(iterations=0)
    method.fit(three, 0)
    # Degrees of a star of three: 3 (never seen), 1, 1, 1. Its length is sqrt(1 + 9), not sqrt(9).
    star = [edge for leaf in (1, 2, 3) for edge in ((0, leaf), (leaf, 0))]
    np.testing.assert_allclose(method.transform(make([(4, star)])), [[0, 3 / 10**0.5, 0]], rtol=1e-6)


def test_labels_are_matched_by_meaning():
    graphs = [networkx.path_graph(3), networkx.path_graph(3)]
    for graph, middle in zip(graphs, "NO", strict=True):
        networkx.set_node_attributes(graph, {0: "C", 1: middle, 2: "C"}, "label")
    both = open_collection(graphs)
    method = WeisfeilerLehman()
    kernel = method.fit(both, 0)
    alone = open_collection(graphs[1:])  # here O has the code that N has in both
    assert alone.nodes.columns != both.nodes.columns
    np.testing.assert_allclose(method.transform(alone.with_features(both.features)), kernel[1:])


def test_start_from_labels_needs_labels(three):
    with pytest.raises(DataError, match="hold no node labels"):
        WeisfeilerLehman(start="labels").fit(three, 0)


def test_settings_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="iterations must be"):
        WeisfeilerLehman(iterations=-1)
