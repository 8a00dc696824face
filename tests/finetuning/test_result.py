"""Results hold scores, and their metrics follow from them."""

import json

import numpy as np
import pytest

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.evaluation.metrics import Task, roc_auc
from graphsc.finetuning import result as module
from graphsc.finetuning.result import HeldOutScores, TransferResult, load_transfer


def example(test, valid=(), kind="classification", **changes):
    rules = {"last": HeldOutScores.of(test, valid, kind, epoch=3, learning_rate=0.001)}
    values = {
        "trial": {"data": "x", "method": "none", "way": "fine-tuned", "seed": 0}, "config": {"epochs": 3},
        "tasks": tuple(f"t{k}" for k in range(len(test))), "kind": kind, "parts": np.array([0, 1, 2, 2]),
        "rules": rules, "words": "as said",
    }  # fmt: skip
    return TransferResult(**{**values, **changes})


def task(labels, scores):
    return Task(np.array(labels, float), np.array(scores, float))


TASKS = [task([1, 0, 1, 0], [2.0, 1.0, -1.0, -3.0]), task([1, 1], [0.5, 0.2])]


def test_a_result_is_read_back_from_its_file(tmp_path):
    stored = example(TASKS, [task([1, 0], [0.1, 0.3]), task([0], [0.0])])
    stored.save(tmp_path / "r.json")
    found = load_transfer(tmp_path / "r.json")
    assert found.score("last") == stored.score("last") == 0.75  # the second task has one class
    assert found.figures("last")["skipped"] == ["t1"]
    assert found.figures("last")["valid_roc_auc"] == 0.0
    np.testing.assert_array_equal(found.parts, [0, 1, 2, 2])
    for one, other in zip(found.rules["last"].test, stored.rules["last"].test, strict=True):
        np.testing.assert_array_equal(one.labels, other.labels)
        np.testing.assert_array_equal(one.scores, other.scores)
    assert (found.rules["last"].epoch, found.trial["method"]) == (3, "none")


def test_scores_of_a_regression_are_stored_as_numbers(tmp_path):
    example([task([1.5, 2.5], [1.0, 3.5])], kind="regression").save(tmp_path / "r.json")
    found = load_transfer(tmp_path / "r.json")
    assert found.score("last") == pytest.approx(np.sqrt((0.25 + 1) / 2))
    assert found.score("last", name="mae") == pytest.approx(0.75)


def test_many_scores_are_stored_as_an_order_with_the_same_roc_auc(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    tasks = [task(rng.integers(0, 2, 400), rng.normal(size=400)) for _ in range(3)]
    monkeypatch.setattr(module, "MOST_SCORES", 1000)
    stored = example(tasks, tasks)
    stored.save(tmp_path / "r.json")
    found = load_transfer(tmp_path / "r.json")
    assert found.rules["last"].valid == ()
    assert found.score("last") == pytest.approx(np.mean([roc_auc(one) for one in tasks]))
    assert "scores" not in json.loads((tmp_path / "r.json").read_text())["rules"]["last"]["test"]


def test_a_metric_that_does_not_follow_from_the_scores_is_refused(tmp_path):
    path = tmp_path / "r.json"
    example(TASKS).save(path)
    stored = json.loads(path.read_text())
    stored["figures"]["last"]["roc_auc"] = 0.99
    del stored["sha256"]  # as older versions wrote it
    path.write_text(json.dumps(stored))
    with pytest.raises(DamagedFileError, match="does not follow"):
        load_transfer(path)


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "graphsc-result", "format_version": "1"}'])
def test_other_files_are_refused(tmp_path, text):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(DamagedFileError):
        load_transfer(tmp_path / "r.json")
    with pytest.raises(NotFoundError):
        load_transfer(tmp_path / "none.json")
