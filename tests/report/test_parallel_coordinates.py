"""Parallel coordinates: one line per trial, at the right heights."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.parallel_coordinates import parallel_coordinates


def lines_of(figure):
    return [line for line in figure.axes[0].lines if line.get_gid() == "trial"]


def test_lines_end_at_the_height_of_their_value_with_the_best_on_top():
    figure = parallel_coordinates({"a": [1, 2, 3]}, [80.0, 90.0, 85.0])
    lines = lines_of(figure)
    assert [line.get_ydata()[-1] for line in lines] == pytest.approx([0.0, 0.5, 1.0])
    widths = [line.get_linewidth() for line in lines]
    assert widths == sorted(widths)


def test_the_first_of_equally_good_trials_is_drawn_as_the_best():
    best = lines_of(parallel_coordinates({"a": [1, 2, 3]}, [90.0, 90.0, 80.0]))[-1]
    assert best.get_ydata()[0] == pytest.approx(0.0, abs=0.05)  # a = 1, the lowest height


def test_numbers_of_very_different_size_are_on_a_log_scale():
    values = [10.0**k for k in range(-4, 5)]
    lines = lines_of(parallel_coordinates({"rate": values}, np.arange(9.0)))
    assert [line.get_ydata()[0] for line in lines] == pytest.approx(np.linspace(0, 1, 9))


def test_categories_are_spaced_evenly_and_no_line_covers_another():
    lines = lines_of(parallel_coordinates({"kind": ["b", "a", "b", "a"]}, [1.0, 2.0, 3.0, 4.0]))
    heights = [line.get_ydata()[0] for line in lines]
    assert len(set(heights)) == 4
    assert [round(height) for height in heights] == [1, 0, 1, 0]


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0]])
def test_a_single_trial_and_equal_trials_are_drawn(values):
    assert len(lines_of(parallel_coordinates({"a": [1] * len(values)}, values))) == len(values)


def test_an_empty_search_is_refused():
    with pytest.raises(DataError, match="no trial"):
        parallel_coordinates({"a": []}, [])
