"""Lines of progress where there is no terminal."""

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
