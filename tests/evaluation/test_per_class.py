"""Confusion matrix and scores by class, against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as reference
from sklearn.metrics import precision_recall_fscore_support

from graphsc.core.errors import DataError
from graphsc.evaluation.metrics import class_scores, confusion_matrix


@pytest.fixture
def answers():
    rng = np.random.default_rng(0)
    return rng.integers(0, 4, 200), rng.integers(0, 4, 200)


def test_rows_are_true_classes_and_columns_predicted_ones():
    assert confusion_matrix([0, 0, 1], [0, 1, 1], 3).tolist() == [[1, 1, 0], [0, 1, 0], [0, 0, 0]]


def test_the_matrix_is_scikit_learn_s(answers):
    assert np.array_equal(confusion_matrix(*answers, 4), reference(*answers))


def test_the_scores_are_scikit_learn_s(answers):
    found = class_scores(confusion_matrix(*answers, 4))
    precision, recall, f1, graphs = precision_recall_fscore_support(*answers)
    np.testing.assert_allclose([found.precision, found.recall, found.f1], [precision, recall, f1])
    assert np.array_equal(found.graphs, graphs)


def test_what_cannot_be_said_is_nan():
    # Class 1 exists and is never given; class 2 neither exists nor is given.
    found = class_scores(confusion_matrix([0, 1], [0, 0], 3))
    np.testing.assert_array_equal(found.precision, [0.5, np.nan, np.nan])
    np.testing.assert_array_equal(found.recall, [1.0, 0.0, np.nan])
    np.testing.assert_allclose(found.f1, [2 / 3, 0.0, np.nan])


@pytest.mark.parametrize(("labels", "predictions"), [([0, 1], [0]), ([0, 2], [0, 1]), ([-1, 0], [0, 0])])
def test_what_does_not_fit_is_refused(labels, predictions):
    with pytest.raises(DataError):
        confusion_matrix(labels, predictions, 2)
