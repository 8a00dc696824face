"""A frozen module: gradients pass through it, and it is as before afterwards."""

import pytest
import torch
from torch import nn

from graphsc.methods.base import frozen


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def test_gradients_pass_through_and_parameters_get_none(module):
    module[0].bias.requires_grad_(False)
    rows = torch.randn(5, 3, requires_grad=True)
    with frozen(module):
        module(rows).square().sum().backward()
    assert rows.grad.abs().sum() > 0
    assert all(parameter.grad is None for parameter in module.parameters())
    assert [parameter.requires_grad for parameter in module.parameters()] == [True, False, True, True]


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("inside", [True, False, None])
def test_the_mode_holds_inside_and_is_restored(module, before, inside):
    module.train(before)
    with frozen(module, training=inside):
        assert module[1].training == (before if inside is None else inside)
    assert module[1].training == before


@pytest.mark.parametrize("restore_buffers", [True, False])
def test_buffers_are_restored_if_asked_for(module, restore_buffers):
    before = {name: value.clone() for name, value in module.named_buffers()}
    with frozen(module, restore_buffers=restore_buffers):
        module(torch.randn(5, 3))
    restored = [torch.equal(value, before[name]) for name, value in module.named_buffers()]
    assert restored == [restore_buffers] * 3


def test_an_error_inside_leaves_nothing_frozen(module):
    with pytest.raises(RuntimeError), frozen(module, training=False):
        module(torch.randn(5, 2))
    assert module.training
    assert all(parameter.requires_grad for parameter in module.parameters())
