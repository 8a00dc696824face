"""Panels of lines and heat maps hold what was given, and survive what is missing."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import heat_panels
from graphsc.report.curves import Line, line_panels

X = np.array([1.0, 10.0, 100.0])


def drawn(axis):
    """The lines themselves: no rings, no references, no caps of error bars."""
    return [line for line in axis.get_lines() if len(line.get_xdata()) > 2 and line.get_linestyle() != "None"]


def test_a_line_is_the_mean_over_seeds_and_has_its_own_dashes_and_shape():
    lines = {"one": Line(X, np.array([[1.0, 2, 3], [3, 4, np.nan]])), "two": Line(X, np.ones((1, 3)))}
    figure = line_panels({"A": lines, "B": lines}, x_label="epoch")
    first, second = figure.axes
    one, two = drawn(first)
    np.testing.assert_allclose(one.get_ydata(), [2, 3, 3])
    assert one.get_marker() != two.get_marker()
    assert one.get_color() != two.get_color()
    assert [line.get_color() for line in drawn(second)] == [one.get_color(), two.get_color()]


def test_a_log_axis_has_its_ticks_where_the_values_are():
    figure = line_panels({"A": {"one": Line(X, np.ones((1, 3)))}}, x_label="weight", log=True)
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["1", "10", "100"]


def test_lines_at_the_same_values_stand_a_little_beside_each_other():
    lines = {name: Line(X, np.ones((2, 3))) for name in ("one", "two")}
    one, two = drawn(line_panels({"A": lines}, x_label="weight", log=True).axes[0])
    assert (one.get_xdata() < two.get_xdata()).all()
    np.testing.assert_allclose(one.get_xdata(), X, rtol=0.06)


def test_what_a_ring_means_stands_in_the_legend_once_and_only_where_there_is_one():
    lines = {"one": Line(X, np.ones((1, 3)), mark=10.0), "two": Line(X, np.ones((1, 3)))}
    figure = line_panels({"A": lines, "B": lines}, x_label="epoch", mark_label="near")
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["one", "two", "near"]
    without = line_panels({"A": {"two": lines["two"]}}, x_label="epoch", mark_label="near")
    assert [text.get_text() for text in without.legends[0].get_texts()] == ["two"]


def test_an_empty_panel_says_that_it_has_not_run():
    figure = line_panels({"A": {"one": Line(X, np.full((1, 3), np.nan))}}, x_label="epoch")
    assert [text.get_text() for text in figure.axes[0].texts] == ["not run yet"]


def test_nothing_at_all_is_refused():
    with pytest.raises(DataError):
        line_panels({}, x_label="epoch")
    with pytest.raises(DataError):
        heat_panels({}, ["a"], ["b"], row_label="", column_label="", value_label="")


def test_a_heat_map_writes_its_numbers_hatches_what_has_not_run_and_leaves_blank_what_cannot_be():
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
    assert image.norm.vmin == -image.norm.vmax  # even around zero
