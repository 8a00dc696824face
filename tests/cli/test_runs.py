"""`graphsc runs`, the default run folder, and reports of runs that have not finished."""

import json
import signal

import pytest

from graphsc.core.errors import NotFoundError
from graphsc.core.files import file_lock
from graphsc.data.readers import open_collection
from graphsc.experiments.run_list import list_runs
from graphsc.training.callbacks import Callback
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

QUICK = ("--epochs", 1, "--set", "encoder.width=8")


def test_runs_are_listed_with_what_differs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for margin in (0.2, 0.3):
        assert run("train", "motifs:24", *QUICK, "--set", f"margin={margin}")[0] == 0
    assert run("train", "motifs:24", "--method", "raw", "--out", "runs/deep/er")[0] == 0
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.yaml").write_text("a: [")
    assert run("evaluate", "runs/deep/er", "--folds", 3, "--jobs", 1)[0] == 0
    code, out, _ = run("runs", "--json")
    assert code == 0
    listed = json.loads(out)
    assert len(listed) == 4
    by_method = {}
    for entry in listed:
        by_method.setdefault(entry["method"], []).append(entry)
    assert sorted(entry["differs"] for entry in by_method["graphsc"]) == ["margin=0.2", "margin=0.3"]
    assert [entry["state"] for entry in by_method["graphsc"]] == ["finished"] * 2
    (raw,) = by_method["raw"]
    assert raw["run"] == "runs/deep/er"
    assert raw["score"].endswith(" %")
    assert raw["differs"] == ""
    (broken,) = by_method[""]
    assert broken["state"].startswith("not readable: not a valid config")
    code, out, _ = run("runs", "runs")
    assert out.splitlines()[0].split("\t") == [
        "run", "data", "method", "seed", "settings that differ", "state", "score", "date",
    ]  # fmt: skip


def test_other_settings_open_another_folder_and_the_same_ones_resume(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def folder(*arguments):
        code, out, err = run("train", *arguments, "--json")
        assert code == 0, err
        return json.loads(out)["run"]

    first = folder("motifs:24", *QUICK)
    assert first == folder("motifs:24", "--epochs", 2, "--set", "encoder.width=8")
    others = {
        folder("motifs:24", "--epochs", 1, "--set", "encoder.width=16"),
        folder("motifs:24", *QUICK, "--set", "training.learning_rate=0.1"),
        folder("motifs:30", *QUICK),
        folder("motifs:24", *QUICK, "--features", "constant"),
    }
    assert len(others) == 4
    assert first not in others
    assert all(name.startswith("runs/motifs-graphsc-0-") for name in others)


class Kill(Callback):
    """Stops training after the first epoch, as Ctrl-C does."""

    def on_epoch_end(self, trainer):
        if trainer.epoch == 2:
            signal.raise_signal(signal.SIGINT)


@pytest.fixture
def unfinished(tmp_path):
    from graphsc.core.files import StoppedError

    with pytest.raises(StoppedError):
        train(
            open_collection("motifs:24"), settings={"encoder.width": 8}, training=TrainSettings(epochs=9),
            out=tmp_path / "r", source="motifs:24", callbacks=[Kill()],
        )  # fmt: skip
    return tmp_path / "r"


def test_an_unfinished_run_is_listed_reported_and_explored(run, unfinished, tmp_path):
    (listed,) = list_runs(tmp_path)
    assert listed.state == "stopped at epoch 2 of 9"
    code, _, err = run("report", unfinished, "--out", tmp_path / "r.html")
    assert code == 0, err
    page = (tmp_path / "r.html").read_text()
    assert "this run has not finished. It stopped at epoch 2 of 9." in page
    assert run("explore", unfinished, "--map", "pca", "--out", tmp_path / "m.html")[0] == 0
    code, _, err = run("evaluate", unfinished)
    assert code == 2
    assert "this run has not finished" in err


def test_a_run_in_use_is_running(unfinished, tmp_path):
    with file_lock(unfinished / ".lock"):
        (listed,) = list_runs(tmp_path)
    assert listed.state.startswith("running as process ")


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(NotFoundError, match="nowhere"):
        list_runs(tmp_path / "nowhere")


@pytest.fixture
def molecules(tmp_path, monkeypatch):
    pytest.importorskip("rdkit")
    monkeypatch.chdir(tmp_path)
    smiles = [
        chain + ring for chain in ("", "C", "CC", "CCO") for ring in ("c1ccccc1", "C1CCCCC1", "c1ccncc1")
    ]
    lines = [f"{text},{len(text)},{len(text) + 1}\n" for text in smiles]
    (tmp_path / "m.csv").write_text("smiles,length,longer\n" + "".join(lines))
    return tmp_path


def test_a_fine_tuning_without_an_encoder_is_finished_when_it_has_delivered(run, molecules):
    """It was listed as `stopped, 0 of 0 seeds`, and `--censored keep` as no difference."""
    for out, more in (("a", ()), ("b", ("--censored", "keep")), ("c", ("--split-seed", 1))):
        tuned = ("finetune", "none", "m.csv", "--labels", "length", "--model", "linear", "--split", "random")
        code, _, err = run(*tuned, *more, "--out", f"runs/{out}")
        assert code == 0, err
    code, out, _ = run("runs", "runs", "--json")
    listed = {entry["run"]: entry for entry in json.loads(out)}
    assert {entry["state"] for entry in listed.values()} == {"finished"}
    assert listed["runs/b"]["differs"] == "censored=keep, split_seed=0"
    assert listed["runs/c"]["differs"] == "censored=drop, split_seed=1"
    (molecules / "runs" / "a" / "predictions.csv").unlink()
    assert {run.path.name: run.state for run in list_runs("runs")}["a"] == "stopped"


def test_a_fine_tuning_that_stopped_between_seeds_says_how_many_are_missing(run, molecules):
    """Only the folders that existed were counted, so that one seed of two was all of them."""
    tuned = ("finetune", "none", "m.csv", "--labels", "length", "--model", "encoder", "--split", "random")
    code, _, err = run(*tuned, "--seeds", 2, "--epochs", 1, "--out", "runs/a")
    assert code == 0, err
    (listed,) = list_runs("runs")
    assert listed.state == "finished"
    for path in (molecules / "runs" / "a" / "seed-1").rglob("*"):
        if path.is_file():
            path.unlink()
    (molecules / "runs" / "a" / "predictions.csv").unlink()
    (listed,) = list_runs("runs")
    assert listed.state == "stopped, 1 of 2 seeds"
