"""The aligned linear map against torch's own."""

import pytest
import torch
from torch.nn.functional import linear

from graphsc.encoders.ops import FEW, aligned_linear


@pytest.mark.parametrize("rows", [1, FEW, 333])
@pytest.mark.parametrize(("inputs", "outputs"), [(300, 600), (600, 300), (7, 13), (32, 64), (1, 1)])
def test_values_and_gradients_are_those_of_linear(rows, inputs, outputs):
    generator = torch.Generator().manual_seed(rows)
    x, weight, bias, upstream = (
        torch.randn(*shape, generator=generator)
        for shape in ((rows, inputs), (outputs, inputs), (outputs,), (rows, outputs))
    )
    found, expected = [], []
    for function, into in ((aligned_linear, found), (linear, expected)):
        given = [value.clone().requires_grad_() for value in (x, weight, bias)]
        result = function(*given)
        # What a layer does next: a change in place, and another use of the rows.
        (result * 1.0).relu().mul(upstream).sum().backward()
        into += [result.detach(), *(value.grad for value in given)]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.shape == theirs.shape
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-4)


def test_rows_of_three_hundred_begin_at_multiples_of_64_bytes():
    result = aligned_linear(torch.randn(FEW, 600), torch.randn(300, 600), torch.zeros(300))
    assert result.shape == (FEW, 300)
    assert result.stride() == (304, 1)


def test_a_result_of_easy_width_can_be_changed_in_place():
    weight = torch.randn(600, 300, requires_grad=True)
    aligned_linear(torch.randn(FEW, 300), weight, torch.zeros(600)).relu_().sum().backward()
    assert weight.grad is not None


def test_input_without_gradient_gets_none():
    weight = torch.randn(300, 600, requires_grad=True)
    aligned_linear(torch.randn(FEW, 600), weight, torch.zeros(300)).sum().backward()
    assert weight.grad.shape == (300, 600)


def test_other_types_and_autocast_go_the_plain_way():
    x, weight, bias = (
        torch.randn(FEW, 300).double(),
        torch.randn(300, 300).double(),
        torch.zeros(300).double(),
    )
    assert aligned_linear(x, weight, bias).is_contiguous()
    with torch.autocast("cpu", torch.bfloat16):
        assert aligned_linear(x.float(), weight.float(), bias.float()).dtype == torch.bfloat16
