"""Positions spread over a list, and those that are held out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import ConfigError
from graphsc.data.sampling import split_spread, spread


@given(total=st.integers(1, 400), share=st.floats(0, 1), seed=st.integers(0, 9))
def test_one_position_from_each_run_of_equal_length(total, share, seed):
    count = int(share * total)
    found = spread(total, count, np.random.default_rng(seed))
    assert len(found) == count
    for index, position in enumerate(found):
        assert index * total // count <= position < (index + 1) * total // count


@given(total=st.integers(10, 500), share=st.floats(0.01, 1), held_out=st.integers(0, 60))
def test_parts_are_disjoint_rising_and_as_large_as_asked(total, share, held_out):
    apart = min(held_out, total // 10)
    training = max(1, int(share * (total - apart)))
    found = split_spread(total, training, held_out, 0)
    assert (len(found.training), len(found.held_out)) == (training, apart)
    both = np.concatenate(found)
    assert len(np.unique(both)) == len(both)
    assert both.min(initial=0) >= 0
    assert both.max() < total
    for part in found:
        assert (np.diff(part) > 0).all()


def test_without_a_number_all_others_are_for_training():
    found = split_spread(1000, None, 50, 3)
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(1000))


def test_held_out_graphs_come_from_everywhere():
    found = split_spread(100_000, None, 100, 0).held_out
    assert np.bincount(found // 10_000, minlength=10).tolist() == [10] * 10


def test_the_seed_decides():
    one, again, other = (split_spread(500, 100, 20, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.training, other.training)


@pytest.mark.parametrize(("training", "held_out"), [(0, 5), (96, 5), (-3, 0), (5, -1)])
def test_what_cannot_be_had_is_refused(training, held_out):
    with pytest.raises(ConfigError, match=r"ask for 1 to 95|negative|ask for 1 to 100"):
        split_spread(100, training, held_out, 0)
