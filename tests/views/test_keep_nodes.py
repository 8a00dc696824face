"""Weighted draws of nodes against the definition: one after the other, in proportion to what is left."""

from itertools import permutations

import pytest
import torch

from graphsc.views.sampling import draw_weighted, keep_nodes

PATH = [(0, 1), (1, 2), (2, 3)]


def inclusion(weights, count):
    """The chance of each element to be among `count` drawn, by listing every order of draws."""
    chances = [0.0] * len(weights)
    for order in permutations(range(len(weights)), count):
        left, chance = sum(weights), 1.0
        for element in order:
            chance *= weights[element] / left
            left -= weights[element]
        for element in order:
            chances[element] += chance
    return chances


@pytest.mark.parametrize("count", [1, 2, 3])
def test_inclusion_is_that_of_sequential_draws(make, count):
    weights, copies = [0.05, 0.2, 1.0, 3.0], 20_000
    batch = make([(4, PATH)] * copies, plain=True)
    chosen = draw_weighted(
        batch,
        torch.tensor(weights).repeat(copies),
        torch.full((copies,), count),
        torch.Generator().manual_seed(count),
    )
    found = chosen.view(copies, 4).double().mean(0)
    # Four standard deviations of a share of 20,000.
    torch.testing.assert_close(
        found, torch.tensor(inclusion(weights, count), dtype=torch.float64), atol=0.015, rtol=0
    )


def test_each_graph_keeps_its_own_count(make, check):
    batch = make([(4, PATH), (1, []), (6, [(0, 5), (4, 5)]), (3, [(0, 1)])])
    view = keep_nodes(
        batch, torch.rand(14) + 0.1, torch.tensor([2, 1, 5, 3]), torch.Generator().manual_seed(0)
    )
    assert view.ptr.diff().tolist() == [2, 1, 5, 3]
    check(view)


def test_no_graph_is_emptied_and_none_grows(make):
    batch = make([(4, PATH), (1, []), (2, [(0, 1)])], plain=True)
    for count, expected in ((0, [1, 1, 1]), (9, [4, 1, 2])):
        counts = torch.full((3,), count)
        chosen = draw_weighted(batch, torch.ones(7), counts, torch.Generator().manual_seed(0))
        assert [int(part.sum()) for part in chosen.split([4, 1, 2])] == expected


def test_an_empty_graph_stays_empty(make):
    batch = make([(0, []), (2, [(0, 1)])], plain=True)
    chosen = draw_weighted(batch, torch.ones(2), torch.tensor([0, 1]), torch.Generator().manual_seed(0))
    assert int(chosen.sum()) == 1


def test_weights_far_apart_are_drawn_in_their_order(make):
    batch = make([(3, [(0, 1), (1, 2)])] * 200, plain=True)
    weight = torch.tensor([1e-30, 1.0, 1e30]).repeat(200)
    chosen = draw_weighted(batch, weight, torch.full((200,), 2), torch.Generator().manual_seed(0))
    assert chosen.view(200, 3).all(0).tolist() == [False, True, True]
