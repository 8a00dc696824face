"""Sixteen bits a weight: how near, what is left alone, and the ends of the scale."""

import torch

from graphsc.training.model_io import from_sixteen_bits, to_sixteen_bits


def test_matrices_come_back_to_half_a_step_of_their_row():
    weights = {"w": torch.randn(40, 30) * torch.logspace(-6, 6, 40)[:, None], "n": torch.randn(7)}
    stored = to_sixteen_bits(weights)
    assert stored["w"].dtype == torch.int16
    assert stored["n"] is weights["n"]
    back = from_sixteen_bits(stored)
    assert back.keys() == weights.keys()
    step = weights["w"].abs().amax(1, keepdim=True) / 32767
    assert ((back["w"] - weights["w"]).abs() <= 0.501 * step).all()


def test_rows_of_zeros_and_whole_numbers():
    weights = {"zero": torch.zeros(2, 3), "count": torch.tensor([[3, 4]]), "scalar": torch.tensor(5)}
    back = from_sixteen_bits(to_sixteen_bits(weights))
    for name, value in weights.items():
        assert torch.equal(back[name], value)
