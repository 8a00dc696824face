"""Dropout: how many entries, which scale, which gradient."""

import pytest
import torch

from graphsc.encoders.ops import drop


@pytest.mark.parametrize("rate", [0.1, 0.25, 0.5, 0.9])
def test_entries_are_dropped_as_often_as_asked_and_the_rest_scaled(rate):
    torch.manual_seed(0)
    rows = drop(torch.full((500, 401), 3.0), rate)
    dropped = rows == 0
    # Five standard deviations of a share of 200,500.
    assert dropped.float().mean().item() == pytest.approx(rate, abs=5 * (rate * (1 - rate) / 200_500) ** 0.5)
    torch.testing.assert_close(
        rows[~dropped], torch.full_like(rows[~dropped], 3 / (1 - rate)), rtol=1e-4, atol=0
    )
    # The four entries that share a draw are as independent as any: as many agree as chance has it.
    bits = dropped.flatten()[:200_000].view(-1, 4)
    agree = (bits[:, 0] == bits[:, 1]).float().mean().item()
    assert agree == pytest.approx(rate**2 + (1 - rate) ** 2, abs=0.012)


def test_gradient_passes_where_entries_do():
    x = torch.ones(7, 5, requires_grad=True)
    torch.manual_seed(1)
    rows = drop(x, 0.5)
    rows.sum().backward()
    torch.testing.assert_close(x.grad, rows.detach())


def test_same_seed_same_entries_and_no_rate_no_change():
    x = torch.randn(9, 3)
    torch.manual_seed(2)
    one = drop(x, 0.5)
    torch.manual_seed(2)
    assert torch.equal(one, drop(x, 0.5))
    assert drop(x, 0.0) is x


def test_half_precision_and_empty_rows():
    torch.manual_seed(0)
    rows = drop(torch.ones(100, 10, dtype=torch.bfloat16), 0.5)
    assert rows.dtype == torch.bfloat16
    assert set(rows.flatten().tolist()) == {0.0, 2.0}
    assert drop(torch.ones(0, 4), 0.5).shape == (0, 4)
