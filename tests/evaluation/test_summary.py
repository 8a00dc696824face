"""The mean and the deviations of a small table, worked out by hand."""

import math

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.evaluation.significance import run_means, summarise

# Three seeds of two folds: run means 2, 4, 9; deviations within the runs 1, 2, 3.
TABLE = np.array([[1.0, 3.0], [2.0, 6.0], [6.0, 12.0]])


def test_mean_is_that_of_the_run_means():
    np.testing.assert_array_equal(run_means(TABLE), [2.0, 4.0, 9.0])
    assert summarise(TABLE).mean == 5.0


def test_deviation_over_seeds():
    # Squares 9, 1, 16.
    summary = summarise(TABLE)
    assert summary.over_seeds_ddof0 == pytest.approx(math.sqrt(26 / 3))
    assert summary.over_seeds_ddof1 == pytest.approx(math.sqrt(26 / 2))


def test_deviation_over_folds():
    summary = summarise(TABLE)
    assert summary.over_folds_ddof0 == pytest.approx(2.0)
    assert summary.over_folds_ddof1 == pytest.approx(2.0 * math.sqrt(2))


def test_counts_are_not_mixed_up():
    assert (summarise(TABLE).seeds, summarise(TABLE).folds) == (3, 2)


def test_one_seed_has_no_sample_deviation():
    summary = summarise([[0.8, 0.9]])
    assert summary.over_seeds_ddof0 == 0.0
    assert math.isnan(summary.over_seeds_ddof1)


def test_one_fold_has_no_sample_deviation():
    assert math.isnan(summarise([[0.8], [0.9]]).over_folds_ddof1)


@pytest.mark.parametrize("table", [[0.8, 0.9], [[0.8, math.nan]], np.zeros((0, 10))])
def test_what_is_not_seeds_by_folds_is_refused(table):
    with pytest.raises(DataError):
        summarise(table)
