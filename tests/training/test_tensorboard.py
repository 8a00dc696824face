"""What TensorBoard is told is what metrics.csv holds."""

import sys

import numpy as np
import pytest

from graphsc.core.errors import MissingExtraError
from graphsc.training.callbacks import Reporter, TensorBoardReporter
from graphsc.training.train import train


class Counting(Reporter):
    """Counts what is passed on to it."""

    def __init__(self):
        self.said, self.steps, self.epochs = 0, 0, 0

    def say(self, sentence):
        self.said += 1

    def step(self, epoch, step, steps, sums):
        self.steps += 1

    def epoch(self, row):
        self.epochs += 1


def events_of(folder):
    """{name: {epoch: value}} as TensorBoard itself reads the folder."""
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
    run = train(motifs, training=quick(epochs=2), reporter=TensorBoardReporter(tmp_path, Reporter()))
    assert len(run.metrics.rows) == 2
    assert events_of(tmp_path) == expected_of(run.metrics.rows)


def test_run_that_goes_on_adds_to_its_events(motifs, quick, tmp_path):
    pytest.importorskip("tensorboard")
    for epochs in (1, 2):
        reporter = TensorBoardReporter(tmp_path / "events", Reporter())
        run = train(motifs, training=quick(epochs=epochs), out=tmp_path / "r", reporter=reporter)
    assert events_of(tmp_path / "events") == expected_of(run.metrics.rows)


def test_epoch_that_is_made_again_is_there_once(tmp_path):
    pytest.importorskip("tensorboard")
    # Killed after the row of epoch 2 and before its checkpoint: the next call finds one epoch done.
    for done, rows in ((0, [(1, 10.0), (2, 20.0)]), (1, [(2, 21.0), (3, 30.0)])):
        reporter = TensorBoardReporter(tmp_path, Reporter())
        with reporter.training(3, done):
            for epoch, loss in rows:
                reporter.epoch({"epoch": epoch, "loss": loss})
    assert events_of(tmp_path) == {"loss": [(1, 10.0), (2, 21.0), (3, 30.0)]}


def test_the_other_reporter_is_told_everything(motifs, quick, tmp_path):
    pytest.importorskip("tensorboard")
    inner = Counting()
    train(motifs, training=quick(epochs=2), reporter=TensorBoardReporter(tmp_path, inner))
    assert inner.said >= 1
    assert (inner.steps, inner.epochs) == (6, 2)


def test_missing_package_is_one_clear_sentence(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "tensorboard", None)  # as if it were not installed
    with pytest.raises(MissingExtraError) as caught:
        TensorBoardReporter(tmp_path, Reporter())
    assert str(caught.value) == "this needs tensorboard; pip install 'graphsc[tensorboard]'"
