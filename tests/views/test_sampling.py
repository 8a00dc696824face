"""Sampling from segments, against sorted lists, chi-square tests and inclusion probabilities."""

from __future__ import annotations

import math
from collections import Counter
from contextlib import nullcontext
from itertools import combinations, permutations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.views.sampling import (
    RandomOrder,
    _smallest_by_rank,
    choose_nodes,
    sample_nodes,
    sample_subgraphs,
    sample_without_replacement,
    smallest_per_segment,
)

SEGMENTS = st.lists(
    st.lists(st.sampled_from([-2.5, 0.0, 0.25, 0.5, 1e6]) | st.floats(-10, 10, width=32), max_size=9),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(SEGMENTS, st.floats(0, 1))
def test_smallest_keys_are_chosen_and_ties_go_by_position(segments, share):
    keys = torch.tensor([key for segment in segments for key in segment], dtype=torch.float32)
    lengths = [len(segment) for segment in segments]
    ptr = torch.tensor([0, *lengths]).cumsum(0)
    counts = [round(share * length) for length in lengths]
    expected = []
    for segment, count in zip(segments, counts, strict=True):
        order = sorted(range(len(segment)), key=lambda i: torch.tensor(segment[i]).item())
        expected += [i in order[:count] for i in range(len(segment))]
    for function in (smallest_per_segment, _smallest_by_rank):
        assert function(keys, ptr, torch.tensor(counts)).tolist() == expected


def test_uniform_keys_draw_every_subset_equally_often(seeded):
    generator = seeded(0)
    ptr, counts = torch.arange(0, 3001, 5), torch.full((600,), 2)
    drawn = smallest_per_segment(torch.rand(3000, generator=generator), ptr, counts).view(600, 5)
    tally = Counter(tuple(row.nonzero().flatten().tolist()) for row in drawn)
    observed = [tally[pair] for pair in combinations(range(5), 2)]
    assert sum(observed) == 600
    assert chisquare(observed).pvalue > 0.01


def test_a_random_order_nests_and_draws_nothing_when_all_are_wanted(seeded):
    generator = seeded(0)
    state = generator.get_state()
    order = RandomOrder(torch.tensor([0, 4, 9]), generator)
    assert order.first(torch.tensor([4, 5])) is None
    assert torch.equal(generator.get_state(), state)
    some, more = order.first(torch.tensor([1, 2])), order.first(torch.tensor([3, 2]))
    assert (some & ~more).sum() == 0
    assert more.sum() == 5


@pytest.mark.parametrize("loops", [True, False])
@pytest.mark.parametrize(("size", "count"), [(5, 2), (5, 3), (5, 5), (6, 1), (100, 2)], ids=str)
def test_without_replacement_draws_every_subset_equally_often(seeded, without_loops, size, count, loops):
    generator = seeded(1)
    graphs = 3000
    sizes, counts = torch.full((graphs,), size), torch.full((graphs,), count)
    with nullcontext() if loops else without_loops():
        numbers = sample_without_replacement(sizes, counts, generator).view(graphs, count)
    local = numbers - torch.arange(graphs)[:, None] * size
    assert (local.diff(dim=1) > 0).all()
    assert local.min() >= 0
    assert local.max() < size
    tally = Counter(map(tuple, local.tolist()))
    if size <= 6 and count < size:
        observed = [tally[subset] for subset in combinations(range(size), count)]
        assert chisquare(observed).pvalue > 0.01
    single = Counter(local.flatten().tolist())
    assert count == size or chisquare([single[i] for i in range(size)]).pvalue > 0.01


def test_without_replacement_with_mixed_segments(seeded, without_loops):
    sizes = torch.tensor([0, 3, 10_000, 1, 40, 5000, 7, 2**40, 0])
    counts = torch.tensor([0, 3, 9, 0, 39, 200, 2, 500, 0])
    for seed in range(20):
        numbers = sample_without_replacement(sizes, counts, seeded(seed))
        with without_loops():
            assert torch.equal(sample_without_replacement(sizes, counts, seeded(seed)), numbers)
        assert (numbers.diff() > 0).all()
        ends = sizes.cumsum(0)
        inside = torch.bucketize(numbers, ends, right=True)
        assert torch.bincount(inside, minlength=9).tolist() == counts.tolist()


PATH = [(0, 1), (1, 2), (2, 3)]


def inclusion(weights, count):
    """Probability that each element is among `count` drawn, by listing every order of draws."""
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
def test_inclusion_probabilities_are_those_of_sequential_draws(make, count):
    weights, copies = [0.05, 0.2, 1.0, 3.0], 20_000
    batch = make([(4, PATH)] * copies, plain=True)
    chosen = sample_nodes(
        batch,
        torch.tensor(weights).repeat(copies),
        torch.full((copies,), count),
        torch.Generator().manual_seed(count),
    )
    observed = chosen.view(copies, 4).double().mean(0)
    # Four standard deviations of a proportion over 20,000.
    torch.testing.assert_close(
        observed, torch.tensor(inclusion(weights, count), dtype=torch.float64), atol=0.015, rtol=0
    )


def test_each_graph_keeps_its_own_count(make, check):
    batch = make([(4, PATH), (1, []), (6, [(0, 5), (4, 5)]), (3, [(0, 1)])])
    view = sample_subgraphs(
        batch, torch.rand(14) + 0.1, torch.tensor([2, 1, 5, 3]), torch.Generator().manual_seed(0)
    )
    assert view.ptr.diff().tolist() == [2, 1, 5, 3]
    check(view)


def test_counts_are_clamped_to_between_one_and_all_nodes(make):
    batch = make([(4, PATH), (1, []), (2, [(0, 1)])], plain=True)
    for count, expected in ((0, [1, 1, 1]), (9, [4, 1, 2])):
        counts = torch.full((3,), count)
        chosen = sample_nodes(batch, torch.ones(7), counts, torch.Generator().manual_seed(0))
        assert [int(part.sum()) for part in chosen.split([4, 1, 2])] == expected


def test_an_empty_graph_stays_empty(make):
    batch = make([(0, []), (2, [(0, 1)])], plain=True)
    chosen = sample_nodes(batch, torch.ones(2), torch.tensor([0, 1]), torch.Generator().manual_seed(0))
    assert int(chosen.sum()) == 1


def test_extreme_weights_are_drawn_in_their_order(make):
    batch = make([(3, [(0, 1), (1, 2)])] * 200, plain=True)
    weight = torch.tensor([1e-30, 1.0, 1e30]).repeat(200)
    chosen = sample_nodes(batch, weight, torch.full((200,), 2), torch.Generator().manual_seed(0))
    assert chosen.view(200, 3).all(0).tolist() == [False, True, True]


def test_chosen_nodes_are_drawn_equally_often():
    batch, generator = GraphBatch.of(open_collection("motifs:6")), torch.Generator().manual_seed(0)
    for by_graph in (False, True):
        masks = [choose_nodes(batch, 40, generator, by_graph=by_graph) for _ in range(2000)]
        assert {int(mask.sum()) for mask in masks} == {40}
        share = 40 / batch.num_nodes
        # The nodes of a graph are drawn together, so that the deviation is the same for each of them.
        deviation = math.sqrt(2000 * share * (1 - share))
        assert (sum(mask.double() for mask in masks) - 2000 * share).abs().max() < 5 * deviation


def test_nodes_chosen_by_graph_leave_one_graph_incomplete():
    batch, seen = GraphBatch.of(open_collection("motifs:12")), set()
    for seed in range(20):
        chosen = choose_nodes(batch, 60, torch.Generator().manual_seed(seed), by_graph=True)
        counts = torch.bincount(batch.batch[chosen], minlength=12)
        assert int(((counts > 0) & (counts < batch.ptr.diff())).sum()) <= 1
        seen.add(int(counts.argmax()))
    assert len(seen) > 3


@pytest.mark.parametrize("count", [None, 10_000])
def test_all_nodes_are_chosen_where_there_are_not_more(count):
    batch = GraphBatch.of(open_collection("motifs:3"))
    assert choose_nodes(batch, count, torch.Generator()).all()
