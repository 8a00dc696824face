"""Progress: lines where there is no terminal, a bar where there is one."""

import os
import pty
import subprocess
import sys

import pytest

from graphsc.core import progress as module


@pytest.fixture
def clock(monkeypatch):
    """A clock that tests can set."""
    now = [0.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def test_progress_lines_estimate_the_time_left_from_this_command_s_own_speed(clock, capsys):
    with module.counting_bar("motifs", "graphs") as progress:
        for at, done in ((0, 600), (5, 650), (10, 700), (15, 750), (20, 800)):
            clock[0] = float(at)
            progress(done, 1000)
    # 600 were done earlier. Here 100 take 10 s, so another 300 take 30 s, and later another 200 take 20 s.
    assert capsys.readouterr().err.splitlines() == [
        "motifs: 700 of 1,000 graphs, 0:00:30 left",
        "motifs: 800 of 1,000 graphs, 0:00:20 left",
    ]


@pytest.mark.parametrize(("seconds", "shown"), [(0, "0:00:00"), (61, "0:01:01"), (36_000 + 59, "10:00:59")])
def test_times_as_a_clock_has_them(seconds, shown):
    assert module._format_time(seconds) == shown


BAR = """
import sys, time
from graphsc.core.progress import counting_bar

with counting_bar("parts/[ab]*.csv", "files") as progress:
    for done in range(4):
        progress(done, 4)
        time.sleep(0.3)
        sys.stderr.write(f"part {done} [red]\\n")
    progress(4, 4)
"""


def test_a_terminal_has_a_bar_with_the_time_left_and_lines_above_it():
    driver, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen([sys.executable, "-c", BAR], stderr=terminal, env=environment)
    os.close(terminal)
    shown = b""
    while True:
        try:
            shown += os.read(driver, 4096)
        except OSError:  # the other end is closed
            break
    assert process.wait() == 0
    os.close(driver)
    text = shown.decode()
    assert "parts/[ab]*.csv, files" in text
    for done in range(5):
        assert f"{done}/4" in text
    assert "0:00:0" in text
    for done in range(4):
        assert f"part {done} [red]" in text
