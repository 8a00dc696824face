"""Measures over tasks with missing labels, by hand and against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score, roc_auc_score

from graphsc.evaluation.metrics import (
    Task,
    average_precision,
    mae,
    mean_over_tasks,
    measure,
    rmse,
    roc_auc,
    skipped,
    tasks_of,
)

NAN = np.nan


def task(labels, scores):
    return Task(np.array(labels, float), np.array(scores, float))


def test_roc_auc_by_hand():
    # Pairs (positive, negative): 0.9 beats 0.8 and 0.1; 0.4 loses to 0.8, beats 0.1: 3 of 4.
    assert roc_auc(task([1, 0, 1, 0], [0.9, 0.8, 0.4, 0.1])) == 0.75
    # A tie counts half: (0.5 against 0.5) and (0.5 against 0.1): 1.5 of 2.
    assert roc_auc(task([1, 0, 0], [0.5, 0.5, 0.1])) == 0.75


def test_average_precision_by_hand():
    # Positives at ranks 1 and 3: (1/1 + 2/3) / 2.
    assert average_precision(task([1, 0, 1, 0], [0.9, 0.8, 0.4, 0.1])) == pytest.approx(5 / 6)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 6)), min_size=2, max_size=40))
def test_both_equal_scikit_learn_with_ties(pairs):
    labels, scores = np.array([a for a, _ in pairs], float), np.array([b for _, b in pairs], float)
    if len(set(labels)) < 2:
        assert np.isnan(roc_auc(Task(labels, scores)))
        return
    assert roc_auc(Task(labels, scores)) == pytest.approx(roc_auc_score(labels, scores))
    expected = average_precision_score(labels, scores)
    assert average_precision(Task(labels, scores)) == pytest.approx(expected)


def test_errors_of_numbers_by_hand():
    found = task([1.0, 2.0, 4.0], [1.0, 4.0, 1.0])  # errors 0, 2, -3
    assert rmse(found) == pytest.approx(np.sqrt(13 / 3))
    assert mae(found) == pytest.approx(5 / 3)


def test_missing_labels_count_nowhere_and_one_class_has_no_score():
    labels = np.array([[1, 1, NAN], [0, 1, NAN], [NAN, 1, NAN], [1, NAN, NAN]])
    scores = np.array([[0.9, 0.1, 0], [0.2, 0.2, 0], [0.0, 0.3, 0], [0.1, 0.9, 0]])
    tasks = tasks_of(labels, scores)
    assert [len(one.labels) for one in tasks] == [3, 3, 0]
    found = measure(tasks, "classification")
    # The first task: 0.9 beats 0.2, 0.1 does not: a half. The others have one class or nothing.
    np.testing.assert_array_equal(found["roc_auc"], [0.5, NAN, NAN])
    assert np.isnan(found["average_precision"][1:]).all()
    assert mean_over_tasks(found["roc_auc"]) == 0.5
    assert skipped(found["roc_auc"], ["a", "b", "c"]) == ["b", "c"]


def test_nothing_to_average_is_nan():
    assert np.isnan(mean_over_tasks(np.array([NAN, NAN])))
    assert np.isnan(rmse(task([], [])))
