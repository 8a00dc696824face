"""Wilcoxon's test against all signs tried out, and scipy's."""

import itertools

import numpy as np
import pytest
from scipy import stats

from graphsc.core.errors import DataError
from graphsc.evaluation.significance import wilcoxon


def p_by_trying_all_signs(differences):
    ranks = stats.rankdata(np.abs(differences))
    observed = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    signs = np.array(list(itertools.product([0, 1], repeat=len(ranks))))
    sums = signs @ ranks
    return np.mean(np.minimum(sums, ranks.sum() - sums) <= observed)


def test_equals_scipys_exact_test_without_ties():
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    theirs = stats.wilcoxon(a, b, method="exact")
    ours = wilcoxon(a, b)
    assert ours.statistic == theirs.statistic
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_ties_are_counted_exactly():
    differences = np.array([1, 1, -1, 2, 2, 3, -3, 5, 6], dtype=float)
    assert wilcoxon(differences, np.zeros(9)).p_value == pytest.approx(p_by_trying_all_signs(differences))


def test_rounding_does_not_break_a_tie():
    # Both differences are a tenth, one ulp apart; the ranks must be 1.5 and 1.5.
    assert 0.9 - 0.8 != 0.4 - 0.3
    assert wilcoxon([0.9, 0.3], [0.8, 0.4]).statistic == 1.5


def test_large_sample_nears_the_normal_approximation():
    a, b = np.random.default_rng(0).normal([[0.15], [0.0]], 1, size=(2, 300))
    assert wilcoxon(a, b).p_value == pytest.approx(stats.wilcoxon(a, b, method="asymptotic").pvalue, rel=0.01)


def test_pairs_without_a_difference_or_a_result_are_left_out():
    a = np.array([0.9, 0.8, 0.7, np.nan, 0.5])
    b = np.array([0.8, 0.6, 0.7, 0.9, np.nan])
    result = wilcoxon(a, b)
    assert (result.pairs, result.statistic, result.p_value) == (2, 0.0, 0.5)


def test_no_difference_at_all_is_p_one():
    assert wilcoxon([0.5, 0.6], [0.5, 0.6]).p_value == 1.0


@pytest.mark.parametrize(("pairs", "possible"), [(5, False), (6, True)])
def test_six_data_sets_are_the_fewest_that_can_be_significant(pairs, possible):
    result = wilcoxon(np.arange(1.0, pairs + 1), np.zeros(pairs))
    assert result.p_value == result.smallest_p == 2 / 2**pairs
    assert (result.caveat() is None) == possible


def test_different_numbers_of_data_sets_are_refused():
    with pytest.raises(DataError, match=r"shapes \(2,\) and \(3,\)"):
        wilcoxon([1, 2], [1, 2, 3])


def test_many_pairs_that_agree_underflow_to_a_p_of_zero():
    result = wilcoxon(np.arange(1.0, 1201), np.zeros(1200))
    assert result.p_value == 0.0
    assert result.caveat() is None
