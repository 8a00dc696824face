"""The Jensen-Shannon estimate against a loop over all pairs of a node and a graph."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import jensen_shannon
from graphsc.losses import mutual_information as jsd

LOG2 = math.log(2)


def rows(count, d, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(count, d, generator=generator, dtype=torch.float64)


def by_loop(local, global_, graph):
    """E_neg - E_pos, pair by pair, as the equation has it."""
    positive = negative = 0.0
    n, graphs = len(local), len(global_)
    for i in range(n):
        for b in range(graphs):
            r = sum(x * y for x, y in zip(local[i].tolist(), global_[b].tolist(), strict=True))
            if b == graph[i]:
                positive += LOG2 - math.log1p(math.exp(-r))
            else:
                negative += math.log1p(math.exp(-r)) + r - LOG2
    return (negative / (n * (graphs - 1)) if graphs > 1 else 0.0) - positive / n


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=6).filter(any), st.integers(1, 4), st.integers(0, 1000)
)
def test_it_is_the_loop_over_all_pairs(sizes, d, seed):
    """Graphs of any number of nodes, none among them, and a batch of one."""
    graph = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    local, global_ = rows(len(graph), d, seed), rows(len(sizes), d, seed + 1)
    assert jensen_shannon(local, global_, graph).item() == pytest.approx(
        by_loop(local, global_, graph.tolist()), abs=1e-10
    )


@pytest.mark.parametrize("graphs", [1, 3])
def test_the_gradient_is_right(graphs):
    graph = torch.tensor([0, 2, 1, 0, 1]) % graphs
    local, global_ = rows(5, 3, 0).requires_grad_(), rows(graphs, 3, 1).requires_grad_()
    assert gradcheck(lambda one, other: jensen_shannon(one, other, graph), (local, global_))


def test_the_gradient_is_that_of_the_equation_recorded_step_by_step():
    """A second way to the gradient: autograd over dense pairs, with a scale in front."""
    graph = torch.tensor([0, 0, 1, 2, 2, 2])
    local, global_ = rows(6, 4, 2).requires_grad_(), rows(3, 4, 3).requires_grad_()
    scores = local @ global_.T
    own = torch.nn.functional.one_hot(graph, 3).bool()
    softplus = torch.nn.functional.softplus
    positive = (LOG2 - softplus(-scores))[own].sum() / 6
    negative = (softplus(-scores) + scores - LOG2)[~own].sum() / (6 * 2)
    expected = torch.autograd.grad(3.0 * (negative - positive), (local, global_))
    found = torch.autograd.grad(3.0 * jensen_shannon(local, global_, graph), (local, global_))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_many_scores_are_taken_a_part_at_a_time(monkeypatch):
    graph = torch.arange(4).repeat_interleave(5)
    local, global_ = rows(20, 3, 0).requires_grad_(), rows(4, 3, 1).requires_grad_()
    whole = torch.autograd.grad(jensen_shannon(local, global_, graph), (local, global_))
    monkeypatch.setattr(jsd, "AT_ONCE", 28)  # 7 nodes, so that the last part is smaller
    assert jensen_shannon(local, global_, graph).item() == pytest.approx(
        by_loop(local, global_, graph.tolist()), abs=1e-10
    )
    parts = torch.autograd.grad(jensen_shannon(local, global_, graph), (local, global_))
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other)


def test_scores_of_zero_say_nothing():
    assert jensen_shannon(torch.zeros(4, 2), torch.ones(2, 2), torch.tensor([0, 0, 1, 1])).item() == (
        pytest.approx(0.0, abs=1e-6)
    )


def test_graphs_told_apart_reach_the_bound():
    directions = 100.0 * (2 * torch.eye(3) - 1)
    graph = torch.tensor([0, 1, 1, 2])
    assert jensen_shannon(directions[graph], torch.eye(3), graph).item() == pytest.approx(-2 * LOG2)


def test_large_own_scores_do_not_drown_the_others():
    """All pairs minus own ones would lose the others here, in single precision."""
    graph = torch.tensor([0, 1])
    local = torch.tensor([[1e9, 1.0], [1.0, 1e9]])
    # Own scores 1e9 (softplus(-R) = 0), others 1: softplus(1) - 2 log 2.
    expected = math.log1p(math.e) - 2 * LOG2
    assert jensen_shannon(local, torch.eye(2), graph).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_extreme_scores_have_finite_gradients(scale):
    graph = torch.tensor([0, 1, 1])
    local = rows(3, 2, 0, scale).float().requires_grad_()
    global_ = rows(2, 2, 1, scale).float().requires_grad_()
    loss = jensen_shannon(local, global_, graph)
    loss.backward()
    for value in (loss, local.grad, global_.grad):
        assert torch.isfinite(value).all()


def test_no_nodes_cost_nothing():
    global_ = torch.ones(2, 3, requires_grad=True)
    loss = jensen_shannon(torch.zeros(0, 3), global_, torch.zeros(0, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    assert not global_.grad.any()
