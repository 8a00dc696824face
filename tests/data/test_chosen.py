"""Chosen graphs behave as a copy of them would, and are none."""

import copy
import pickle

import numpy as np
import pytest

from graphsc.data.batch import GraphBatch
from graphsc.data.collection import subset
from graphsc.data.readers import open_collection

ROWS = [5, 2, 9, 0, 7]


@pytest.fixture(scope="module")
def graphs():
    return open_collection("molecule-like:12")


def assert_same_batch(one, two):
    for name in ("codes", "rowptr", "source", "ptr", "edge_codes", "y", "index"):
        ours, theirs = getattr(one, name), getattr(two, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or bool((ours == theirs).all()), name


def test_batches_are_those_of_a_copy_and_know_their_place_among_the_chosen(graphs):
    some, taken = subset(graphs, ROWS), graphs.take(ROWS)
    assert len(some) == 5
    rows = np.array([4, 1])
    batch = GraphBatch.gather(some, rows)
    assert_same_batch(batch, GraphBatch.gather(taken, rows))
    assert batch.index.tolist() == [4, 1]


def test_no_array_is_copied(graphs):
    some = subset(graphs, ROWS)
    assert np.shares_memory(some.edge_index, graphs.edge_index)
    assert np.shares_memory(some.nodes.codes, graphs.nodes.codes)


def test_counts_slices_statistics_and_files_are_those_of_a_copy(graphs, tmp_path):
    some, taken = subset(graphs, ROWS), graphs.take(ROWS)
    assert (some.num_nodes, some.num_edges) == (taken.num_nodes, taken.num_edges)
    assert some == taken
    assert some[1:3] == taken[1:3]
    assert some[[0, 4]] == taken[[0, 4]]
    assert some[-1] == taken[-1]
    assert some.describe() == taken.describe()
    some.save(tmp_path / "s.safetensors")
    assert open_collection(tmp_path / "s.safetensors") == taken
    with pytest.raises(IndexError):
        some.take([5])


def test_degree_features_are_those_of_a_copy(graphs):
    seen = graphs.with_features("degree:5")
    assert_same_batch(
        GraphBatch.gather(subset(seen, ROWS), np.arange(5)), GraphBatch.gather(seen.take(ROWS), np.arange(5))
    )


def test_chosen_among_the_chosen(graphs):
    assert subset(subset(graphs, ROWS), [3, 1]) == graphs.take([0, 2])


def test_hash_tells_which_graphs_of_which_collection(graphs):
    one = subset(graphs, ROWS).content_hash
    assert one == subset(copy.copy(graphs), ROWS).content_hash
    assert one != subset(graphs, ROWS[::-1]).content_hash
    assert one != subset(graphs[:11], ROWS).content_hash


def test_survives_a_trip_to_another_process(graphs):
    some = pickle.loads(pickle.dumps(subset(graphs, ROWS)))
    assert some == graphs.take(ROWS)
    assert some.content_hash == subset(graphs, ROWS).content_hash
