"""The learned vectors of colours, step by step, against loops over nodes and edges."""

from collections import Counter
from math import log

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from graphsc.data.readers import open_collection
from graphsc.kernels.weisfeiler_lehman import count_colours, wl_labels
from graphsc.methods.dgk import factorise, information, meetings


def by_loop(graphs, rounds, vocabulary):
    met = Counter()
    known = {int(colour): k for k, colour in enumerate(vocabulary)}
    names = [[known.get(int(colour)) for colour in colours] for colours in rounds]
    for g in range(len(graphs)):
        first = int(graphs.node_ptr[g])
        for source, end in graphs.graph(g).edge_index.T.tolist():
            for name in names:
                met[name[first + source], name[first + end]] += 1
                met[name[first + end], name[first + source]] += 1
    for node in range(graphs.num_nodes):
        for t in range(len(rounds) - 1):
            met[names[t][node], names[t + 1][node]] += 1
            met[names[t + 1][node], names[t][node]] += 1
    return {pair: count for pair, count in met.items() if None not in pair}


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:6")


def test_meetings_are_neighbours_and_rounds_side_by_side(graphs):
    rounds = wl_labels(graphs, 2)
    _, colours = count_colours(graphs, rounds)
    vocabulary = colours[::2]  # some colours are not looked at
    found = meetings(graphs, rounds, vocabulary).tocoo()
    stored = zip(found.row.tolist(), found.col.tolist(), found.data.tolist(), strict=True)
    assert {(a, b): count for a, b, count in stored} == by_loop(graphs, rounds, vocabulary)


def test_information_is_positive_and_pointwise():
    met = np.array([[0.0, 4, 1], [4, 2, 0], [1, 0, 0]])
    expected = np.zeros((3, 3))
    for a, b in zip(*met.nonzero(), strict=True):
        expected[a, b] = max(0, log(met[a, b] * met.sum() / (met[a].sum() * met[b].sum())))
    assert (expected == 0).sum() > (met == 0).sum()  # something was cut off
    np.testing.assert_allclose(information(csr_array(met)).toarray(), expected)


@pytest.mark.parametrize("size", [40, 400])
def test_vectors_are_a_truncated_singular_value_decomposition(size):
    half = random_array((size, size), density=0.05, rng=0).tocsr()
    matrix = half + half.T
    vectors = factorise(matrix, 10, np.random.default_rng(0))
    u, s, _ = np.linalg.svd(matrix.toarray())
    np.testing.assert_allclose(vectors @ vectors.T, (u[:, :10] * s[:10]) @ u[:, :10].T, atol=1e-6)


def test_more_dimensions_than_colours_give_as_many_as_there_are():
    assert factorise(csr_array(np.eye(3)), 64, np.random.default_rng(0)).shape == (3, 3)


@pytest.mark.parametrize("size", [0, 2, 300])
def test_colours_that_never_meet_have_zero_vectors(size):
    vectors = factorise(csr_array((size, size)), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(vectors, np.zeros((size, min(size, 2))))
