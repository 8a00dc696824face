"""Making one step ahead changes nothing but the time."""

import threading

import pytest

from graphsc.training.ahead import one_ahead


def test_everything_comes_once_and_in_order():
    assert list(one_ahead(lambda step: step * step, 2, 7)) == [4, 9, 16, 25, 36]
    assert list(one_ahead(lambda step: step, 3, 3)) == []


def test_the_next_is_begun_before_this_one_is_used():
    begun = [threading.Event() for _ in range(3)]

    def make(step):
        begun[step].set()
        return step

    for step in one_ahead(make, 0, 3):
        if step < 2:
            assert begun[step + 1].wait(5)


def test_error_of_a_step_comes_when_that_step_is_due():
    def make(step):
        if step == 2:
            raise ValueError("two")
        return step

    seen = []
    with pytest.raises(ValueError, match="two"):
        for step in one_ahead(make, 0, 5):
            seen.append(step)
    assert seen == [0, 1]


def test_leaving_early_leaves_no_thread():
    for _ in one_ahead(lambda step: step, 0, 100):
        break
    for thread in threading.enumerate():
        if thread.name.startswith("graphsc-ahead"):
            thread.join(5)
            assert not thread.is_alive()
