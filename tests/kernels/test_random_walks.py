"""Random walks follow edges, are uniform, and are independent of other graphs."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.kernels.random_walks import LETTERS, degree_letters, random_walks, walk_documents


def local_ids(collection):
    sizes = np.diff(collection.node_ptr)
    ids = np.arange(collection.num_nodes) - np.repeat(collection.node_ptr[:-1], sizes)
    return ids.astype(np.uint16)


def walks_of(collection, steps, seed=0):
    return random_walks(collection, steps, seed, local_ids(collection))


@given(data=st.data())
def test_each_step_is_an_edge_or_a_restart(make, graph_lists, data):
    graphs = make(data.draw(graph_lists), allow_empty=True)
    walks = iter(walks_of(graphs, 12))
    for graph in graphs.graphs():
        if graph.num_nodes == 0:
            continue
        edges = set(zip(*graph.edge_index.tolist(), strict=True)) if graph.edge_index.size else set()
        edges |= {(v, u) for u, v in edges}
        joined = {node for edge in edges for node in edge}
        for here, there in pairwise(next(walks).tolist()):
            assert there < graph.num_nodes
            assert (here, there) in edges or here not in joined
    assert next(walks, None) is None


def test_next_steps_are_uniform(make):
    """On a star with a chord, the centre has 4 neighbours and node 1 has two; each is chosen as often."""
    edges = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 2)]
    graphs = make([(5, edges + [(v, u) for u, v in edges])])
    walk = walks_of(graphs, 8_000)[0].astype(int)
    for node, neighbours in ((0, [1, 2, 3, 4]), (1, [0, 2])):
        onward = np.bincount(walk[1:][walk[:-1] == node], minlength=5)
        expected = onward.sum() / len(neighbours)
        chi_square = np.sum((onward[neighbours] - expected) ** 2 / expected)
        assert chi_square < 20  # three degrees of freedom at most: one in 5,000
        assert onward.sum() == onward[neighbours].sum()


def test_starts_are_uniform(make):
    """Over seeds: 1,000 walks of one step on a path of four."""
    edges = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    graphs = make([(4, edges)])
    starts = np.bincount([int(walks_of(graphs, 1, seed)[0, 0]) for seed in range(1000)], minlength=4)
    assert np.sum((starts - 250) ** 2 / 250) < 20


def test_isolated_nodes_restart_anywhere(make):
    walk = walks_of(make([(3, [])]), 300)[0]
    assert set(walk.tolist()) == {0, 1, 2}


def test_opposite_edges_count_once(make):
    """Directed 0 -> 1, 1 -> 0 and 0 -> 2: from 0 both neighbours are as likely."""
    walk = walks_of(make([(3, [(0, 1), (1, 0), (0, 2)])]), 8_000)[0].astype(int)
    onward = np.bincount(walk[1:][walk[:-1] == 0], minlength=3)
    assert abs(onward[1] / onward.sum() - 0.5) < 0.04


def test_a_walk_does_not_depend_on_the_other_graphs(three):
    together = walks_of(three, 30)
    for place in (2, 0, 1):
        assert walks_of(three[[place]], 30)[0].tolist() == together[place].tolist()


def test_another_seed_gives_another_walk(three):
    assert walks_of(three, 30, 1)[0].tolist() != walks_of(three, 30, 2)[0].tolist()


def test_letters_are_ranges_of_degree_per_node(make):
    """A star of 21 nodes: leaves have 1/21 < 0.05, the centre 20/21; a path of two has 1/2 each."""
    star = [edge for leaf in range(1, 21) for edge in ((0, leaf), (leaf, 0))]
    graphs = make([(21, star), (2, [(0, 1), (1, 0)]), (1, [])])
    assert degree_letters(graphs).tolist() == [7] + [0] * 20 + [5, 5, 0]


@pytest.mark.parametrize(
    ("degree", "letter"), [(1, 0), (2, 1), (3, 2), (4, 3), (5, 4), (10, 5), (15, 6), (16, 7)]
)
def test_ranges_include_their_upper_end(make, degree, letter):
    edges = [edge for leaf in range(1, degree + 1) for edge in ((0, leaf), (leaf, 0))]
    assert degree_letters(make([(20, edges)]))[0] == letter


def test_neighbourhood_documents_contain_ids_only(three):
    documents = walk_documents(three, 8, 0, "neighbourhood")
    assert documents.lengths.tolist() == [8, 8, 8]
    assert documents.words.min() >= LETTERS
    assert documents.words.max() < LETTERS + 3


def test_structure_documents_are_ids_then_letters(three):
    documents = walk_documents(three, 9, 0, "structure", 0.5)
    for words, letter in zip(np.split(documents.words, 3), (6, 5, 0), strict=True):  # 2/3, 1/2, 0
        assert (words[:4] >= LETTERS).all()
        assert words[4:].tolist() == [letter] * 5


def test_a_graph_without_nodes_is_an_empty_document(mixed):
    assert walk_documents(mixed, 6, 0, "structure").lengths.tolist() == [6, 0, 6, 6, 6]


def test_no_graphs_give_no_documents(three):
    assert len(walk_documents(three[[]], 6, 0, "structure")) == 0
