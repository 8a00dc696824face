"""A result file holds what was found, and nothing that does not follow from it."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.serialization import pack, unpack
from graphsc.experiments.result import Result, load_result

LABELS = np.array([0, 0, 1, 1, 0, 1])
FOLD = np.array([0, 1, 0, 1, 0, 1])
PREDICTIONS = np.array([0, 1, 1, 1, 1, 1])  # fold 0: 2 of 3 right; fold 1: 2 of 3


def example(**changes) -> Result:
    values = {
        "trial": {
            "data": "D", "features": "auto", "method": "untrained", "preset": "default",
            "training": {"seed": 3}, "fold_seed": 3, "selection": "last", "inductive": False,
        },
        "config": {"device": "cpu"},
        "classes": ("no", "yes"),
        "labels": LABELS,
        "fold": FOLD,
        "predictions": PREDICTIONS,
        "chosen": (1.0, 10.0),
        "epochs": (20, 20),
        "inner_accuracy": 0.75,
        "words": "by hand",
    }  # fmt: skip
    return Result(**(values | changes))


@given(st.lists(st.integers(0, 999), max_size=50))
def test_packed_numbers_come_back(values):
    array = np.array(values, dtype=np.int64)
    np.testing.assert_array_equal(unpack(pack(array)), array)


def test_accuracy_is_the_mean_over_folds_of_the_share_of_right_predictions():
    result = example()
    np.testing.assert_allclose(result.accuracies, [2 / 3, 2 / 3])
    assert result.accuracy == pytest.approx(2 / 3)


def test_saved_and_loaded_is_the_same(tmp_path):
    path = tmp_path / "r.json"
    example().save(path)
    again = load_result(path)
    np.testing.assert_array_equal(again.predictions, PREDICTIONS)
    np.testing.assert_array_equal(again.fold, FOLD)
    assert again.to_json() == example().to_json()


def test_a_number_that_does_not_follow_from_the_predictions_is_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(example().to_json() | {"accuracy": 99.0}))
    with pytest.raises(DamagedFileError, match="does not follow"):
        load_result(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "graphsc-result"}', "nonsense"])
def test_what_is_no_result_is_refused(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(DamagedFileError):
        load_result(path)


@pytest.mark.parametrize("key", ["labels", "predictions", "words", "trial", "chosen"])
def test_a_missing_part_is_named_as_damage(tmp_path, key):
    path = tmp_path / "r.json"
    whole = example().to_json()
    del whole[key]
    path.write_text(json.dumps(whole))
    with pytest.raises(DamagedFileError, match="damaged"):
        load_result(path)


def test_a_newer_format_is_refused_in_words(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(example().to_json() | {"format_version": "999"}))
    with pytest.raises(DamagedFileError, match="upgrade graphsc"):
        load_result(path)


def test_a_missing_file_is_said_to_be_missing(tmp_path):
    with pytest.raises(NotFoundError):
        load_result(tmp_path / "none.json")


def test_inner_accuracies_are_kept_where_there_are_some_and_nowhere_else(tmp_path):
    path = tmp_path / "r.json"
    assert "inner_fold_accuracies" not in example().to_json()
    example(inner_folds=(0.5, 0.75)).save(path)
    assert load_result(path).inner_folds == (0.5, 0.75)


def test_a_damaged_curve_is_refused(tmp_path):
    path = tmp_path / "r.json"
    curve = {"epochs": [0], "fold_sizes": [3, 3], "right": {"0": [4, 1]}}
    path.write_text(json.dumps(example().to_json() | {"curve": curve}))
    with pytest.raises(DamagedFileError, match="curve"):
        load_result(path)
