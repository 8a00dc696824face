"""The graphlet kernel: its values by hand, and by enumeration."""

from collections import Counter
from itertools import combinations

import networkx
import numpy as np
import pytest

from graphsc.data.readers import open_collection
from graphsc.methods.gl import Graphlets


def test_kernel_by_hand(make):
    paw = [(0, 1), (1, 2), (2, 0), (2, 3)]
    wedge = [(0, 1), (1, 2)]
    # Of size three: a triangle and two wedges, one wedge. Of size four: one paw, nothing.
    kernel = Graphlets(connected=True).fit(make([(4, paw), (3, wedge)]), 0)
    expected = (2 / 3) / (1 / 9 + 4 / 9 + 1) ** 0.5
    np.testing.assert_allclose(kernel, [[1, expected], [expected, 1]], rtol=1e-6)


@pytest.mark.parametrize("p", [0.1, 0.4])
def test_by_default_every_set_of_nodes_counts(p):
    graphs = [networkx.gnp_random_graph(n, p, seed=n) for n in (6, 9)]
    shares = []
    for graph in graphs:
        share = {}
        for size in (3, 4):
            # Graphs of up to four nodes are determined by their degrees.
            shapes = Counter(
                (size, *sorted(degree for _, degree in graph.subgraph(nodes).degree))
                for nodes in combinations(graph, size)
            )
            share |= {shape: count / shapes.total() for shape, count in shapes.items()}
        shares.append(share)
    one, two = shares
    product = sum(one[shape] * two.get(shape, 0) for shape in one)
    expected = product / np.prod([sum(x**2 for x in share.values()) ** 0.5 for share in shares])
    kernel = Graphlets().fit(open_collection(graphs), 0)
    np.testing.assert_allclose(kernel, [[1, expected], [expected, 1]], rtol=1e-6)
