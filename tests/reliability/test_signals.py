"""Row 3 with real processes and real signals."""

import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from graphsc.core.serialization import load_tensors

TRAIN = ("train", "motifs:300", "--epochs", "40", "--set", "encoder.width=8", "--device", "cpu")


def start(*arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "graphsc", *map(str, arguments)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def after_epoch(process, folder, epochs):
    """Wait until so many epochs are in the metrics of a living process."""
    metrics, until = folder / "metrics.csv", time.monotonic() + 240
    while not metrics.exists() or metrics.read_text().count("\n") <= epochs:
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < until, "it does not get on"
        time.sleep(0.01)


def test_sigterm_saves_and_ends_with_143_then_sigint_with_130(tmp_path):
    folder = tmp_path / "r"
    for number, epochs in ((signal.SIGTERM, 1), (signal.SIGINT, 3)):
        process = start(*TRAIN, "--out", folder)
        after_epoch(process, folder, epochs)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 128 + number
        last = said.splitlines()[-1]
        assert last.startswith(f"error: stopped by {signal.Signals(number).name} (")
        assert last.endswith("; run the same command to resume")
        assert "Traceback" not in said
        # The checkpoint is at least as far as what the metrics say.
        _, facts = load_tensors(max((folder / "checkpoints").iterdir()), "checkpoint")
        assert facts["epoch"] >= (folder / "metrics.csv").read_text().count("\n") - 1
    assert "resuming at epoch" in said


@pytest.mark.faults
def test_same_command_after_a_stop_ends_as_the_undisturbed_run(tmp_path):
    stopped = start(*TRAIN, "--out", tmp_path / "r")
    after_epoch(stopped, tmp_path / "r", 5)
    stopped.send_signal(signal.SIGTERM)
    assert stopped.wait(120) == 143
    assert start(*TRAIN, "--out", tmp_path / "r").wait(240) == 0
    assert start(*TRAIN, "--out", tmp_path / "whole").wait(240) == 0
    one, two = (load_tensors(tmp_path / name / "model.safetensors", "model")[0] for name in ("r", "whole"))
    assert all(torch.equal(one[key], two[key]) for key in two)


@pytest.mark.faults
def test_a_second_sigint_ends_at_once(tmp_path):
    # A step of thousands of graphs lasts long enough for the second signal to meet it.
    process = start(
        "train", "motifs:30000", "--epochs", "9", "--set", "batch_size=30000", "--out", tmp_path / "r"
    )
    until = time.monotonic() + 240
    while not (tmp_path / "r" / "embeddings" / "epoch-00000.safetensors").exists():
        assert process.poll() is None
        assert time.monotonic() < until
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None, "the first one waits for the step at hand"
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT  # what a shell shows as 130
