"""Bars of importance: the order, and what each bar shows."""

import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import importance_bars


def test_the_most_important_setting_stands_first_with_its_share():
    axis = importance_bars({"a": 0.2, "b": 0.7, "c": 0.1}).axes[0]
    assert [label.get_text() for label in axis.get_yticklabels()] == ["b", "a", "c"]
    assert [bar.get_width() for bar in axis.patches] == pytest.approx([70, 20, 10])
    assert [text.get_text().strip() for text in axis.texts] == ["70", "20", "10"]


@pytest.mark.parametrize("importance", [{}, {"a": float("nan")}])
def test_without_shares_there_is_nothing_to_draw(importance):
    with pytest.raises(DataError):
        importance_bars(importance)
