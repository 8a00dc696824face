"""Summaries and tests, by hand, by enumeration, by scipy and by the worked example of Demsar (2006)."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.significance import (
    average_ranks,
    bootstrap,
    complete,
    corrected_t_test,
    critical_difference,
    holm,
    indistinct_groups,
    percentile_interval,
    summarise,
    verdict,
    wilcoxon,
)

# Three seeds of two folds: run means 2, 4, 9; deviations within the runs 1, 2, 3.
ACCURACIES = np.array([[1.0, 3.0], [2.0, 6.0], [6.0, 12.0]])


def test_mean_is_the_mean_of_run_means():
    assert summarise(ACCURACIES).mean == 5.0


def test_deviation_over_seeds():
    # Squares 9, 1, 16.
    summary = summarise(ACCURACIES)
    assert summary.over_seeds_ddof0 == pytest.approx(math.sqrt(26 / 3))
    assert summary.over_seeds_ddof1 == pytest.approx(math.sqrt(26 / 2))


def test_deviation_over_folds():
    summary = summarise(ACCURACIES)
    assert summary.over_folds_ddof0 == pytest.approx(2.0)
    assert summary.over_folds_ddof1 == pytest.approx(2.0 * math.sqrt(2))


def test_numbers_of_seeds_and_folds():
    assert (summarise(ACCURACIES).seeds, summarise(ACCURACIES).folds) == (3, 2)


def test_one_seed_has_no_sample_deviation():
    summary = summarise([[0.8, 0.9]])
    assert summary.over_seeds_ddof0 == 0.0
    assert math.isnan(summary.over_seeds_ddof1)


def test_one_fold_has_no_sample_deviation():
    assert math.isnan(summarise([[0.8], [0.9]]).over_folds_ddof1)


@pytest.mark.parametrize("table", [[0.8, 0.9], [[0.8, math.nan]], np.zeros((0, 10))])
def test_accuracies_other_than_seeds_by_folds_are_refused(table):
    with pytest.raises(DataError):
        summarise(table)


def test_t_statistic_by_hand():
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


def test_swapping_the_methods_changes_only_the_sign():
    values = np.array([0.02, -0.01, 0.03, 0.0])
    one, other = corrected_t_test(values, 0.25), corrected_t_test(-values, 0.25)
    assert one.statistic == -other.statistic
    assert one.p_value == other.p_value


def test_zero_differences_have_p_one():
    result = corrected_t_test(np.zeros((5, 10)), 0.1)
    assert (result.p_value, result.statistic, result.mean) == (1.0, 0.0, 0.0)


def test_equal_differences_have_p_zero():
    # 0.9 - 0.8 and 0.8 - 0.7 differ in the last bit; that is no variance.
    result = corrected_t_test(-np.array([0.9 - 0.8, 0.8 - 0.7, 0.4 - 0.3]), 0.1)
    assert result.p_value == 0.0
    assert result.statistic == -math.inf


def test_one_difference_has_no_p_value():
    result = corrected_t_test([0.2], 0.1)
    assert math.isnan(result.p_value)
    assert result.mean == 0.2


@pytest.mark.parametrize("values", [[], [0.1, math.nan], [0.1, math.inf]])
def test_missing_differences_are_refused(values):
    with pytest.raises(DataError):
        corrected_t_test(values, 0.1)


@pytest.mark.parametrize("share", [0.0, 1.0, -0.1, 10.0, math.nan])
def test_a_test_share_outside_zero_and_one_is_refused(share):
    with pytest.raises(ConfigError):
        corrected_t_test([0.1, 0.2], share)


def test_holm_by_hand():
    # Sorted .005 .01 .03 .04 times 4 3 2 1: .02 .03 .06 .04, the last raised to its predecessor.
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])


def test_holm_is_at_most_one():
    np.testing.assert_array_equal(holm([0.6, 0.9]), [1.0, 1.0])


def test_holm_ignores_nan():
    np.testing.assert_allclose(holm([math.nan, 0.02, 0.01]), [math.nan, 0.02, 0.02])


def test_holm_of_no_p_values():
    assert holm([]).shape == (0,)


def test_holm_refuses_an_invalid_p_value():
    with pytest.raises(DataError):
        holm([0.1, 1.5])


@pytest.mark.parametrize(
    ("p", "word"), [(0.049, "significant"), (0.05, "within noise"), (math.nan, "not tested")]
)
def test_p_value_in_words(p, word):
    assert verdict(p) == word


def p_by_enumeration(differences):
    ranks = stats.rankdata(np.abs(differences))
    observed = min(ranks[differences > 0].sum(), ranks[differences < 0].sum())
    signs = np.array(list(itertools.product([0, 1], repeat=len(ranks))))
    sums = signs @ ranks
    return np.mean(np.minimum(sums, ranks.sum() - sums) <= observed)


def test_wilcoxon_without_ties_is_scipys_exact_test():
    a, b = np.random.default_rng(0).normal(size=(2, 12))
    theirs = stats.wilcoxon(a, b, method="exact")
    ours = wilcoxon(a, b)
    assert ours.statistic == theirs.statistic
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_wilcoxon_with_ties_by_enumeration():
    differences = np.array([1, 1, -1, 2, 2, 3, -3, 5, 6], dtype=float)
    assert wilcoxon(differences, np.zeros(9)).p_value == pytest.approx(p_by_enumeration(differences))


@given(differences=st.lists(st.integers(-4, 4), min_size=2, max_size=7))
def test_wilcoxon_with_ties_and_zeros_is_scipys_permutation_test(differences):
    values = np.array(differences, dtype=float)
    if not values.any():
        return
    theirs = stats.wilcoxon(values, method=stats.PermutationMethod(n_resamples=np.inf))
    ours = wilcoxon(values, np.zeros(len(values)))
    assert ours.statistic == theirs.statistic
    assert ours.p_value == pytest.approx(theirs.pvalue)


def test_rounding_does_not_break_a_tie_of_differences():
    # Both differences are a tenth, one ulp apart; the ranks must be 1.5 and 1.5.
    assert 0.9 - 0.8 != 0.4 - 0.3
    assert wilcoxon([0.9, 0.3], [0.8, 0.4]).statistic == 1.5


def test_wilcoxon_of_a_large_sample_is_near_the_normal_approximation():
    a, b = np.random.default_rng(0).normal([[0.15], [0.0]], 1, size=(2, 300))
    assert wilcoxon(a, b).p_value == pytest.approx(stats.wilcoxon(a, b, method="asymptotic").pvalue, rel=0.01)


def test_wilcoxon_ignores_pairs_without_a_difference_or_a_result():
    a = np.array([0.9, 0.8, 0.7, np.nan, 0.5])
    b = np.array([0.8, 0.6, 0.7, 0.9, np.nan])
    result = wilcoxon(a, b)
    assert (result.pairs, result.statistic, result.p_value) == (2, 0.0, 0.5)


def test_wilcoxon_without_differences_has_p_one():
    assert wilcoxon([0.5, 0.6], [0.5, 0.6]).p_value == 1.0


@pytest.mark.parametrize(("pairs", "possible"), [(5, False), (6, True)])
def test_six_data_sets_are_the_fewest_that_can_be_significant(pairs, possible):
    result = wilcoxon(np.arange(1.0, pairs + 1), np.zeros(pairs))
    assert result.p_value == result.smallest_p == 2 / 2**pairs


def test_wilcoxon_of_different_numbers_of_data_sets_is_refused():
    with pytest.raises(DataError, match=r"shapes \(2,\) and \(3,\)"):
        wilcoxon([1, 2], [1, 2, 3])


def test_wilcoxon_of_many_pairs_underflows_to_zero():
    result = wilcoxon(np.arange(1.0, 1201), np.zeros(1200))
    assert result.p_value == 0.0


# Areas under the curve of C4.5 with and without two options on 14 data sets (Demsar's Table 6). On `voting`
# its ranks 2 and 3 come from digits that are not printed; 0.9749 stands for them.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798], [0.599, 0.591, 0.590, 0.569], [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657], [0.882, 0.888, 0.886, 0.898], [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685], [0.583, 0.583, 0.563, 0.625], [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000], [0.940, 0.962, 0.965, 0.962], [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.975, 0.9749], [0.957, 0.978, 0.946, 0.970],
    ]
).T  # fmt: skip


def test_average_ranks_of_demsars_table():
    np.testing.assert_allclose(average_ranks(DEMSAR), [3.143, 2.000, 2.893, 1.964], atol=5e-4)


# Demsar's Table 5a: q at 0.05 for 2 to 10 classifiers.
@pytest.mark.parametrize(
    ("methods", "q"),
    list(zip(range(2, 11), [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164], strict=True)),
)
def test_critical_difference_has_the_published_quantiles(methods, q):
    datasets = 14
    scale = math.sqrt(methods * (methods + 1) / (6 * datasets))
    assert critical_difference(methods, datasets) / scale == pytest.approx(q, abs=1.1e-3)


def test_critical_difference_of_demsars_table():
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=5e-3)


def test_groups_may_overlap():
    # 1.25 apart: 1.964, 2.000 and 2.893 together; 2.000 and 3.143 too; 1.964 and 3.143 as well (1.179).
    assert indistinct_groups([3.143, 2.000, 2.893, 1.964], 1.25) == [[3, 1, 2, 0]]
    assert indistinct_groups([3.143, 2.000, 2.893, 1.964], 1.15) == [[3, 1, 2], [1, 2, 0]]


def test_a_group_inside_a_larger_one_is_not_listed():
    assert indistinct_groups([1.0, 1.5, 2.0, 5.0], 1.2) == [[0, 1, 2]]


def test_a_method_that_differs_from_all_is_in_no_group():
    assert indistinct_groups([1.0, 3.0, 5.0], 1.0) == []


def test_a_method_without_a_rank_is_in_no_group():
    assert indistinct_groups([1.0, math.nan, 1.5], 1.0) == [[0, 2]]


def test_ties_share_their_ranks():
    np.testing.assert_array_equal(average_ranks([[0.8], [0.9], [0.8], [0.7]]), [2.5, 1.0, 2.5, 4.0])


def test_rounding_does_not_break_a_tie_of_results():
    np.testing.assert_array_equal(average_ranks([[0.1 + 0.2], [0.3]]), [1.5, 1.5])


def test_a_missing_result_is_not_ranked():
    # First data set: methods 0 and 2 only, ranks 2 and 1. Second: 1, 2, 3.
    table = [[0.5, 0.9], [math.nan, 0.8], [0.6, 0.7]]
    np.testing.assert_array_equal(average_ranks(table), [1.5, 2.0, 2.0])


def test_a_method_without_any_result_has_no_rank():
    ranks = average_ranks([[0.5, 0.6], [math.nan, math.nan]])
    assert ranks[0] == 1.0
    assert math.isnan(ranks[1])


def test_only_complete_data_sets_remain():
    np.testing.assert_array_equal(complete([[1, 2, 3], [4, math.nan, 6]]), [[1, 3], [4, 6]])


@pytest.mark.parametrize("table", [[0.5, 0.6], np.zeros((0, 3)), [[math.inf, 0.5]]])
def test_an_invalid_table_is_refused(table):
    with pytest.raises(DataError):
        average_ranks(table)


@pytest.mark.parametrize(("methods", "datasets", "level"), [(1, 5, 0.05), (3, 0, 0.05), (3, 5, 0.0)])
def test_an_invalid_critical_difference_is_refused(methods, datasets, level):
    with pytest.raises(ConfigError):
        critical_difference(methods, datasets, level)


def test_bootstrap_deviation_of_a_mean_is_its_standard_error():
    """The variance of the mean of n draws with replacement is the variance (ddof 0) over n."""
    values = np.array([0.0, 1.0, 4.0, 9.0, 2.0])
    draws = bootstrap(lambda rows: values[rows].mean(), len(values), resamples=20_000)
    assert draws.shape == (20_000, 1)
    assert draws.mean() == pytest.approx(values.mean(), abs=0.05)
    assert draws.std() == pytest.approx(values.std() / math.sqrt(5), rel=0.03)


def test_bootstraps_of_one_seed_are_paired():
    one = bootstrap(lambda rows: rows, 7, resamples=3, seed=1)
    np.testing.assert_array_equal(one, bootstrap(lambda rows: rows, 7, resamples=3, seed=1))
    assert not np.array_equal(one, bootstrap(lambda rows: rows, 7, resamples=3, seed=2))


def test_an_interval_leaves_undefined_values_out():
    assert percentile_interval([np.nan, *range(101)], level=0.9) == pytest.approx((5.0, 95.0))
    assert all(map(math.isnan, percentile_interval([np.nan])))
