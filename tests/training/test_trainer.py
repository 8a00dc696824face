"""Prefetching changes nothing but the time."""

import threading

import numpy as np
import pytest

from graphsc.training import trainer
from graphsc.training.train import embed_with, train
from graphsc.training.trainer import prefetch, prefetch_pays


def test_every_item_comes_once_and_in_order():
    assert list(prefetch(lambda step: step * step, 2, 7)) == [4, 9, 16, 25, 36]
    assert list(prefetch(lambda step: step, 3, 3)) == []


def test_the_next_item_is_started_before_this_one_is_used():
    started = [threading.Event() for _ in range(3)]

    def make(step):
        started[step].set()
        return step

    for step in prefetch(make, 0, 3):
        if step < 2:
            assert started[step + 1].wait(5)


def test_an_error_is_raised_when_its_item_is_due():
    def make(step):
        if step == 2:
            raise ValueError("two")
        return step

    steps = prefetch(make, 0, 5)
    assert [next(steps), next(steps)] == [0, 1]
    with pytest.raises(ValueError, match="two"):
        next(steps)


def test_leaving_early_leaves_no_thread():
    for _ in prefetch(lambda step: step, 0, 100):
        break
    for thread in threading.enumerate():
        if thread.name.startswith("graphsc-prefetch"):
            thread.join(5)
            assert not thread.is_alive()


def test_a_run_is_the_same_with_and_without_prefetching(motifs, quick, monkeypatch):
    assert not prefetch_pays(motifs, 16)
    without = train(motifs, training=quick())
    monkeypatch.setattr(trainer, "PREFETCH_SIZE", 0)
    assert prefetch_pays(motifs, 16)
    with_thread = train(motifs, training=quick())
    np.testing.assert_array_equal(embed_with(without.model, motifs), embed_with(with_thread.model, motifs))


def test_without_a_thread_nothing_is_started_early():
    made = []
    steps = prefetch(lambda step: made.append(step) or step, 0, 3, thread=False)
    assert next(steps) == 0
    assert made == [0]
