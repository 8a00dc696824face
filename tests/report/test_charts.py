"""Charts that compare methods and settings: what is drawn from which numbers."""

import math

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import accuracy_bars, gain_plot, heat_panels, importance_bars
from graphsc.report.figure import svg_of


def test_accuracy_bars_show_mean_deviation_and_every_seed():
    figure = accuracy_bars({"a": [0.5, 0.7], "b": [0.9]}, untrained=0.6)
    axis = figure.axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["a", "b"]
    seeds = [collection for collection in axis.collections if collection.get_gid() == "seeds"]
    np.testing.assert_allclose(np.asarray(seeds[0].get_offsets())[:, 0], [50, 70])
    _, _, (error_bar,) = axis.containers[0]
    deviation = 20 / math.sqrt(2)  # of two values, ddof 1
    np.testing.assert_allclose(error_bar.get_segments()[0][:, 0], [60 - deviation, 60 + deviation])
    np.testing.assert_allclose(np.asarray(axis.containers[0][0].get_xdata(), float), [60])
    assert [line.get_xdata()[0] for line in axis.lines if line.get_label() == "untrained"] == [60]


@pytest.mark.parametrize("accuracy", [{}, {"a": []}, {"a": [0.5, math.nan]}, {"a": [[0.5]]}])
def test_accuracy_bars_without_one_number_per_seed_are_refused(accuracy):
    with pytest.raises(DataError):
        accuracy_bars(accuracy)


def test_method_names_are_escaped_in_the_svg():
    text = svg_of(accuracy_bars({"<script>x</script>": [0.5, 0.6]}))
    assert "<script" not in text
    assert "&lt;script&gt;" in text


def test_the_most_important_setting_is_first_with_its_share():
    axis = importance_bars({"a": 0.2, "b": 0.7, "c": 0.1}).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["b", "a", "c"]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([70, 20, 10])
    assert [text.get_text().strip() for text in axis.texts] == ["70", "20", "10"]


@pytest.mark.parametrize("importance", [{}, {"a": float("nan")}])
def test_importance_bars_without_shares_are_refused(importance):
    with pytest.raises(DataError):
        importance_bars(importance)


def test_gains_are_drawn_for_every_condition_and_data_set():
    figure = gain_plot(
        {
            "untrained": {
                "few labels": {"A": (1.0, 0.5), "B": (-1.0, np.nan)},
                "all labels": {"A": (0.2, 0.1)},
            },
            "other": {"few labels": {"A": (0.3, 0.1)}},
        }
    )
    first, second = figure.axes
    heights = [container.lines[0].get_ydata().tolist() for container in first.containers]
    assert heights == [[1.0, 0.2], [-1.0]]
    assert [container.lines[0].get_ydata().tolist() for container in second.containers] == [[0.3], []]
    text = svg_of(figure)
    assert all(word in text for word in ("few", "labels", "points above", "untrained", "other"))


def test_a_gain_plot_without_gains_is_refused():
    with pytest.raises(DataError, match="no gains"):
        gain_plot({"untrained": {}})


def test_a_heat_map_writes_numbers_hatches_missing_cells_and_leaves_blank_ones_white():
    table = np.array([[1.04, np.nan], [-0.02, 5.0]])
    figure = heat_panels(
        {"A": table}, ["a", "b"], ["c", "d"], row_label="r", column_label="c", value_label="v",
        blank=np.array([[False, False], [False, True]]),
    )  # fmt: skip
    axis = figure.axes[0]
    assert [text.get_text() for text in axis.texts] == ["+1.0", "0.0"]
    assert len([patch for patch in axis.patches if patch.get_hatch()]) == 1
    (image,) = axis.get_images()
    assert np.isnan(np.ma.filled(image.get_array(), np.nan)).sum() == 2
    assert image.norm.vmin == -image.norm.vmax


def test_heat_panels_without_a_panel_are_refused():
    with pytest.raises(DataError):
        heat_panels({}, ["a"], ["b"], row_label="", column_label="", value_label="")


def test_the_legend_of_gains_is_inside_the_figure():
    names = ["MUTAG", "PROTEINS", "IMDB-BINARY", "NCI1", "DD", "REDDIT-BINARY", "COLLAB", "REDDIT-MULTI-5K"]
    figure = gain_plot({"untrained": {"all labels": dict.fromkeys(names, (1.0, 0.2))}})
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width
