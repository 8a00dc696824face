"""The contrast within graphs against a loop over hidden nodes and the nodes of their graphs."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import within_graphs


def rows(count, seed):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine(one, other):
    return float(one @ other / (one.norm() * other.norm()))


def by_loop(nodes, hidden, which, sizes, temperature, positives):
    graph = [g for g, size in enumerate(sizes) for _ in range(size)]
    found = []
    for row, j in zip(hidden, which, strict=True):
        below = above = 0.0
        for i in range(len(nodes)):
            if graph[i] != graph[j]:
                continue
            share = math.exp(cosine(nodes[i], row) / temperature)
            below += share
            if i == j or (positives == "hidden" and i in which):
                above += share
        found.append(-math.log(above / below))
    return found


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any),
    st.sampled_from(["own", "hidden"]),
    st.integers(0, 1000),
    st.data(),
)
def test_it_is_the_loop_over_nodes(sizes, positives, seed, data):
    """Graphs of sizes in several groups, graphs without a hidden node and without any."""
    total = sum(sizes)
    which = sorted(data.draw(st.sets(st.integers(0, total - 1), min_size=1)))
    nodes, hidden = rows(total, seed), rows(len(which), seed + 1)
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    found = within_graphs(nodes, hidden, torch.tensor(which), ptr, temperature=0.5, positives=positives)
    assert found.tolist() == pytest.approx(by_loop(nodes, hidden, which, sizes, 0.5, positives), abs=1e-9)


@pytest.mark.parametrize("positives", ["own", "hidden"])
def test_the_gradient_is_right(positives):
    which, ptr = torch.tensor([0, 2, 4]), torch.tensor([0, 3, 8])
    nodes, hidden = rows(8, 0).requires_grad_(), rows(3, 1).requires_grad_()
    assert gradcheck(
        lambda n, h: within_graphs(n, h, which, ptr, temperature=0.3, positives=positives), (nodes, hidden)
    )


def test_a_lone_node_is_always_found():
    found = within_graphs(rows(1, 0), rows(1, 1), torch.tensor([0]), torch.tensor([0, 1]))
    assert found.tolist() == pytest.approx([0.0])


def test_nothing_hidden_costs_nothing():
    none = torch.zeros(0, 3, requires_grad=True)
    found = within_graphs(rows(2, 0).float(), none, torch.zeros(0, dtype=torch.int64), torch.tensor([0, 2]))
    assert found.shape == (0,)
    found.sum().backward()


def test_equal_rows_are_found_by_chance():
    equal = torch.ones(4, 2)
    found = within_graphs(equal, equal[:2], torch.tensor([0, 3]), torch.tensor([0, 4]))
    assert found.tolist() == pytest.approx([math.log(4)] * 2)


def test_a_temperature_of_zero_is_refused():
    with pytest.raises(ValueError, match="temperature"):
        within_graphs(rows(1, 0), rows(1, 1), torch.tensor([0]), torch.tensor([0, 1]), temperature=0.0)
