"""Training curves and panels of lines: what is drawn from which numbers."""

import math

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.curves import (
    Line,
    accuracy_curves,
    health_curves,
    line_panels,
    loss_curves,
    score_curves,
)
from graphsc.report.figure import svg_of

X = np.array([1.0, 10.0, 100.0])
ROWS = [
    {"epoch": 1, "loss": 0.5, "loss_self": 0.3, "loss_factor": 0.2, "gradient_self": 2.0, "seconds": 1.0,
     "effective_rank": 20.0, "dimensions": 96.0, "uniformity": -2.0, "alignment": 0.4},
    {"epoch": 2, "loss": 0.4, "loss_self": 0.3, "loss_factor": 0.1, "seconds": 1.0,
     "effective_rank": 18.0, "dimensions": 96.0, "uniformity": -1.9, "alignment": 0.3},
]  # fmt: skip


def lines_of(figure):
    return {line.get_label(): line for line in figure.axes[0].lines}


def test_the_loss_and_its_terms_and_nothing_else_are_panel_lines():
    lines = lines_of(loss_curves(ROWS))
    assert set(lines) == {"loss", "loss self", "loss factor"}
    np.testing.assert_array_equal(lines["loss factor"].get_xydata(), [[1, 0.2], [2, 0.1]])


def test_losses_of_two_players_are_panel_lines():
    rows = [{"epoch": 1, "loss": 1.0, "loss_contrast": 0.6, "view_loss": 0.2, "view_loss_cut": 0.1}]
    assert set(lines_of(loss_curves(rows))) == {"loss", "loss contrast", "view loss", "view loss cut"}


def test_a_single_loss_term_is_not_drawn_twice():
    assert set(lines_of(loss_curves([{"epoch": 1, "loss": 1.0, "loss_contrast": 1.0}]))) == {"loss"}


@pytest.mark.parametrize(
    ("small", "scale"), [(0.2, "linear"), (0.001, "log"), (-0.001, "linear"), (0.0, "linear")]
)
def test_the_scale_is_logarithmic_only_for_positive_losses_of_different_magnitude(small, scale):
    figure = loss_curves([{"epoch": 1, "loss": 1.0, "loss_a": 0.9, "loss_b": small}])
    assert figure.axes[0].get_yscale() == scale


def test_a_loss_missing_from_some_epochs_is_drawn_at_the_others():
    rows = [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.9, "loss_late": 0.4}]
    np.testing.assert_array_equal(lines_of(loss_curves(rows))["loss late"].get_xydata(), [[2, 0.4]])


def test_metrics_without_a_loss_are_refused():
    with pytest.raises(DataError, match="no loss"):
        loss_curves([{"epoch": 1, "seconds": 2.0}])


def test_only_the_health_columns_in_the_rows_are_panel_lines():
    titles = [axis.get_title(loc="left") for axis in health_curves(ROWS).axes]
    assert titles == ["effective rank", "uniformity", "alignment"]


def test_the_effective_rank_axis_spans_all_dimensions():
    axis = health_curves(ROWS).axes[0]
    assert axis.get_ylim()[0] == 0
    assert 96 <= axis.get_ylim()[1] < 105


def test_metrics_without_health_are_refused():
    with pytest.raises(DataError, match="no health"):
        health_curves([])


def test_mean_and_band_over_seeds():
    figure = accuracy_curves([0, 1], {"a": [[0.5, 0.6], [0.7, 1.0]]}, untrained=0.55)
    np.testing.assert_allclose(lines_of(figure)["a"].get_ydata(), [60, 80])
    (band,) = figure.axes[0].collections
    # Deviations of two values are their difference by the root of 2 (ddof 1).
    low, high = 20 / math.sqrt(2), 40 / math.sqrt(2)
    expected = [(0, 60 - low), (0, 60 + low), (1, 80 - high), (1, 80 + high)]
    drawn = band.get_paths()[0].vertices
    assert all(np.isclose(drawn, point).all(axis=1).any() for point in expected)
    np.testing.assert_allclose(lines_of(figure)["untrained"].get_ydata(), [55, 55])


def test_one_seed_has_no_band():
    assert not accuracy_curves([0, 1], {"a": [0.5, 0.6]}).axes[0].collections


def test_an_epoch_that_no_seed_evaluated_is_left_out():
    table = [[0.5, math.nan, 0.7], [0.5, math.nan, math.nan]]
    line = lines_of(accuracy_curves([0, 1, 2], {"a": table}))["a"]
    np.testing.assert_allclose(line.get_xydata(), [[0, 50], [2, 70]])


def test_accuracies_for_another_number_of_epochs_are_refused():
    with pytest.raises(DataError, match="a has 2 accuracies per seed for 3 epochs"):
        accuracy_curves([0, 1, 2], {"a": [[0.5, 0.6]]})


def test_scores_are_drawn_with_their_names():
    text = svg_of(score_curves([1, 2, 3], {"valid": [[0.5, 0.6, 0.7], [0.4, 0.6, 0.8]]}, "roc auc"))
    assert "valid" in text
    assert "roc auc" in text


def panel_lines(axis):
    """The lines themselves: no rings, no references, no caps of error bars."""
    return [line for line in axis.get_lines() if len(line.get_xdata()) > 2 and line.get_linestyle() != "None"]


def test_a_panel_line_is_the_mean_over_seeds_with_its_own_colour_and_marker():
    lines = {"one": Line(X, np.array([[1.0, 2, 3], [3, 4, np.nan]])), "two": Line(X, np.ones((1, 3)))}
    figure = line_panels({"A": lines, "B": lines}, x_label="epoch")
    first, second = figure.axes
    one, two = panel_lines(first)
    np.testing.assert_allclose(one.get_ydata(), [2, 3, 3])
    assert one.get_marker() != two.get_marker()
    assert one.get_color() != two.get_color()
    assert [line.get_color() for line in panel_lines(second)] == [one.get_color(), two.get_color()]


def test_a_log_axis_has_its_ticks_at_the_values():
    figure = line_panels({"A": {"one": Line(X, np.ones((1, 3)))}}, x_label="weight", log=True)
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["1", "10", "100"]


def test_lines_at_the_same_values_are_offset_on_a_log_axis():
    lines = {name: Line(X, np.ones((2, 3))) for name in ("one", "two")}
    one, two = panel_lines(line_panels({"A": lines}, x_label="weight", log=True).axes[0])
    assert (one.get_xdata() < two.get_xdata()).all()
    np.testing.assert_allclose(one.get_xdata(), X, rtol=0.06)


def test_the_legend_explains_rings_once_and_only_if_there_are_any():
    lines = {"one": Line(X, np.ones((1, 3)), mark=10.0), "two": Line(X, np.ones((1, 3)))}
    figure = line_panels({"A": lines, "B": lines}, x_label="epoch", mark_label="near")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two", "near"]
    without = line_panels({"A": {"two": lines["two"]}}, x_label="epoch", mark_label="near")
    assert [text.get_text() for text in without.legends[0].get_texts()] == ["two"]


def test_an_empty_panel_says_not_run_yet():
    figure = line_panels({"A": {"one": Line(X, np.full((1, 3), np.nan))}}, x_label="epoch")
    assert [text.get_text() for text in figure.axes[0].texts] == ["not run yet"]


def test_line_panels_without_a_panel_are_refused():
    with pytest.raises(DataError):
        line_panels({}, x_label="epoch")
