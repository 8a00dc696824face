"""Making one step ahead changes nothing but the time."""

import threading

import numpy as np
import pytest

from graphsc.training import trainer as ahead
from graphsc.training.train import embed_with, train
from graphsc.training.trainer import one_ahead, worth_a_thread


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

    steps = one_ahead(make, 0, 5)
    assert [next(steps), next(steps)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(steps)


def test_leaving_early_leaves_no_thread():
    for _ in one_ahead(lambda step: step, 0, 100):
        break
    for thread in threading.enumerate():
        if thread.name.startswith("graphsc-ahead"):
            thread.join(5)
            assert not thread.is_alive()


def test_a_run_is_the_same_with_and_without_the_thread(motifs, quick, monkeypatch):
    assert not worth_a_thread(motifs, 16)
    without = train(motifs, training=quick())
    monkeypatch.setattr(ahead, "WORTH", 0)
    assert worth_a_thread(motifs, 16)
    with_thread = train(motifs, training=quick())
    np.testing.assert_array_equal(embed_with(without.model, motifs), embed_with(with_thread.model, motifs))


def test_without_a_thread_nothing_is_begun_early():
    made = []
    steps = one_ahead(lambda step: made.append(step) or step, 0, 3, thread=False)
    assert next(steps) == 0
    assert made == [0]
