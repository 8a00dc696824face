"""Accuracy curves: counts of correct predictions by epoch, recorded during training and resumed with it."""

import json

import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.core.run_folder import RunFolder
from graphsc.data.readers import open_collection
from graphsc.evaluation.cross_validation import evaluate, stratified_folds
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.probe import kept_epochs, labels_of
from graphsc.experiments.result import Curve, ResultStore
from graphsc.experiments.runner import run_trial
from graphsc.experiments.trial import ProbeTrial
from graphsc.training.train import stored_embeddings

FEW = Protocol(folds=3, inner_folds=2, grid=(1.0,))
TRIAL = ProbeTrial("motifs:40", "graphsc", training={"epochs": 2}, protocol=FEW, curve=(0, 1, 2))


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    folder = tmp_path_factory.mktemp("curve")
    return run_trial(TRIAL, runs=folder / "runs", store=ResultStore(folder / "results")), folder


def test_the_accuracy_of_a_curve_is_the_mean_over_folds():
    curve = Curve((0, 5), np.array([[1, 2], [2, 4]]), np.array([2, 4]))
    np.testing.assert_allclose(curve.accuracy, [0.5, 1.0])


def test_a_curve_is_read_from_json_unchanged():
    curve = Curve((0, 5), np.array([[1, 2], [2, 4]]), np.array([2, 4]))
    again = Curve.from_json(json.loads(json.dumps(curve.to_json())))
    assert again.epochs == curve.epochs
    np.testing.assert_array_equal(again.right, curve.right)


@pytest.mark.parametrize("right", [[[3, 2]], [[-1, 2]], [[1]]])
def test_impossible_counts_are_refused(right):
    with pytest.raises(ValueError, match="curve"):
        Curve((0,), np.array(right), np.array([2, 4]))


def test_every_epoch_of_a_curve_equals_the_evaluation_of_its_stored_embeddings(ran):
    result, folder = ran
    assert result.curve.epochs == (0, 1, 2)
    collection = open_collection("motifs:40")
    codes, _ = labels_of(collection)
    fold = stratified_folds(codes, 3, 0)
    run = RunFolder(folder / "runs" / TRIAL.run_name())
    assert set(kept_epochs(run)) == {0, 1, 2}
    for place, epoch in enumerate((0, 1, 2)):
        evaluation = evaluate(stored_embeddings(run, epoch), codes, FEW, fold=fold)
        assert result.curve.accuracy[place] == pytest.approx(evaluation.accuracy)
    assert result.accuracy == pytest.approx(result.curve.accuracy[-1])


def test_a_curve_is_stored_with_its_result(ran):
    result, folder = ran
    again = ResultStore(folder / "results").get(TRIAL)
    np.testing.assert_array_equal(again.curve.right, result.curve.right)


def test_a_curve_is_resumed_with_its_run(ran, tmp_path, monkeypatch):
    import signal

    from graphsc.core.files import StoppedError
    from graphsc.training import trainer as loop

    result, _ = ran
    add = loop.Metrics.add
    # The signal arrives at the end of the first epoch.
    monkeypatch.setattr(
        loop.Metrics, "add", lambda self, row: (add(self, row), signal.raise_signal(signal.SIGTERM))
    )
    with pytest.raises(StoppedError):
        run_trial(TRIAL, runs=tmp_path)
    monkeypatch.undo()
    again = run_trial(TRIAL, runs=tmp_path)
    np.testing.assert_array_equal(again.curve.right, result.curve.right)


def leaky(selection):
    return ProbeTrial("motifs:40", "graphsc", training={"epochs": 4}, protocol=FEW, selection=selection)


def test_leaky_rules_look_at_every_epoch_of_training(tmp_path):
    """Epochs 3 and 4 are not among those that other runs keep, but the last."""
    store = ResultStore(tmp_path / "results")
    own = run_trial(leaky("legacy-leaky"), runs=tmp_path / "runs", store=store)
    common = run_trial(leaky("legacy-leaky-common"), runs=tmp_path / "runs", store=store)
    again = store.get(leaky("legacy-leaky"))
    assert list(again.by_epoch) == [1, 2, 3, 4]
    assert own.accuracy == max(own.epoch_accuracies.values())
    assert common.epoch_accuracies == own.epoch_accuracies


def test_runs_that_keep_every_epoch_are_apart_from_those_that_do_not():
    last, one, other = (leaky(rule).run_name() for rule in ("last", "legacy-leaky", "legacy-leaky-common"))
    assert last != one
    assert one == other


def test_graphs_without_labels_are_told_how_to_name_them():
    import networkx as nx

    with pytest.raises(DataError, match=r"no labels to evaluate embeddings with; .*label_columns=NAME"):
        labels_of(open_collection([nx.path_graph(3), nx.path_graph(4)]))
