"""Peers and floors are what they claim to be."""

from itertools import combinations

import networkx
import numpy as np
import pytest
import torch

from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe


@pytest.fixture(scope="module")
def motifs():
    return open_collection("motifs:40")


def test_loss_of_the_pyg_peer_is_ours(motifs):
    from benchmarks.epoch import loss_difference
    from benchmarks.peer import PygGraphSC

    method = make_recipe("graphsc", motifs).build(motifs.features, 0)
    exact, rounded = loss_difference(method, PygGraphSC(method), motifs)
    assert exact < 1e-9
    assert rounded < 1e-4


@pytest.mark.parametrize(("nodes", "edges", "count"), [(12, 20, 9), (12, 60, 9), (400, 500, 50), (300, 0, 3)])
def test_added_edges_of_the_peer_were_absent(nodes, edges, count):
    from benchmarks.peer import absent_edges

    torch.manual_seed(0)
    pairs = torch.tensor(list(combinations(range(nodes), 2))).T
    once = pairs[:, torch.randperm(pairs.shape[1])[:edges]]
    added = absent_edges(once, count, nodes)
    found = set(map(tuple, added.T.tolist()))
    assert len(found) == added.shape[1] == min(count, pairs.shape[1] - edges)
    assert not found & set(map(tuple, once.T.tolist()))
    assert all(low < high for low, high in found)


def test_words_of_the_graph2vec_peer_refine_as_networkx_does():
    """Two nodes share a word of a round exactly where NetworkX's refinement gives them one label."""
    pytest.importorskip("gensim")
    from benchmarks.graph2vec import subtree_words

    graph = networkx.random_labeled_tree(30, seed=3)
    networkx.set_node_attributes(graph, {node: node % 2 for node in graph}, "feature")
    rounds = 2
    words = np.array(subtree_words(graph, rounds)).reshape(30, rounds + 1)
    expected = networkx.weisfeiler_lehman_subgraph_hashes(
        graph, node_attr="feature", iterations=rounds, include_initial_labels=True
    )
    labels = np.array([expected[node] for node in graph])
    for column in range(rounds + 1):
        same = words[:, column][:, None] == words[:, column][None]
        np.testing.assert_array_equal(same, labels[:, column][:, None] == labels[:, column][None])


def test_graphs_of_the_graph2vec_peer_have_the_edges_and_labels_of_the_collection():
    pytest.importorskip("gensim")
    from benchmarks.graph2vec import labelled_graphs

    collection = open_collection("molecule-like:5")
    for made, graph in zip(labelled_graphs(collection), collection.graphs(), strict=True):
        assert made.number_of_nodes() == graph.num_nodes
        assert {frozenset(edge) for edge in made.edges} == {frozenset(e) for e in graph.edge_index.T.tolist()}


@pytest.mark.parametrize("label", ["graphsc", "joaov2", "infograph", "lagraph", "adgcl", "rgcl"])
def test_floor_of_a_method_has_the_passes_of_its_epoch_and_moves_no_weights(motifs, label):
    from benchmarks.methods import prepare, recorded

    method, epoch, floor = prepare(label, motifs)
    counts = []
    for work, moves in ((floor, False), (epoch, True)):
        weights = [parameter.clone() for parameter in method.parameters()]
        with recorded(method, None) as (passes, _):
            work()
        counts.append(len(passes))
        same = [torch.equal(*pair) for pair in zip(weights, method.parameters(), strict=True)]
        assert all(same) is not moves
    assert counts[0] == counts[1] > 0


def test_node_heads_are_recorded_with_one_row_per_node(motifs):
    from benchmarks.methods import NODE_HEADS, recorded
    from graphsc.data.batch import GraphBatch

    batch = GraphBatch.of(motifs)
    for label, head in NODE_HEADS.items():
        method = make_recipe(label, motifs).build(motifs.features, 0)
        with recorded(method, head) as (_, heads):
            views = method.views(batch, torch.Generator().manual_seed(0))
            method.objective(method.encode(views))
        assert {len(rows) for _, rows in heads} == {batch.num_nodes}, label
