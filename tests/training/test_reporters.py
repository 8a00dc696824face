"""Progress of training: on a terminal of 80 columns, in a notebook, and the estimate for many trials."""

import os
import pty
import re
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from graphsc import GraphEmbedder, open_collection
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import run_trials
from graphsc.experiments.trial import ProbeTrial
from graphsc.training.callbacks import NotebookReporter, PlainReporter, epoch_summary, in_notebook

ROW = {
    "epoch": 3.0, "loss": 0.51234, "loss_triplet": 0.25, "loss_factor": 0.26234, "effective_rank": 12.3,
    "dimensions": 96.0, "graphs_per_second": 12345.0,
}  # fmt: skip


def test_loss_terms_are_shown_only_where_there_is_room():
    assert epoch_summary(ROW, 12) == "loss 0.5123"
    assert epoch_summary(ROW, 30) == "loss 0.5123  rank 12.3/96"
    assert epoch_summary(ROW, 40) == "loss 0.5123  rank 12.3/96"
    assert epoch_summary(ROW, 45) == "loss 0.5123  rank 12.3/96  12,345 graphs/s"
    assert epoch_summary(ROW, 90).endswith("graphs/s  (triplet 0.25, factor 0.2623)")
    assert epoch_summary(ROW) == ("loss 0.5123 (triplet 0.25, factor 0.2623)  rank 12.3/96  12,345 graphs/s")


TRAIN = """
from graphsc import open_collection
from graphsc.training import TrainSettings, train
from graphsc.training.callbacks import reporter_for_terminal

settings = TrainSettings(epochs=3, batch_size=4)
graphs, small = open_collection("motifs:40"), {"encoder.width": 8}
train(graphs, settings=small, training=settings, reporter=reporter_for_terminal())
"""


def test_a_bar_fits_80_columns_with_the_time_left():
    driver, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen([sys.executable, "-c", TRAIN], stderr=terminal, env=environment)
    os.close(terminal)
    shown = b""
    while True:
        try:
            shown += os.read(driver, 4096)
        except OSError:  # the other end is closed
            break
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    lines = [line.rstrip() for line in re.split(r"[\r\n]+", text)]
    bars = [line for line in lines if line.startswith("epoch ")]
    assert any(line.startswith("epoch 3/3 ") for line in bars)
    assert all(len(line) <= 80 for line in lines)
    assert all(re.match(r"epoch [0-9]/3 \S{5,} ([0-9]:[0-9]{2}:[0-9]{2}|-:--:--)", line) for line in bars)
    assert any("loss " in line for line in bars)
    assert "…" not in text  # nothing is cut off


@pytest.fixture
def notebook(monkeypatch):
    """The part of IPython that is used; the list has every page that was shown."""
    pages = []

    def display(page, *, raw, display_id):
        pages.append(page)
        return SimpleNamespace(update=lambda page, raw: pages.append(page))

    ipython = ModuleType("IPython")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())
    ipython.display = SimpleNamespace(display=display)
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    return pages


def test_a_notebook_has_a_bar(notebook, capsys):
    assert in_notebook()
    GraphEmbedder(epochs=2, settings={"encoder.width": 8}, verbose=1).fit(open_collection("motifs:24"))
    assert notebook[-1]["text/plain"].startswith("epoch 2/2")
    assert '<progress value="2.000" max="2">' in notebook[-1]["text/html"]
    assert "loss" in notebook[-1]["text/html"]
    assert "epoch" not in capsys.readouterr().err


def test_a_notebook_reporter_says_what_is_logged(notebook, capsys):
    NotebookReporter().log("a warning")
    assert capsys.readouterr().err == "a warning\n"


@pytest.mark.parametrize(("verbose", "lines"), [(0, 0), (False, 0), (1, 2), (True, 2), (2, 2)])
def test_verbose_follows_scikit_learn(capsys, verbose, lines):
    GraphEmbedder(epochs=2, settings={"encoder.width": 8}, verbose=verbose).fit(open_collection("motifs:24"))
    assert capsys.readouterr().err.count("epoch ") == lines


def test_the_time_of_trials_is_estimated_from_those_that_are_done(tmp_path, capsys):
    def trials(seeds):
        return [ProbeTrial("motifs:24", "raw", seed) for seed in range(seeds)]

    store = ResultStore(tmp_path / "results")
    run_trials(trials(2), store, tmp_path / "runs", reporter=PlainReporter())
    first = capsys.readouterr().err.splitlines()
    assert first[0] == "2 trials: 0 stored, 2 to run"  # nothing is known yet
    assert re.fullmatch(
        r"\[1/2\] raw on motifs:24, seed 0: .* % in [0-9]+ s, about [0-9]+ seconds left", first[1]
    )
    assert first[2].startswith("[2/2]")
    assert "left" not in first[2]
    run_trials(trials(3), store, tmp_path / "runs", reporter=PlainReporter())
    assert re.match(r"3 trials: 2 stored, 1 to run, about [0-9]+ seconds left", capsys.readouterr().err)
