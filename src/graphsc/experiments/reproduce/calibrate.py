"""How long trials would take here: a short training and a short probe of some of the graphs, scaled up.

Rough by design. An epoch grows with the number of graphs, a probe with its square. Nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from graphsc.core.errors import GraphscError
from graphsc.evaluation.probe import evaluate
from graphsc.experiments.run import labels_of
from graphsc.experiments.single import one_thread, shared_collection
from graphsc.experiments.trial import Trial
from graphsc.methods import METHODS
from graphsc.training.run import train

GRAPHS = 256  # of a short training, at least one batch
PROBED = 400  # graphs of a short probe


def estimate(trials: Sequence[Trial]) -> list[float]:
    """Seconds for each trial on one core; trials alike but for seed and weights are measured once."""
    known: dict[tuple[object, ...], float] = {}
    found = []
    for trial in trials:
        like = _like(trial)
        if like not in known:
            known[like] = seconds_of(trial)
        found.append(known[like])
    return found


def _like(trial: Trial) -> tuple[object, ...]:
    identity = trial.identity()
    settings = identity["settings"]
    assert isinstance(settings, dict)  # noqa: S101 - narrows the type
    encoder = tuple((key, str(value)) for key, value in settings.items() if key.startswith("encoder."))
    loop = trial.loop()
    return (
        trial.data_name, trial.features, trial.method, encoder, loop.epochs, loop.batch_size,
        trial.protocol, trial.curve,
    )  # fmt: skip


def seconds_of(trial: Trial) -> float:
    """One trial, from its second epoch on some graphs and a probe of their vectors."""
    with one_thread():
        collection = shared_collection(trial.data, trial.features)
        loop = trial.loop()
        some = spread(len(collection), max(GRAPHS, loop.batch_size))
        part = collection[some]
        started = time.monotonic()
        run = train(
            part, trial.method, settings=trial.settings, preset=trial.preset, encoder=trial.encoder,
            training=replace(loop, epochs=2),
        )  # fmt: skip
        scale = len(collection) / len(some)
        if run.metrics.rows:
            training = run.metrics.rows[-1]["seconds"] * scale * loop.epochs
        elif METHODS.get(trial.method).kind == "trained":
            training = 0.0  # it has weights and does not learn
        elif METHODS.get(trial.method).kind == "gram":
            training = (time.monotonic() - started) * scale**2
        else:
            training = (time.monotonic() - started) * scale
        probed = spread(len(part), PROBED)
        started = time.monotonic()
        rows = run.model.embed(part)
        embedding = (time.monotonic() - started) * scale
        started = time.monotonic()
        codes, _ = labels_of(part)
        values = rows[np.ix_(probed, probed)] if run.model.gram else rows[probed]
        try:
            evaluate(values, codes[probed], trial.protocol, gram=run.model.gram)
        except GraphscError:  # too few graphs of a class among so few
            return training
        probe = (time.monotonic() - started) * (len(collection) / len(probed)) ** 2
    return training + (embedding + probe) * max(1, len(trial.curve) + 1)


def in_words(seconds: float) -> str:
    """`4 min`, `3.5 h`, `2.1 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def spread(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """So many positions evenly over all, because files are often sorted by class."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
