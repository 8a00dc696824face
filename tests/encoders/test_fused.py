"""The fused step against dense matrices, in value and gradient."""

import pytest
import torch

from graphsc.encoders.ops import Adjacency, sum_and_activate


def dense_and_sparse(symmetric, nodes=6):
    """A random 0/1 matrix without a diagonal, dense and as rows of sources."""
    generator = torch.Generator().manual_seed(3)
    dense = (torch.rand(nodes, nodes, generator=generator) < 0.4).double().fill_diagonal_(0)
    if symmetric:
        dense = torch.maximum(dense, dense.T)
    rowptr = torch.zeros(nodes + 1, dtype=torch.int32)
    rowptr[1:] = dense.sum(1).cumsum(0)
    return dense, Adjacency(rowptr, dense.nonzero()[:, 1].int(), nodes, symmetric)


def inputs(nodes=6, width=3):
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(nodes, width, generator=generator, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(width, generator=generator, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("own", [1.0, 1.3])
@pytest.mark.parametrize("symmetric", [True, False])
def test_equals_the_dense_formula_in_value_and_gradient(symmetric, own):
    dense, adjacency = dense_and_sparse(symmetric)
    x, bias = inputs()
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    expected = (own * x + dense @ x + bias).clamp(min=0)
    found = sum_and_activate(x, adjacency, None, bias, own=own)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(
        torch.autograd.grad((found * weights).sum(), (x, bias)),
        torch.autograd.grad((expected * weights).sum(), (x, bias)),
    )


def test_weights_of_edges_multiply_and_get_a_gradient():
    dense, adjacency = dense_and_sparse(symmetric=False)
    x, bias = inputs()
    weight = torch.rand(len(adjacency.source), dtype=torch.float64, requires_grad=True)
    weighted = torch.zeros_like(dense).masked_scatter(dense.bool(), weight)
    torch.testing.assert_close(
        sum_and_activate(x, adjacency, weight, bias), (x + weighted @ x + bias).clamp(min=0)
    )
    assert torch.autograd.gradcheck(
        lambda *a: sum_and_activate(a[0], adjacency, a[1], a[2]), (x, weight, bias)
    )


def test_half_precision_is_added_to_a_full_bias_in_full():
    _, adjacency = dense_and_sparse(symmetric=True)
    x, bias = inputs()
    found = sum_and_activate(x.bfloat16(), adjacency, None, bias.float())
    assert found.dtype is torch.float32


def test_inputs_are_left_as_they_are():
    _, adjacency = dense_and_sparse(symmetric=True)
    x, bias = inputs()
    before = x.detach().clone(), bias.detach().clone()
    sum_and_activate(x, adjacency, None, bias).sum().backward()
    assert torch.equal(x, before[0])
    assert torch.equal(bias, before[1])


def test_no_edges_leave_the_node_itself():
    x, bias = inputs()
    empty = Adjacency(torch.zeros(7, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), 6, True)
    torch.testing.assert_close(sum_and_activate(x, empty, None, bias), (x + bias).clamp(min=0))
