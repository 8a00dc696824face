"""Calibration of probabilities and its measure."""

import numpy as np
import pytest

from graphsc.evaluation.metrics import Task
from graphsc.finetuning.calibration import (
    Calibration,
    expected_calibration_error,
    fit_platt,
    log_odds,
    reliability,
    sigmoid,
)


def test_the_error_of_calibration_by_hand():
    # Bin 0.1 to 0.2: probability 0.15, one of two positive. Bin 0.9 to 1: 0.95 and 1.0, both positive.
    task = Task(np.array([0.0, 1, 1, 1]), np.array([0.15, 0.15, 0.95, 1.0]))
    bins = reliability(task)
    assert [(one.probability, one.share, one.molecules) for one in bins] == [
        (pytest.approx(0.15), 0.5, 2), (pytest.approx(0.975), 1.0, 2),
    ]  # fmt: skip
    assert expected_calibration_error(task) == pytest.approx((2 * 0.35 + 2 * 0.025) / 4)
    assert np.isnan(expected_calibration_error(Task(np.zeros(0), np.zeros(0))))


def test_overconfident_scores_are_drawn_back(rng):
    truth = rng.normal(size=4_000)
    labels = (rng.random(4_000) < sigmoid(truth)).astype(float)
    found = fit_platt(Task(labels, 3 * truth + 1))
    # The right answer is slope 1/3 and shift -1/3.
    assert found.slope == pytest.approx(1 / 3, abs=0.05)
    assert found.shift == pytest.approx(-1 / 3, abs=0.1)
    after = Task(labels, sigmoid(found.apply(3 * truth + 1)))
    assert expected_calibration_error(after) < 0.03
    assert expected_calibration_error(Task(labels, sigmoid(3 * truth + 1))) > 0.1


def test_few_labels_change_little():
    task = Task(np.array([0.0, 1, 0, 1]), np.array([5.0, 9, 6, 8]))  # separated at 7
    found, free = fit_platt(task), fit_platt(task, prior=1e-3)
    assert free.shift < -4
    assert -1.5 < found.shift < 0
    assert 0.3 < found.slope < 1


def test_one_class_changes_nothing_and_a_slope_alone_has_no_shift(rng):
    assert fit_platt(Task(np.ones(5), rng.normal(size=5))) == Calibration()
    assert fit_platt(Task(np.array([0.0, 1]), np.array([3.0, 1.0])), with_shift=False).shift == 0


def test_ranks_stay(rng):
    scores = rng.normal(size=50)
    labels = (scores + rng.normal(size=50) < 0).astype(float)  # the scores are the wrong way round
    found = fit_platt(Task(labels, scores))
    assert found.slope > 0
    np.testing.assert_array_equal(np.argsort(found.apply(scores)), np.argsort(scores))


def test_log_odds_and_sigmoid_are_inverse():
    values = np.array([0.01, 0.5, 0.99])
    np.testing.assert_allclose(sigmoid(log_odds(values)), values)
    assert np.isfinite(log_odds(np.array([0.0, 1.0]))).all()
    assert sigmoid(np.array([1e9, -1e9])).tolist() == [pytest.approx(1), pytest.approx(0)]
