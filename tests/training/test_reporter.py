"""What a person sees of a long epoch: where it is, and the time that is left."""

import itertools

import pytest

from graphsc.training import callbacks as reporter
from graphsc.training.callbacks import PlainReporter, duration


def test_a_line_a_minute_tells_the_time_left(monkeypatch, capsys):
    # The clock is read at the start, at each step and at each line: 20 seconds go by with every look.
    clock = itertools.count(0, 20)
    monkeypatch.setattr(reporter.time, "monotonic", lambda: float(next(clock)))
    plain = PlainReporter()
    with plain.training(2, 0):
        for step in range(1, 7):
            plain.step(0, step, 10, {"loss": 3.0 * step})
    lines = capsys.readouterr().err.splitlines()
    # After three steps of twenty in a minute, 340 seconds are left; after six in two, 280.
    assert lines == [
        "epoch 1/2, step 3 of 10  loss 3.0000  6 minutes left",
        "epoch 1/2, step 6 of 10  loss 3.0000  5 minutes left",
    ]


def test_time_left_counts_from_where_a_resumed_run_went_on(monkeypatch, capsys):
    clock = itertools.count(0, 60)
    monkeypatch.setattr(reporter.time, "monotonic", lambda: float(next(clock)))
    plain = PlainReporter()
    with plain.training(2, 1):
        plain.step(1, 6, 10, {"loss": 6.0})  # the first step of this call, a minute long; four are left
    assert "step 6 of 10  loss 1.0000  4 minutes left" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("seconds", "words"), [(61.2, "61 seconds"), (600, "10 minutes"), (9000, "2.5 hours")]
)
def test_durations_as_people_say_them(seconds, words):
    assert duration(seconds) == words
