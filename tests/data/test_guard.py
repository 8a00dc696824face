"""Large files, made small: whole-file verification off, blocks of a few bytes."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError
from graphsc.data import storage
from graphsc.data import storage as guard
from graphsc.data import storage as layout
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable

GRAPHS, NODES = 60, 8
TOUCHED, FAR = 30, 3


def set_block(patch, size):
    patch.setattr(guard, "BLOCK", size)
    patch.setattr(storage, "BLOCK", size)
    patch.setattr(layout, "BLOCK", size)
    patch.setattr(storage, "WHOLE_LIMIT", 0)


@pytest.fixture
def large(make, monkeypatch):
    """Rings of eight nodes, in a file of blocks of 64 bytes."""
    set_block(monkeypatch, 64)
    ring = [(i, (i + 1) % NODES) for i in range(NODES)]
    nodes, edges = np.arange(GRAPHS * NODES), np.arange(GRAPHS * NODES)
    return make(
        [(NODES, ring)] * GRAPHS,
        nodes=FeatureTable.of(len(nodes), (nodes % 3)[:, None], [Column("a", 3)], nodes[:, None] / 2),
        edges=FeatureTable.of(len(edges), (edges % 2)[:, None], [Column("b", 2)], edges[:, None] / 4),
        labels=np.arange(GRAPHS),
    )


def span_of(path, name):
    """Where an array lies in the file, by the safetensors specification."""
    content = path.read_bytes()
    length = int.from_bytes(content[:8], "little")
    begin, end = json.loads(content[8 : 8 + length])[name]["data_offsets"]
    return 8 + length + begin, 8 + length + end


def flip(path, *positions):
    content = bytearray(path.read_bytes())
    for position in positions:
        content[position] ^= 0x10
    path.write_bytes(content)


def place(path, name, graph):
    """The middle of the bytes of one graph in one array; the sources half of `edge_index`."""
    begin, end = span_of(path, name)
    if name == "edge_index":
        end = begin + (end - begin) // 2
    return begin + (end - begin) * (2 * graph + 1) // (2 * GRAPHS)


ARRAYS = ["node_codes", "node_floats", "edge_codes", "edge_floats", "edge_index"]

WAYS_TO_TOUCH = {
    "one": lambda c: c[TOUCHED],
    "slice": lambda c: c[TOUCHED : TOUCHED + 1],
    "step": lambda c: c[TOUCHED::100],
    "list": lambda c: c[[0, TOUCHED]],
    "mask": lambda c: c[np.arange(GRAPHS) == TOUCHED],
    "negative": lambda c: c[TOUCHED - GRAPHS],
    "graph": lambda c: c.graph(TOUCHED),
    "graphs": lambda c: list(c.graphs()),
    "batch": lambda c: GraphBatch.gather(c, np.array([TOUCHED])),
    "whole batch": GraphBatch.of,
    "degrees": lambda c: c.degrees,
    "features": lambda c: c.with_features(c.features),
    "named features": lambda c: c.with_features("degree").degrees,
    "concatenate": lambda c: GraphCollection.concatenate([c, c]),
    "describe": lambda c: c.describe(),
    "check": lambda c: c.check(),
    "copy": lambda c: c.__getstate__(),
    "hash": lambda c: replace(c).content_hash,
}


@pytest.fixture
def path(large, tmp_path):
    path = tmp_path / "large.safetensors"
    large.save(path)
    return path


def test_an_undamaged_file_is_whole(large, path):
    opened = GraphCollection.open(path)
    opened.check()
    assert opened == large
    assert opened[TOUCHED:] == large[TOUCHED:]


@pytest.mark.parametrize("array", ARRAYS)
def test_damage_is_noticed_when_its_graph_is_touched_and_not_before(path, large, array):
    flip(path, place(path, array, TOUCHED))
    opened = GraphCollection.open(path)
    assert opened[FAR] == large[FAR]
    with pytest.raises(DamagedFileError, match=r"block \d+ does not match its hash .*convert it again"):
        opened[TOUCHED]


def test_damage_of_the_destinations_is_noticed_too(path):
    begin, end = span_of(path, "edge_index")
    flip(path, place(path, "edge_index", TOUCHED) + (end - begin) // 2)
    with pytest.raises(DamagedFileError):
        GraphCollection.open(path)[TOUCHED]


@pytest.mark.parametrize("way", WAYS_TO_TOUCH)
def test_every_way_to_touch_a_graph_notices(path, way):
    flip(path, place(path, "edge_index", TOUCHED))
    opened = GraphCollection.open(path)
    with pytest.raises(DamagedFileError):
        WAYS_TO_TOUCH[way](opened)


@pytest.mark.parametrize("array", ["node_ptr", "edge_ptr", "labels", "ids"])
def test_what_every_graph_needs_is_verified_at_opening(path, array):
    flip(path, place(path, array, TOUCHED))
    with pytest.raises(DamagedFileError, match="does not match its hash"):
        GraphCollection.open(path)


def test_opening_does_not_read_the_graphs(path, large):
    begin, end = span_of(path, "node_floats")
    flip(path, *range(begin + 64, end - 64))
    assert GraphCollection.open(path).labels.tolist() == large.labels.tolist()


def test_check_looks_again_at_what_was_verified_before(path, large):
    opened = GraphCollection.open(path)
    opened[:]
    with open(path, "r+b") as file:  # damage in place, under the map
        position = place(path, "edge_codes", TOUCHED)
        file.seek(position)
        byte = file.read(1)
        file.seek(position)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(DamagedFileError):
        opened.check()


def test_a_small_file_is_verified_at_opening(path, monkeypatch):
    monkeypatch.setattr(storage, "WHOLE_LIMIT", 10**6)
    flip(path, place(path, "edge_index", TOUCHED))
    with pytest.raises(DamagedFileError, match="does not match its hash"):
        GraphCollection.open(path)


def test_a_truncated_file_is_refused_at_opening(path):
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DamagedFileError):
        GraphCollection.open(path)


@given(data=st.data(), block=st.sampled_from([1, 3, 8, 16, 50]), columns=st.booleans())
def test_any_rows_of_any_graphs_in_blocks_of_any_size(
    make, graph_lists, tmp_path_factory, data, block, columns
):
    graphs = data.draw(graph_lists)
    count = sum(len(edges) for _, edges in graphs)
    edges = FeatureTable.of(count, np.zeros((count, 1), int), [Column("b", 2)], np.ones((count, 1)))
    collection = make(graphs, allow_empty=True, edges=edges if columns else None)
    rows = data.draw(st.lists(st.integers(0, len(graphs) - 1), max_size=5))
    path = tmp_path_factory.mktemp("blocks") / "a.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        set_block(patch, block)
        collection.save(path)
        opened = GraphCollection.open(path)
        assert opened[rows] == collection[rows]
        assert opened == collection


def test_arrays_without_a_byte_at_the_end_of_the_last_block_are_touched_safely(make, tmp_path, monkeypatch):
    set_block(monkeypatch, 8)
    edges = FeatureTable.of(0, np.zeros((0, 1), int), [Column("b", 2)])
    nodes = FeatureTable.of(3, floats=np.ones((3, 2)))  # 24 bytes that are not verified at opening
    collection = make([(1, []), (2, [])], nodes=nodes, edges=edges)
    collection.save(tmp_path / "a.safetensors")
    assert GraphCollection.open(tmp_path / "a.safetensors")[[1]] == collection[[1]]


@given(data=st.data())
def test_no_flip_ever_gives_a_wrong_graph(make, tmp_path_factory, data):
    collection = make([(2, [(0, 1)]), (3, [(2, 1), (1, 0)]), (1, [(0, 0)]), (0, [])], allow_empty=True)
    path = tmp_path_factory.mktemp("flips") / "a.safetensors"
    with pytest.MonkeyPatch.context() as patch:
        set_block(patch, 16)
        collection.save(path)
        flip(path, data.draw(st.integers(0, path.stat().st_size - 1)))
        for row in range(len(collection)):
            with suppress(DamagedFileError):
                assert GraphCollection.open(path)[row] == collection[row]
