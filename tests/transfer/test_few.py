"""Fewer labels: nested draws, both classes, nothing without a label."""

import numpy as np
import pytest

from graphsc.core.errors import ConfigError
from graphsc.finetuning.dataset import rows_to_train

LABELS = np.array([[float(k % 10 == 0)] for k in range(100)])
ROWS = np.arange(100)


def test_smaller_fractions_are_part_of_larger_ones():
    drawn = [set(rows_to_train(LABELS, ROWS, "classification", f, seed=1)) for f in (0.2, 0.5, 1.0)]
    assert [len(rows) for rows in drawn] == [20, 50, 100]
    assert drawn[0] < drawn[1] < drawn[2]


@pytest.mark.parametrize("seed", range(8))
def test_both_classes_are_among_few(seed):
    rows = rows_to_train(LABELS, ROWS, "classification", 0.03, seed)
    assert len(rows) == 3
    assert set(LABELS[rows, 0]) == {0.0, 1.0}


def test_rows_without_any_label_are_left_out():
    labels = np.array([[1, np.nan], [np.nan, np.nan], [0, 1]])
    assert rows_to_train(labels, np.arange(3), "classification").tolist() == [0, 2]


def test_a_fraction_out_of_range_is_refused():
    with pytest.raises(ConfigError, match="label fraction"):
        rows_to_train(LABELS, ROWS, "classification", 1.5)
