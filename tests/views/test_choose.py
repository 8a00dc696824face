from __future__ import annotations

from collections import Counter
from itertools import combinations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from graphsc.views.sampling import RandomOrder, choose, distinct, smallest, smallest_by_order

SEGMENTS = st.lists(
    st.lists(st.sampled_from([-2.5, 0.0, 0.25, 0.5, 1e6]) | st.floats(-10, 10, width=32), max_size=9),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(SEGMENTS, st.floats(0, 1))
def test_smallest_keys_go_first_and_equal_keys_by_position(segments, share):
    keys = torch.tensor([key for segment in segments for key in segment], dtype=torch.float32)
    lengths = [len(segment) for segment in segments]
    ptr = torch.tensor([0, *lengths]).cumsum(0)
    counts = [round(share * length) for length in lengths]
    expected = []
    for segment, count in zip(segments, counts, strict=True):
        order = sorted(range(len(segment)), key=lambda i: torch.tensor(segment[i]).item())
        expected += [i in order[:count] for i in range(len(segment))]
    for function in (smallest, smallest_by_order):
        assert function(keys, ptr, torch.tensor(counts)).tolist() == expected


def test_every_subset_is_as_likely(seeded):
    generator = seeded(0)
    ptr, counts = torch.arange(0, 3001, 5), torch.full((600,), 2)
    drawn = choose(ptr, counts, generator).view(600, 5)
    tally = Counter(tuple(row.nonzero().flatten().tolist()) for row in drawn)
    observed = [tally[pair] for pair in combinations(range(5), 2)]
    assert sum(observed) == 600
    assert chisquare(observed).pvalue > 0.01


def test_a_random_order_nests_and_asks_for_no_draw_when_all_are_wanted(seeded):
    generator = seeded(0)
    state = generator.get_state()
    order = RandomOrder(torch.tensor([0, 4, 9]), generator)
    assert order.first(torch.tensor([4, 5])) is None
    assert torch.equal(generator.get_state(), state)
    some, more = order.first(torch.tensor([1, 2])), order.first(torch.tensor([3, 2]))
    assert (some & ~more).sum() == 0
    assert more.sum() == 5


@pytest.mark.parametrize(("size", "count"), [(5, 2), (5, 3), (5, 5), (6, 1), (100, 2)], ids=str)
def test_distinct_draws_every_subset_as_likely(seeded, size, count):
    generator = seeded(1)
    graphs = 3000
    sizes, counts = torch.full((graphs,), size), torch.full((graphs,), count)
    numbers = distinct(sizes, counts, generator).view(graphs, count)
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


def test_distinct_with_segments_of_every_kind(seeded):
    sizes = torch.tensor([0, 3, 10_000, 1, 40, 5000, 7])
    counts = torch.tensor([0, 3, 9, 0, 39, 200, 2])
    for seed in range(20):
        numbers = distinct(sizes, counts, seeded(seed))
        assert (numbers.diff() > 0).all()
        ends = sizes.cumsum(0)
        inside = torch.bucketize(numbers, ends, right=True)
        assert torch.bincount(inside, minlength=7).tolist() == counts.tolist()
