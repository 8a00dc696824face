"""Optimisers, schedules, accumulated gradients and early stops; the keys of stored results stay."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.data.batch import GraphBatch
from graphsc.experiments.trial import ProbeTrial
from graphsc.methods import make_recipe
from graphsc.training.callbacks import Callback
from graphsc.training.train import embed_with, train
from graphsc.training.trainer import LATER, TrainSettings, batches_of_epoch

BEFORE = {
    "epochs": 20, "batch_size": 128, "learning_rate": 0.01, "weight_decay": 0.0, "schedule": "constant",
    "warmup_epochs": 0.0, "clip": None, "precision": "full", "compile": False, "seed": 0,
}  # fmt: skip


def test_defaults_of_later_settings_are_not_part_of_the_identity():
    assert TrainSettings().to_json() == BEFORE
    assert TrainSettings(accumulate=2).to_json() == {**BEFORE, "accumulate": 2}
    assert set(LATER) & set(BEFORE) == set()


def test_a_trial_has_the_key_it_had_before_these_settings():
    """The identity as it was then, hashed by hand."""
    trial = ProbeTrial("motifs:20", "graphcl", seed=3, training={"epochs": 2})
    identity = trial.identity()
    assert identity["training"] == {**BEFORE, "epochs": 2, "seed": 3}
    assert (
        trial.key()
        == ProbeTrial("motifs:20", "graphcl", seed=3, training={"epochs": 2, "accumulate": 1}).key()
    )
    other = ProbeTrial("motifs:20", "graphcl", seed=3, training={"epochs": 2, "optimiser": "sgd"})
    assert other.key() != trial.key()


def test_no_stored_result_has_a_later_setting():
    stored = sorted((Path(__file__).parents[2] / "results").glob("*.jsonl"))
    assert stored
    for path in stored:
        with open(path, encoding="utf-8") as file:
            trial = json.loads(file.readline())["result"]["trial"]
        assert not set(trial.get("training", {})) & set(LATER)


def by_hand(motifs, make, settings, accumulate=1):
    """Train graphcl with an optimiser of torch in a plain loop; the weights of its encoder."""
    method = make_recipe("graphcl", motifs).build(motifs.features, settings.seed)
    method.train()
    optimiser = make(method.parameters())
    for epoch in range(settings.epochs):
        batches = batches_of_epoch(len(motifs), settings.batch_size, settings.seed, epoch)
        for first in range(0, len(batches), accumulate):
            group = range(first, min(first + accumulate, len(batches)))
            optimiser.zero_grad()
            for number in group:
                generator = torch.Generator().manual_seed(derive_seed(settings.seed, "views", epoch, number))
                views = method.views(GraphBatch.gather(motifs, batches[number]), generator)
                loss = sum(method.objective(method.encode(views)).values()) / len(group)
                loss.backward()
            optimiser.step()
    return [weight.detach() for weight in method.encoder.parameters()]


@pytest.mark.parametrize(
    ("chosen", "make"),
    [
        ({"optimiser": "adam"}, lambda p: torch.optim.Adam(p, 0.02, weight_decay=0.1, fused=True)),
        ({"optimiser": "adamw"}, lambda p: torch.optim.AdamW(p, 0.02, weight_decay=0.1, fused=True)),
        (
            {"optimiser": "sgd"},
            lambda p: torch.optim.SGD(p, 0.02, momentum=0.9, weight_decay=0.1, fused=True),
        ),
        (
            {"optimiser": "sgd", "momentum": 0.0},
            lambda p: torch.optim.SGD(p, 0.02, weight_decay=0.1, fused=True),
        ),
    ],
)
def test_an_optimiser_is_that_of_torch(motifs, quick, chosen, make):
    settings = quick(epochs=2, learning_rate=0.02, weight_decay=0.1, **chosen)
    run = train(motifs, "graphcl", training=settings)
    expected = by_hand(motifs, make, settings)
    for ours, theirs in zip(run.model.method.encoder.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=1e-4, atol=1e-5)


def test_accumulated_gradients_are_the_mean_of_their_batches(motifs, quick):
    settings = quick(epochs=2, accumulate=2, optimiser="sgd", momentum=0.0, learning_rate=0.1)
    run = train(motifs, "graphcl", training=settings)  # three batches: steps of two and of one
    expected = by_hand(motifs, lambda p: torch.optim.SGD(p, 0.1), settings, accumulate=2)
    for ours, theirs in zip(run.model.method.encoder.parameters(), expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=1e-4, atol=1e-5)


class Steps(Callback):
    def __init__(self):
        self.seen = []

    def on_step_end(self, trainer):
        self.seen.append((trainer.steps_per_epoch, trainer.progress.step))


def test_a_step_has_several_batches(motifs, quick):
    steps = Steps()
    run = train(motifs, "toy-following", training=quick(epochs=1, accumulate=2), callbacks=[steps])
    assert steps.seen == [(2, 1), (2, 2)]
    assert len(run.model.method.queue) == 24  # of 32 graphs in the first step, and 8 in the second


@pytest.mark.parametrize("method", ["graphcl", "toy-two-players", "toy-remembering", "toy-following"])
@pytest.mark.parametrize(
    "changes",
    [
        {"optimiser": "sgd"},
        {"optimiser": "adamw", "weight_decay": 0.1},
        {"accumulate": 2, "schedule": "cosine"},
    ],
)
def test_a_run_resumes_exactly(motifs, quick, tmp_path, method, changes):
    settings = quick(epochs=3, learning_rate=1e-6, **changes)

    class Stop(Callback):
        def on_step_end(self, trainer):
            if trainer.progress.total_steps == 3:
                trainer._save()
                raise RuntimeError

    with pytest.raises(RuntimeError):
        train(motifs, method, training=settings, callbacks=[Stop()], out=tmp_path)
    again = train(motifs, method, training=settings, out=tmp_path).model
    whole = train(motifs, method, training=settings).model
    np.testing.assert_array_equal(embed_with(whole, motifs), embed_with(again, motifs))


class Column(Callback):
    """A metric of given values, one per epoch."""

    def __init__(self, values):
        self.values = values

    def epoch_metrics(self, trainer):
        return {"score": self.values[trainer.epoch - 1]}


@pytest.mark.parametrize(
    ("mode", "values", "epochs"),
    [("max", (1, 3, 2, 3, 9, 9), 4), ("min", (5, 4, 3, 2, 1, 0), 6), ("min", (1, 2, 2, 0, 0, 0), 3)],
)
def test_training_ends_by_a_metric_with_its_last_embeddings_stored(
    motifs, quick, tmp_path, mode, values, epochs
):
    settings = quick(epochs=6, patience=2, monitor="score", monitor_mode=mode)

    def run():
        return train(motifs, "graphcl", training=settings, callbacks=[Column(values)], out=tmp_path)

    first = run()
    assert len(first.metrics.rows) == epochs
    assert RunFolder(tmp_path).embedding(epochs).exists()
    # The same call finds it finished.
    again = run()
    assert len(again.metrics.rows) == epochs
    np.testing.assert_array_equal(embed_with(first.model, motifs), embed_with(again.model, motifs))


def test_a_metric_that_does_not_exist_is_named(motifs, quick):
    with pytest.raises(ConfigError, match=r"no column 'los' to end training by.*did you mean 'loss'"):
        train(motifs, "graphcl", training=quick(patience=1, monitor="los"))


@pytest.mark.parametrize("wrong", [{"accumulate": 0}, {"momentum": 1.0}, {"momentum": -0.1}, {"patience": 0}])
def test_values_out_of_range_are_refused(wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        TrainSettings(**wrong)


def test_an_unknown_optimiser_is_refused(motifs):
    with pytest.raises(ConfigError, match="'optimiser'"):
        train(motifs, "graphcl", training={"optimiser": "lbfgs"})


def test_warm_up_then_cosine():
    settings = TrainSettings(epochs=10, learning_rate=1.0, warmup_epochs=2, schedule="cosine")
    rates = [settings.learning_rate_at(epoch, 0, 1) for epoch in range(10)]
    assert rates[:2] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    expected = [0.5 * (1 + np.cos(np.pi * (epoch - 2) / 8)) for epoch in range(2, 10)]
    assert rates[2:] == pytest.approx(expected)
