"""The Jensen-Shannon estimate, cross-entropy of pair scores and ROC AUC, against loops and scikit-learn."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score
from torch.autograd import gradcheck

from graphsc.losses import jensen_shannon, mutual_information, pair_bce, roc_auc

LOG2 = math.log(2)


def rows(count, d, seed, scale=1.0):
    generator = torch.Generator().manual_seed(seed)
    return scale * torch.randn(count, d, generator=generator, dtype=torch.float64)


def jensen_shannon_by_loop(local, global_, graph):
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
def test_jensen_shannon_equals_the_loop(sizes, d, seed):
    """Graphs of any size, empty graphs, and a batch of one."""
    graph = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    local, global_ = rows(len(graph), d, seed), rows(len(sizes), d, seed + 1)
    assert jensen_shannon(local, global_, graph).item() == pytest.approx(
        jensen_shannon_by_loop(local, global_, graph.tolist()), abs=1e-10
    )


@pytest.mark.parametrize("graphs", [1, 3])
def test_jensen_shannon_gradient(graphs):
    graph = torch.tensor([0, 2, 1, 0, 1]) % graphs
    local, global_ = rows(5, 3, 0).requires_grad_(), rows(graphs, 3, 1).requires_grad_()
    assert gradcheck(lambda one, other: jensen_shannon(one, other, graph), (local, global_))


def test_jensen_shannon_gradient_equals_autograd_of_the_equation():
    """A second way to the gradient: autograd over dense pairs, with a scale in front."""
    graph = torch.tensor([0, 0, 1, 2, 2, 2])
    local, global_ = rows(6, 4, 2).requires_grad_(), rows(3, 4, 3).requires_grad_()
    scores = local @ global_.T
    own = torch.nn.functional.one_hot(graph, 3).bool()
    softplus = torch.nn.functional.softplus
    positive = (LOG2 - softplus(-scores))[own].sum() / 6
    negative = (softplus(-scores) + scores - LOG2)[~own].sum() / (6 * 2)
    expected = torch.autograd.grad(3.0 * (negative - positive), (local, global_))
    gradients = torch.autograd.grad(3.0 * jensen_shannon(local, global_, graph), (local, global_))
    for one, other in zip(gradients, expected, strict=True):
        torch.testing.assert_close(one, other)


def test_jensen_shannon_in_chunks(monkeypatch):
    graph = torch.arange(4).repeat_interleave(5)
    local, global_ = rows(20, 3, 0).requires_grad_(), rows(4, 3, 1).requires_grad_()
    whole = torch.autograd.grad(jensen_shannon(local, global_, graph), (local, global_))
    monkeypatch.setattr(mutual_information, "CHUNK_SCORES", 28)  # 7 nodes, so that the last part is smaller
    assert jensen_shannon(local, global_, graph).item() == pytest.approx(
        jensen_shannon_by_loop(local, global_, graph.tolist()), abs=1e-10
    )
    parts = torch.autograd.grad(jensen_shannon(local, global_, graph), (local, global_))
    for one, other in zip(parts, whole, strict=True):
        torch.testing.assert_close(one, other)


def test_jensen_shannon_of_zero_scores_is_zero():
    assert jensen_shannon(torch.zeros(4, 2), torch.ones(2, 2), torch.tensor([0, 0, 1, 1])).item() == (
        pytest.approx(0.0, abs=1e-6)
    )


def test_jensen_shannon_of_separated_graphs_reaches_the_bound():
    directions = 100.0 * (2 * torch.eye(3) - 1)
    graph = torch.tensor([0, 1, 1, 2])
    assert jensen_shannon(directions[graph], torch.eye(3), graph).item() == pytest.approx(-2 * LOG2)


def test_large_positive_scores_do_not_lose_the_negative_ones():
    """All pairs minus the positive ones would lose the negative ones here, in single precision."""
    graph = torch.tensor([0, 1])
    local = torch.tensor([[1e9, 1.0], [1.0, 1e9]])
    # Own scores 1e9 (softplus(-R) = 0), others 1: softplus(1) - 2 log 2.
    expected = math.log1p(math.e) - 2 * LOG2
    assert jensen_shannon(local, torch.eye(2), graph).item() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("scale", [0.0, 1e4])
def test_jensen_shannon_of_extreme_scores_is_finite(scale):
    graph = torch.tensor([0, 1, 1])
    local = rows(3, 2, 0, scale).float().requires_grad_()
    global_ = rows(2, 2, 1, scale).float().requires_grad_()
    loss = jensen_shannon(local, global_, graph)
    loss.backward()
    for value in (loss, local.grad, global_.grad):
        assert torch.isfinite(value).all()


def test_jensen_shannon_without_nodes_is_zero():
    global_ = torch.ones(2, 3, requires_grad=True)
    loss = jensen_shannon(torch.zeros(0, 3), global_, torch.zeros(0, dtype=torch.int64))
    loss.backward()
    assert loss.item() == 0
    assert not global_.grad.any()


SCORES = st.lists(st.integers(-6, 6).map(lambda k: k / 2), max_size=8)


def nll(p):
    return math.log1p(math.exp(-p))


@given(SCORES, SCORES, st.floats(0.1, 3))
def test_pair_bce_equals_the_loop(positive, negative, weight):
    expected = 0.0
    for score in positive:
        expected += nll(score) / len(positive)
    for score in negative:
        expected += weight * nll(-score) / len(negative)
    result = pair_bce(torch.tensor(positive).double(), torch.tensor(negative).double(), weight=weight)
    assert result.item() == pytest.approx(expected, abs=1e-9)


@given(SCORES.filter(len), SCORES.filter(len))
def test_roc_auc_counts_pairs(positive, negative):
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    result = roc_auc(torch.tensor(positive), torch.tensor(negative))
    assert result == pytest.approx(sum(pairs) / len(pairs))


def test_roc_auc_equals_scikit_learn():
    generator = torch.Generator().manual_seed(0)
    positive = torch.randn(300, generator=generator) + 0.5
    negative = torch.randn(500, generator=generator)
    expected = roc_auc_score([1] * 300 + [0] * 500, torch.cat([positive, negative]).numpy())
    assert roc_auc(positive, negative) == pytest.approx(expected)


def test_pair_bce_and_roc_auc_without_negatives():
    scores, none = torch.tensor([1.0, -1.0]), torch.zeros(0)
    assert pair_bce(scores, none).item() == pytest.approx((nll(1) + nll(-1)) / 2)
    assert pair_bce(none, none).item() == 0
    assert roc_auc(scores, none) == 0.5


def test_pair_bce_gradient_is_right_and_finite_for_large_scores():
    scores = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: pair_bce(s[:2], s[2:], weight=2.0), (scores,))
    large = torch.tensor([1e4, -1e4], requires_grad=True)
    pair_bce(large, large).backward()
    assert torch.isfinite(large.grad).all()


def test_roc_auc_counts_ties_half():
    # Of six pairs: 2 > 1, 2 > 0, 2 = 2, 0 < 1, 0 = 0, 0 < 2.
    positive, negative = torch.tensor([2.0, 0.0]), torch.tensor([1.0, 0.0, 2.0])
    assert roc_auc(positive, negative) == pytest.approx((2 + 0.5 + 0.5) / 6)


def test_roc_auc_with_ties_equals_scikit_learn():
    generator = torch.Generator().manual_seed(1)
    positive = torch.randint(0, 9, (40,), generator=generator).float() + 1
    negative = torch.randint(0, 9, (70,), generator=generator).float()
    truth = [1] * 40 + [0] * 70
    expected = roc_auc_score(truth, torch.cat([positive, negative]).numpy())
    assert roc_auc(positive, negative) == pytest.approx(expected)
