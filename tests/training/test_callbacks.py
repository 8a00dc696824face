"""Callbacks: events, reporters, TensorBoard, encoder passes and pretext scores."""

import itertools
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from graphsc.core.errors import MissingExtraError
from graphsc.data.batch import GraphBatch
from graphsc.methods import METHODS, make_recipe
from graphsc.methods.base import Pretext, preserved
from graphsc.training import callbacks
from graphsc.training.callbacks import (
    Callback,
    Metrics,
    PlainReporter,
    Reporter,
    duration,
    evaluate_pretext,
    passes_per_step,
)  # fmt: skip
from graphsc.training.checkpoint import Progress
from graphsc.training.loggers import TensorBoard
from graphsc.training.train import train


class Recorder(Callback):
    """Records every event with the position of the trainer."""

    def __init__(self):
        self.events = []

    def on_train_start(self, trainer):
        self.events.append(("start", trainer.epoch, trainer.resumed))

    def on_step_end(self, trainer):
        self.events.append(("step", trainer.progress.epoch, trainer.progress.step))

    def epoch_metrics(self, trainer):
        self.events.append(("metrics", trainer.epoch))
        return {"double": 2.0 * trainer.epoch}

    def on_epoch_end(self, trainer):
        self.events.append(("epoch", trainer.epoch, trainer.metrics.rows[-1]["double"]))

    def on_train_end(self, trainer):
        self.events.append(("end", trainer.epoch))


def test_events_of_a_run_in_order(motifs, quick):
    recorder = Recorder()
    train(motifs, training=quick(epochs=2, batch_size=20), callbacks=[recorder])
    assert recorder.events == [
        ("start", 0, False),
        ("step", 0, 1), ("step", 0, 2), ("metrics", 1), ("epoch", 1, 2.0),
        ("step", 1, 1), ("step", 1, 2), ("metrics", 2), ("epoch", 2, 4.0),
        ("end", 2),
    ]  # fmt: skip


def test_resumed_run_says_so_to_its_callbacks(motifs, quick, tmp_path):
    recorder = Recorder()
    for epochs in (1, 2):
        train(motifs, training=quick(epochs=epochs), out=tmp_path / "r", callbacks=[recorder])
    starts = [event for event in recorder.events if event[0] in ("start", "end")]
    assert starts == [("start", 0, False), ("end", 1), ("start", 1, True), ("end", 2)]


def test_columns_of_a_callback_stand_between_health_and_learning_rate(motifs, quick):
    row = train(motifs, training=quick(epochs=1), callbacks=[Recorder()]).metrics.rows[0]
    names = list(row)
    place = names.index("double")
    assert names.index("alignment") < place
    assert names[place + 1 :] == ["learning_rate", "seconds", "graphs_per_second"]


def test_a_callback_ends_training_and_a_resumed_run_agrees(motifs, quick, tmp_path):
    class StopAfterTwo(Callback):
        def should_stop(self, trainer):
            return len(trainer.metrics.rows) >= 2

    for _ in range(2):
        run = train(motifs, training=quick(epochs=9), out=tmp_path / "r", callbacks=[StopAfterTwo()])
        assert len(run.metrics.rows) == 2


def test_training_that_fails_still_ends_for_the_callbacks_that_started(motifs, quick):
    class Failing(Callback):
        def on_epoch_end(self, trainer):
            raise ValueError("no")

    recorder = Recorder()
    with pytest.raises(ValueError, match="no"):
        train(motifs, training=quick(), callbacks=[recorder, Failing()])
    assert recorder.events[-1] == ("end", 1)


def test_preserved_puts_back_modes_and_buffers():
    module = torch.nn.Sequential(torch.nn.BatchNorm1d(2), torch.nn.Dropout())
    module[1].eval()
    with preserved(module, training=True):
        module(torch.tensor([[1.0, 2.0], [3.0, 5.0]]))
        assert module[0].running_mean.tolist() != [0.0, 0.0]
    assert module[0].running_mean.tolist() == [0.0, 0.0]
    assert [part.training for part in module] == [True, False]


def trainer_at(epochs, epoch=0, step=0, steps=10, rows=(), **sums):
    """A trainer as callbacks see it."""
    metrics = Metrics(None)
    metrics.rows = list(rows)
    return SimpleNamespace(
        epochs=epochs, epoch=epoch, steps_per_epoch=steps, metrics=metrics,
        progress=Progress(epoch, step, sums=sums),
    )  # fmt: skip


def test_one_line_per_minute_tells_the_time_left(monkeypatch, capsys):
    # The clock is read at the start, at each step and at each line: it advances by 20 seconds each time.
    clock = itertools.count(0, 20)
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: float(next(clock)))
    plain = PlainReporter()
    plain.on_train_start(trainer_at(2))
    for step in range(1, 7):
        plain.on_step_end(trainer_at(2, step=step, loss=3.0 * step))
    lines = capsys.readouterr().err.splitlines()
    # After three steps of twenty in a minute, 340 seconds are left; after six in two, 280.
    assert lines == [
        "epoch 1/2, step 3 of 10  loss 3.0000  6 minutes left",
        "epoch 1/2, step 6 of 10  loss 3.0000  5 minutes left",
    ]


def test_time_left_counts_from_where_a_run_was_resumed(monkeypatch, capsys):
    clock = itertools.count(0, 60)
    monkeypatch.setattr(callbacks.time, "monotonic", lambda: float(next(clock)))
    plain = PlainReporter()
    plain.on_train_start(trainer_at(2, 1))
    # The first step of this call takes a minute; four are left.
    plain.on_step_end(trainer_at(2, 1, step=6, loss=6.0))
    assert "step 6 of 10  loss 1.0000  4 minutes left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "words"), [(61.2, "61 seconds"), (600, "10 minutes"), (9000, "2.5 hours")]
)
def test_durations_in_words(seconds, words):
    assert duration(seconds) == words


class Counting(Reporter):
    """Counts messages and events."""

    def __init__(self):
        self.messages, self.steps, self.epochs = 0, 0, 0

    def log(self, message):
        self.messages += 1

    def on_step_end(self, trainer):
        self.steps += 1

    def on_epoch_end(self, trainer):
        self.epochs += 1


def events_of(folder):
    """{name: [(epoch, value), ...]} as TensorBoard itself reads the folder."""
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    read = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    read.Reload()
    names = read.Tags()["scalars"]
    return {name: [(event.step, event.value) for event in read.Scalars(name)] for name in names}


def expected_of(rows):
    """The same from rows of the metrics; TensorBoard keeps 32 bits."""
    names = {name for row in rows for name in row} - {"epoch"}
    return {
        name: [(int(row["epoch"]), float(np.float32(row[name]))) for row in rows if name in row]
        for name in names
    }


def test_events_are_the_rows_of_the_metrics(motifs, quick, tmp_path):
    pytest.importorskip("tensorboard")
    run = train(motifs, training=quick(epochs=2), callbacks=[TensorBoard(tmp_path)])
    assert len(run.metrics.rows) == 2
    assert events_of(tmp_path) == expected_of(run.metrics.rows)


def test_resumed_run_adds_to_its_events(motifs, quick, tmp_path):
    pytest.importorskip("tensorboard")
    for epochs in (1, 2):
        board = TensorBoard(tmp_path / "events")
        run = train(motifs, training=quick(epochs=epochs), out=tmp_path / "r", callbacks=[board])
    assert events_of(tmp_path / "events") == expected_of(run.metrics.rows)


def test_repeated_epoch_is_there_once(tmp_path):
    pytest.importorskip("tensorboard")
    # Killed after the metrics of epoch 2 and before its checkpoint: the next call finds one epoch done.
    for done, rows in ((0, [(1, 10.0), (2, 20.0)]), (1, [(2, 21.0), (3, 30.0)])):
        board = TensorBoard(tmp_path)
        board.on_train_start(trainer_at(3, done))
        for epoch, loss in rows:
            board.on_epoch_end(trainer_at(3, epoch, rows=[{"epoch": epoch, "loss": loss}]))
        board.on_train_end(trainer_at(3))
    assert events_of(tmp_path) == {"loss": [(1, 10.0), (2, 21.0), (3, 30.0)]}


def test_reporter_beside_tensorboard_gets_every_event(motifs, quick, tmp_path):
    pytest.importorskip("tensorboard")
    counting = Counting()
    train(motifs, training=quick(epochs=2), reporter=counting, callbacks=[TensorBoard(tmp_path)])
    assert counting.messages >= 1
    assert (counting.steps, counting.epochs) == (6, 2)


def test_missing_tensorboard_is_one_clear_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # as if it were not installed
    with pytest.raises(MissingExtraError) as caught:
        TensorBoard(tmp_path)
    assert str(caught.value) == "this needs tensorboard; pip install 'graphsc[tensorboard]'"


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("graphsc", {}, 3),
        ("graphsc", {"batch_norm": "joint"}, 3),  # one call on all three views joined
        ("graphcl", {}, 2),
        ("infograph", {}, 1),
        ("lagraph", {}, 2),
        ("simgrace", {}, 2),
        ("rgcl", {}, 3),
        ("adgcl", {}, 6),
    ],
)
def test_encoder_passes_per_step_and_nothing_changes(motifs, name, settings, expected):
    method = make_recipe(name, motifs, settings).build(motifs.features, 0)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    state = torch.random.get_rng_state()
    found = passes_per_step(method, GraphBatch.of(motifs), torch.Generator().manual_seed(0))
    assert found == expected
    assert method.training
    assert torch.equal(state, torch.random.get_rng_state())
    for key, value in method.state_dict().items():
        assert torch.equal(value, before[key]), key


SCORED = ["graphsc", "graphsc-rd", "graphsc-mse", "graphcl", "joao", "joaov2", "adgcl", "simgrace", "rgcl",
          "infograph", "lagraph", "cuco", "mvgrl", "graphmae", "gcc", "grace", "gca", "progcl", "vgae", "gic",
          "subgcon", "cgc"]  # fmt: skip
# Their chance depends on more than the number of graphs.
OTHER_CHANCE = ["infograph", "lagraph", "mvgrl", "graphmae", "gcc", "grace", "gca", "progcl"]
PAIRS = ["vgae", "gic", "subgcon"]


def made(name, motifs, **settings):
    return make_recipe(name, motifs, settings).build(motifs.features, 0)


@pytest.mark.parametrize("name", SCORED)
def test_pretext_score_repeats_exactly_and_leaves_the_method_unchanged(motifs, name):
    method = made(name, motifs)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    score = evaluate_pretext(method, motifs, 0)
    torch.rand(3)
    assert evaluate_pretext(method, motifs, 0) == score
    assert 0 <= score.score <= 1
    assert 0 < score.chance < 1
    assert method.training
    for key, value in method.state_dict().items():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("name", [name for name in SCORED if name not in OTHER_CHANCE])
def test_chance_level_follows_from_the_task(motifs, name):
    chance = 0.5 if name.startswith("graphsc") or name in PAIRS else 1 / len(motifs)
    assert evaluate_pretext(made(name, motifs), motifs, 0).chance == pytest.approx(chance)


def test_no_score_without_task_or_graphs(motifs):
    assert METHODS.get("untrained").kind == "trained"
    assert evaluate_pretext(made("untrained", motifs), motifs, 0) is None
    assert evaluate_pretext(made("graphsc", motifs), motifs[:0], 0) is None


def identity_head(head):
    """Make a head the identity on positive rows."""
    for layer in (head[0], head[2]):
        torch.nn.init.eye_(layer.weight)
        torch.nn.init.zeros_(layer.bias)


def test_graphsc_counts_triplets_in_its_distance_space(motifs):
    # The weak view is longer but has the anchor's direction; the strong one is nearer before normalisation.
    encoded = {
        "anchor": torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(2, 24),
        "positive": torch.tensor([[9.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]).repeat(1, 24),
        "negative": torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 0.1, 0.0, 0.0]]).repeat(1, 24),
    }
    for space, score in (("unit", 0.5), ("raw", 0.0)):
        method = made("graphsc", motifs, distance_space=space)
        identity_head(method.first_head)
        assert method.pretext(encoded) == Pretext("weak view nearer than strong", score, 0.5)


def test_graphcl_finds_the_other_view(motifs):
    method = made("graphcl", motifs)
    identity_head(method.head)
    rows = torch.eye(96)[:4]
    found = method.pretext({"anchor": rows, "positive": rows[[0, 1, 3, 2]]})
    assert (found.score, found.chance) == (0.5, 0.25)


def test_infograph_ranks_own_nodes(motifs):
    method = made("infograph", motifs)
    method.local_head = method.global_head = torch.nn.Identity()
    graphs = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    # Two nodes of the first graph, one of the other.
    local = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    # Own pairs score 1, 0 and 0.5; the others 0, 1 and 0.5. Of nine comparisons 3 hold and 3 are ties.
    found = method.pretext({"anchor": graphs, "local": local, "size": torch.tensor([2, 1])})
    assert found.score == pytest.approx((3 + 3 / 2) / 9)


class Fixed(torch.nn.Module):
    """Always returns the same."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, _):
        return self.answer


def test_lagraph_predicts_nodes_and_chance_is_the_most_frequent_one(motifs):
    method = made("lagraph", motifs)
    known = motifs.features.cardinalities[0]
    codes = torch.tensor([[0], [0], [0], [min(1, known - 1)]])
    method.decoder = Fixed(torch.nn.functional.one_hot(codes[[0, 1, 3, 3], 0], known).float())
    found = method.pretext({"anchor": torch.zeros(1, 96), "nodes": torch.zeros(4, 32), "codes": codes})
    assert (found.score, found.chance) == (0.75, 0.75)
