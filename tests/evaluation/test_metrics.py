"""Metrics of tasks with missing labels and scores per class, by hand, by loops and against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr
from sklearn.metrics import average_precision_score, r2_score, roc_auc_score

from graphsc.core.errors import DataError
from graphsc.evaluation.metrics import (
    Task,
    average_precision,
    class_scores,
    confusion_matrix,
    mae,
    mean_over_tasks,
    measure,
    r2,
    rmse,
    roc_auc,
    skipped,
    spearman,
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
def test_auc_and_average_precision_equal_scikit_learn_with_ties(pairs):
    labels, scores = np.array([a for a, _ in pairs], float), np.array([b for _, b in pairs], float)
    if len(set(labels)) < 2:
        assert np.isnan(roc_auc(Task(labels, scores)))
        return
    assert roc_auc(Task(labels, scores)) == pytest.approx(roc_auc_score(labels, scores))
    expected = average_precision_score(labels, scores)
    assert average_precision(Task(labels, scores)) == pytest.approx(expected)


def test_regression_errors_by_hand():
    example = task([1.0, 2.0, 4.0], [1.0, 4.0, 1.0])  # errors 0, 2, -3
    assert rmse(example) == pytest.approx(np.sqrt(13 / 3))
    assert mae(example) == pytest.approx(5 / 3)


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=2, max_size=30))
def test_explained_variance_and_rank_correlation_equal_scikit_learn_and_scipy(pairs):
    labels, scores = np.array(pairs, float).T
    found = Task(labels, scores)
    if len(set(labels)) < 2:
        assert np.isnan(r2(found))
    else:
        assert r2(found) == pytest.approx(r2_score(labels, scores))
    if min(len(set(labels)), len(set(scores))) < 2:
        assert np.isnan(spearman(found))
    else:
        assert spearman(found) == pytest.approx(spearmanr(labels, scores).statistic)


def test_missing_labels_are_ignored_and_one_class_has_no_score():
    labels = np.array([[1, 1, NAN], [0, 1, NAN], [NAN, 1, NAN], [1, NAN, NAN]])
    scores = np.array([[0.9, 0.1, 0], [0.2, 0.2, 0], [0.0, 0.3, 0], [0.1, 0.9, 0]])
    tasks = tasks_of(labels, scores)
    assert [len(each.labels) for each in tasks] == [3, 3, 0]
    values = measure(tasks, "classification")
    # First task: 0.9 beats 0.2, 0.1 does not: a half. The others have one class or no labels.
    np.testing.assert_array_equal(values["roc_auc"], [0.5, NAN, NAN])
    assert np.isnan(values["average_precision"][1:]).all()
    assert mean_over_tasks(values["roc_auc"]) == 0.5
    assert skipped(values["roc_auc"], ["a", "b", "c"]) == ["b", "c"]


def test_a_mean_over_nothing_is_nan():
    assert np.isnan(mean_over_tasks(np.array([NAN, NAN])))
    assert np.isnan(rmse(task([], [])))


@pytest.fixture
def classified():
    """True and predicted classes from 0 to 3 of 200 graphs."""
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, 200), rng.integers(0, 4, 200)


def test_rows_are_true_classes_and_columns_predicted_ones():
    assert confusion_matrix([0, 0, 1], [0, 1, 1], 3).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_the_confusion_matrix_by_loop(classified):
    expected = np.zeros((4, 4), int)
    for true, predicted in zip(*classified, strict=True):
        expected[true, predicted] += 1
    np.testing.assert_array_equal(confusion_matrix(*classified, 4), expected)


def test_class_scores_by_counting(classified):
    scores = class_scores(confusion_matrix(*classified, 4))
    true, predicted = classified
    for code in range(4):
        correct = sum((true == code) & (predicted == code))
        precision, recall = correct / sum(predicted == code), correct / sum(true == code)
        assert scores.precision[code] == pytest.approx(precision)
        assert scores.recall[code] == pytest.approx(recall)
        assert scores.f1[code] == pytest.approx(2 * precision * recall / (precision + recall))
        assert scores.graphs[code] == sum(true == code)


def test_undefined_class_scores_are_nan():
    # Class 1 exists and is never predicted; class 2 neither exists nor is predicted.
    scores = class_scores(confusion_matrix([0, 1], [0, 0], 3))
    np.testing.assert_array_equal(scores.precision, [0.5, np.nan, np.nan])
    np.testing.assert_array_equal(scores.recall, [1.0, 0.0, np.nan])
    np.testing.assert_allclose(scores.f1, [2 / 3, 0.0, np.nan])


def test_class_scores_of_no_graphs_are_nan():
    scores = class_scores(confusion_matrix([], [], 2))
    assert np.isnan([scores.precision, scores.recall, scores.f1]).all()
    np.testing.assert_array_equal(scores.graphs, [0, 0])


@pytest.mark.parametrize(("labels", "predictions"), [([0, 1], [0]), ([0, 2], [0, 1]), ([-1, 0], [0, 0])])
def test_an_invalid_class_or_shape_is_refused(labels, predictions):
    with pytest.raises(DataError):
        confusion_matrix(labels, predictions, 2)
