from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DataError
from graphsc.data import validation
from graphsc.data.arrays import chunks_of_edges
from graphsc.data.columns import FeatureTable


def changed(array, position, value):
    array = array.copy()
    array[position] = value
    return array


@given(data=st.data(), most=st.integers(1, 10))
def test_a_built_collection_is_valid_in_chunks_of_any_size(make, graph_lists, data, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(validation, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, most))
        make(data.draw(graph_lists), allow_empty=True).check()


def test_a_collection_with_every_feature_is_valid(mixed):
    mixed.check()


BROKEN = {
    "node_ptr is not an ascending pointer": lambda c: replace(c, node_ptr=changed(c.node_ptr, 1, 9)),
    "node_ptr is not an ascending pointer over 9 rows": lambda c: replace(c, nodes=c.nodes.take(slice(9))),
    "edge_ptr is not an ascending pointer": lambda c: replace(c, edge_ptr=changed(c.edge_ptr, 0, 1)),
    "pointers and ids have different lengths": lambda c: replace(c, ids=np.arange(4)),
    "edge_index does not have one column per edge": lambda c: replace(c, edge_index=c.edge_index[:, :9]),
    "node codes do not match their columns": lambda c: replace(
        c, nodes=replace(c.nodes, columns=c.nodes.columns[:1])
    ),
    "node floats do not match their rows and names": lambda c: replace(
        c, nodes=replace(c.nodes, floats=c.nodes.floats[:9])
    ),
    "edge floats do not match their rows and names": lambda c: replace(
        c, edges=replace(c.edges, float_names=())
    ),
    "a node attribute is not a finite number": lambda c: replace(
        c, nodes=replace(c.nodes, floats=changed(c.nodes.floats, 0, np.nan))
    ),
    "node column 'atom' has a code above 2": lambda c: replace(
        c, nodes=replace(c.nodes, codes=changed(c.nodes.codes, (3, 0), 3))
    ),
    "edge column 'bond' has a code above 2": lambda c: replace(
        c, edges=replace(c.edges, codes=changed(c.edges.codes, 0, 200))
    ),
    "labels do not have one row per graph": lambda c: replace(c, labels=c.labels[:, :1]),
    "label of graph 4 is infinite": lambda c: replace(c, labels=changed(c.labels, 4, np.inf)),
    "graph 2 has an edge out of range": lambda c: replace(
        c, edge_index=changed(c.edge_index, (0, c.edge_ptr[2]), 2)
    ),
    "edges are not sorted": lambda c: replace(
        c, edge_index=changed(c.edge_index, slice(None), c.edge_index[:, [1, 0, *range(2, 10)]])
    ),
    "says undirected, but some edge has no reverse": lambda c: replace(c, undirected=True),
}


@pytest.mark.parametrize("message", BROKEN)
def test_a_violated_invariant_is_named(mixed, message):
    with pytest.raises(DataError, match=message):
        BROKEN[message](mixed).check()


def test_symmetric_edges_may_be_called_directed(three):
    replace(three, undirected=False).check()


def test_an_empty_selection_is_valid(mixed):
    mixed[[]].check()
    replace(mixed[[]], nodes=FeatureTable.empty(0)).check()
