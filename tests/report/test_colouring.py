"""What a collection's graphs can be coloured by."""

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.report.charts import confusion_figure
from graphsc.report.explorer import by_cell, colourings_of, line_counts


def shown(colouring):
    if colouring.codes is not None:
        return [colouring.names[code] for code in colouring.codes]
    return colouring.numbers.tolist()


def test_labels_sizes_and_means_of_attributes(mixed):
    found = {colouring.title: shown(colouring) for colouring in colourings_of(mixed)}
    assert list(found) == [
        "energy", "toxic", "nodes", "edges", "mean degree", "mean charge of nodes", "mean mass of nodes",
    ]  # fmt: skip
    assert found["nodes"] == [3, 0, 2, 4, 1]
    np.testing.assert_allclose(found["mean mass of nodes"], [-1, np.nan, -3.5, -6.5, -9])


def test_missing_classes_are_a_class_of_their_own(make):
    labels = np.array([[1.0], [np.nan], [0.0]])
    one = make([(1, []), (1, []), (1, [])], labels=labels, tasks=["t"], classes={"t": ("no", "yes")})
    assert shown(colourings_of(one)[0]) == ["yes", "(missing)", "no"]
    numbered = make([(1, []), (1, []), (1, [])], labels=np.array([[10.0], [np.nan], [9.0]]), tasks=["t"])
    assert colourings_of(numbered)[0].names == ("9", "10", "(missing)")


def test_labels_with_fractions_are_numbers(make):
    one = make([(1, []), (1, [])], labels=np.array([[0.5], [np.nan]]), tasks=["t"])
    np.testing.assert_array_equal(colourings_of(one)[0].numbers, np.array([0.5, np.nan], np.float32))


def test_undirected_edges_count_once(three):
    assert line_counts(three).tolist() == [3, 1, 0]


def test_cells_are_numbers_where_all_of_them_are():
    np.testing.assert_array_equal(
        by_cell("a", ["1", "", "2.5"]).numbers, np.array([1, np.nan, 2.5], np.float32)
    )
    assert shown(by_cell("a", ["1", "", "x"])) == ["1", "(missing)", "x"]


def test_a_confusion_matrix_shows_its_counts():
    texts = [
        text.get_text()
        for text in confusion_figure(np.array([[54, 9], [14, 1110]]), ["no", "yes"]).axes[0].texts
    ]
    assert texts == ["54", "9", "14", "1,110"]


def test_a_confusion_matrix_of_other_classes_is_refused():
    with pytest.raises(DataError):
        confusion_figure(np.zeros((2, 2), np.int64), ["one"])
