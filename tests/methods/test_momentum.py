"""A moving-average copy and a queue of vectors."""

import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.methods.momentum import MomentumCopy, VectorQueue, check_momentum


@pytest.fixture
def module():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4))


def test_the_copy_begins_as_the_original_and_has_no_gradients(module):
    copy = MomentumCopy(module)
    rows = torch.randn(5, 3, requires_grad=True)
    result = copy(rows)
    torch.testing.assert_close(result, module(rows))
    assert not result.requires_grad
    assert not any(parameter.requires_grad for parameter in copy.parameters())


@pytest.mark.parametrize("momentum", [0.0, 0.25, 1.0])
def test_an_update_moves_every_parameter_by_its_share(module, momentum):
    copy = MomentumCopy(module)
    before = [parameter.clone() for parameter in copy.parameters()]
    with torch.no_grad():
        for parameter in module.parameters():
            parameter += 1.0
    copy.update(module, momentum)
    for own, old in zip(copy.parameters(), before, strict=True):
        torch.testing.assert_close(own, old + (1 - momentum))


def test_an_update_leaves_original_and_buffers_alone(module):
    copy = MomentumCopy(module)
    module(torch.randn(5, 3))
    before = {name: value.clone() for name, value in module.state_dict().items()}
    copy.update(module, 0.5)
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert copy.module[1].running_mean.tolist() == [0.0] * 4


def pushed(capacity, *counts):
    """A queue into which 0, 1, 2, ... were pushed in parts of these sizes, and its contents."""
    queue, start = VectorQueue(capacity, 1), 0
    for count in counts:
        queue.push(torch.arange(start, start + count).float()[:, None])
        start += count
    return queue, sorted(queue.vectors().flatten().tolist())


@pytest.mark.parametrize(
    ("counts", "held"),
    [
        ((), []),
        ((2,), [0, 1]),
        ((2, 2), [0, 1, 2, 3]),
        ((2, 2, 3), [2, 3, 4, 5, 6]),
        ((3, 12), [10, 11, 12, 13, 14]),
        ((3, 12, 2), [12, 13, 14, 15, 16]),
    ],
)
def test_the_queue_holds_the_newest(counts, held):
    queue, found = pushed(5, *counts)
    assert found == held
    assert len(queue) == len(held)


def test_a_restored_queue_goes_on_where_it_was():
    queue, _ = pushed(5, 3, 4)
    again = VectorQueue(5, 1)
    again.load_state_dict(queue.state_dict())
    for each in (queue, again):
        each.push(torch.tensor([[9.0]]))
    assert torch.equal(queue.ring, again.ring)
    assert 9.0 in again.vectors()


def test_values_out_of_range_are_refused():
    with pytest.raises(ConfigError, match="capacity"):
        VectorQueue(0, 3)
    with pytest.raises(ConfigError, match="momentum"):
        check_momentum(1.5)
