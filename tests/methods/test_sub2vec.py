"""sub2vec: similar vectors for similar graphs, independent of other unseen graphs."""

import networkx as nx
import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.sub2vec import Sub2Vec
from graphsc.training.model_io import load_model, save_model


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:24")


@pytest.mark.parametrize("rows", ["inferred", "learned"])
def test_similar_graphs_have_nearer_vectors(rows):
    """Trees and dense graphs of 14 nodes, in turn."""
    made = [
        nx.gnp_random_graph(14, 0.6, seed=i) if i % 2 else nx.random_labeled_tree(14, seed=i)
        for i in range(40)
    ]
    result = Sub2Vec(dimensions=16, walk_length=120, rows=rows).fit(open_collection(made), 0)
    distance = np.linalg.norm(result[:, None] - result[None], axis=2)
    same = np.equal.outer(np.arange(40) % 2, np.arange(40) % 2)
    assert distance[same & ~np.eye(40, dtype=bool)].mean() < 0.75 * distance[~same].mean()


@pytest.mark.parametrize("kept", ["structure", "neighbourhood"])
def test_rows_do_not_depend_on_the_other_unseen_graphs(graphs, kept):
    method = Sub2Vec(walk_length=60, property=kept)
    method.fit(graphs[:16], 0)
    together = method.transform(graphs[16:])
    assert np.array_equal(method.transform(graphs[[23, 17]]), together[[7, 1]])


def test_inferred_rows_are_those_of_transform(graphs):
    method = Sub2Vec(walk_length=60)
    assert np.array_equal(method.fit(graphs, 0), method.transform(graphs))


@pytest.mark.parametrize("reading", ["dm", "dbow"])
def test_saved_and_loaded_gives_the_same_rows(graphs, tmp_path, reading):
    recipe = make_recipe("sub2vec", graphs, {"dimensions": 16, "walk_length": 60, "reading": reading})
    method = recipe.build(graphs.features, 0)
    method.fit(graphs[:16], 3)
    save_model(tmp_path / "model", method, recipe, graphs.features)
    assert np.array_equal(load_model(tmp_path / "model").embed(graphs), method.transform(graphs))


def test_seeds_draw_other_walks(graphs):
    documents = [Sub2Vec(walk_length=60).documents(graphs, seed).words for seed in (0, 0, 1)]
    assert np.array_equal(documents[0], documents[1])
    assert not np.array_equal(documents[0], documents[2])


def test_single_nodes_and_empty_graphs_have_rows(make):
    graphs = make([(1, []), (0, []), *[(2, [(0, 1), (1, 0)])] * 8], allow_empty=True)
    rows = Sub2Vec(dimensions=4, walk_length=20).fit(graphs, 0)
    assert np.isfinite(rows).all()
    assert rows[[0, 2]].any(axis=1).all()
    assert not rows[1].any()


def test_the_walk_length_is_stated_and_published_restores_it(graphs):
    assert "1,000 steps, not 100,000" in METHODS.get("sub2vec").summary
    assert make_recipe("sub2vec", graphs).settings["walk_length"] == 1000
    assert make_recipe("sub2vec", graphs, preset="published").settings["walk_length"] == 100_000


@pytest.mark.parametrize("wrong", [{"walk_length": 0}, {"id_share": 1.5}, {"window": 0}])
def test_settings_out_of_range_are_named(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        Sub2Vec(**wrong)
