import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import gain_plot
from graphsc.report.figure import svg_of


def test_every_condition_and_set_is_named_and_marked():
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
    marks = [container.lines[0].get_ydata().tolist() for container in first.containers]
    assert marks == [[1.0, 0.2], [-1.0]]
    assert [container.lines[0].get_ydata().tolist() for container in second.containers] == [[0.3], []]
    text = svg_of(figure)
    assert all(word in text for word in ("few", "labels", "points above", "untrained", "other"))


def test_nothing_to_draw_is_said():
    with pytest.raises(DataError, match="no gains"):
        gain_plot({"untrained": {}})
