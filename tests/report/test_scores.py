"""Pictures of predictions: the points they draw, and what they refuse."""

import numpy as np
import pytest
from sklearn.metrics import roc_curve

from graphsc.core.errors import DataError
from graphsc.evaluation.metrics import Task
from graphsc.report.curves import parity_figure, roc_figure, roc_points, score_curves
from graphsc.report.figure import svg_of


def test_roc_points_are_those_of_scikit_learn():
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 50).astype(float), rng.integers(0, 9, 50).astype(float)
    false, true, _ = roc_curve(labels, scores, drop_intermediate=False)
    found = roc_points(Task(labels, scores))
    np.testing.assert_allclose(found[0], false)
    np.testing.assert_allclose(found[1], true)


def test_tasks_of_one_class_are_left_out_of_the_figure():
    good = Task(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    one_class = Task(np.array([1.0, 1.0]), np.array([2.0, 1.0]))
    text = svg_of(roc_figure({"good": good, "empty": one_class}))
    assert "good: 1.000" in text
    assert "empty" not in text
    with pytest.raises(DataError, match="both classes"):
        roc_figure({"empty": one_class})


def test_numbers_and_curves_are_drawn_with_their_names():
    task = Task(np.array([1.0, 2.0]), np.array([1.5, 1.8]))
    assert "logp, measured" in svg_of(parity_figure(task, "logp"))
    with pytest.raises(DataError, match="measured logp"):
        parity_figure(Task(np.zeros(0), np.zeros(0)), "logp")
    text = svg_of(score_curves([1, 2, 3], {"valid": [[0.5, 0.6, 0.7], [0.4, 0.6, 0.8]]}, "roc auc"))
    assert "valid" in text
    assert "roc auc" in text
