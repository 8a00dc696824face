"""Shares and areas of pretext tasks, against counts by hand and plain loops."""

import pytest
import torch
from sklearn.metrics import roc_auc_score

from graphsc.losses import area_under_curve, nearer_share, retrieved_share


def test_own_row_is_the_nearest_for_two_of_three():
    anchor = torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    # Lengths must not matter; the third looks for (1, 1) and finds it in row 1's view.
    other = torch.tensor([[5.0, 0.1], [0.9, 1.1], [-1.0, 0.0]])
    assert retrieved_share(anchor, other) == pytest.approx(2 / 3)
    assert retrieved_share(anchor, anchor) == 1


def test_retrieval_of_collapsed_rows_is_chance():
    rows = torch.ones(8, 3)
    assert retrieved_share(rows, rows) == pytest.approx(1 / 8)


def test_retrieval_agrees_with_a_loop():
    generator = torch.Generator().manual_seed(0)
    anchor, other = torch.randn(2, 20, 5, generator=generator)
    found = 0
    for i in range(20):
        likeness = [float(torch.cosine_similarity(anchor[i], other[j], dim=0)) for j in range(20)]
        found += likeness.index(max(likeness)) == i
    assert retrieved_share(anchor, other) == pytest.approx(found / 20)


def test_a_tie_of_triplets_counts_half():
    anchor = torch.zeros(4, 2)
    positive = torch.tensor([[1.0, 0.0], [3.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    negative = torch.tensor([[2.0, 0.0], [1.0, 0.0], [0.0, 2.0], [0.0, 1.0]])
    # Nearer, farther, as near, nearer.
    assert nearer_share(anchor, positive, negative) == (1 + 0 + 0.5 + 1) / 4


def test_area_counts_pairs_in_order_and_ties_half():
    # Of six pairs: 2 > 1, 2 > 0, 2 = 2, 0 < 1, 0 = 0, 0 < 2.
    positive, negative = torch.tensor([2.0, 0.0]), torch.tensor([1.0, 0.0, 2.0])
    assert area_under_curve(positive, negative) == pytest.approx((2 + 0.5 + 0.5) / 6)


def test_area_agrees_with_scikit_learn():
    generator = torch.Generator().manual_seed(1)
    positive = torch.randint(0, 9, (40,), generator=generator).float() + 1
    negative = torch.randint(0, 9, (70,), generator=generator).float()
    truth = [1] * 40 + [0] * 70
    expected = roc_auc_score(truth, torch.cat([positive, negative]).numpy())
    assert area_under_curve(positive, negative) == pytest.approx(expected)
