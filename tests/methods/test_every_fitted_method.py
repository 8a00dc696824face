"""The contract of a fitted method, kernel or document embedding, for every one in the registry."""

import networkx
import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.estimator import GraphEmbedder
from graphsc.methods import METHODS, make_recipe
from graphsc.training.model_io import Model, load_model, save_model
from graphsc.training.train import embed_with, train

NAMES = [name for name in METHODS if METHODS.get(name).kind != "trained"]
GRAMS = [name for name in NAMES if METHODS.get(name).kind == "gram"]
# sub2vec's words are node ids: renaming the nodes renames the words.
ORDERED = {"sub2vec"}


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:24")


@pytest.fixture(scope="module")
def mutag():
    return open_collection("mutag")[:60]


def build_method(name, collection):
    return make_recipe(name, collection).build(collection.features, 0)


def fitted(name, collection, seed=0):
    recipe = make_recipe(name, collection)
    method = recipe.build(collection.features, seed)
    rows = method.fit(collection, seed)
    return Model(method, recipe, collection.features), rows


@pytest.mark.parametrize("name", NAMES)
def test_one_finite_row_per_graph_and_rows_differ(graphs, name):
    model, rows = fitted(name, graphs)
    assert rows.shape == (24, model.dimensions)
    assert np.isfinite(rows).all()
    assert len(np.unique(rows.round(5), axis=0)) > 5


@pytest.mark.parametrize("name", GRAMS)
def test_a_gram_matrix_is_symmetric_positive_and_of_unit_diagonal(graphs, name):
    _, rows = fitted(name, graphs)
    np.testing.assert_allclose(rows, rows.T, atol=1e-5)
    np.testing.assert_allclose(np.diag(rows), 1.0, atol=1e-5)
    assert np.linalg.eigvalsh(rows.astype(np.float64)).min() > -1e-4


@pytest.mark.parametrize("name", GRAMS)
def test_transform_of_training_graphs_equals_fit(graphs, name):
    model, rows = fitted(name, graphs)
    np.testing.assert_allclose(model.embed(graphs), rows, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_the_same_seed_gives_the_same_rows(graphs, name):
    np.testing.assert_array_equal(fitted(name, graphs, 3)[1], fitted(name, graphs, 3)[1])


@pytest.mark.parametrize("name", NAMES)
def test_rows_of_unseen_graphs_do_not_depend_on_each_other(graphs, name):
    model, _ = fitted(name, graphs[:16])
    together = model.embed(graphs[16:])
    apart = np.concatenate([model.embed(graphs[16:17]), model.embed(graphs[17:])])
    np.testing.assert_allclose(together, apart, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ORDERED])
def test_rows_do_not_depend_on_node_order(name):
    rng = np.random.default_rng(0)
    originals = [networkx.gnp_random_graph(9, 0.2 + 0.1 * (seed % 4), seed=seed) for seed in range(12)]
    shuffled = []
    for graph in originals:
        renamed = networkx.relabel_nodes(graph, dict(enumerate(rng.permutation(9).tolist())))
        copy = networkx.Graph()
        copy.add_nodes_from(range(9))
        copy.add_edges_from(renamed.edges)
        shuffled.append(copy)
    one, two = fitted(name, open_collection(originals))[1], fitted(name, open_collection(shuffled))[1]
    np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_saved_and_loaded_is_the_same(graphs, name, tmp_path):
    model, _ = fitted(name, graphs[:16])
    save_model(tmp_path / "m.safetensors", model.method, model.recipe, model.features)
    again = load_model(tmp_path / "m.safetensors")
    assert again.dimensions == model.dimensions
    assert again.gram == model.gram
    np.testing.assert_array_equal(again.embed(graphs[16:]), model.embed(graphs[16:]))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_with_a_model_is_not_fitted_again(graphs, name, tmp_path):
    first = train(graphs, name, out=tmp_path)
    written = first.folder.model.stat().st_mtime_ns
    again = train(graphs, name, out=tmp_path)
    assert again.folder.model.stat().st_mtime_ns == written
    np.testing.assert_array_equal(embed_with(again.model, graphs), embed_with(first.model, graphs))


@pytest.mark.parametrize("name", NAMES)
def test_the_estimator_accepts_it(graphs, name):
    embedder = GraphEmbedder(name).fit(graphs[:16])
    assert embedder.transform(graphs[16:]).shape == (8, embedder.n_features_out_)
    assert GraphEmbedder(name).fit_transform(graphs[:16]).shape == (16, embedder.n_features_out_)


def test_a_transductive_method_refuses_unseen_graphs(graphs):
    model, _ = fitted("wl", graphs)

    class Closed(type(model.method)):
        inductive = False

    closed = Model(Closed(), model.recipe, model.features)
    with pytest.raises(ConfigError, match="only for the graphs it was fitted on"):
        closed.embed(graphs)


@pytest.mark.parametrize("name", GRAMS)
def test_gram_rows_are_float32_and_positive_semidefinite(mutag, name):
    method = build_method(name, mutag)
    kernel = method.fit(mutag, 0)
    assert METHODS.get(name).kind == "gram"
    assert kernel.dtype == np.float32
    assert kernel.shape == (60, method.dimensions())
    np.testing.assert_allclose(kernel, kernel.T, atol=1e-6)
    np.testing.assert_allclose(kernel.diagonal(), 1, atol=1e-6)
    assert np.linalg.eigvalsh(kernel.astype(np.float64)).min() > -1e-5


@pytest.mark.parametrize("name", GRAMS)
def test_transform_of_training_graphs_gives_the_rows_of_the_fit(mutag, name):
    method = build_method(name, mutag)
    kernel = method.fit(mutag, 0)
    np.testing.assert_allclose(method.transform(mutag), kernel, atol=1e-6)
    np.testing.assert_allclose(method.transform(mutag[[40, 3]]), kernel[[40, 3]], atol=1e-6)


@pytest.mark.parametrize("name", GRAMS)
def test_gram_rows_do_not_depend_on_node_order(name):
    rng = np.random.default_rng(0)
    one = [networkx.gnp_random_graph(9, 0.4, seed=seed) for seed in range(6)]
    two = []
    for graph in one:
        copy = networkx.empty_graph(9)
        copy.add_edges_from(networkx.relabel_nodes(graph, dict(enumerate(rng.permutation(9).tolist()))).edges)
        two.append(copy)
    first, second = open_collection(one), open_collection(two)
    method = build_method(name, first)
    np.testing.assert_allclose(method.fit(first, 0), method.transform(second), atol=1e-6)


@pytest.mark.parametrize("name", GRAMS)
def test_restored_state_gives_the_same_rows(mutag, name):
    method, again = build_method(name, mutag), build_method(name, mutag)
    method.fit(mutag[:40], 0)
    again.load_state(method.state())
    assert again.dimensions() == 40
    np.testing.assert_array_equal(again.transform(mutag[40:]), method.transform(mutag[40:]))


@pytest.mark.parametrize("name", GRAMS)
def test_rows_before_a_fit_are_refused(mutag, name):
    with pytest.raises(ConfigError, match="fit it first"):
        build_method(name, mutag).transform(mutag)


@pytest.mark.parametrize("name", GRAMS)
def test_empty_and_single_graphs_give_finite_rows(make, name):
    graphs = make([(0, []), (1, []), (2, [(0, 1), (1, 0)])], allow_empty=True)
    assert np.isfinite(build_method(name, graphs).fit(graphs, 0)).all()
    assert build_method(name, graphs).fit(graphs[:1], 0).shape == (1, 1)
