"""Documents of rooted sub-graphs against a loop over nodes."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.kernels.doc2vec import subgraph_documents


def written_out(collection, iterations):
    """The sub-graphs rooted at the nodes of each graph, as nested tuples, by definition."""
    documents = []
    for graph in collection.graphs():
        edges = list(zip(*graph.edge_index.tolist(), strict=True)) if graph.edge_index.size else []
        into = [[int(u) for u, v in edges if v == node] for node in range(graph.num_nodes)]
        now = [len([u for u in into[node] if u != node]) for node in range(graph.num_nodes)]
        words = list(now)
        for _ in range(iterations):
            now = [(now[v], tuple(sorted((now[u] for u in into[v]), key=repr))) for v in range(len(now))]
            words += now
        documents.append(words)
    return documents


@pytest.mark.parametrize("iterations", [0, 1, 2, 3])
@given(data=st.data())
def test_words_are_the_rooted_subgraphs_and_mean_the_same_in_every_graph(make, graph_lists, iterations, data):
    graphs = make(data.draw(graph_lists), allow_empty=True)
    documents = subgraph_documents(graphs, iterations)
    expected = written_out(graphs, iterations)
    assert documents.lengths.tolist() == [len(words) for words in expected]
    # Words may have other names, but the same ones in every graph.
    bags = [
        Counter(documents.words[a:b].tolist())
        for a, b in zip(documents.ptr[:-1], documents.ptr[1:], strict=True)
    ]
    assert signatures(bags) == signatures([Counter(words) for words in expected])


def signatures(bags):
    """How often each word occurs in each document, as a multiset without the names of the words."""
    return Counter(tuple(bag[word] for bag in bags) for word in set().union(*bags))


def test_order_of_nodes_does_not_change_a_document(make):
    path = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]
    other = [2, 0, 3, 1]  # node i is called other[i]
    renamed = [(other[u], other[v]) for u, v in path]
    documents = subgraph_documents(make([(4, path), (4, renamed)]), 2)
    one, two = np.split(documents.words, 2)
    assert one.tolist() == two.tolist()


def test_copies_of_a_word_are_spread_over_the_document(make):
    """Ten paths of three: 20 ends and 10 middles; sorted words would change once, scattered ones often."""
    edges = [edge for k in range(10) for u, v in ((0, 1), (1, 2))
             for edge in ((3 * k + u, 3 * k + v), (3 * k + v, 3 * k + u))]  # fmt: skip
    words = subgraph_documents(make([(30, edges)]), 0).words
    assert np.count_nonzero(words[1:] != words[:-1]) >= 5


def test_a_graph_without_nodes_is_an_empty_document(mixed):
    assert subgraph_documents(mixed, 2).lengths.tolist() == [9, 0, 6, 12, 3]


def test_no_graphs_give_no_documents(three):
    documents = subgraph_documents(three[[]], 2)
    assert len(documents) == 0
    assert len(documents.words) == 0
