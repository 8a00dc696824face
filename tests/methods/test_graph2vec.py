"""graph2vec: similar vectors for similar graphs, whatever the node order and the other graphs."""

import networkx as nx
import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.methods.graph2vec import Graph2Vec
from graphsc.training.model_io import load_model, save_model
from graphsc.training.train import train


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:40")


@pytest.mark.parametrize("rows", ["inferred", "learned"])
def test_similar_graphs_have_nearer_vectors(rows):
    """Trees and dense graphs of 14 nodes, in turn."""
    made = [
        nx.gnp_random_graph(14, 0.6, seed=i) if i % 2 else nx.random_labeled_tree(14, seed=i)
        for i in range(40)
    ]
    result = Graph2Vec(dimensions=16, rows=rows).fit(open_collection(made), 0)
    distance = np.linalg.norm(result[:, None] - result[None], axis=2)
    same = np.equal.outer(np.arange(40) % 2, np.arange(40) % 2)
    assert distance[same & ~np.eye(40, dtype=bool)].mean() < 0.7 * distance[~same].mean()


def test_inferred_rows_are_those_of_transform(graphs):
    method = Graph2Vec()
    assert np.array_equal(method.fit(graphs, 0), method.transform(graphs))


def test_learned_rows_differ_from_inferred_ones(graphs):
    inferred, learned = Graph2Vec().fit(graphs, 0), Graph2Vec(rows="learned").fit(graphs, 0)
    assert not np.allclose(inferred, learned, atol=1e-2)


def test_rows_do_not_depend_on_the_other_unseen_graphs(graphs):
    method = Graph2Vec()
    method.fit(graphs[:30], 0)
    together = method.transform(graphs[30:])
    assert np.array_equal(method.transform(graphs[[39, 33]]), together[[9, 3]])


def test_order_of_nodes_makes_no_difference():
    ladder = nx.ladder_graph(5)
    shuffled = nx.Graph()
    shuffled.add_nodes_from([7, 2, 9, 0, 4, 1, 8, 3, 6, 5])
    shuffled.add_edges_from(ladder.edges)
    graphs = open_collection([ladder, shuffled, nx.path_graph(6)])
    rows = Graph2Vec(min_count=1).fit(graphs, 0)
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_saved_and_loaded_gives_the_same_rows(graphs, tmp_path):
    recipe = make_recipe("graph2vec", graphs, {"dimensions": 16})
    method = recipe.build(graphs.features, 0)
    method.fit(graphs[:30], 0)
    save_model(tmp_path / "model", method, recipe, graphs.features)
    assert np.array_equal(load_model(tmp_path / "model").embed(graphs), method.transform(graphs))


def test_single_nodes_and_empty_graphs_have_rows(make):
    edge = [(0, 1), (1, 0)]
    graphs = make([(1, []), (0, []), *[(2, edge)] * 8], allow_empty=True)
    rows = Graph2Vec(dimensions=4).fit(graphs, 0)
    assert np.isfinite(rows).all()
    assert rows[[0, 2]].any(axis=1).all()
    assert not rows[1].any()


def test_transform_of_no_graphs_gives_no_rows(graphs):
    method = Graph2Vec(dimensions=4)
    method.fit(graphs, 0)
    assert method.transform(graphs[[]]).shape == (0, 4)


def test_scaled_rows_have_a_mean_square_of_one(graphs):
    rows = Graph2Vec(unit_rms=True).fit(graphs, 0)
    np.testing.assert_allclose((rows.astype(float) ** 2).mean(axis=1), 1, rtol=1e-5)


def test_a_run_returns_the_rows_of_the_fit(graphs):
    run = train(graphs, "graph2vec", settings={"dimensions": 16, "rows": "learned"})
    method = Graph2Vec(dimensions=16, rows="learned")
    assert np.array_equal(run.rows, method.fit(graphs, 0))


def test_published_settings(graphs):
    settings = make_recipe("graph2vec", graphs, preset="published").settings
    assert (settings["dimensions"], settings["iterations"], settings["epochs"]) == (512, 3, 1000)
    assert make_recipe("graph2vec", graphs, preset="karateclub").settings["sample"] == 1e-4


def test_use_before_fit_is_an_error(graphs):
    with pytest.raises(ConfigError, match="not been fitted"):
        Graph2Vec().transform(graphs)


@pytest.mark.parametrize("wrong", [{"dimensions": 0}, {"epochs": 0}, {"iterations": -1}, {"sample": -1.0}])
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Graph2Vec(**wrong)
