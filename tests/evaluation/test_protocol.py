"""Protocols in words and as JSON, and invalid settings."""

import pytest

from graphsc.core.errors import ConfigError
from graphsc.evaluation.protocol import Protocol


def test_default_is_the_grid_of_the_literature():
    protocol = Protocol()
    assert protocol.grid == (0.001, 0.01, 0.1, 1, 10, 100, 1000)
    assert (protocol.folds, protocol.inner_folds, protocol.scale) == (10, 5, "raw")


def test_words_name_every_setting():
    words = Protocol(folds=7, inner_folds=3, grid=(0.5, 2), scale="standardised").words()
    for part in ("7 stratified folds", "RBF", "standardised", "C is chosen from 0.5, 2", "3-fold"):
        assert part in words


def test_words_name_the_order_of_inner_folds():
    assert "5-fold cross-validation of shuffled graphs;" in Protocol().words()
    assert "5-fold cross-validation in the order of the file;" in Protocol(inner_order="file").words()


def test_a_grid_of_one_value_chooses_nothing_and_says_so():
    words = Protocol(grid=(10.0,)).words()
    assert "Nothing is chosen: C is 10 for all." in words
    assert "cross-validation" not in words


def test_knn_has_its_own_grid():
    protocol = Protocol("knn")
    assert all(value.is_integer() for value in protocol.grid)
    assert "number of neighbours is chosen from 1, 3" in protocol.words()


@pytest.mark.parametrize(
    "protocol",
    [
        Protocol(),
        Protocol("knn"),
        Protocol(label_share=0.1),
        Protocol(splitting="size"),
        Protocol(inner_order="file"),
        Protocol("logistic", 4, 3, (1, 2), "standardised"),
    ],
)
def test_json_round_trip(protocol):
    assert Protocol.from_json(protocol.to_json()) == protocol


def test_every_setting_is_written_out_and_comes_back():
    for protocol in (Protocol(), Protocol(inner_order="file", label_share=0.1, splitting="size")):
        stored = protocol.to_json()
        assert set(stored) == set(Protocol.__dataclass_fields__)
        assert Protocol.from_json(stored) == protocol


def test_unknown_key_is_named():
    with pytest.raises(ConfigError, match="no 'fold'"):
        Protocol.from_json({"fold": 3})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"classifier": "tree"}, "classifier is 'tree'; use one of svm"),
        ({"scale": "log"}, "scale is 'log'"),
        ({"inner_order": "sorted"}, "inner_order is 'sorted'; use one of shuffled, file"),
        ({"folds": 1}, "folds is 1"),
        ({"inner_folds": 0}, "inner_folds is 0"),
        ({"grid": ()}, "grid is"),
        ({"grid": (1.0, -1.0)}, "numbers above 0"),
        ({"classifier": "knn", "grid": (1.5,)}, "whole numbers"),
    ],
)
def test_invalid_settings_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        Protocol(**settings)
