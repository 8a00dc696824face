"""Columns side by side."""

from __future__ import annotations

import numpy as np

from graphsc.data.columns import Column, FeatureTable, side_by_side


def test_columns_keep_their_order_and_names() -> None:
    atom, ring = Column("atom", 2, ("C", "N")), Column("ring", 3)
    categories = [(np.array([0, 1]), atom), (np.array([2, 0]), ring)]
    table = side_by_side(2, categories, [("q", np.array([0.5, 1.5])), ("r", np.array([2.0, 3.0]))])
    assert table.columns == (atom, ring)
    assert table.codes.tolist() == [[0, 2], [1, 0]]
    assert table.float_names == ("q", "r")
    assert table.floats.tolist() == [[0.5, 2.0], [1.5, 3.0]]


def test_no_columns_are_a_table_of_rows_only() -> None:
    assert side_by_side(3, []) == FeatureTable.empty(3)
