"""Batches against PyG's own batching, and joined batches."""

from dataclasses import fields, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Batch, Data

from graphsc.core.errors import DataError
from graphsc.data import batch as module
from graphsc.data.batch import GraphBatch, first_graphs, join
from graphsc.data.columns import Column, FeatureTable


def gather(collection, rows):
    return GraphBatch.gather(collection, np.array(rows, dtype=np.int64))


def one_hot(value, width):
    return [float(value == k) for k in range(width)]


def dense_row(collection, graph, node):
    """The features of one node, block by block as the scheme names them."""
    row = int(collection.node_ptr[graph]) + node
    categorical, floats = [], []
    for block in collection.features.name.split("+"):
        if block == "labels":
            for k, column in enumerate(collection.nodes.columns):
                categorical += one_hot(int(collection.nodes.codes[row, k]), column.cardinality)
        elif block.startswith("degree"):
            cap = int(block.partition(":")[2] or 64)
            part = slice(collection.edge_ptr[graph], collection.edge_ptr[graph + 1])
            ends = collection.edge_index[:, part].T.tolist()
            degree = sum(1 for source, destination in ends if destination == node and source != node)
            categorical += one_hot(min(degree, cap), cap + 1)
        elif block == "constant":
            categorical += [1.0]
        else:
            floats = collection.nodes.floats[row].tolist()
    return categorical + floats


def to_data(collection, graph):
    """One graph as PyG has it, made by a loop over its nodes."""
    nodes = int(collection.node_ptr[graph + 1] - collection.node_ptr[graph])
    part = slice(collection.edge_ptr[graph], collection.edge_ptr[graph + 1])
    x = torch.tensor([dense_row(collection, graph, node) for node in range(nodes)])
    data = Data(
        x=x.reshape(nodes, collection.features.width),
        edge_index=torch.from_numpy(collection.edge_index[:, part].astype(np.int64)),
        edge_attr=torch.cat(
            [
                torch.from_numpy(collection.edges.codes[part].astype(np.float32)),
                torch.from_numpy(np.array(collection.edges.floats[part])),
            ],
            dim=1,
        ),
        num_nodes=nodes,
    )
    if collection.labels is not None:
        data.y = torch.from_numpy(collection.labels[graph : graph + 1].copy())
    return data


def same_as_pyg(collection, rows):
    """With the compiled loops, where there are any, and without them."""
    theirs = Batch.from_data_list([to_data(collection, row) for row in rows])
    equals_batch_of_pyg(collection, rows, theirs)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "use_compiled", lambda: False)
        equals_batch_of_pyg(collection, rows, theirs)


def equals_batch_of_pyg(collection, rows, theirs):
    ours = gather(collection, rows)
    assert ours.num_graphs == theirs.num_graphs
    assert ours.num_nodes == theirs.num_nodes
    assert torch.equal(ours.ptr, theirs.ptr)
    assert torch.equal(ours.batch, theirs.batch)
    assert torch.equal(ours.x, theirs.x)
    # PyG keeps our order of edges, so equality is of rows and not only of sets.
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert (ours.rowptr.dtype, ours.source.dtype, ours.destination.dtype) == (torch.int32,) * 3
    assert torch.equal(ours.edge_batch, theirs.batch[theirs.edge_index[1]])
    if ours.edge_attr is not None:
        assert torch.equal(ours.edge_attr.float(), theirs.edge_attr)
    if collection.labels is not None:
        assert torch.equal(ours.y.nan_to_num(-1), theirs.y.nan_to_num(-1))
    assert ours.index.tolist() == list(rows)


SCHEMES = [
    "labels",
    "degree",
    "degree:1",
    "constant",
    "attributes",
    "labels+attributes",
    "attributes+labels",
    "degree:2+labels",
    "labels+degree:5+constant+attributes",
    "constant+attributes+degree:3+labels",
]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_a_batch_equals_pygs_under_every_scheme(mixed, scheme):
    same_as_pyg(mixed.with_features(scheme), [3, 0, 1, 4, 2, 0])


@given(st.data())
def test_a_batch_of_any_rows_equals_pygs(mixed, data):
    same_as_pyg(mixed, data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=9)))


@given(st.data())
def test_a_batch_of_any_graphs_equals_pygs(make, graph_lists, data):
    collection = make(data.draw(graph_lists), allow_empty=True, features="degree:3")
    rows = st.lists(st.integers(0, len(collection) - 1), min_size=1, max_size=9)
    same_as_pyg(collection, data.draw(rows))


@pytest.mark.parametrize(("size", "dtype"), [(200, np.uint8), (300, np.uint16), (70_000, np.uint32)])
def test_node_numbers_of_every_width_are_gathered(make, size, dtype):
    collection = make([(2, [(0, 1)]), (size, [(size - 1, 0), (size - 2, size - 1)])], features="constant")
    assert collection.edge_index.dtype == dtype
    same_as_pyg(collection, [1, 0, 1])


def test_rows_are_those_of_a_csr_matrix_by_destination(mixed):
    batch = GraphBatch.of(mixed)
    edges = batch.edge_index.T.tolist()
    for node in range(batch.num_nodes):
        row = batch.source[batch.rowptr[node] : batch.rowptr[node + 1]].tolist()
        assert row == sorted(source for source, destination in edges if destination == node)
    assert batch.in_degree.tolist() == np.bincount([d for _, d in edges], minlength=10).tolist()


def test_types_are_what_the_kernel_and_pyg_read(mixed):
    batch = GraphBatch.of(mixed)
    assert (batch.rowptr.dtype, batch.source.dtype) == (torch.int32, torch.int32)
    assert (batch.codes.dtype, batch.edge_index.dtype, batch.batch.dtype) == (torch.int64,) * 3
    assert (batch.floats.dtype, batch.x.dtype) == (torch.float32, torch.float32)


def test_edges_of_a_graph_lie_together(mixed):
    batch = gather(mixed, [3, 1, 0])
    assert batch.edge_ptr.tolist() == [0, 5, 5, 9]
    assert batch.edge_batch.tolist() == [0] * 5 + [2] * 4


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        (np.array([-1, -2]), [4, 3]),
        (np.array([True, False, False, True, False]), [0, 3]),
        (np.array([3], dtype=np.int32), [3]),
        ([2, 0], [2, 0]),
    ],
)
def test_rows_may_be_any_index_of_a_collection(mixed, rows, expected):
    batch = GraphBatch.gather(mixed, rows)
    assert batch.index.tolist() == expected
    assert torch.equal(batch.edge_index, gather(mixed, expected).edge_index)
    assert torch.equal(batch.ptr, gather(mixed, expected).ptr)


@pytest.mark.parametrize("row", [5, -6])
def test_a_row_out_of_range_is_refused(mixed, row):
    with pytest.raises(IndexError, match=f"graph {row} of 5"):
        gather(mixed, [0, row])


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("end", [0, 1])
def test_an_edge_out_of_range_is_refused(three, monkeypatch, end, compiled):
    if not compiled:
        monkeypatch.setattr(module, "use_compiled", lambda: False)
    edge_index = three.edge_index.copy()
    edge_index[end, 7] = 2  # of the second graph, which has two nodes
    with pytest.raises(DataError, match="graph 1 has an edge out of range"):
        gather(replace(three, edge_index=edge_index), [2, 1])


def test_no_rows_make_an_empty_batch(mixed):
    batch = gather(mixed, [])
    assert (batch.num_graphs, batch.num_nodes, batch.num_edges) == (0, 0, 0)
    assert batch.x.shape == (0, mixed.features.width)
    assert batch.edge_index.shape == (2, 0)


def test_empty_graphs_alone_make_a_batch_without_nodes(mixed):
    batch = gather(mixed, [1, 1])
    assert (batch.num_graphs, batch.num_nodes, batch.ptr.tolist()) == (2, 0, [0, 0, 0])


def test_a_batch_copies_its_row_numbers(mixed):
    rows = np.array([0, 3])
    batch = GraphBatch.gather(mixed, rows)
    rows[:] = 4
    assert batch.index.tolist() == [0, 3]


def test_changing_a_batch_leaves_the_collection_alone(mixed):
    before = mixed.content_hash
    batch = GraphBatch.of(mixed)
    for tensor in (
        batch.codes,
        batch.floats,
        batch.source,
        batch.edge_codes,
        batch.edge_floats,
        batch.y,
    ):
        tensor.zero_()
    assert replace(mixed).content_hash == before


class TestEdgeAttributes:
    def graph(self, make, codes, floats):
        table = FeatureTable.of(
            2,
            np.array([[1], [0]]) if codes else None,
            [Column("bond", 2)] if codes else (),
            np.array([[0.5], [1.5]]) if floats else None,
        )
        return GraphBatch.of(make([(2, [(0, 1), (1, 0)])], edges=table))

    def test_codes_alone_stay_integers(self, make):
        batch = self.graph(make, codes=True, floats=False)
        assert batch.edge_attr.tolist() == [[0], [1]]
        assert batch.edge_attr.dtype == torch.int64

    def test_floats_alone(self, make):
        assert self.graph(make, codes=False, floats=True).edge_attr.tolist() == [[1.5], [0.5]]

    def test_codes_and_floats_together(self, make):
        assert self.graph(make, codes=True, floats=True).edge_attr.tolist() == [[0, 1.5], [1, 0.5]]

    def test_neither(self, make):
        assert self.graph(make, codes=False, floats=False).edge_attr is None


class TestReplacedRows:
    def test_dense_features_have_them_in_place_and_no_others_change(self, mixed):
        batch = gather(mixed, [0, 3])
        noise = torch.arange(2 * mixed.features.width, dtype=torch.float32).reshape(2, -1)
        noisy = replace(batch, replaced=torch.tensor([5, 1]), replacement=noise)
        expected = batch.x.tolist()
        expected[5], expected[1] = noise[0].tolist(), noise[1].tolist()
        assert noisy.dense_x().tolist() == expected
        assert noisy.x.tolist() == expected


class TestDevice:
    def test_every_tensor_moves(self, mixed):
        batch = GraphBatch.of(mixed)
        batch = replace(batch, replaced=torch.tensor([0]), replacement=batch.x[:1])
        moved = batch.to("meta")
        tensors = {name: value for name, value in vars(moved).items() if isinstance(value, torch.Tensor)}
        assert {tensor.device.type for tensor in tensors.values()} == {"meta"}
        assert {"codes", "source", "edge_codes", "y", "index", "replaced", "replacement"} <= set(tensors)
        assert moved.device.type == "meta"

    def test_other_fields_are_kept(self, mixed):
        batch = replace(GraphBatch.of(mixed), sorted_sources=False)
        moved = batch.to("cpu")
        assert (moved.features, moved.undirected, moved.sorted_sources) == (mixed.features, False, False)
        assert torch.equal(moved.x, batch.x)


# Joined batches


def test_parts_of_a_joined_batch_are_left_alone(mixed):
    part = GraphBatch.of(mixed)
    before = (part.source.clone(), part.rowptr.clone(), part.ptr.clone())
    join([part, part])
    assert all(torch.equal(a, b) for a, b in zip(before, (part.source, part.rowptr, part.ptr), strict=True))


def test_joining_parts_equals_gathering_all(mixed):
    rows = np.array([3, 0, 1, 4, 2, 0])
    whole = GraphBatch.gather(mixed, rows)
    joined = join([GraphBatch.gather(mixed, part) for part in np.split(rows, [1, 4])])
    for name in ("codes", "floats", "rowptr", "source", "ptr", "edge_codes", "edge_floats", "index"):
        assert torch.equal(getattr(whole, name), getattr(joined, name)), name
    assert torch.equal(torch.nan_to_num(whole.y, nan=-1), torch.nan_to_num(joined.y, nan=-1))
    assert torch.equal(whole.edge_index, joined.edge_index)


def test_replaced_rows_and_weights_move_with_their_graphs(three):
    batch = GraphBatch.of(three)
    noise = torch.randn(1, batch.features.width)
    noisy = replace(batch, replaced=torch.tensor([2]), replacement=noise)
    weighted = replace(batch, edge_weight=torch.full((batch.num_edges,), 0.5))
    joined = join([batch, noisy, weighted])
    assert torch.equal(joined.dense_x()[batch.num_nodes + 2], noise[0])
    assert torch.equal(joined.dense_x()[: batch.num_nodes], batch.dense_x())
    expected = torch.cat([torch.ones(2 * batch.num_edges), torch.full((batch.num_edges,), 0.5)])
    assert torch.equal(joined.edge_weight, expected)


def test_the_first_graphs_of_a_batch_are_the_batch_of_the_first_graphs(mixed):
    for count in range(1, len(mixed) + 1):
        part, expected = first_graphs(GraphBatch.of(mixed), count), GraphBatch.of(mixed[:count])
        for item in fields(GraphBatch):
            value, other = getattr(part, item.name), getattr(expected, item.name)
            if isinstance(other, torch.Tensor):
                assert torch.equal(value.nan_to_num(-1), other.nan_to_num(-1)), item.name
            elif item.name != "integer_labels":  # of the whole collection
                assert value == other, item.name
