"""Paired tests on one data set, and the correction for many, by hand and by other libraries."""

import math

import numpy as np
import pytest
from scipy import stats

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.significance import corrected_t_test, holm, verdict


def test_statistic_is_the_equation_worked_out_by_hand():
    # n = 4, mean 2.5, s^2 = 5/3, share 1/5: variance (1/4 + 1/4) 5/3 = 5/6.
    result = corrected_t_test([1.0, 2.0, 3.0, 4.0], test_share=0.2)
    assert result.mean == 2.5
    assert result.error == pytest.approx(math.sqrt(5 / 6))
    assert result.statistic == pytest.approx(2.5 / math.sqrt(5 / 6))
    assert result.degrees == 3


def test_p_value_of_one_degree_of_freedom_is_the_cauchy_tail():
    # Two differences leave one degree of freedom, where P(|t| > x) = 1 - 2 atan(x) / pi.
    result = corrected_t_test([0.01, 0.03], test_share=0.5)
    # s^2 = 2e-4, factor 1/2 + 1: error sqrt(3e-4).
    expected = 1 - 2 * math.atan(0.02 / math.sqrt(3e-4)) / math.pi
    assert result.p_value == pytest.approx(expected)


def test_without_correction_it_would_be_scipys_t_test():
    values = np.random.default_rng(0).normal(0.01, 0.03, 50)
    ours = corrected_t_test(values, test_share=1e-12)
    theirs = stats.ttest_1samp(values, 0.0)
    assert ours.statistic == pytest.approx(theirs.statistic)
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_correction_for_five_runs_of_ten_folds():
    values = np.random.default_rng(1).normal(0.02, 0.03, (5, 10))
    ours = corrected_t_test(values, test_share=0.1)
    plain = stats.ttest_1samp(values.ravel(), 0.0)
    assert ours.statistic == pytest.approx(plain.statistic * math.sqrt((1 / 50) / (1 / 50 + 1 / 9)))


def test_swapping_the_methods_turns_only_the_sign():
    values = np.array([0.02, -0.01, 0.03, 0.0])
    one, other = corrected_t_test(values, 0.25), corrected_t_test(-values, 0.25)
    assert one.statistic == -other.statistic
    assert one.p_value == other.p_value


def test_no_difference_anywhere_is_p_one():
    result = corrected_t_test(np.zeros((5, 10)), 0.1)
    assert (result.p_value, result.statistic, result.mean) == (1.0, 0.0, 0.0)


def test_the_same_difference_everywhere_is_p_zero():
    # 0.9 - 0.8 and 0.8 - 0.7 differ in the last bit; that is no variance.
    result = corrected_t_test(-np.array([0.9 - 0.8, 0.8 - 0.7, 0.4 - 0.3]), 0.1)
    assert result.p_value == 0.0
    assert result.statistic == -math.inf


def test_one_difference_is_no_test():
    result = corrected_t_test([0.2], 0.1)
    assert math.isnan(result.p_value)
    assert result.mean == 0.2


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [0.1, math.inf]])
def test_nothing_to_test_is_refused(values):
    with pytest.raises(DataError):
        corrected_t_test(values, 0.1)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 10.0, math.nan])
def test_a_share_is_between_nothing_and_all(share):
    with pytest.raises(ConfigError):
        corrected_t_test([0.1, 0.2], share)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, the last raised to its predecessor.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_holm_never_passes_one():
    np.testing.assert_array_equal(holm([0.6, 0.9]), [1.0, 1.0])


def test_holm_leaves_out_what_was_not_tested():
    np.testing.assert_allclose(holm([math.nan, 0.02, 0.01]), [math.nan, 0.02, 0.02])


def test_holm_of_nothing_is_nothing():
    assert holm([]).shape == (0,)


def test_holm_refuses_what_is_no_p_value():
    with pytest.raises(DataError):
        holm([0.1, 1.5])


@pytest.mark.parametrize(
    ("p", "word"), [(0.049, "significant"), (0.05, "within noise"), (math.nan, "not tested")]
)
def test_p_value_in_a_word(p, word):
    assert verdict(p) == word
