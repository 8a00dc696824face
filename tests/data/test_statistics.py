import json

import numpy as np
import pytest

from graphsc.data import statistics
from graphsc.data.arrays import Strings, chunks_of_edges
from graphsc.data.columns import Column, FeatureTable


@pytest.fixture
def described(make):
    """Graph 0: 0-1 twice, 1-2, loop at 2, 3 alone. Graph 1: two loops at 0, 1 alone. Graph 2: 0-1."""
    graphs = [
        (4, [(0, 1), (1, 0), (0, 1), (1, 0), (1, 2), (2, 1), (2, 2)]),
        (2, [(0, 0), (0, 0)]),
        (2, [(0, 1), (1, 0)]),
    ]
    codes = np.array([0, 0, 3, 3, 0, 0, 0, 0])[:, None]
    return make(
        graphs,
        nodes=FeatureTable.of(8, codes, [Column("atom", 5)], np.zeros((8, 2))),
        edges=FeatureTable.of(11, np.zeros((11, 1), int), [Column("bond", 2)]),
        labels=np.array([1.0, np.nan, 1.0]),
        name="by hand",
        notes=["a note"],
    ).describe()


def test_sizes(described):
    assert (described.graphs, described.nodes_min, described.nodes_max) == (3, 2, 4)
    assert described.nodes_mean == pytest.approx(8 / 3)


def test_an_undirected_edge_counts_once_and_so_does_a_loop(described):
    assert described.undirected
    assert described.edges_mean == pytest.approx((4 + 2 + 1) / 3)


def test_directed_edges_count_one_by_one(make):
    assert make([(3, [(0, 1), (1, 0), (1, 2)])]).describe().edges_mean == 3


def test_isolated_nodes_have_no_edge_at_all(described):
    assert described.isolated_nodes == 2


def test_loops(described):
    assert described.self_loops == 3


def test_a_doubled_undirected_edge_is_one_duplicate(described):
    assert described.duplicate_edges == 2  # 0-1 of graph 0 and the loop of graph 1


def test_a_directed_edge_listed_three_times_is_two_duplicates(make):
    measured = make([(2, [(1, 0), (1, 0), (1, 0)]), (2, [(1, 0)])]).describe()
    assert measured.duplicate_edges == 2


def test_label_ids_and_those_in_use(described):
    assert described.node_labels == {"atom": {"ids": 5, "in_use": 2}}
    assert described.edge_labels == {"bond": {"ids": 2, "in_use": 1}}
    assert (described.node_attributes, described.edge_attributes) == (2, 0)


def test_classes_and_missing_labels(described):
    assert (described.tasks, described.classes, described.missing_labels) == (1, {"1": 2}, 1)


def test_features_name_notes(described):
    assert (described.name, described.notes[0]) == ("by hand", "a note")
    assert (described.features, described.feature_width) == ("labels", 5)


def test_classes_go_by_name_where_they_have_one(make):
    collection = make(
        [(1, []), (1, []), (1, [])], labels=np.array([1, 0, 1]), classes={"label": ("no", "yes")}
    )
    assert collection.describe().classes == {"no": 1, "yes": 2}


def test_labels_that_differ_little_are_distinct_classes(make):
    labels = np.array([1_000_001, 1_000_002, 0.1, -2.5])
    classes = make([(1, [])] * 4, labels=labels).describe().classes
    assert classes == {"1000001": 1, "1000002": 1, "0.1": 1, "-2.5": 1}


def test_a_label_of_many_values_has_no_classes(make):
    assert make([(1, [])] * 101, labels=np.arange(101)).describe().classes == {}


def test_many_tasks_have_no_classes(mixed):
    measured = mixed.describe()
    assert (measured.tasks, measured.classes, measured.missing_labels) == (2, {}, 3)


def test_no_labels(make):
    measured = make([(1, [])]).describe()
    assert (measured.tasks, measured.classes, measured.missing_labels) == (0, {}, 0)


def test_chunks_change_nothing(mixed, monkeypatch):
    whole = mixed.describe()
    monkeypatch.setattr(statistics, "chunks_of_edges", lambda ptr: chunks_of_edges(ptr, 1))
    assert mixed.describe() == whole


def test_an_empty_selection_can_be_described(mixed):
    measured = mixed[[]].describe()
    assert (measured.graphs, measured.nodes_mean, measured.edges_mean) == (0, 0, 0)


def test_statistics_are_plain_json(mixed):
    stored = json.loads(json.dumps(mixed.describe().to_json()))
    assert stored["graphs"] == 5
    assert stored["content_hash"] == mixed.content_hash


def test_bytes_are_those_of_the_arrays(make):
    # Two pointers of 3 x 8 bytes, 2 x 2 node ids of one byte; string ids do not count.
    collection = make([(2, [(0, 1), (1, 0)]), (1, [])], ids=Strings.of(["a", "b"]))
    assert collection.describe().bytes == 2 * 3 * 8 + 2 * 2
