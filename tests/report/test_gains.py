import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.figure import svg_of
from graphsc.report.gains import gain_plot


def test_every_condition_and_set_is_named_and_marked():
    figure = gain_plot(
        {"few": {"A": (1.0, 0.5), "B": (-1.0, np.nan)}, "all labels": {"A": (0.2, 0.1)}}, control="untrained"
    )
    axis = figure.axes[0]
    bars = {container.get_label(): container for container in axis.containers}
    assert bars["A"].lines[0].get_ydata().tolist() == [1.0, 0.2]
    assert bars["B"].lines[0].get_ydata().tolist() == [-1.0]
    text = svg_of(figure)
    assert all(word in text for word in ("few", "labels", "points above untrained"))


def test_nothing_to_draw_is_said():
    with pytest.raises(DataError, match="no gains"):
        gain_plot({}, control="untrained")
