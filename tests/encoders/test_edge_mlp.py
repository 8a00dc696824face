"""The chunked edge network against the plain one."""

import pytest
import torch

from graphsc.encoders import ops as module
from graphsc.encoders.ops import edge_mlp


def example(edges=50, nodes=9, width=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    start, end, weight = (
        torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True)
        for shape in ((nodes, width), (nodes, width), (width,))
    )
    source, destination = torch.randint(nodes, (2, edges), generator=generator).int()
    return start, end, weight, source, destination


@pytest.mark.parametrize("chunk", [1, 35, 10**6])
def test_values_are_those_of_a_loop_over_edges(monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    start, end, weight, source, destination = example()
    expected = [
        sum(
            w * max(a + b, 0)
            for w, a, b in zip(weight.tolist(), start[u].tolist(), end[v].tolist(), strict=True)
        )
        for u, v in zip(source.tolist(), destination.tolist(), strict=True)
    ]
    found = edge_mlp(start, end, weight, source, destination)
    torch.testing.assert_close(found.tolist(), expected)


@pytest.mark.parametrize("chunk", [35, 10**6])
def test_gradients_pass_gradcheck(monkeypatch, chunk):
    monkeypatch.setattr(module, "CHUNK", chunk)
    *floats, source, destination = example()
    assert torch.autograd.gradcheck(lambda *args: edge_mlp(*args, source, destination), floats)


def test_no_edges_give_zero_gradients():
    *floats, source, destination = example(edges=0)
    edge_mlp(*floats, source, destination).sum().backward()
    assert all(not value.grad.any() for value in floats)
