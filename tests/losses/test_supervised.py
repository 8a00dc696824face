"""Losses over labels of which some are missing, against a plain loop over the entries that are there."""

import math

import pytest
import torch

from graphsc.losses import masked_bce, masked_mse

NAN = float("nan")
LABELS = torch.tensor([[1.0, NAN, 0.0], [NAN, NAN, 1.0], [0.0, 1.0, NAN]])
OUTPUT = torch.tensor([[0.3, 5.0, -2.0], [9.0, -9.0, 0.1], [1.5, -0.4, 3.0]])


def test_masked_bce_is_the_mean_of_a_loop_over_the_labels_that_are_there():
    terms = []
    for outputs, labels in zip(OUTPUT.tolist(), LABELS.tolist(), strict=True):
        for output, label in zip(outputs, labels, strict=True):
            if not math.isnan(label):
                chance = 1 / (1 + math.exp(-output))
                terms.append(-math.log(chance if label else 1 - chance))
    assert len(terms) == 5
    assert float(masked_bce(OUTPUT, LABELS)) == pytest.approx(sum(terms) / 5, rel=1e-5)


def test_masked_mse_is_the_mean_of_a_loop_over_the_labels_that_are_there():
    expected = ((0.3 - 1) ** 2 + (-2 - 0) ** 2 + (0.1 - 1) ** 2 + (1.5 - 0) ** 2 + (-0.4 - 1) ** 2) / 5
    assert float(masked_mse(OUTPUT, LABELS)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("loss", [masked_bce, masked_mse])
def test_a_missing_label_pulls_at_nothing(loss):
    output = OUTPUT.clone().requires_grad_()
    loss(output, LABELS).backward()
    assert output.grad is not None
    assert ((output.grad == 0) == LABELS.isnan()).all()
    assert output.grad.isfinite().all()


@pytest.mark.parametrize("loss", [masked_bce, masked_mse])
def test_no_label_at_all_is_a_loss_of_zero_with_a_gradient_of_zero(loss):
    output = OUTPUT.clone().requires_grad_()
    found = loss(output, torch.full_like(LABELS, NAN))
    found.backward()
    assert float(found.detach()) == 0.0
    assert output.grad is not None
    assert (output.grad == 0).all()
