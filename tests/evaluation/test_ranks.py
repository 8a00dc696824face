"""Ranks over data sets, against the worked example of Demsar (2006) and scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from graphsc.core.errors import ConfigError, DataError
from graphsc.evaluation.significance import (
    average_ranks,
    complete,
    critical_difference,
    friedman,
    indistinct_groups,
)

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


def test_friedman_of_demsars_table():
    result = friedman(DEMSAR, tie_correction=False)
    assert result.chi_square == pytest.approx(9.28, abs=5e-3)
    assert result.f == pytest.approx(3.69, abs=5e-3)
    assert result.f_p < 0.05
    assert result.datasets == 14


def test_friedman_with_correction_is_scipys():
    theirs = stats.friedmanchisquare(*DEMSAR)
    ours = friedman(DEMSAR)
    assert ours.chi_square == pytest.approx(theirs.statistic)
    assert ours.chi_square_p == pytest.approx(theirs.pvalue)


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


def test_methods_cannot_be_told_apart_in_overlapping_groups():
    # 1.25 apart: 1.964, 2.000 and 2.893 together; 2.000 and 3.143 too; 1.964 and 3.143 as well (1.179).
    assert indistinct_groups([3.143, 2.000, 2.893, 1.964], 1.25) == [[3, 1, 2, 0]]
    assert indistinct_groups([3.143, 2.000, 2.893, 1.964], 1.15) == [[3, 1, 2], [1, 2, 0]]


def test_a_group_inside_a_larger_one_is_not_listed():
    assert indistinct_groups([1.0, 1.5, 2.0, 5.0], 1.2) == [[0, 1, 2]]


def test_a_method_apart_from_all_is_in_no_group():
    assert indistinct_groups([1.0, 3.0, 5.0], 1.0) == []


def test_a_method_without_a_rank_is_in_no_group():
    assert indistinct_groups([1.0, math.nan, 1.5], 1.0) == [[0, 2]]


def test_ties_share_their_places():
    np.testing.assert_array_equal(average_ranks([[0.8], [0.9], [0.8], [0.7]]), [2.5, 1.0, 2.5, 4.0])


def test_rounding_does_not_break_a_tie():
    np.testing.assert_array_equal(average_ranks([[0.1 + 0.2], [0.3]]), [1.5, 1.5])


def test_a_missing_result_is_left_out_of_its_contest():
    # First data set: methods 0 and 2 only, ranks 2 and 1. Second: 1, 2, 3.
    table = [[0.5, 0.9], [math.nan, 0.8], [0.6, 0.7]]
    np.testing.assert_array_equal(average_ranks(table), [1.5, 2.0, 2.0])


def test_a_method_without_any_result_has_no_rank():
    ranks = average_ranks([[0.5, 0.6], [math.nan, math.nan]])
    assert ranks[0] == 1.0
    assert math.isnan(ranks[1])


def test_only_complete_data_sets_are_kept():
    np.testing.assert_array_equal(complete([[1, 2, 3], [4, math.nan, 6]]), [[1, 3], [4, 6]])


def test_friedman_where_all_are_tied_everywhere_is_p_one():
    result = friedman(np.full((3, 4), 0.5))
    assert (result.chi_square, result.chi_square_p, result.f_p) == (0.0, 1.0, 1.0)


def test_friedman_of_one_order_on_every_data_set():
    # The largest chi-square there is, N (k - 1).
    result = friedman([[0.9, 0.8, 0.7], [0.6, 0.5, 0.4], [0.3, 0.2, 0.1]])
    assert result.chi_square == pytest.approx(6.0)
    assert (result.f, result.f_p) == (math.inf, 0.0)


@pytest.mark.parametrize("table", [[[0.5, 0.6]], [[0.5], [0.6]], [[0.5, math.nan], [0.6, 0.7]]])
def test_friedman_refuses_too_little(table):
    with pytest.raises(DataError, match="cannot be compared"):
        friedman(table)


@pytest.mark.parametrize("table", [[0.5, 0.6], np.zeros((0, 3)), [[math.inf, 0.5]]])
def test_what_is_no_table_is_refused(table):
    with pytest.raises(DataError):
        average_ranks(table)


@pytest.mark.parametrize(("methods", "datasets", "level"), [(1, 5, 0.05), (3, 0, 0.05), (3, 5, 0.0)])
def test_no_critical_difference_of_nothing(methods, datasets, level):
    with pytest.raises(ConfigError):
        critical_difference(methods, datasets, level)
