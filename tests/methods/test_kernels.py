"""The kernels as methods: their values by hand and by GraKeL, and what holds for each of them."""

import networkx
import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.readers import open_collection
from graphsc.kernels.weisfeiler_lehman import count_colours, wl_labels
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.dgk import DeepGraphKernel, factorise, information, meetings
from graphsc.methods.gl import Graphlets
from graphsc.methods.wl import WeisfeilerLehman

NAMES = ["wl", "gl", "dgk"]


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:60]


def made(name, collection, **settings):
    return make_recipe(name, collection, settings).build(collection.features, 0)


@pytest.mark.parametrize("name", NAMES)
def test_it_is_a_gram_matrix(graphs, name):
    method = made(name, graphs)
    kernel = method.fit(graphs, 0)
    assert METHODS.get(name).kind == "gram"
    assert kernel.dtype == np.float32
    assert kernel.shape == (60, method.dimensions())
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-6)
    np.testing.assert_allclose(kernel.diagonal(), 1, atol=1e-6)
    assert np.linalg.eigvalsh(kernel.astype(np.float64)).min() > -1e-5


@pytest.mark.parametrize("name", NAMES)
def test_known_graphs_have_the_rows_of_the_fit(graphs, name):
    method = made(name, graphs)
    kernel = method.fit(graphs, 0)
    np.testing.assert_allclose(method.transform(graphs), kernel, atol=1e-6)
    np.testing.assert_allclose(method.transform(graphs[[40, 3]]), kernel[[40, 3]], atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_rows_do_not_depend_on_the_order_of_nodes(name):
    rng = np.random.default_rng(0)
    one = [networkx.gnp_random_graph(9, 0.4, seed=seed) for seed in range(6)]
    two = []
    for graph in one:
        copy = networkx.empty_graph(9)
        copy.add_edges_from(networkx.relabel_nodes(graph, dict(enumerate(rng.permutation(9).tolist()))).edges)
        two.append(copy)
    first, second = open_collection(one), open_collection(two)
    method = made(name, first)
    np.testing.assert_allclose(method.fit(first, 0), method.transform(second), atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_state_put_back_gives_the_same_rows(graphs, name):
    method, again = made(name, graphs), made(name, graphs)
    method.fit(graphs[:40], 0)
    again.load_state(method.state())
    assert again.dimensions() == 40
    np.testing.assert_array_equal(again.transform(graphs[40:]), method.transform(graphs[40:]))


@pytest.mark.parametrize("name", NAMES)
def test_rows_before_a_fit_are_refused(graphs, name):
    with pytest.raises(ConfigError, match="fit it first"):
        made(name, graphs).transform(graphs)


@pytest.mark.parametrize("name", NAMES)
def test_empty_and_single_graphs_give_finite_rows(make, name):
    graphs = make([(0, []), (1, []), (2, [(0, 1), (1, 0)])], allow_empty=True)
    assert np.isfinite(made(name, graphs).fit(graphs, 0)).all()
    assert made(name, graphs).fit(graphs[:1], 0).shape == (1, 1)


@pytest.fixture(scope="module")
def grakel_inputs(graphs):
    inputs = []
    for graph in graphs.graphs():
        edges = [tuple(edge) for edge in graph.edge_index.T.tolist()]
        inputs.append([edges, dict(enumerate(graph.nodes.codes[:, 0].tolist()))])
    return inputs


@pytest.mark.parametrize("iterations", [1, 4])
def test_wl_is_that_of_grakel(graphs, grakel_inputs, iterations):
    grakel = pytest.importorskip("grakel")
    expected = grakel.WeisfeilerLehman(n_iter=iterations, normalize=True).fit_transform(grakel_inputs)
    found = WeisfeilerLehman(iterations=iterations).fit(graphs, 0)
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_wl_of_unseen_graphs_is_that_of_grakel(graphs, grakel_inputs):
    grakel = pytest.importorskip("grakel")
    peer, method = grakel.WeisfeilerLehman(n_iter=3, normalize=True), WeisfeilerLehman(iterations=3)
    peer.fit(grakel_inputs[:40])
    method.fit(graphs[:40], 0)
    expected = peer.transform(grakel_inputs[40:])
    np.testing.assert_allclose(method.transform(graphs[40:]), expected, atol=1e-6)


def test_wl_by_hand(three):
    # Without labels: round 0 counts nodes; round 1 tells nodes of two, one and no neighbours apart.
    method = WeisfeilerLehman(iterations=1, start="constant", normalise=False)
    np.testing.assert_array_equal(method.fit(three, 0), [[18, 6, 3], [6, 8, 2], [3, 2, 2]])


def test_wl_of_unseen_colours_by_hand(make, three):
    method = WeisfeilerLehman(iterations=0)
    method.fit(three, 0)
    # Degrees of a star of three: 3 (never seen), 1, 1, 1. Its length is sqrt(1 + 9), not sqrt(9).
    star = [edge for leaf in (1, 2, 3) for edge in ((0, leaf), (leaf, 0))]
    np.testing.assert_allclose(method.transform(make([(4, star)])), [[0, 3 / 10**0.5, 0]], rtol=1e-6)


def test_wl_matches_labels_by_meaning():
    graphs = [networkx.path_graph(3), networkx.path_graph(3)]
    for graph, middle in zip(graphs, "NO", strict=True):
        networkx.set_node_attributes(graph, {0: "C", 1: middle, 2: "C"}, "label")
    both = open_collection(graphs)
    method = WeisfeilerLehman()
    kernel = method.fit(both, 0)
    alone = open_collection(graphs[1:])  # here O has the code that N has in both
    assert alone.nodes.columns != both.nodes.columns
    np.testing.assert_allclose(method.transform(alone.with_features(both.features)), kernel[1:])


def test_graphlets_by_hand(make):
    paw = [(0, 1), (1, 2), (2, 0), (2, 3)]
    wedge = [(0, 1), (1, 2)]
    # Of size three: a triangle and two wedges, one wedge. Of size four: one paw, nothing.
    kernel = Graphlets().fit(make([(4, paw), (3, wedge)]), 0)
    expected = (2 / 3) / (1 / 9 + 4 / 9 + 1) ** 0.5
    np.testing.assert_allclose(kernel, [[1, expected], [expected, 1]], rtol=1e-6)


def test_deep_kernel_compares_colours_by_their_vectors(graphs):
    rounds = wl_labels(graphs, 2)
    counts, colours = count_colours(graphs, rounds)
    dense = counts.toarray()
    shared = (dense > 0).sum(axis=0) >= 3
    known = meetings(graphs, rounds, colours[shared])
    vectors = factorise(information(known), 5, np.random.default_rng(0))
    kernel = dense[:, shared] @ vectors @ vectors.T @ dense[:, shared].T
    length = np.sqrt(kernel.diagonal())
    found = DeepGraphKernel(vector_size=5, min_graphs=3).fit(graphs, 0)
    np.testing.assert_allclose(found, kernel / length[:, None] / length, atol=1e-5)


def test_deep_kernel_is_the_same_for_the_same_seed():
    graphs = open_collection("mutag")
    one, two = (DeepGraphKernel(iterations=4, vector_size=8).fit(graphs, 7) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("wl", "iterations", -1),
        ("dgk", "vector_size", 0),
        ("dgk", "min_graphs", 0),
        ("dgk", "iterations", -2),
    ],
)
def test_settings_out_of_range_are_refused(graphs, name, key, value):
    with pytest.raises(ConfigError, match=f"{key} must be"):
        made(name, graphs, **{key: value})


def test_start_from_labels_needs_labels(three):
    with pytest.raises(DataError, match="hold no node labels"):
        WeisfeilerLehman(start="labels").fit(three, 0)
