"""An interrupted and resumed run equals an uninterrupted one, bit for bit."""

import os
import signal
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from graphsc.core.config import read_config
from graphsc.core.errors import ConfigError, DivergedError
from graphsc.core.files import StoppedError
from graphsc.core.run_folder import RunFolder, RunFolderError
from graphsc.core.serialization import load_tensors
from graphsc.training.callbacks import TIMES, Metrics, Reporter
from graphsc.training.train import embed_with, train
from graphsc.training.trainer import TrainSettings

METHODS = [
    "graphsc",
    "graphsc-rd",
    "simgrace",
    "joao",
    "joaov2",
    "adgcl",
    "rgcl",
    "edgepred",
    "contextpred",
    "graphlog",
    "cuco",
    "mvgrl",
    "graphmae",
    "gcc",
    "progcl",
    "gic",
    "subgcon",
    "bgrl",
    "cgc",
    "toy-two-players",
    "toy-remembering",
    "toy-following",
]


class StopAt(Reporter):
    """Sends this process a signal after a given number of steps."""

    def __init__(self, steps, number=signal.SIGTERM):
        self.left, self.number, self.messages = steps, number, []

    def on_step_end(self, trainer):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), self.number)

    def log(self, message):
        self.messages.append(message)


def outcome(folder):
    """Weights, everything in the last checkpoint, and metrics without times."""
    folder = RunFolder(folder)
    model, _ = load_tensors(folder.model, "model")
    newest = max(folder.checkpoints.iterdir())
    checkpoint, facts = load_tensors(newest, "checkpoint")
    facts.pop("seconds")
    rows = [
        {name: value for name, value in row.items() if name not in TIMES}
        for row in Metrics(folder.metrics, keep=10**6).rows
    ]
    return model, checkpoint, facts, rows


def assert_equal(one, two):
    for first, second in zip(one[:2], two[:2], strict=True):
        assert first.keys() == second.keys()
        for name in first:
            assert torch.equal(first[name], second[name]), name
    assert one[2:] == two[2:]


OPTIONS = {"schedule": "cosine", "clip": 1.0}


@pytest.fixture(scope="module")
def uninterrupted(motifs, tmp_path_factory):
    """`uninterrupted(method)`: the outcome of a run with `OPTIONS` that nothing stops, trained once."""
    settings = TrainSettings(epochs=3, batch_size=16, **OPTIONS)

    @cache
    def of(method):
        folder = tmp_path_factory.mktemp("whole") / "run"
        train(motifs, method, training=settings, out=folder)
        return outcome(folder)

    return of


@pytest.mark.parametrize("steps", [1, 3, 4, 8])
@pytest.mark.parametrize("method", METHODS)
def test_stopped_run_resumes_bit_identically(motifs, quick, uninterrupted, tmp_path, method, steps):
    expected = uninterrupted(method)
    with pytest.raises(StoppedError) as stop:
        train(motifs, method, training=quick(**OPTIONS), out=tmp_path / "parts", reporter=StopAt(steps))
    assert stop.value.exit_code == 143
    assert not (tmp_path / "parts" / "model.safetensors").exists()
    torch.manual_seed(12345)  # another process has another state of torch's global generator
    train(motifs, method, training=quick(**OPTIONS), out=tmp_path / "parts")
    assert_equal(expected, outcome(tmp_path / "parts"))


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_twice_is_identical_and_another_is_not(motifs, quick, uninterrupted, tmp_path, method):
    for name, seed in (("same", 0), ("other", 1)):
        train(motifs, method, training=quick(seed=seed, **OPTIONS), out=tmp_path / name)
    first, same, other = uninterrupted(method), outcome(tmp_path / "same"), outcome(tmp_path / "other")
    assert_equal(first, same)
    assert any(not torch.equal(first[0][name], other[0][name]) for name in first[0])


def test_interrupt_gives_exit_code_130(motifs, quick, tmp_path):
    with pytest.raises(StoppedError) as stop:
        train(motifs, training=quick(), out=tmp_path / "r", reporter=StopAt(2, signal.SIGINT))
    assert stop.value.exit_code == 130


def test_finished_run_says_so_and_more_epochs_extend_it(motifs, quick, tmp_path):
    train(motifs, training=quick(epochs=2), out=tmp_path / "r")
    listener = StopAt(-1)
    train(motifs, training=quick(epochs=2), out=tmp_path / "r", reporter=listener)
    assert any("finished: 2 epochs" in message for message in listener.messages)
    train(motifs, training=quick(epochs=4), out=tmp_path / "r")
    train(motifs, training=quick(epochs=4), out=tmp_path / "whole")
    assert_equal(outcome(tmp_path / "r"), outcome(tmp_path / "whole"))


def test_other_settings_in_the_same_folder_are_refused_by_name(motifs, quick, tmp_path):
    train(motifs, training=quick(epochs=1), out=tmp_path / "r")
    before = outcome(tmp_path / "r")
    with pytest.raises(ConfigError, match=r"settings.margin: 0.2 against 0.5.*training.seed: 0 against 3"):
        train(motifs, settings={"margin": 0.5}, training=quick(epochs=1, seed=3), out=tmp_path / "r")
    assert_equal(before, outcome(tmp_path / "r"))


@pytest.mark.parametrize("damage", ["flip", "truncate"])
def test_damaged_checkpoint_falls_back_to_the_one_before_and_says_so(motifs, quick, tmp_path, damage):
    train(motifs, training=quick(), out=tmp_path / "whole")
    with pytest.raises(StoppedError):
        train(motifs, training=quick(), out=tmp_path / "r", reporter=StopAt(7))
    folder = RunFolder(tmp_path / "r")
    newest = max(folder.checkpoints.iterdir())
    content = bytearray(newest.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 4
    else:
        del content[len(content) // 2 :]
    newest.write_bytes(content)
    listener = StopAt(-1)
    train(motifs, training=quick(), out=tmp_path / "r", reporter=listener)
    assert any("damaged" in message for message in listener.messages)
    assert_equal(outcome(tmp_path / "whole"), outcome(tmp_path / "r"))


def test_folder_in_use_is_refused_with_the_process(motifs, quick, tmp_path):
    with RunFolder(tmp_path / "r").lock(), pytest.raises(RunFolderError, match=f"process {os.getpid()}"):
        train(motifs, training=quick(), out=tmp_path / "r")
    train(motifs, training=quick(epochs=1), out=tmp_path / "r")  # freed


def test_file_in_place_of_the_folder_fails_before_training(motifs, quick, tmp_path):
    (tmp_path / "r").write_text("")
    with pytest.raises(RunFolderError, match="cannot write to the run folder"):
        train(motifs, training=quick(), out=tmp_path / "r")


def test_divergence_names_the_place_and_keeps_the_last_finite_checkpoint(motifs, quick, tmp_path):
    with pytest.raises(
        DivergedError, match=r"graphsc is nan at epoch 1, step 2, learning rate 1e\+30"
    ) as error:
        train(motifs, training=quick(learning_rate=1e30), out=tmp_path / "r")
    assert error.value.exit_code == 3
    for path in RunFolder(tmp_path / "r").checkpoints.iterdir():
        tensors, _ = load_tensors(path, "checkpoint")
        assert all(torch.isfinite(value).all() for value in tensors.values() if value.is_floating_point())


def test_stray_temporary_files_are_removed_at_the_next_start(motifs, quick, tmp_path):
    train(motifs, training=quick(epochs=1), out=tmp_path / "r")
    stray = tmp_path / "r" / "checkpoints" / ".step-000000009.safetensors.999999999.tmp"
    stray.write_bytes(b"half")
    train(motifs, training=quick(epochs=2), out=tmp_path / "r")
    assert not stray.exists()


def test_only_two_checkpoints_are_kept(motifs, quick, tmp_path):
    train(motifs, training=quick(epochs=4), out=tmp_path / "r")
    assert len(list(RunFolder(tmp_path / "r").checkpoints.iterdir())) == 2


def test_one_and_two_threads_agree(motifs, quick):
    before = torch.get_num_threads()
    found = []
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            run = train(motifs, training=quick(epochs=1, batch_size=40))  # one step
            found.append((run.metrics.rows[0], embed_with(train(motifs, "untrained").model, motifs)))
    finally:
        torch.set_num_threads(before)
    (one, vectors), (two, again) = found
    np.testing.assert_allclose(vectors, again, rtol=1e-4, atol=1e-4)
    for name in one:
        if name.startswith(("loss", "gradient")):
            assert one[name] == pytest.approx(two[name], rel=1e-3), name


def test_fewer_epochs_undo_nothing(motifs, quick, tmp_path):
    train(motifs, training=quick(epochs=3), out=tmp_path / "r")
    before = outcome(tmp_path / "r")
    train(motifs, training=quick(epochs=1), out=tmp_path / "r")
    assert_equal(before, outcome(tmp_path / "r"))
    assert read_config(RunFolder(tmp_path / "r").config)["epochs"] == 3


def test_interrupt_without_a_folder_is_an_ordinary_one(motifs, quick):
    # So that Ctrl-C ends a whole grid search and not just one fit of it. Python's own handler is put in
    # place first: a process that was started in the background ignores the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            train(motifs, training=quick(), reporter=StopAt(2, signal.SIGINT))
    finally:
        signal.signal(signal.SIGINT, before)


def test_columns_keep_their_order_over_a_stop(motifs, quick, tmp_path):
    train(motifs, training=quick(), out=tmp_path / "whole")
    with pytest.raises(StoppedError):
        train(motifs, training=quick(), out=tmp_path / "r", reporter=StopAt(1))
    train(motifs, training=quick(), out=tmp_path / "r")
    headers = [(tmp_path / name / "metrics.csv").read_text().splitlines()[0] for name in ("whole", "r")]
    assert headers[0] == headers[1]


KILL_PROGRAM = Path(__file__).with_name("kill_program.py")


def check_kills(tmp_path, kills, rounds):
    done = subprocess.run(
        [sys.executable, str(KILL_PROGRAM), str(tmp_path), str(kills), *map(str, range(rounds))],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    expected = outcome(tmp_path / "whole")
    for seed in range(rounds):
        assert_equal(expected, outcome(tmp_path / f"killed-{seed}"))
        assert not list((tmp_path / f"killed-{seed}").rglob("*.tmp"))
    return int(done.stdout)


def test_killed_run_ends_as_an_uninterrupted_one(tmp_path):
    assert check_kills(tmp_path, kills=4, rounds=1) >= 2


@pytest.mark.slow
def test_twenty_kills(tmp_path):
    hits = check_kills(tmp_path, kills=7, rounds=5)
    print(f"{hits} kills, 0 mismatches")
    assert hits >= 20
