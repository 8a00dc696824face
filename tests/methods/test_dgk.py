"""The deep graph kernel, and the learned vectors of colours step by step, against loops."""

from collections import Counter
from math import log

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.kernels.weisfeiler_lehman import count_colours, wl_labels
from graphsc.methods.dgk import (
    DeepGraphKernel,
    co_occurrences,
    factorise,
    positive_information,
    shared_graphs,
)


def by_loop(graphs, rounds, vocabulary):
    counts = Counter()
    known = {int(colour): k for k, colour in enumerate(vocabulary)}
    names = [[known.get(int(colour)) for colour in colours] for colours in rounds]
    for g in range(len(graphs)):
        first = int(graphs.node_ptr[g])
        for source, end in graphs.graph(g).edge_index.T.tolist():
            for name in names:
                counts[name[first + source], name[first + end]] += 1
                counts[name[first + end], name[first + source]] += 1
    for node in range(graphs.num_nodes):
        for t in range(len(rounds) - 1):
            counts[names[t][node], names[t + 1][node]] += 1
            counts[names[t + 1][node], names[t][node]] += 1
    return {pair: count for pair, count in counts.items() if None not in pair}


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:6")


@pytest.fixture(scope="module")
def mutag():
    return open_collection("mutag")[:60]


def test_co_occurrences_are_neighbours_and_consecutive_rounds(graphs):
    rounds = wl_labels(graphs, 2)
    _, colours = count_colours(graphs, rounds)
    vocabulary = colours[::2]  # some colours are not looked at
    result = co_occurrences(graphs, rounds, vocabulary).tocoo()
    stored = zip(result.row.tolist(), result.col.tolist(), result.data.tolist(), strict=True)
    assert {(a, b): count for a, b, count in stored} == by_loop(graphs, rounds, vocabulary)


def test_information_is_positive_pointwise_mutual_information():
    counts = np.array([[0.0, 4, 1], [4, 2, 0], [1, 0, 0]])
    expected = np.zeros((3, 3))
    for a, b in zip(*counts.nonzero(), strict=True):
        expected[a, b] = max(0, log(counts[a, b] * counts.sum() / (counts[a].sum() * counts[b].sum())))
    assert (expected == 0).sum() > (counts == 0).sum()  # something was cut off
    np.testing.assert_allclose(positive_information(csr_array(counts)).toarray(), expected)


@pytest.mark.parametrize("size", [40, 400])
def test_vectors_are_a_truncated_singular_value_decomposition(size):
    half = random_array((size, size), density=0.05, rng=0).tocsr()
    matrix = half + half.T
    vectors = factorise(matrix, 10, np.random.default_rng(0))
    u, s, _ = np.linalg.svd(matrix.toarray())
    np.testing.assert_allclose(vectors @ vectors.T, (u[:, :10] * s[:10]) @ u[:, :10].T, atol=1e-6)


def test_dimensions_are_limited_by_the_number_of_colours():
    assert factorise(csr_array(np.eye(3)), 64, np.random.default_rng(0)).shape == (3, 3)


@pytest.mark.parametrize("size", [0, 2, 300])
def test_colours_without_co_occurrences_have_zero_vectors(size):
    vectors = factorise(csr_array((size, size)), 2, np.random.default_rng(0))
    np.testing.assert_array_equal(vectors, np.zeros((size, min(size, 2))))


def test_kernel_compares_colours_by_their_vectors(mutag):
    rounds = wl_labels(mutag, 2)
    counts, colours = count_colours(mutag, rounds)
    dense = counts.toarray()
    shared = (dense > 0).sum(axis=0) >= 3
    counts_of_pairs = co_occurrences(mutag, rounds, colours[shared])
    vectors = factorise(positive_information(counts_of_pairs), 5, np.random.default_rng(0))
    kernel = dense[:, shared] @ vectors @ vectors.T @ dense[:, shared].T
    length = np.sqrt(kernel.diagonal())
    settings = {"vector_size": 5, "min_graphs": 3, "kernel": "gram", "corpus": "neighbours"}
    result = DeepGraphKernel(**settings).fit(mutag, 0)
    np.testing.assert_allclose(result, kernel / length[:, None] / length, atol=1e-5)


def test_by_default_the_kernel_is_diagonal_and_its_corpus_the_bags_of_the_graphs(mutag):
    counts, _ = count_colours(mutag, wl_labels(mutag, 2))
    bags = counts.toarray()[:, (counts.toarray() > 0).sum(axis=0) >= 2]
    size = bags.shape[1]
    pairs = np.zeros((size, size))
    for bag in bags:
        words = np.repeat(np.arange(size), bag.astype(int))
        for i, word in enumerate(words):
            for j, other in enumerate(words):
                if i != j:
                    pairs[word, other] += 1 / (len(words) - 1)
    with np.errstate(divide="ignore"):
        information = np.log(pairs * pairs.sum() / np.outer(pairs.sum(axis=0), pairs.sum(axis=1)))
    # Fewer colours than 512: nothing is cut off, and M_aa^2 is the diagonal of |S|, S = U D U^T.
    assert size < 512
    values, vectors = np.linalg.eigh(np.maximum(information, 0))
    norms = np.sqrt((vectors**2 * np.abs(values)).sum(axis=1))
    kernel = bags @ np.diag(norms) @ bags.T
    length = np.sqrt(kernel.diagonal())
    np.testing.assert_allclose(DeepGraphKernel().fit(mutag, 0), kernel / length[:, None] / length, atol=1e-5)


def test_a_colour_that_occurs_once_in_its_graphs_does_not_co_occur_with_itself():
    pairs = shared_graphs(csr_array(np.array([[1.0, 2, 0], [1, 0, 3], [1, 0, 0]])))
    np.testing.assert_allclose(pairs.toarray(), [[0, 1, 1], [1, 1, 0], [1, 0, 2]])
    assert pairs.nnz == 6


@pytest.mark.parametrize("corpus", ["graph", "neighbours"])
@pytest.mark.parametrize("kernel", ["norms", "gram"])
def test_a_restored_kernel_gives_the_same_rows(mutag, kernel, corpus):
    fitted, restored = (DeepGraphKernel(kernel=kernel, corpus=corpus) for _ in range(2))
    fitted.fit(mutag[:40], 0)
    restored.load_state(fitted.state())
    np.testing.assert_array_equal(restored.transform(mutag[40:]), fitted.transform(mutag[40:]))


def test_kernel_is_the_same_for_the_same_seed():
    graphs = open_collection("mutag")
    one, two = (DeepGraphKernel(iterations=4, vector_size=8).fit(graphs, 7) for _ in range(2))
    np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(("key", "value"), [("vector_size", 0), ("min_graphs", 0), ("iterations", -2)])
def test_settings_out_of_range_are_refused(key, value):
    with pytest.raises(ConfigError, match=f"{key} must be"):
        DeepGraphKernel(**{key: value})
