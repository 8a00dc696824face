"""Results are checked when they are read; the store keeps one line per trial."""

import json
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.core.serialization import pack, unpack
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.result import Result, ResultStore, load_result
from graphsc.experiments.trial import ProbeTrial

LABELS = np.array([0, 0, 1, 1, 0, 1])
FOLD = np.array([0, 1, 0, 1, 0, 1])
PREDICTIONS = np.array([0, 1, 1, 1, 1, 1])  # fold 0: 2 of 3 correct; fold 1: 2 of 3


def example(**changes) -> Result:
    values = {
        "trial": {
            "data": "D", "graphs": "0" * 64, "features": "auto", "method": "untrained", "preset": "default",
            "training": {"seed": 3}, "fold_seed": 3, "selection": "last", "inductive": False,
            "protocol": Protocol().to_json(),
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
def test_packed_numbers_are_unpacked_unchanged(values):
    array = np.array(values, dtype=np.int64)
    np.testing.assert_array_equal(unpack(pack(array)), array)


def test_accuracy_is_the_mean_over_folds_of_the_share_of_correct_predictions():
    result = example()
    np.testing.assert_allclose(result.accuracies, [2 / 3, 2 / 3])
    assert result.accuracy == pytest.approx(2 / 3)


def test_a_saved_result_is_loaded_unchanged(tmp_path):
    path = tmp_path / "r.json"
    example().save(path)
    again = load_result(path)
    np.testing.assert_array_equal(again.predictions, PREDICTIONS)
    np.testing.assert_array_equal(again.fold, FOLD)
    assert again.to_json() == example().to_json()


def test_an_accuracy_that_does_not_follow_from_the_predictions_is_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(example().to_json() | {"accuracy": 99.0}))
    with pytest.raises(DamagedFileError, match="does not follow"):
        load_result(path)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": "graphsc-result"}', "nonsense"])
def test_a_file_that_is_not_a_result_is_refused(tmp_path, content):
    path = tmp_path / "r.json"
    path.write_text(content)
    with pytest.raises(DamagedFileError):
        load_result(path)


@pytest.mark.parametrize("key", ["labels", "predictions", "words", "trial", "chosen"])
def test_a_result_with_a_missing_key_is_damaged(tmp_path, key):
    path = tmp_path / "r.json"
    whole = example().to_json()
    del whole[key]
    path.write_text(json.dumps(whole))
    with pytest.raises(DamagedFileError, match="damaged"):
        load_result(path)


def test_a_newer_format_is_refused(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(example().to_json() | {"format_version": "999"}))
    with pytest.raises(DamagedFileError, match="upgrade graphsc"):
        load_result(path)


def test_a_missing_file_is_not_found(tmp_path):
    with pytest.raises(NotFoundError):
        load_result(tmp_path / "none.json")


def test_inner_accuracies_are_stored_only_where_the_trial_keeps_them(tmp_path):
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


def test_predictions_of_every_epoch_are_stored_and_give_its_accuracy(tmp_path):
    path = tmp_path / "r.json"
    right = example().labels
    wrong = np.where(np.arange(len(right)) == 0, 1 - right, right)
    example(by_epoch={1: wrong, 2: right}).save(path)
    result = load_result(path)
    first_fold = (example().fold == example().fold[0]).sum()
    folds = len(set(example().fold.tolist()))
    assert result.epoch_accuracies == {1: pytest.approx(1 - 1 / first_fold / folds), 2: 1.0}
    assert result.at_epoch(2).accuracy == 1.0
    assert set(result.at_epoch(2).epochs) == {2}


def test_an_epoch_without_a_prediction_for_every_graph_is_refused(tmp_path):
    path = tmp_path / "r.json"
    example(by_epoch={1: example().labels[:-1]}).save(path)
    with pytest.raises(DamagedFileError, match="every graph"):
        load_result(path)


def test_a_result_of_format_1_is_completed(tmp_path):
    """It named neither the hash of the graphs nor defaults; its inner folds were cut in file order."""
    path = tmp_path / "r.json"
    old = example(config={"data": {"content_hash": "a" * 64}}).to_json() | {"format_version": "1"}
    old["trial"] = {key: value for key, value in old["trial"].items() if key not in ("graphs", "protocol")}
    path.write_text(json.dumps(old | {"trial": {**old["trial"], "protocol": {"folds": 10}}}))
    result = load_result(path)
    assert result.trial["graphs"] == "a" * 64
    assert result.protocol["inner_order"] == "file"
    assert not result.whole  # the main tables have shuffled inner folds


TRIALS = [ProbeTrial("mutag", "untrained", seed=seed) for seed in range(3)]


@pytest.fixture
def store(tmp_path):
    store = ResultStore(tmp_path / "results")
    for trial in TRIALS[:2]:
        store.put(trial, example())
    return store


def test_a_store_has_one_file_per_data_set_with_lines_sorted_by_key(store):
    (path,) = store.folder.glob("*.jsonl")
    assert path.name == "MUTAG.jsonl"
    keys = [json.loads(line)["key"] for line in path.read_text().splitlines()]
    assert keys == sorted(trial.key() for trial in TRIALS[:2])


def test_a_store_returns_results_under_the_identity_of_their_trial(store):
    again = ResultStore(store.folder).get(TRIALS[0])
    assert again.trial == TRIALS[0].identity()
    np.testing.assert_array_equal(again.predictions, PREDICTIONS)
    assert store.get(TRIALS[2]) is None
    assert TRIALS[0] in store
    assert TRIALS[2] not in store
    assert len(store.all()) == 2


def test_lines_of_another_process_are_seen_and_kept(store):
    ResultStore(store.folder).put(TRIALS[2], example())
    assert store.get(TRIALS[2]) is not None
    assert len(store.all()) == 3


def test_concurrent_writes_lose_nothing(tmp_path):
    from joblib import Parallel, delayed

    trials = [ProbeTrial("mutag", "untrained", seed=seed) for seed in range(12)]
    store = ResultStore(tmp_path)
    Parallel(n_jobs=4)(delayed(store.put)(trial, example()) for trial in trials)
    assert all(trial in ResultStore(tmp_path) for trial in trials)


def test_the_path_of_the_data_is_not_stored(store):
    store.put(TRIALS[2], example(config={"source": "/home/me/graphs.csv", "device": "cpu"}))
    assert "/home/me" not in store.path(TRIALS[2]).read_text()


@given(st.integers(0, 10**6), st.integers(0, 7))
def test_any_flipped_bit_of_a_line_is_detected(place, bit):
    with TemporaryDirectory() as folder:
        store = ResultStore(folder)
        store.put(TRIALS[0], example())
        path = store.path(TRIALS[0])
        content = bytearray(path.read_bytes())
        content[place % len(content)] ^= 1 << bit
        path.write_bytes(bytes(content))
        with pytest.raises(DamagedFileError):
            ResultStore(folder).get(TRIALS[0])


def test_a_damaged_line_is_named_and_never_overwritten(store):
    path = store.path(TRIALS[0])
    damaged = path.read_bytes().replace(b'"accuracy"', b'"accuracz"', 1)
    path.write_bytes(damaged)
    with pytest.raises(DamagedFileError, match="line 1"):
        ResultStore(store.folder).put(TRIALS[2], example())
    assert path.read_bytes() == damaged


def test_a_trial_with_two_lines_is_refused(store):
    path = store.path(TRIALS[0])
    path.write_bytes(path.read_bytes() * 2)
    with pytest.raises(DamagedFileError, match="two lines"):
        ResultStore(store.folder).all()


def test_a_line_under_the_key_of_another_trial_is_refused(store):
    from graphsc.experiments import result as module

    other = module._write_line(TRIALS[0].key(), store.get(TRIALS[1]))
    store.path(TRIALS[0]).write_bytes(other)
    with pytest.raises(DamagedFileError, match="key of another trial"):
        ResultStore(store.folder).get(TRIALS[0])
