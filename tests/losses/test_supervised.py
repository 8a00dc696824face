"""Losses with missing labels against a loop over the labels that are present."""

import math

import pytest
import torch

from graphsc.losses import masked_bce, masked_mse

NAN = float("nan")
LABELS = torch.tensor([[1.0, NAN, 0.0], [NAN, NAN, 1.0], [0.0, 1.0, NAN]])
OUTPUT = torch.tensor([[0.3, 5.0, -2.0], [9.0, -9.0, 0.1], [1.5, -0.4, 3.0]])


def test_masked_bce_equals_the_loop_over_present_labels():
    terms = []
    for outputs, labels in zip(OUTPUT.tolist(), LABELS.tolist(), strict=True):
        for output, label in zip(outputs, labels, strict=True):
            if not math.isnan(label):
                chance = 1 / (1 + math.exp(-output))
                terms.append(-math.log(chance if label else 1 - chance))
    assert len(terms) == 5
    assert float(masked_bce(OUTPUT, LABELS)) == pytest.approx(sum(terms) / 5, rel=1e-5)


def test_masked_mse_equals_the_mean_over_present_labels():
    expected = ((0.3 - 1) ** 2 + (-2 - 0) ** 2 + (0.1 - 1) ** 2 + (1.5 - 0) ** 2 + (-0.4 - 1) ** 2) / 5
    assert float(masked_mse(OUTPUT, LABELS)) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("loss", [masked_bce, masked_mse])
def test_a_missing_label_has_zero_gradient(loss):
    output = OUTPUT.clone().requires_grad_()
    loss(output, LABELS).backward()
    assert output.grad is not None
    assert ((output.grad == 0) == LABELS.isnan()).all()
    assert output.grad.isfinite().all()


@pytest.mark.parametrize("loss", [masked_bce, masked_mse])
def test_no_labels_give_zero_loss_and_zero_gradient(loss):
    output = OUTPUT.clone().requires_grad_()
    result = loss(output, torch.full_like(LABELS, NAN))
    result.backward()
    assert float(result.detach()) == 0.0
    assert output.grad is not None
    assert (output.grad == 0).all()
