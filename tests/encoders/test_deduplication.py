"""Which nodes share a row, against neighbourhood trees written out as nested tuples."""

from dataclasses import replace

import pytest
import torch

from graphsc.data.batch import GraphBatch, join
from graphsc.encoders.deduplication import NodeClasses, deduplicate_layers, expand_rows


def trees(batch: GraphBatch, edges: torch.Tensor, depth: int) -> list[list[object]]:
    """The terms of each layer's sum, node by node: those of neighbours and of itself, and `edges`."""
    known: list[object] = [tuple(row) for row in batch.codes.tolist()]
    found = []
    for _ in range(depth):
        terms: list[list[str]] = [[repr(own)] for own in known]
        for source, destination in batch.edge_index.T.tolist():
            terms[destination].append(repr(known[source]))
        known = [(sorted(own), row) for own, row in zip(terms, edges.tolist(), strict=True)]
        found.append(known)
    return found


def same(one: list[object], other: list[object]) -> bool:
    """Whether the two lists group the same positions."""
    pairs = {(repr(left), repr(right)) for left, right in zip(one, other, strict=True)}
    return len(pairs) == len({repr(left) for left in one}) == len({repr(right) for right in other})


@pytest.fixture
def batch(make_collection):
    return GraphBatch.of(make_collection(3, graphs=30))


@pytest.fixture
def edges(batch):
    return torch.stack([batch.in_degree % 2, torch.ones(batch.num_nodes)], 1)


def test_nodes_share_a_row_if_and_only_if_their_trees_are_equal(batch, edges):
    start, layers = deduplicate_layers(batch, edges, 4, [batch.num_nodes], shared_layers=4)
    assert same(start.of_node.tolist(), batch.codes.tolist())
    for rows, expected in zip(layers, trees(batch, edges, 4), strict=True):
        assert same(rows.of_node.tolist(), expected)
    assert len(layers[0].counts) < batch.num_nodes


def test_a_row_refers_to_its_neighbours_rows_in_the_previous_layer(batch, edges):
    start, layers = deduplicate_layers(batch, edges, 3, [batch.num_nodes], shared_layers=3)
    before = start.of_node.tolist()
    for rows in layers:
        rowptr, source = rows.adjacency.rowptr.tolist(), rows.adjacency.source.tolist()
        for node, row in enumerate(rows.of_node.tolist()):
            own = batch.source[batch.rowptr[node] : batch.rowptr[node + 1]].tolist() + [node]
            assert sorted(before[other] for other in own) == sorted(source[rowptr[row] : rowptr[row + 1]])
            assert rows.edges[row].tolist() == edges[node].tolist()
        assert rows.counts.tolist() == [rows.of_node.tolist().count(row) for row in range(len(rows.counts))]
        before = rows.of_node.tolist()


def test_nodes_of_different_parts_never_share_a_row(batch, edges):
    parts = [batch.num_nodes, batch.num_nodes]
    start, layers = deduplicate_layers(
        join([batch, batch]), torch.cat([edges, edges]), 2, parts, shared_layers=2
    )
    for of_node, sizes in [(start.of_node, None), *((rows.of_node, rows.parts) for rows in layers)]:
        one, other = (set(part.tolist()) for part in of_node.split(parts))
        assert max(one) < min(other)
        assert sizes is None or sizes == [len(one), len(other)]


def test_layers_after_the_shared_ones_have_one_row_per_node(batch, edges):
    _, layers = deduplicate_layers(batch, edges, 3, [batch.num_nodes], shared_layers=1)
    assert [rows.of_node is None for rows in layers] == [False, True, True]
    assert layers[2].adjacency.rows == batch.num_nodes


def test_edge_weights_disable_sharing_and_self_loops_have_weight_one(batch, edges):
    weight = torch.rand(batch.num_edges)
    start, layers = deduplicate_layers(
        replace(batch, edge_weight=weight), edges, 1, [batch.num_nodes], shared_layers=1
    )
    (rows,) = layers
    assert start is None
    assert rows.of_node is None
    dense = torch.eye(batch.num_nodes)
    dense[batch.destination.long(), batch.source.long()] += weight
    found = torch.zeros_like(dense)
    row = torch.repeat_interleave(torch.arange(batch.num_nodes), rows.adjacency.rowptr.diff().long())
    found.index_put_((row, rows.adjacency.source.long()), rows.weight, accumulate=True)
    torch.testing.assert_close(found, dense)


def test_a_replaced_node_has_its_own_row(batch, edges):
    noisy = replace(batch, replaced=torch.tensor([0, 5]), replacement=torch.zeros(2, batch.features.width))
    start, _ = deduplicate_layers(noisy, edges, 1, [batch.num_nodes], shared_layers=1)
    for node in (0, 5):
        assert (start.of_node == start.of_node[node]).sum() == 1


def test_classes_are_numbered_by_their_first_node():
    classes = NodeClasses.from_keys(torch.tensor([7, -3, 7, 9, -3, 1]))
    assert classes.of_node.tolist() == [0, 1, 0, 2, 1, 3]
    assert classes.first.tolist() == [0, 1, 3, 5]


def test_no_nodes_have_no_classes():
    classes = NodeClasses.from_keys(torch.zeros(0, dtype=torch.int64))
    assert len(classes.first) == len(classes.of_node) == 0


def test_expand_rows_and_its_gradient():
    rows = torch.arange(6.0).view(3, 2).requires_grad_()
    nodes = expand_rows(rows, torch.tensor([2, 0, 2]))
    assert nodes.tolist() == [[4.0, 5.0], [0.0, 1.0], [4.0, 5.0]]
    nodes.sum().backward()
    assert rows.grad.tolist() == [[1.0, 1.0], [0.0, 0.0], [2.0, 2.0]]
