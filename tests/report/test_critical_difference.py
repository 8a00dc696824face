"""The critical-difference diagram: positions, bars, and texts that do not overlap."""

import itertools
import math

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.critical_difference import critical_difference_diagram
from graphsc.report.figure import DPI, svg_of

DEMSAR = {"C4.5": 3.143, "C4.5+m": 2.000, "C4.5+cf": 2.893, "C4.5+m+cf": 1.964}
MANY = {f"method {n} of a long name": 1 + n * 15 / 15 for n in range(16)}


def texts_of(figure):
    return [text for text in figure.axes[0].texts if text.get_text()]


def bars_of(figure):
    return [line for line in figure.axes[0].lines if line.get_gid() == "group"]


@pytest.mark.parametrize(
    ("ranks", "difference"), [(DEMSAR, 1.25), (MANY, 8.2), ({"a": 1.0, "b": 2.0}, 0.4), (MANY, 40.0)]
)
def test_texts_neither_overlap_nor_leave_the_figure(ranks, difference):
    figure = critical_difference_diagram(ranks, difference)
    figure.set_dpi(DPI)
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in texts_of(figure)]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)
    assert all(box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height for box in boxes)


def test_one_bar_per_group_without_significant_differences():
    assert len(bars_of(critical_difference_diagram(DEMSAR, 1.25))) == 1
    assert len(bars_of(critical_difference_diagram(DEMSAR, 1.15))) == 2
    assert len(bars_of(critical_difference_diagram(DEMSAR, 0.01))) == 0


def test_the_bar_spans_its_methods():
    figure = critical_difference_diagram({"a": 1.0, "b": 2.0, "c": 4.0}, 1.5)
    (bar,) = bars_of(figure)
    dots = sorted(line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o")
    assert bar.get_xdata()[0] < dots[0] < dots[1] < bar.get_xdata()[1] < dots[2]


def test_distances_are_proportional_to_the_ranks():
    figure = critical_difference_diagram({"a": 1.0, "b": 2.0, "c": 4.0}, 0.5)
    dots = sorted(line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o")
    assert (dots[2] - dots[1]) == pytest.approx(2 * (dots[1] - dots[0]))


def test_the_critical_difference_is_drawn_to_scale():
    figure = critical_difference_diagram({"a": 1.0, "b": 3.0, "c": 2.0}, 0.5)
    dots = sorted(line.get_xdata()[0] for line in figure.axes[0].lines if line.get_marker() == "o")
    (bar,) = (line for line in figure.axes[0].lines if line.get_marker() == "|")
    assert np.ptp(bar.get_xdata()) == pytest.approx(0.5 * (dots[1] - dots[0]))


def test_a_difference_beyond_the_axis_is_cut_and_labelled_as_such():
    figure = critical_difference_diagram({"a": 1.2, "b": 1.8}, 1.96)
    assert "CD = 1.96, wider than this scale" in [text.get_text() for text in texts_of(figure)]


def test_a_method_without_a_rank_is_left_out():
    figure = critical_difference_diagram(DEMSAR | {"missing": math.nan}, 1.25)
    assert "missing" not in [text.get_text() for text in texts_of(figure)]


def test_fewer_than_two_methods_are_refused():
    with pytest.raises(DataError):
        critical_difference_diagram({"a": 1.0, "b": math.nan}, 1.0)


def test_dollar_signs_in_a_name_are_not_read_as_a_formula():
    assert "$x_1$" in svg_of(critical_difference_diagram({"$x_1$": 1.0, "b": 2.0}, 1.0))
