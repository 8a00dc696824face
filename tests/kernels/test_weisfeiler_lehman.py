"""Colours against a dictionary that numbers each new neighbourhood."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers import open_collection
from graphsc.kernels import weisfeiler_lehman
from graphsc.kernels.weisfeiler_lehman import wl_labels


def by_dictionary(graphs, starts, iterations):
    """Colours by definition; graphs as (nodes, edges), with one list of start labels per graph."""
    rounds = [[label for labels in starts for label in labels]]
    current = starts
    for _ in range(iterations):
        names = {}
        following = []
        for (nodes, edges), labels in zip(graphs, current, strict=True):
            around = [sorted(labels[source] for source, end in edges if end == node) for node in range(nodes)]
            keys = [(labels[node], tuple(around[node])) for node in range(nodes)]
            following.append([names.setdefault(key, len(names)) for key in keys])
        current = following
        rounds.append([label for labels in current for label in labels])
    return rounds


def assert_same_partition(colours, expected):
    pairs = set(zip(colours.tolist(), expected, strict=True))
    assert len(pairs) == len(set(colours.tolist())) == len(set(expected))


def degrees(nodes, edges):
    return [sum(end == node and source != node for source, end in edges) for node in range(nodes)]


@pytest.mark.parametrize("start", ["degree", "constant"])
def test_colours_are_those_of_the_dictionary(make, graph_lists, start):
    @given(graph_lists)
    def check(graphs):
        starts = [degrees(*graph) if start == "degree" else [0] * graph[0] for graph in graphs]
        found = wl_labels(make(graphs, allow_empty=True), 3, start)
        for colours, expected in zip(found, by_dictionary(graphs, starts, 3), strict=True):
            assert_same_partition(colours, expected)

    check()


def test_colours_start_from_all_label_columns(make, graph_lists):
    @given(graph_lists, st.randoms(use_true_random=False))
    def check(graphs, random):
        labels = [[(random.randrange(3), random.randrange(2)) for _ in range(nodes)] for nodes, _ in graphs]
        codes = np.array([pair for row in labels for pair in row], np.int64).reshape(-1, 2)
        table = FeatureTable.of(len(codes), codes, [Column("atom", 3), Column("ring", 2)])
        found = wl_labels(make(graphs, nodes=table, allow_empty=True), 2)
        for colours, expected in zip(found, by_dictionary(graphs, labels, 2), strict=True):
            assert_same_partition(colours, expected)

    check()


def test_small_chunks_give_the_same_colours(monkeypatch):
    graphs = open_collection("motifs:12")
    whole = wl_labels(graphs, 3)
    monkeypatch.setattr(weisfeiler_lehman, "_CHUNK", 10)
    np.testing.assert_array_equal(wl_labels(graphs, 3), whole)


def test_a_graph_has_the_same_colours_in_any_collection():
    graphs = open_collection("mutag")
    whole, part = wl_labels(graphs, 4), wl_labels(graphs[150:160], 4)
    first, last = graphs.node_ptr[150], graphs.node_ptr[160]
    for all_of_them, some in zip(whole, part, strict=True):
        np.testing.assert_array_equal(all_of_them[first:last], some)


def test_no_colour_occurs_in_two_rounds():
    rounds = wl_labels(open_collection("mutag"), 5)
    distinct = [set(colours.tolist()) for colours in rounds]
    assert sum(map(len, distinct)) == len(set.union(*distinct))


@pytest.mark.parametrize(
    ("features", "start"), [("labels", "labels"), ("degree", "degree"), ("constant", "constant")]
)
def test_auto_follows_the_features(features, start):
    graphs = open_collection("mutag").with_features(features)
    np.testing.assert_array_equal(wl_labels(graphs, 1), wl_labels(graphs, 1, start))


def test_labels_are_refused_where_the_features_hold_none():
    with pytest.raises(DataError, match="hold no node labels"):
        wl_labels(open_collection("mutag").with_features("degree"), 1, "labels")


def test_a_negative_number_of_rounds_is_refused(three):
    with pytest.raises(ConfigError, match="iterations must be 0 or more"):
        wl_labels(three, -1)


def test_a_directed_edge_affects_its_destination_only(make):
    (_, after) = wl_labels(make([(2, [(0, 1)]), (1, [])]), 1, "constant")
    assert after[0] == after[2] != after[1]
