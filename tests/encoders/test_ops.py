"""CSR products and fast CPU layers, against dense products, loops and torch's own layers."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import linear
from torch_geometric.nn import GINConv

from graphsc.encoders import ops
from graphsc.encoders.ops import (
    PADDING_MIN_ROWS,
    Adjacency,
    aggregate,
    dropout,
    edge_mlp,
    embedding_sum,
    fused_sum_relu,
    padded_linear,
)


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
def test_aggregate_equals_pyg_gin_in_value_and_gradient(nodes, edges, seed, undirected):
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
def test_aggregate_gradient_with_weights(undirected):
    index = random_edges(6, 9, 3, undirected)
    adjacency = adjacency_of(index, 6, undirected)
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(index.shape[1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: aggregate(adjacency, x, w), (x, weight))


def test_aggregate_gradient_on_a_directed_graph():
    adjacency = adjacency_of(torch.tensor([[0, 0, 1, 2], [1, 2, 2, 0]]), 3)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: aggregate(adjacency, x), (x,))


def test_aggregate_multiplies_messages_by_weights():
    # Edges 0->1 (weight 2), 2->1 (weight 3): node 1 receives 2 x_0 + 3 x_2.
    adjacency = adjacency_of(torch.tensor([[0, 2], [1, 1]]), 3)
    x = torch.tensor([[1.0], [10.0], [100.0]])
    assert aggregate(adjacency, x, torch.tensor([2.0, 3.0])).tolist() == [[0.0], [302.0], [0.0]]


def test_a_directed_graph_is_not_treated_as_symmetric():
    # One edge 0 -> 1. The gradient of node 1's sum must reach node 0 and no other.
    adjacency = adjacency_of(torch.tensor([[0], [1]]), 2)
    x = torch.zeros(2, 1, requires_grad=True)
    aggregate(adjacency, x)[1].sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1.0], [0.0]]


def test_aggregate_without_edges_is_zero():
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


def test_aggregate_of_codes_is_a_one_hot_product():
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


def test_aggregate_without_codes_is_zero():
    """Graphs whose nodes have only float features."""
    adjacency = Adjacency.of_codes(torch.zeros(4, 0, dtype=torch.int64), 3)
    assert torch.equal(aggregate(adjacency, torch.ones(3, 2)), torch.zeros(4, 2))


def test_gradient_of_weights_with_unsorted_sources():
    """Row 2 has its sources in descending order, one of them twice."""
    adjacency = Adjacency(torch.tensor([0, 1, 1, 4]).int(), torch.tensor([2, 1, 0, 1]).int(), 3)
    x = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x, w: aggregate(adjacency, x, w), (x, weight))


@pytest.mark.parametrize("columns", [1, 3])
def test_embedding_sum_equals_the_one_hot_product(columns):
    generator = torch.Generator().manual_seed(0)
    # Column k has codes 5 k to 5 k + 4, and its last code is unused.
    codes = torch.randint(0, 4, (20, columns), generator=generator) + 5 * torch.arange(columns)
    weight = torch.randn(5 * columns, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    factor = torch.randn(20, 4, generator=generator, dtype=torch.float64)
    expected = torch.nn.functional.one_hot(codes, 5 * columns).double().sum(1) @ weight
    result = embedding_sum(codes, weight)
    torch.testing.assert_close(result, expected)
    (ours,) = torch.autograd.grad((result * factor).sum(), weight)
    (theirs,) = torch.autograd.grad((expected * factor).sum(), weight)
    torch.testing.assert_close(ours, theirs)
    assert not ours[4].any()


@pytest.mark.parametrize(("nodes", "columns"), [(0, 1), (3, 0), (0, 0)])
def test_embedding_sum_of_no_codes_is_zero(nodes, columns):
    weight = torch.ones(5, 4, requires_grad=True)
    result = embedding_sum(torch.zeros(nodes, columns, dtype=torch.int64), weight)
    assert result.shape == (nodes, 4)
    result.sum().backward()
    assert not result.any()
    assert not weight.grad.any()


def dense_and_sparse(symmetric, nodes=6):
    """A random 0/1 matrix without a diagonal, dense and as rows of sources."""
    generator = torch.Generator().manual_seed(3)
    dense = (torch.rand(nodes, nodes, generator=generator) < 0.4).double().fill_diagonal_(0)
    if symmetric:
        dense = torch.maximum(dense, dense.T)
    rowptr = torch.zeros(nodes + 1, dtype=torch.int32)
    rowptr[1:] = dense.sum(1).cumsum(0)
    return dense, Adjacency(rowptr, dense.nonzero()[:, 1].int(), nodes, symmetric)


def random_inputs(nodes=6, width=3):
    generator = torch.Generator().manual_seed(4)
    x = torch.randn(nodes, width, generator=generator, dtype=torch.float64, requires_grad=True)
    return x, torch.randn(width, generator=generator, dtype=torch.float64, requires_grad=True)


@pytest.mark.parametrize("own", [1.0, 1.3])
@pytest.mark.parametrize("symmetric", [True, False])
def test_fused_sum_relu_equals_the_dense_formula(symmetric, own):
    dense, adjacency = dense_and_sparse(symmetric)
    x, bias = random_inputs()
    weights = torch.randn(6, 3, generator=torch.Generator().manual_seed(5), dtype=torch.float64)
    expected = (own * x + dense @ x + bias).clamp(min=0)
    result = fused_sum_relu(x, adjacency, None, bias, own=own)
    torch.testing.assert_close(result, expected)
    torch.testing.assert_close(
        torch.autograd.grad((result * weights).sum(), (x, bias)),
        torch.autograd.grad((expected * weights).sum(), (x, bias)),
    )


def test_fused_sum_relu_with_edge_weights():
    dense, adjacency = dense_and_sparse(symmetric=False)
    x, bias = random_inputs()
    weight = torch.rand(len(adjacency.source), dtype=torch.float64, requires_grad=True)
    weighted = torch.zeros_like(dense).masked_scatter(dense.bool(), weight)
    torch.testing.assert_close(
        fused_sum_relu(x, adjacency, weight, bias), (x + weighted @ x + bias).clamp(min=0)
    )
    assert torch.autograd.gradcheck(lambda *a: fused_sum_relu(a[0], adjacency, a[1], a[2]), (x, weight, bias))


def test_fused_sum_relu_of_half_precision_and_a_float_bias_is_float():
    _, adjacency = dense_and_sparse(symmetric=True)
    x, bias = random_inputs()
    result = fused_sum_relu(x.bfloat16(), adjacency, None, bias.float())
    assert result.dtype is torch.float32


def test_fused_sum_relu_does_not_modify_its_inputs():
    _, adjacency = dense_and_sparse(symmetric=True)
    x, bias = random_inputs()
    before = x.detach().clone(), bias.detach().clone()
    fused_sum_relu(x, adjacency, None, bias).sum().backward()
    assert torch.equal(x, before[0])
    assert torch.equal(bias, before[1])


def test_fused_sum_relu_without_edges():
    x, bias = random_inputs()
    empty = Adjacency(torch.zeros(7, dtype=torch.int32), torch.zeros(0, dtype=torch.int32), 6, True)
    torch.testing.assert_close(fused_sum_relu(x, empty, None, bias), (x + bias).clamp(min=0))


@pytest.mark.parametrize("rows", [1, PADDING_MIN_ROWS, 333])
@pytest.mark.parametrize(("inputs", "outputs"), [(300, 600), (600, 300), (7, 13), (32, 64), (1, 1)])
def test_padded_linear_equals_linear_in_value_and_gradient(rows, inputs, outputs):
    generator = torch.Generator().manual_seed(rows)
    x, weight, bias, upstream = (
        torch.randn(*shape, generator=generator)
        for shape in ((rows, inputs), (outputs, inputs), (outputs,), (rows, outputs))
    )
    actual, expected = [], []
    for function, into in ((padded_linear, actual), (linear, expected)):
        leaves = [value.clone().requires_grad_() for value in (x, weight, bias)]
        result = function(*leaves)
        # As in a layer: an operation on the rows, then a ReLU.
        (result * 1.0).relu().mul(upstream).sum().backward()
        into += [result.detach(), *(value.grad for value in leaves)]
    for ours, theirs in zip(actual, expected, strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_padded_linear_rows_start_at_multiples_of_64_bytes():
    result = padded_linear(torch.randn(PADDING_MIN_ROWS, 600), torch.randn(300, 600), torch.zeros(300))
    assert result.shape == (PADDING_MIN_ROWS, 300)
    assert result.stride() == (304, 1)


def test_an_unpadded_result_can_be_modified_in_place():
    weight = torch.randn(600, 300, requires_grad=True)
    padded_linear(torch.randn(PADDING_MIN_ROWS, 300), weight, torch.zeros(600)).relu_().sum().backward()
    assert weight.grad is not None


def test_padded_linear_of_an_input_without_gradient():
    weight = torch.randn(300, 600, requires_grad=True)
    padded_linear(torch.randn(PADDING_MIN_ROWS, 600), weight, torch.zeros(300)).sum().backward()
    assert weight.grad.shape == (300, 600)


def test_padded_linear_of_other_types_and_autocast_is_plain():
    x, weight, bias = (
        torch.randn(PADDING_MIN_ROWS, 300).double(),
        torch.randn(300, 300).double(),
        torch.zeros(300).double(),
    )
    assert padded_linear(x, weight, bias).is_contiguous()
    with torch.autocast("cpu", torch.bfloat16):
        assert padded_linear(x.float(), weight.float(), bias.float()).dtype == torch.bfloat16


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_dropout_rate_and_scale(rate):
    torch.manual_seed(0)
    rows = dropout(torch.full((500, 401), 3.0), rate)
    dropped = rows == 0
    # Five standard deviations of a proportion over 200,500.
    assert dropped.float().mean().item() == pytest.approx(rate, abs=5 * (rate * (1 - rate) / 200_500) ** 0.5)
    torch.testing.assert_close(
        rows[~dropped], torch.full_like(rows[~dropped], 3 / (1 - rate)), rtol=1e-4, atol=0
    )
    # The four entries that share a draw are independent: they agree as often as by chance.
    bits = dropped.flatten()[:200_000].view(-1, 4)
    agree = (bits[:, 0] == bits[:, 1]).float().mean().item()
    assert agree == pytest.approx(rate**2 + (1 - rate) ** 2, abs=0.012)


def test_dropout_gradient():
    x = torch.ones(7, 5, requires_grad=True)
    torch.manual_seed(1)
    rows = dropout(x, 0.5)
    rows.sum().backward()
    torch.testing.assert_close(x.grad, rows.detach())


def test_dropout_depends_on_the_seed_and_rate_zero_changes_nothing():
    x = torch.randn(9, 3)
    torch.manual_seed(2)
    one = dropout(x, 0.5)
    torch.manual_seed(2)
    assert torch.equal(one, dropout(x, 0.5))
    assert dropout(x, 0.0) is x


def test_dropout_of_half_precision_and_empty_rows():
    torch.manual_seed(0)
    rows = dropout(torch.ones(100, 10, dtype=torch.bfloat16), 0.5)
    assert rows.dtype == torch.bfloat16
    assert set(rows.flatten().tolist()) == {0.0, 2.0}
    assert dropout(torch.ones(0, 4), 0.5).shape == (0, 4)


def random_edges_and_weights(edges=50, nodes=9, width=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    start, end, weight = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((nodes, width), (nodes, width), (width,))
    )
    source, destination = torch.randint(nodes, (2, edges), generator=generator).int()
    return start, end, weight, source, destination


@pytest.mark.parametrize("chunk", [1, 35, 10**6])
def test_edge_mlp_equals_a_loop_over_edges(monkeypatch, chunk):
    monkeypatch.setattr(ops, "EDGE_CHUNK", chunk)
    start, end, weight, source, destination = random_edges_and_weights()
    expected = [
        sum(
            w * max(a + b, 0)
            for w, a, b in zip(weight.tolist(), start[u].tolist(), end[v].tolist(), strict=True)
        )
        for u, v in zip(source.tolist(), destination.tolist(), strict=True)
    ]
    result = edge_mlp(start, end, weight, source, destination)
    torch.testing.assert_close(result.tolist(), expected)


@pytest.mark.parametrize("chunk", [35, 10**6])
def test_edge_mlp_gradient(monkeypatch, chunk):
    monkeypatch.setattr(ops, "EDGE_CHUNK", chunk)
    *floats, source, destination = random_edges_and_weights()
    assert torch.autograd.gradcheck(lambda *args: edge_mlp(*args, source, destination), floats)


def test_edge_mlp_without_edges_has_zero_gradients():
    *floats, source, destination = random_edges_and_weights(edges=0)
    edge_mlp(*floats, source, destination).sum().backward()
    assert all(not value.grad.any() for value in floats)
