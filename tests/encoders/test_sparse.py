"""The CSR aggregation against dense products and PyG's own layer."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_geometric.nn import GINConv

from graphsc.encoders.ops import Adjacency, aggregate


def adjacency_of(edges: torch.Tensor, nodes: int, symmetric: bool = False) -> Adjacency:
    """CSR by destination from a 2 x E list, built with a plain sort."""
    order = torch.argsort(edges[1] * nodes + edges[0])
    counts = torch.bincount(edges[1], minlength=nodes)
    rowptr = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)])
    return Adjacency(rowptr.int(), edges[0][order].int(), nodes, symmetric)


def random_edges(nodes: int, edges: int, seed: int, undirected: bool) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    index = torch.randint(nodes, (2, edges), generator=generator)
    if undirected:
        index = torch.cat([index, index.flip(0)], dim=1)
    order = torch.argsort(index[1] * nodes + index[0])
    return index[:, order]


@settings(max_examples=40, deadline=None)
@given(
    nodes=st.integers(1, 12),
    edges=st.integers(0, 40),
    seed=st.integers(0, 2**20),
    undirected=st.booleans(),
)
def test_equals_pyg_gin_in_value_and_gradient(nodes, edges, seed, undirected):
    index = random_edges(nodes, edges, seed, undirected)
    x = torch.randn(nodes, 5, generator=torch.Generator().manual_seed(seed), requires_grad=True)
    cotangent = torch.randn(nodes, 5, generator=torch.Generator().manual_seed(seed + 1))
    ours = x + aggregate(adjacency_of(index, nodes, undirected), x)
    (ours_gradient,) = torch.autograd.grad(ours, x, cotangent)
    theirs = GINConv(torch.nn.Identity())(x, index)
    (their_gradient,) = torch.autograd.grad(theirs, x, cotangent)
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(ours_gradient, their_gradient, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("undirected", [False, True])
def test_weighted_gradients_pass_gradcheck(undirected):
    index = random_edges(6, 9, 3, undirected)
    adjacency = adjacency_of(index, 6, undirected)
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(index.shape[1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: aggregate(adjacency, x, w), (x, weight))


def test_unweighted_gradient_passes_gradcheck_on_a_directed_graph():
    adjacency = adjacency_of(torch.tensor([[0, 0, 1, 2], [1, 2, 2, 0]]), 3)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: aggregate(adjacency, x), (x,))


def test_weights_multiply_messages():
    # Edges 0->1 (weight 2), 2->1 (weight 3): node 1 receives 2 x_0 + 3 x_2.
    adjacency = adjacency_of(torch.tensor([[0, 2], [1, 1]]), 3)
    x = torch.tensor([[1.0], [10.0], [100.0]])
    assert aggregate(adjacency, x, torch.tensor([2.0, 3.0])).tolist() == [[0.0], [302.0], [0.0]]


def test_directed_graph_is_not_taken_for_symmetric():
    # One edge 0 -> 1. The gradient of node 1's sum must reach node 0 and no other.
    adjacency = adjacency_of(torch.tensor([[0], [1]]), 2)
    x = torch.zeros(2, 1, requires_grad=True)
    aggregate(adjacency, x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0], [0.0]]


def test_no_edges_give_zeros():
    adjacency = adjacency_of(torch.zeros(2, 0, dtype=torch.long), 4)
    x = torch.ones(4, 3, requires_grad=True)
    out = aggregate(adjacency, x)
    out.sum().backward()
    assert torch.equal(out, torch.zeros(4, 3))
    assert torch.equal(x.grad, torch.zeros(4, 3))


def test_transpose_of_a_transpose_is_the_matrix():
    index = random_edges(7, 20, 5, False)
    adjacency = adjacency_of(index, 7)
    dense = torch.zeros(7, 7)
    for source, destination in index.T.tolist():
        dense[destination, source] += 1
    transpose, _ = adjacency.transpose
    torch.testing.assert_close(aggregate(transpose, torch.eye(7)), dense.T)


def test_codes_are_a_one_hot_product():
    codes = torch.tensor([[0, 3], [2, 4], [1, 3]])
    weight = torch.randn(5, 4, requires_grad=True)
    one_hot = torch.zeros(3, 5)
    for row, pair in enumerate(codes.tolist()):
        for code in pair:
            one_hot[row, code] = 1
    ours = aggregate(Adjacency.of_codes(codes, 5), weight)
    torch.testing.assert_close(ours, one_hot @ weight)
    (gradient,) = torch.autograd.grad(ours, weight, torch.ones(3, 4))
    torch.testing.assert_close(gradient, one_hot.T @ torch.ones(3, 4))


def test_no_codes_look_up_zeros():
    """Graphs whose nodes have floats and nothing else."""
    adjacency = Adjacency.of_codes(torch.zeros(4, 0, dtype=torch.int64), 3)
    assert torch.equal(aggregate(adjacency, torch.ones(3, 2)), torch.zeros(4, 2))


def test_gradient_by_weights_is_right_where_sources_do_not_rise():
    """Row 2 holds its sources in falling order, one of them twice."""
    adjacency = Adjacency(torch.tensor([0, 1, 1, 4]).int(), torch.tensor([2, 1, 0, 1]).int(), 3)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: aggregate(adjacency, x, w), (x, weight))
