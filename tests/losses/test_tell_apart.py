"""Cross-entropy of scores and the area under the curve, each against its sum written out."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import area_under_curve, tell_apart

SCORES = st.lists(st.integers(-6, 6).map(lambda k: k / 2), max_size=8)


def surprise(p):
    return math.log1p(math.exp(-p))


@given(SCORES, SCORES, st.floats(0.1, 3))
def test_it_is_the_cross_entropy_score_by_score(positive, negative, weight):
    expected = 0.0
    for score in positive:
        expected += surprise(score) / len(positive)
    for score in negative:
        expected += weight * surprise(-score) / len(negative)
    found = tell_apart(torch.tensor(positive).double(), torch.tensor(negative).double(), weight=weight)
    assert found.item() == pytest.approx(expected, abs=1e-9)


@given(SCORES.filter(len), SCORES.filter(len))
def test_the_area_counts_pairs(positive, negative):
    pairs = [(p > n) + 0.5 * (p == n) for p in positive for n in negative]
    found = area_under_curve(torch.tensor(positive), torch.tensor(negative))
    assert found == pytest.approx(sum(pairs) / len(pairs))


def test_the_area_is_scikit_learns():
    from sklearn.metrics import roc_auc_score

    generator = torch.Generator().manual_seed(0)
    positive = torch.randn(300, generator=generator) + 0.5
    negative = torch.randn(500, generator=generator)
    expected = roc_auc_score([1] * 300 + [0] * 500, torch.cat([positive, negative]).numpy())
    assert area_under_curve(positive, negative) == pytest.approx(expected)


def test_one_side_alone():
    scores, none = torch.tensor([1.0, -1.0]), torch.zeros(0)
    assert tell_apart(scores, none).item() == pytest.approx((surprise(1) + surprise(-1)) / 2)
    assert tell_apart(none, none).item() == 0
    assert area_under_curve(scores, none) == 0.5


def test_the_gradient_is_right_and_finite_for_large_scores():
    scores = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: tell_apart(s[:2], s[2:], weight=2.0), (scores,))
    large = torch.tensor([1e4, -1e4], requires_grad=True)
    tell_apart(large, large).backward()
    assert torch.isfinite(large.grad).all()
