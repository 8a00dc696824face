"""Plots of predictions: the points they draw, and the input they refuse."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.evaluation.metrics import Task
from graphsc.report.figure import svg_of
from graphsc.report.predictions import confusion_figure, parity_figure, reliability_figure, roc_figure


def test_the_roc_curve_passes_through_the_rates_of_the_thresholds():
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(0, 2, 50).astype(float), rng.integers(0, 9, 50).astype(float)
    _, curve = roc_figure({"t": Task(labels, scores)}).axes[0].lines
    positive, negative = scores[labels == 1], scores[labels == 0]
    rates = {(np.mean(negative >= t), np.mean(positive >= t)) for t in (*scores, np.inf)}
    x, y = curve.get_data()
    assert set(zip(x, y, strict=True)) <= rates
    # The area under the curve is the probability that a positive scores higher; ties count half.
    higher = np.mean((positive[:, None] > negative) + 0.5 * (positive[:, None] == negative))
    assert np.sum(np.diff(x) * (y[1:] + y[:-1]) / 2) == pytest.approx(higher)


def test_tasks_with_one_class_are_left_out_of_the_roc_figure():
    good = Task(np.array([1.0, 0.0]), np.array([2.0, 1.0]))
    one_class = Task(np.array([1.0, 1.0]), np.array([2.0, 1.0]))
    text = svg_of(roc_figure({"good": good, "empty": one_class}))
    assert "good: 1.000" in text
    assert "empty" not in text
    with pytest.raises(DataError, match="both classes"):
        roc_figure({"empty": one_class})


def test_the_parity_figure_names_its_quantity_and_needs_a_molecule():
    task = Task(np.array([1.0, 2.0]), np.array([1.5, 1.8]))
    assert "logp, measured" in svg_of(parity_figure(task, "logp"))
    with pytest.raises(DataError, match="measured logp"):
        parity_figure(Task(np.zeros(0), np.zeros(0)), "logp")


def test_a_confusion_matrix_shows_its_counts():
    figure = confusion_figure(np.array([[54, 9], [14, 1110]]), ["no", "yes"])
    assert [text.get_text() for text in figure.axes[0].texts] == ["54", "9", "14", "1,110"]


def test_a_confusion_matrix_of_another_number_of_classes_is_refused():
    with pytest.raises(DataError):
        confusion_figure(np.zeros((2, 2), np.int64), ["one"])


def test_a_reliability_curve_has_a_line_per_name_and_needs_labels():
    svg = svg_of(
        reliability_figure({"calibrated": [(0.1, 0.2, 5), (0.9, 0.8, 20)], "before": [(0.5, 0.5, 25)]})
    )
    for text in ("calibrated", "before", "predicted probability", "share of positives"):
        assert text in svg
    with pytest.raises(DataError, match="no reliability curve"):
        reliability_figure({"calibrated": []})


def test_a_parity_plot_says_its_errors():
    task = Task(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0]))
    # Errors 0, 0 and 1: RMSE sqrt(1/3), MAE 1/3; R2 = 1 - 1/2.
    assert "RMSE 0.577, MAE 0.333, R² 0.50" in svg_of(parity_figure(task, "logP"))
