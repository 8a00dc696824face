"""Fine-tuning runs: the files of the folder, settings that are refused, and exact resume."""

import csv
import os
import signal
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphsc.core.config import read_config
from graphsc.core.errors import ConfigError, DivergedError
from graphsc.core.files import StoppedError
from graphsc.core.random import numpy_generator
from graphsc.core.run_folder import RunFolder, RunFolderError
from graphsc.core.serialization import load_tensors
from graphsc.finetuning.callbacks import SCORE, VALIDATION_SCORES, load_validation_scores
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.finetune import finetune
from graphsc.finetuning.model import load_predictor
from graphsc.finetuning.result import load_transfer
from graphsc.training import distributed
from graphsc.training.callbacks import TIMES, EarlyStopping, Metrics, Reporter


class StopAt(Reporter):
    """Sends this process a signal after a given number of steps."""

    def __init__(self, steps, number=signal.SIGTERM):
        self.left, self.number = steps, number

    def on_step_end(self, trainer):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)


def outcome(folder):
    """Everything that a run writes, except times and paths."""
    tensors = {}
    for seed in sorted(folder.glob("seed-*")):
        newest = max(
            (seed / "checkpoints").iterdir()
        )  # which other checkpoints exist depends on stops and time
        loaded, facts = load_tensors(newest, "checkpoint")
        facts.pop("seconds")
        tensors[f"{seed.name}, {newest.name}"] = (loaded, facts)
        for name in ("last", "best"):
            tensors[f"{seed.name}, {name}"] = load_tensors(seed / f"{name}.safetensors", "predictor")
        path = seed / VALIDATION_SCORES
        tensors[f"{seed.name}, validation"] = load_tensors(path, "validation-scores")
    rows = [
        {name: value for name, value in row.items() if name not in TIMES}
        for path in sorted(folder.rglob("metrics.csv"))
        for row in Metrics(path, keep=10**6).rows
    ]
    results = [load_transfer(path) for path in sorted(folder.rglob("result.json"))]
    figures = [{rule: one.figures(rule) for rule in one.rules} for one in results]
    return tensors, rows, figures, (folder / "predictions.csv").read_text()


def assert_equal(one, two):
    assert one[0].keys() == two[0].keys()
    for name, (tensors, facts) in one[0].items():
        others, other_facts = two[0][name]
        assert facts == other_facts, name
        assert all(torch.equal(value, others[key]) for key, value in tensors.items()), name
    assert one[1:] == two[1:]


@pytest.fixture(scope="module")
def whole(molecules, tmp_path_factory):
    """Two seeds, three epochs, uninterrupted."""
    from graphsc.finetuning.finetune import FineTuneSettings

    folder = tmp_path_factory.mktemp("runs") / "whole"
    settings = FineTuneSettings(epochs=3, batch_size=16, dropout=0.2)
    run = finetune(
        molecules, out=folder, settings=settings, encoder_settings={"width": 8, "depth": 2}, device="cpu",
        split="random", seeds=[0, 1],
    )  # fmt: skip
    return folder, run


def test_a_run_folder_holds_split_models_metrics_results_and_predictions(whole, molecules):
    folder, run = whole
    assert [(one.part, one.positives + one.negatives) for one in run.balance] == [
        ("train", 51), ("valid", 6), ("test", 7),
    ]  # fmt: skip
    rows = Metrics(folder / "seed-0" / "metrics.csv", keep=99).rows
    assert [row["epoch"] for row in rows] == [1, 2, 3]
    result = run.results[0]
    assert set(result.rules) == {"last", "best"}
    best = max(rows, key=lambda row: (row[SCORE], -row["epoch"]))
    assert result.rules["best"].epoch == best["epoch"]
    assert result.rules["last"].epoch == 3
    # Equal to the metrics up to the half precision in which scores are stored.
    assert result.score("best") == pytest.approx(best["test_roc_auc"], abs=0.2)
    with open(folder / "predictions.csv") as file:
        held = list(csv.DictReader(file))
    assert [row["smiles"] for row in held] == [
        smiles for smiles, part in zip(molecules.smiles, result.parts, strict=True) if part
    ]
    models = [load_predictor(folder / f"seed-{seed}" / "best.safetensors") for seed in (0, 1)]
    one = molecules.collection.take(np.flatnonzero(result.parts))
    mean = np.mean([model.predict(one)[:, 0] for model in models], axis=0)
    np.testing.assert_allclose([float(row["nitrogen_probability"]) for row in held], mean, rtol=1e-4)


def test_the_seed_decides_the_model_and_not_the_split(whole):
    _, run = whole
    np.testing.assert_array_equal(run.results[0].parts, run.results[1].parts)
    one, two = (result.rules["last"].test[0].scores for result in run.results)
    assert not np.array_equal(one, two)


@pytest.mark.parametrize("steps", [2, 3, 8, 12])  # within an epoch, at its end, in the second seed
def test_a_stopped_run_resumes_bit_identically(whole, molecules, small, tmp_path, steps):
    arguments = {**small(), "seeds": [0, 1]}
    with pytest.raises(StoppedError) as stop:
        finetune(molecules, out=tmp_path / "parts", reporter=StopAt(steps), **arguments)
    assert stop.value.exit_code == 143
    torch.manual_seed(777)
    finetune(molecules, out=tmp_path / "parts", **arguments)
    assert_equal(outcome(whole[0]), outcome(tmp_path / "parts"))


def test_a_kill_between_the_best_model_and_its_checkpoint_changes_nothing(whole, molecules, small, tmp_path):
    arguments = {**small(), "seeds": [0, 1]}
    finetune(molecules, out=tmp_path / "a", **arguments)
    place = tmp_path / "a" / "seed-1"
    # As a kill leaves it: the best model of a later epoch than the newest checkpoint is of.
    max((place / "checkpoints").iterdir()).unlink()
    for name in ("result.json", "last.safetensors"):
        (place / name).unlink()
    finetune(molecules, out=tmp_path / "a", **arguments)
    assert_equal(outcome(whole[0]), outcome(tmp_path / "a"))


def test_a_finished_run_is_not_repeated_and_more_seeds_extend_it(molecules, small, tmp_path):
    finetune(molecules, out=tmp_path / "a", seeds=[0], **small(epochs=1))
    before = (tmp_path / "a" / "seed-0" / "last.safetensors").stat().st_mtime_ns
    run = finetune(molecules, out=tmp_path / "a", seeds=[0, 1], **small(epochs=1))
    assert (tmp_path / "a" / "seed-0" / "last.safetensors").stat().st_mtime_ns == before
    assert len(run.results) == 2


def test_a_kill_before_the_predictions_leaves_no_stale_ones(molecules, small, tmp_path, monkeypatch):
    finetune(molecules, out=tmp_path / "a", seeds=[0, 1], **small(epochs=1))
    finetune(molecules, out=tmp_path / "b", seeds=[0], **small(epochs=1))

    def killed(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(sys.modules["graphsc.finetuning.finetune"], "write_predictions", killed)
        with pytest.raises(KeyboardInterrupt):
            finetune(molecules, out=tmp_path / "b", seeds=[0, 1], **small(epochs=1))
    finetune(molecules, out=tmp_path / "b", seeds=[0, 1], **small(epochs=1))
    one, two = (tmp_path / name / "predictions.csv" for name in "ab")
    assert one.read_text() == two.read_text()


def test_other_settings_and_a_second_owner_are_refused(molecules, small, tmp_path):
    finetune(molecules, out=tmp_path / "a", **small(epochs=1))
    with pytest.raises(ConfigError, match=r"training\.batch_size: 16 against 8"):
        finetune(molecules, out=tmp_path / "a", **small(epochs=1, batch_size=8))
    with RunFolder(tmp_path / "a").lock(trains=False), pytest.raises(RunFolderError, match="in use"):
        finetune(molecules, out=tmp_path / "a", **small(epochs=1))


def test_a_loss_that_is_not_finite_raises_a_diverged_error(molecules, small, tmp_path):
    with pytest.raises(DivergedError, match="epoch") as stop:
        finetune(molecules, out=tmp_path / "a", **small(epochs=3, learning_rates=(1e30,)))
    assert stop.value.exit_code == 3
    assert not (tmp_path / "a" / "seed-0" / "result.json").exists()


@pytest.mark.parametrize(("fast", "chosen"), [(True, "bf16"), (False, "full")])
def test_the_config_has_the_precision_that_auto_chose(molecules, small, tmp_path, monkeypatch, fast, chosen):
    monkeypatch.setattr(distributed, "has_fast_bf16", lambda device: fast)
    finetune(molecules, out=tmp_path / "r", **small(epochs=1, precision="auto"))
    assert read_config(RunFolder(tmp_path / "r").config)["training"]["precision"] == chosen


def test_validation_chooses_among_learning_rates(molecules, small, tmp_path):
    run = finetune(molecules, out=tmp_path / "a", **small(learning_rates=(1e-9, 1e-2), epochs=4))
    scores = {
        rate: Metrics(tmp_path / "a" / "seed-0" / f"lr-{rate:g}" / "metrics.csv", keep=9).rows[-1][SCORE]
        for rate in (1e-9, 1e-2)
    }
    assert run.results[0].rules["last"].learning_rate == max(scores, key=lambda rate: scores[rate])
    seed = tmp_path / "a" / "seed-0"
    assert (seed / "best.safetensors").exists()
    rate = run.results[0].rules["best"].learning_rate
    chosen = load_validation_scores(seed / f"lr-{rate:g}" / VALIDATION_SCORES)
    np.testing.assert_array_equal(load_validation_scores(seed / VALIDATION_SCORES), chosen)


def test_only_some_epochs_are_candidates_for_the_best_model(molecules, small, tmp_path):
    run = finetune(molecules, out=tmp_path / "a", **small(epochs=5, every=2))
    assert run.results[0].rules["best"].epoch in (2, 4, 5)


def test_scores_of_validation_molecules_are_of_epochs_chosen_without_them(molecules, small, tmp_path):
    from sklearn.metrics import roc_auc_score

    epochs, fold_of = 4, {}
    for last in range(1, epochs + 1):  # the models after each epoch, from runs of their own
        run = finetune(molecules, out=tmp_path / str(last), **small(epochs=last, learning_rates=(0.03,)))
    valid = np.flatnonzero(run.results[0].parts == 1)
    graphs, labels = molecules.collection.take(valid), molecules.labels[valid, 0]
    scores = np.stack([
        load_predictor(tmp_path / str(last) / "seed-0" / "last.safetensors").scores(graphs)[:, 0]
        for last in range(1, epochs + 1)
    ])  # fmt: skip
    assert set(labels) == {0, 1}
    expected, draw = [], numpy_generator(0, "folds of validation").permutation(np.arange(len(valid)) % 5)
    for place, fold in enumerate(draw):
        others = draw != fold
        if len(set(labels[others])) == 2:
            quality = [roc_auc_score(labels[others], own[others]) for own in scores]
            fold_of[fold] = int(np.argmax(quality))  # the earliest of equal ones
            expected.append(scores[fold_of[fold], place])
    stored = load_validation_scores(tmp_path / str(epochs) / "seed-0" / VALIDATION_SCORES)[:, 0]
    assert len(expected) == len(valid)
    np.testing.assert_allclose(stored, expected, rtol=1e-4, atol=1e-5)
    assert len(set(fold_of.values())) > 1  # otherwise this would hold for the chosen epoch, too


def test_patience_ends_training(molecules, small, tmp_path):
    # A learning rate this small changes no order of scores: nothing improves after the first epoch.
    finetune(molecules, out=tmp_path / "a", **small(epochs=9, patience=2, learning_rates=(1e-12,), dropout=0))
    assert len(Metrics(tmp_path / "a" / "seed-0" / "metrics.csv", keep=99).rows) < 9


def test_early_stopping_counts_epochs_since_the_best_score():
    def stops(scores, patience):
        metrics = SimpleNamespace(rows=[{SCORE: score} for score in scores])
        return EarlyStopping(patience, SCORE, "max").should_stop(SimpleNamespace(metrics=metrics))

    scores = (0.5, 0.7, 0.6, 0.7)
    assert stops(scores, 2)
    assert not stops(scores, 3)
    assert not stops(scores, None)
    assert not stops((), 1)


def test_a_regression_is_learned_in_the_units_of_its_labels(table, small, tmp_path):
    molecules = read_dataset(table, labels="share")
    assert molecules.kind == "regression"
    run = finetune(molecules, out=tmp_path / "a", **small(epochs=30, learning_rates=(1e-2,), dropout=0))
    result = run.results[0]
    measured = result.rules["best"].test[0].labels
    assert result.score("best") < measured.std()  # better than guessing the mean
    assert result.score("best", name="mae") <= result.score("best")
    assert abs(result.rules["best"].test[0].scores.mean() - measured.mean()) < 3


def test_missing_labels_and_a_task_of_one_class(tmp_path, small):
    lines = ["smiles,a,b"]
    lines += [f"{'C' * (k % 7 + 1)}{'N' if k % 2 else 'O'},{k % 2 if k % 3 else ''},1" for k in range(40)]
    (tmp_path / "m.csv").write_text("\n".join(lines) + "\n")
    molecules = read_dataset(tmp_path / "m.csv", labels="*")
    run = finetune(molecules, out=tmp_path / "a", **small(epochs=1))
    assert run.results[0].figures("last")["skipped"] == ["b"]
    assert any("b: only one class" in warning for warning in run.warnings)


def test_fine_tuning_starts_from_the_weights_of_a_run(molecules, small, tmp_path):
    from graphsc.training.train import train
    from graphsc.training.trainer import TrainSettings

    train(
        molecules.collection, "graphcl", settings={"encoder.width": 8, "encoder.depth": 2},
        encoder="molecule-gin", training=TrainSettings(epochs=1, batch_size=32), out=tmp_path / "pre",
        device="cpu",
    )  # fmt: skip
    arguments = small(epochs=1, learning_rates=(1e-12,)) | {"encoder_settings": None}
    run = finetune(molecules, tmp_path / "pre", out=tmp_path / "a", **arguments)
    assert run.results[0].trial["method"] == "graphcl"
    before, _ = load_tensors(tmp_path / "pre" / "model.safetensors", "model")
    after, _ = load_tensors(tmp_path / "a" / "seed-0" / "last.safetensors", "predictor")
    torch.testing.assert_close(
        after["encoder.blocks.0.first.weight"], before["encoder.blocks.0.first.weight"], atol=1e-6, rtol=0
    )
    with pytest.raises(ConfigError, match="bring their own encoder"):
        finetune(molecules, tmp_path / "pre", out=tmp_path / "b", encoder_settings={"width": 4})
