"""Loggers: what they write, how they resume, and training that outlives a service."""

import csv
import sys
from pathlib import Path

import pytest

from graphsc.core.errors import CannotWriteError, ConfigError, MissingExtraError
from graphsc.training.callbacks import Reporter
from graphsc.training.loggers import CsvLog, Logger, MlflowLog, WandbLog, after_step, make_loggers
from graphsc.training.train import train


def rows_of(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


class Words(Reporter):
    def __init__(self):
        self.lines = []

    def log(self, message):
        self.lines.append(message)


def test_table_has_the_losses_of_every_step(motifs, quick, tmp_path):
    run = train(motifs, training=quick(epochs=2), callbacks=[CsvLog(tmp_path / "steps.csv")])
    rows = rows_of(tmp_path / "steps.csv")
    assert [(row["total_step"], row["epoch"], row["step"]) for row in rows] == [
        (str(3 * epoch + step), str(epoch + 1), str(step)) for epoch in range(2) for step in (1, 2, 3)
    ]
    for epoch, metrics in enumerate(run.metrics.rows):
        losses = [float(row["loss_self"]) for row in rows[3 * epoch : 3 * epoch + 3]]
        assert sum(losses) / 3 == pytest.approx(metrics["loss_self"])


def test_resumed_table_is_that_of_one_run(motifs, quick, tmp_path):
    for epochs in (1, 2):
        log = CsvLog(tmp_path / "parts.csv")
        train(motifs, training=quick(epochs=epochs), out=tmp_path / "parts", callbacks=[log])
    log = CsvLog(tmp_path / "whole.csv")
    train(motifs, training=quick(epochs=2), out=tmp_path / "whole", callbacks=[log])
    assert (tmp_path / "parts.csv").read_text() == (tmp_path / "whole.csv").read_text()


def test_steps_after_the_checkpoint_and_half_a_line_are_dropped(motifs, quick, tmp_path):
    path = tmp_path / "steps.csv"
    train(motifs, training=quick(epochs=1), out=tmp_path / "run", callbacks=[CsvLog(path)])
    first = path.read_text()
    path.write_text(first + first.splitlines()[-1].replace("3,1,3", "4,2,1", 1) + "\n5,2,")
    train(motifs, training=quick(epochs=2), out=tmp_path / "run", callbacks=[CsvLog(path)])
    assert [row["total_step"] for row in rows_of(path)] == list("123456")


def test_a_new_run_does_not_add_to_an_old_table(motifs, quick, tmp_path):
    for _ in range(2):
        train(motifs, training=quick(epochs=1), callbacks=[CsvLog(tmp_path / "steps.csv")])
    assert len(rows_of(tmp_path / "steps.csv")) == 3


class Failing(Logger):
    title = "a service"

    def __init__(self, start=False):
        self.start, self.asked = start, 0

    def open(self, trainer):
        if self.start:
            raise OSError("no route to host")

    def write(self, metrics, epoch):
        self.asked += 1
        raise OSError("connection\nlost")


def test_training_outlives_a_service_with_one_warning(motifs, quick):
    failing, words = Failing(), Words()
    run = train(motifs, training=quick(epochs=3), callbacks=[failing], reporter=words)
    assert len(run.metrics.rows) == 3
    assert failing.asked == 1
    warnings = [line for line in words.lines if line.startswith("warning")]
    assert warnings == [
        "warning: a service cannot be written any more, training continues: OSError: connection lost"
    ]


def test_a_service_that_cannot_be_reached_at_the_start_is_an_error(motifs, quick):
    with pytest.raises(CannotWriteError, match="cannot log to a service: OSError: no route to host"):
        train(motifs, training=quick(), callbacks=[Failing(start=True)])


def test_loggers_by_name(tmp_path):
    (log,) = make_loggers(["csv", "csv"], tmp_path)
    assert isinstance(log, CsvLog)
    assert log.path == tmp_path / "steps.csv"


def test_an_unknown_name_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="cannot log to 'tensorbord'; did you mean 'tensorboard'"):
        make_loggers(["csv", "tensorbord"], tmp_path)


@pytest.mark.parametrize("name", ["mlflow", "wandb", "tensorboard"])
def test_a_missing_library_is_one_clear_sentence(name, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)  # as if it were not installed
    with pytest.raises(MissingExtraError, match=rf"this needs {name}; pip install 'graphsc\[{name}\]'"):
        make_loggers([name], tmp_path)


def test_a_function_after_every_second_step(motifs, quick):
    seen = []
    callback = after_step(lambda t: seen.append((t.progress.total_steps, set(t.step_losses))), every=2)
    train(motifs, training=quick(epochs=2), callbacks=[callback])
    assert [step for step, _ in seen] == [2, 4, 6]
    assert all({"loss", "loss_self"} <= names for _, names in seen)


def test_after_step_refuses_no_steps():
    with pytest.raises(ValueError, match="at least 1"):
        after_step(print, every=0)


def test_mlflow_has_settings_and_metrics_and_a_resumed_run_continues(motifs, quick, tmp_path):
    mlflow = pytest.importorskip("mlflow")
    pytest.importorskip("alembic")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    for epochs in (1, 2):
        log = MlflowLog(tmp_path / "run", uri=uri)
        run = train(motifs, training=quick(epochs=epochs), out=tmp_path / "run", callbacks=[log])
    client = mlflow.MlflowClient(tracking_uri=uri)
    experiment = client.get_experiment_by_name("graphsc")
    (stored,) = client.search_runs([experiment.experiment_id])
    assert stored.info.status == "FINISHED"
    assert stored.data.params["training.batch_size"] == "16"
    history = client.get_metric_history(stored.info.run_id, "loss")
    assert [(value.step, value.value) for value in history] == [
        (int(row["epoch"]), row["loss"]) for row in run.metrics.rows
    ]


def test_wandb_writes_files_offline(motifs, quick, tmp_path, monkeypatch):
    pytest.importorskip("wandb")
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    log = WandbLog(tmp_path / "run")
    train(motifs, training=quick(epochs=2), out=tmp_path / "run", callbacks=[log])
    (offline,) = (tmp_path / "run" / "wandb").glob("offline-run-*")
    (events,) = offline.glob("run-*.wandb")
    content = events.read_bytes()
    assert b"graphsc on motifs" in content
    assert b"effective_rank" in content
    assert b"batch_size" in content


def test_command_logs_to_several_at_once(tmp_path, monkeypatch):
    pytest.importorskip("tensorboard")
    from graphsc.cli.main import run

    monkeypatch.chdir(tmp_path)
    arguments = "train motifs:40 --epochs 1 --out run --log csv --log tensorboard"
    assert run(arguments.split()) == 0
    assert (tmp_path / "run" / "steps.csv").exists()
    assert list(Path("run/tensorboard").glob("events.*"))
