"""Curves and rows of accuracy: what is drawn from which numbers."""

import math

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import accuracy_bars
from graphsc.report.curves import accuracy_curves, health_curves, loss_curves
from graphsc.report.figure import svg_of

ROWS = [
    {"epoch": 1, "loss": 0.5, "loss_self": 0.3, "loss_factor": 0.2, "gradient_self": 2.0, "seconds": 1.0,
     "effective_rank": 20.0, "dimensions": 96.0, "uniformity": -2.0, "alignment": 0.4},
    {"epoch": 2, "loss": 0.4, "loss_self": 0.3, "loss_factor": 0.1, "seconds": 1.0,
     "effective_rank": 18.0, "dimensions": 96.0, "uniformity": -1.9, "alignment": 0.3},
]  # fmt: skip


def lines_of(figure):
    return {line.get_label(): line for line in figure.axes[0].lines}


def test_the_loss_and_its_parts_and_nothing_else_are_drawn():
    lines = lines_of(loss_curves(ROWS))
    assert set(lines) == {"loss", "loss self", "loss factor"}
    np.testing.assert_array_equal(lines["loss factor"].get_xydata(), [[1, 0.2], [2, 0.1]])


def test_losses_of_two_players_are_drawn():
    rows = [{"epoch": 1, "loss": 1.0, "loss_contrast": 0.6, "view_loss": 0.2, "view_loss_cut": 0.1}]
    assert set(lines_of(loss_curves(rows))) == {"loss", "loss contrast", "view loss", "view loss cut"}


def test_a_single_part_is_not_drawn_twice():
    assert set(lines_of(loss_curves([{"epoch": 1, "loss": 1.0, "loss_contrast": 1.0}]))) == {"loss"}


@pytest.mark.parametrize(
    ("small", "scale"), [(0.2, "linear"), (0.001, "log"), (-0.001, "linear"), (0.0, "linear")]
)
def test_the_scale_is_logarithmic_only_for_positive_parts_of_unlike_size(small, scale):
    figure = loss_curves([{"epoch": 1, "loss": 1.0, "loss_a": 0.9, "loss_b": small}])
    assert figure.axes[0].get_yscale() == scale


def test_a_loss_missing_from_some_epochs_is_drawn_where_it_is():
    rows = [{"epoch": 1, "loss": 1.0}, {"epoch": 2, "loss": 0.9, "loss_late": 0.4}]
    np.testing.assert_array_equal(lines_of(loss_curves(rows))["loss late"].get_xydata(), [[2, 0.4]])


def test_metrics_without_a_loss_are_refused():
    with pytest.raises(DataError, match="no loss"):
        loss_curves([{"epoch": 1, "seconds": 2.0}])


def test_only_the_health_figures_that_are_there_are_drawn():
    titles = [axis.get_title(loc="left") for axis in health_curves(ROWS).axes]
    assert titles == ["effective rank", "uniformity", "alignment"]


def test_the_rank_is_seen_against_all_dimensions():
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
    # Deviations 0.1 and 0.2 (ddof 0).
    assert {tuple(point.round(6)) for point in band.get_paths()[0].vertices} >= {
        (0, 50), (0, 70), (1, 60), (1, 100)
    }  # fmt: skip
    np.testing.assert_allclose(lines_of(figure)["untrained"].get_ydata(), [55, 55])


def test_one_seed_has_no_band():
    assert not accuracy_curves([0, 1], {"a": [0.5, 0.6]}).axes[0].collections


def test_an_epoch_that_no_seed_probed_is_left_out():
    table = [[0.5, math.nan, 0.7], [0.5, math.nan, math.nan]]
    line = lines_of(accuracy_curves([0, 1, 2], {"a": table}))["a"]
    np.testing.assert_allclose(line.get_xydata(), [[0, 50], [2, 70]])


def test_accuracies_for_other_epochs_are_refused():
    with pytest.raises(DataError, match="a has 2 accuracies a seed for 3 epochs"):
        accuracy_curves([0, 1, 2], {"a": [[0.5, 0.6]]})


def test_bars_show_mean_deviation_and_every_seed():
    figure = accuracy_bars({"a": [0.5, 0.7], "b": [0.9]}, untrained=0.6)
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    seeds = [collection for collection in axis.collections if collection.get_gid() == "seeds"]
    np.testing.assert_allclose(np.asarray(seeds[0].get_offsets())[:, 0], [50, 70])
    _, _, (reach,) = axis.containers[0]
    np.testing.assert_allclose(reach.get_segments()[0][:, 0], [50, 70])
    np.testing.assert_allclose(np.asarray(axis.containers[0][0].get_xdata(), float), [60])
    assert [line.get_xdata()[0] for line in axis.lines if line.get_label() == "untrained"] == [60]


@pytest.mark.parametrize("accuracy", [{}, {"a": []}, {"a": [0.5, math.nan]}, {"a": [[0.5]]}])
def test_bars_of_nothing_are_refused(accuracy):
    with pytest.raises(DataError):
        accuracy_bars(accuracy)


def test_names_from_outside_are_escaped_in_the_svg():
    text = svg_of(accuracy_bars({"<script>x</script>": [0.5, 0.6]}))
    assert "<script" not in text
    assert "&lt;script&gt;" in text
