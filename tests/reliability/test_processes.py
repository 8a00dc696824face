"""Row 25: commands with several processes, ended by real signals; no process is left behind."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from graphsc.experiments.result import ResultStore

pytestmark = pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")

LONG = ("compare", "motifs:40", "--methods", "graphsc", "--seeds", "8", "--epochs", "5000", "--folds", "3")
SHORT = ("compare", "motifs:40", "--methods", "untrained,graphsc", "--seeds", "2", "--epochs", "9",
         "--folds", "3")  # fmt: skip


@pytest.fixture
def start(tmp_path):
    """`start(*arguments)`: a command in a session of its own, so that all its processes can be counted."""
    started = []

    def call(*arguments, folder=tmp_path):
        folder.mkdir(exist_ok=True)
        process = subprocess.Popen(
            [sys.executable, "-m", "graphsc", *arguments], cwd=folder, text=True, start_new_session=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        started.append(process)
        return process

    yield call
    for process in started:
        for pid in processes_of(process.pid):
            os.kill(pid, signal.SIGKILL)
        process.communicate()


def processes_of(session):
    """Living processes of a session, with their command lines."""
    found = {}
    for path in Path("/proc").iterdir():
        try:
            state, _, _, number = (path / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(number) == session and state != "Z":
                found[int(path.name)] = (path / "cmdline").read_text().replace("\0", " ")
        except (OSError, ValueError):
            continue
    return found


def workers_of(session):
    return [pid for pid, command in processes_of(session).items() if "popen_loky" in command]


def wait_for(condition, process):
    until = time.monotonic() + 240
    while not condition():
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until, "it does not get on"
        time.sleep(0.01)


def assert_no_process_is_left(session):
    until = time.monotonic() + 5
    while left := processes_of(session):
        assert time.monotonic() < until, left
        time.sleep(0.05)


def trains(folder):
    """A condition: a worker has begun a trial."""
    return lambda: any(folder.glob("runs/*/*/.trial"))


@pytest.mark.parametrize(
    ("number", "to_group", "moment"),
    [
        (signal.SIGTERM, False, "training"),
        (signal.SIGTERM, True, "start"),  # as batch systems send it
        (signal.SIGINT, True, "start"),  # as Ctrl-C in a terminal
        (signal.SIGKILL, False, "start"),
        (signal.SIGKILL, False, "training"),
    ],
)
def test_a_stopped_comparison_leaves_no_process(start, tmp_path, number, to_group, moment):
    process = start(*LONG, "--jobs", "2")
    # At the start, workers exist that have not received a piece yet.
    wait_for(trains(tmp_path) if moment == "training" else lambda: len(workers_of(process.pid)) == 2, process)
    (os.killpg if to_group else os.kill)(process.pid, number)
    code = process.wait(20)
    assert_no_process_is_left(process.pid)
    _, said = process.communicate()
    assert "Traceback" not in said, said
    if number == signal.SIGKILL:
        assert code == -number
        return
    assert code == 128 + number
    assert said.splitlines()[1:] == [
        f"error: stopped by {number.name} (finished trials are stored); run the same command to resume"
    ]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_before_the_work_begins_ends_with_a_line(start, number):
    process = start("compare", "motifs:1000000", "--methods", "raw", "--seeds", "1")  # reads for long
    libraries = Path(f"/proc/{process.pid}/maps")
    wait_for(lambda: "torch" in libraries.read_text(), process)
    process.send_signal(number)
    _, said = process.communicate(timeout=60)
    assert (process.returncode, said) == (128 + number, "stopped\n")


def test_the_piece_of_a_killed_worker_runs_again(start, run, tmp_path, monkeypatch):
    (tmp_path / "whole").mkdir()
    monkeypatch.chdir(tmp_path / "whole")
    _, expected, _ = run(*SHORT, "--jobs", "1")
    process = start(*SHORT, "--jobs", "2", folder=tmp_path / "hurt")
    wait_for(trains(tmp_path / "hurt"), process)
    os.kill(workers_of(process.pid)[0], signal.SIGKILL)
    shown, said = process.communicate(timeout=240)
    assert process.returncode == 0, said
    assert "warning: a worker process died" in said
    assert shown == expected
    assert len(ResultStore(tmp_path / "hurt" / "results").all()) == 4
    assert_no_process_is_left(process.pid)
