"""Running probe trials: from graphs to stored results."""

import os
import re
from dataclasses import replace

import numpy as np
import pytest

from graphsc.core import progress
from graphsc.core.errors import DataError
from graphsc.core.files import InUseError, file_lock
from graphsc.data.readers import open_collection
from graphsc.evaluation.cross_validation import evaluate
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.probe import labels_of, run_probe
from graphsc.experiments.result import ResultStore
from graphsc.experiments.run_evaluation import evaluate_run
from graphsc.experiments.runner import check_outcomes, run_trial, run_trials
from graphsc.experiments.trial import ProbeTrial
from graphsc.training.callbacks import PlainReporter
from graphsc.training.train import embed_with, train

FEW = Protocol(folds=4, inner_folds=2, grid=(0.1, 1.0, 10.0))


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:48")


def trial(**changes):
    return ProbeTrial(**({"data": "motifs:48", "method": "untrained", "protocol": FEW} | changes))


def test_a_result_is_the_evaluation_of_the_embeddings_on_the_folds_of_the_seed(graphs, tmp_path):
    asked = trial(method="graphsc", seed=3, training={"epochs": 2})
    result = run_trial(asked, runs=tmp_path)
    codes, _ = labels_of(graphs)
    rows = embed_with(train(graphs, "graphsc", training=asked.loop()).model, graphs)
    expected = evaluate(rows, codes, FEW, seed=3)
    np.testing.assert_array_equal(result.predictions, expected.predictions)
    np.testing.assert_array_equal(result.fold, expected.fold)


def test_trials_show_how_many_are_done_and_the_time_left(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(progress, "PROGRESS_INTERVAL", 0.0)
    store = ResultStore(tmp_path / "results")
    asked = [trial(method="raw", seed=seed) for seed in range(3)]
    run_trial(asked[1], runs=tmp_path / "runs", store=store)
    run_trials(asked, store, tmp_path / "runs", reporter=PlainReporter())
    lines = [line for line in capsys.readouterr().err.splitlines() if " left" in line or "[" in line]
    # One is stored, so the time is known from the start. A second estimate would contradict the first.
    assert re.fullmatch(r"3 trials: 1 stored, 2 to run, about \d+ seconds left", lines[0])
    assert re.fullmatch(r"\[2/3\] raw on .*, about \d+ seconds left", lines[1])
    assert re.fullmatch(r"\[3/3\] raw on [^l]*", lines[2])
    assert len(lines) == 3


def test_stored_trials_are_not_run_again(tmp_path):
    store = ResultStore(tmp_path / "results")
    run_trial(trial(), runs=tmp_path / "runs", store=store)
    again = run_trial(trial(), runs=tmp_path / "elsewhere", store=store)
    assert len(again.labels) == 48
    assert not (tmp_path / "elsewhere").exists()


def test_inductive_encoders_never_see_the_test_fold(graphs, tmp_path, monkeypatch):
    """Each fold's encoder equals one trained on the other graphs alone."""
    asked = trial(method="graphsc", inductive=True, training={"epochs": 1})
    result = run_trial(asked, runs=tmp_path)
    codes, _ = labels_of(graphs)
    seen = np.flatnonzero(result.fold != 0)
    alone = train(graphs[seen], "graphsc", training=asked.loop()).model
    from graphsc.evaluation.cross_validation import evaluate_split

    held_out = np.flatnonzero(result.fold == 0)
    expected = evaluate_split(embed_with(alone, graphs), codes, seen, held_out, FEW)
    np.testing.assert_array_equal(result.predictions[held_out], expected.predictions)
    assert result.trial["inductive"]


@pytest.mark.parametrize(
    "changes",
    [
        {"method": "raw"},
        {"method": "untrained"},
        {"method": "wl"},
        {"method": "graphsc", "training": {"epochs": 1}},
        {"method": "graphsc", "training": {"epochs": 1}, "selection": "validation"},
        {"method": "untrained", "inductive": True},
    ],
    ids=str,
)
def test_shuffled_labels_give_chance_accuracy(graphs, tmp_path, changes):
    codes, _ = labels_of(graphs)
    shuffled = replace(graphs, labels=np.random.default_rng(0).permutation(graphs.labels))
    accuracies = [
        run_probe(trial(seed=seed, **changes), shuffled, runs=tmp_path / str(seed)).accuracy
        for seed in range(5)
    ]
    chance = np.bincount(codes).max() / len(codes)
    assert np.mean(accuracies) < chance + 0.12
    assert run_trial(trial(**changes), runs=tmp_path).accuracy > chance + 0.2


def test_several_trials_share_one_training_and_are_all_stored(tmp_path):
    store = ResultStore(tmp_path / "results")
    trials = [trial(), trial(selection="validation"), trial(fold_seed=5)]
    results = check_outcomes(run_trials(trials, store, tmp_path / "runs", jobs=2))
    assert len(results) == 3
    assert len(store.all()) == 3
    assert len(list((tmp_path / "runs").glob("*/*/config.yaml"))) == 1


def test_parallel_jobs_give_the_same_numbers(tmp_path):
    trials = [trial(seed=seed, method="graphsc", training={"epochs": 1}) for seed in range(2)]
    one = run_trials(trials, ResultStore(tmp_path / "a"), tmp_path / "runs-a", jobs=1)
    two = run_trials(trials, ResultStore(tmp_path / "b"), tmp_path / "runs-b", jobs=2)
    for first, second in zip(one, two, strict=True):
        np.testing.assert_array_equal(first.result.predictions, second.result.predictions)


def test_a_failed_trial_is_named_and_the_others_continue(tmp_path):
    bad = trial(method="graphsc", training={"epochs": 2, "learning_rate": 1e30})
    outcomes = run_trials([bad, trial()], ResultStore(tmp_path / "results"), tmp_path / "runs")
    assert outcomes[0].result is None
    assert "learning rate" in outcomes[0].error
    assert outcomes[1].result is not None
    with pytest.raises(Exception, match="1 of 2 trials failed"):
        check_outcomes(outcomes)


def test_a_trial_that_another_process_runs_is_refused(tmp_path):
    with (
        file_lock(tmp_path / trial().run_name() / ".trial"),
        pytest.raises(InUseError, match=str(os.getpid())),
    ):
        run_trial(trial(), runs=tmp_path)


def test_a_run_is_evaluated_on_the_folds_of_its_seed(graphs, tmp_path):
    result = run_trial(trial(method="graphsc", seed=2, training={"epochs": 1}), runs=tmp_path)
    folder = tmp_path / trial(method="graphsc", seed=2, training={"epochs": 1}).run_name()
    evaluated = evaluate_run(folder, protocol=FEW, fold_seeds=3, few=True, clusters=True)
    np.testing.assert_array_equal(evaluated.evaluation.predictions, result.predictions)
    assert len(evaluated.resplit) == 3
    assert evaluated.resplit[0] == result.accuracy
    assert set(evaluated.few) == {0.01, 0.05, 0.1, 0.5, 1.0}
    assert "nmi" in evaluated.clusters


def test_evaluating_a_run_on_other_graphs_is_refused(graphs, tmp_path):
    run_trial(trial(), runs=tmp_path)
    with pytest.raises(Exception, match="not the graphs the run was trained on"):
        evaluate_run(tmp_path / trial().run_name(), "motifs:40", protocol=FEW)


@pytest.mark.parametrize(
    ("labels", "message"),
    [(None, "no labels"), (np.zeros((48, 2)), "2 tasks"), (np.full((48, 1), np.nan), "label")],
)
def test_graphs_that_cannot_be_evaluated_are_refused(graphs, labels, message):
    tasks = () if labels is None else tuple(f"t{k}" for k in range(labels.shape[1]))
    with pytest.raises(DataError, match=message):
        labels_of(replace(graphs, labels=labels, tasks=tasks, classes={}))


def test_a_named_data_set_with_other_graphs_is_refused(tmp_path, monkeypatch):
    """A folder called MUTAG with other graphs must not add results to MUTAG's."""
    from graphsc.data.datasets.catalog import NAMED

    known = replace(NAMED["mutag"], content_hash="0" * 64)
    monkeypatch.setitem(NAMED, "mutag", known)
    with pytest.raises(DataError, match=r"not those of the trial.*000000000000"):
        run_trial(ProbeTrial("mutag", "raw"), runs=tmp_path)


def test_a_replaced_file_is_run_again(tmp_path):
    path = tmp_path / "mine.safetensors"
    asked = ProbeTrial(str(path), "raw", protocol=FEW)
    store = ResultStore(tmp_path / "results")
    sizes = []
    for number in (24, 30):
        open_collection(f"motifs:{number}").save(path)
        sizes.append(len(run_trial(asked, runs=tmp_path / "runs", store=store).labels))
    assert sizes == [24, 30]
    assert len(store.all()) == 2


def test_a_file_replaced_while_a_trial_runs_is_refused_and_nothing_is_stored(tmp_path, monkeypatch):
    """The result of the old graphs must not be stored as that of the new ones."""
    from graphsc.experiments import probe

    path = tmp_path / "mine.safetensors"
    open_collection("motifs:24").save(path)
    evaluate = probe.evaluate

    def replace_and_evaluate(*arguments, **options):
        open_collection("motifs:30").save(path)
        return evaluate(*arguments, **options)

    monkeypatch.setattr(probe, "evaluate", replace_and_evaluate)
    store = ResultStore(tmp_path / "results")
    with pytest.raises(DataError, match="are not those of the trial"):
        run_trials([ProbeTrial(str(path), "raw", protocol=FEW)], store, tmp_path / "runs")
    assert store.all() == []


def test_results_go_to_the_folder_of_the_caller_also_from_workers_that_started_elsewhere(
    tmp_path, monkeypatch
):
    """Worker processes are used again, and keep the working folder in which they started."""
    for name, method in (("first", "raw"), ("second", "untrained")):
        (tmp_path / name).mkdir()
        monkeypatch.chdir(tmp_path / name)
        run_trials([trial(method=method, seed=seed) for seed in range(2)], ResultStore("r"), "runs", jobs=2)
    lines = {path.parent.parent.name: path.read_text().count("\n") for path in tmp_path.rglob("*.jsonl")}
    assert lines == {"first": 2, "second": 2}
