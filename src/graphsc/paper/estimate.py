"""How long trials would take here: a short training and a short probe of some of the graphs, scaled up.

Rough by design. An epoch grows with the number of graphs, a probe with its square. Nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from graphsc.core.errors import GraphscError
from graphsc.core.run_folder import RunFolder
from graphsc.evaluation.cross_validation import evaluate
from graphsc.experiments.probe import labels_of
from graphsc.experiments.result import AnyTrial
from graphsc.experiments.runner import one_thread, shared_collection
from graphsc.experiments.trial import ProbeTrial, TransferTrial
from graphsc.finetuning.baselines import baseline
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.finetune import finetune
from graphsc.methods import METHODS
from graphsc.training.pretrain import loop_settings, preset_for
from graphsc.training.train import train

GRAPHS = 256  # of a short training, at least one batch
PROBED = 400  # graphs of a short probe


def estimate(trials: Sequence[AnyTrial]) -> list[float]:
    """Seconds per trial on one core, weights being there; similar trials are measured once."""
    known: dict[tuple[object, ...], float] = {}
    seconds = []
    for trial in trials:
        like = _like(trial) if isinstance(trial, ProbeTrial) else _like_transfer(trial)
        if like not in known:
            known[like] = seconds_of(trial) if isinstance(trial, ProbeTrial) else _per_atom(trial)
        seconds.append(known[like] * (1 if isinstance(trial, ProbeTrial) else _work(trial)))
    return seconds


def estimate_missing_weights(trials: Sequence[AnyTrial], folder: Path) -> dict[tuple[str, str], float]:
    """Seconds to pre-train the weights that are not in `folder`, by data set and method."""
    needing = [trial for trial in trials if isinstance(trial, TransferTrial) and trial.needs_weights]
    missing = {t.method: t for t in reversed(needing) if not RunFolder(folder / t.method).model.exists()}
    return {
        (str(trial.pretraining.get("data", "")), method): estimate_pretraining(
            method, trial.pretraining, trial.data
        )
        for method, trial in sorted(missing.items())
    }


def _like(trial: ProbeTrial) -> tuple[object, ...]:
    identity = trial.identity()
    settings = identity["settings"]
    assert isinstance(settings, dict)  # noqa: S101 - narrows the type
    encoder = tuple((key, str(value)) for key, value in settings.items() if key.startswith("encoder."))
    loop = trial.loop()
    return (
        trial.data_name, trial.features, trial.method, encoder, loop.epochs, loop.batch_size,
        trial.protocol, trial.curve,
    )  # fmt: skip


def seconds_of(trial: ProbeTrial) -> float:
    """One trial, from its second epoch on some graphs and a probe of their vectors."""
    with one_thread():
        collection = shared_collection(trial)
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


# How long trials of transfer would take here: each way on a few molecules and tasks, scaled up.
#
# Rough by design. Every way grows with the atoms of a set, fitted models also with its tasks, and is measured
# on one set only, by the time of the processor, so that a busy machine does not count. Nothing is stored.


MOLECULES = 256
TASKS = 4


def _like_transfer(trial: TransferTrial) -> tuple[object, ...]:
    return trial.way, replace(trial.tuning(), epochs=1)


def _work(trial: TransferTrial) -> float:
    """Atoms times epochs of fine-tuning, or times fitted tasks: one fine-tuned model has all tasks."""
    size = _some(trial.data)
    return size.atoms * (trial.tuning().epochs if trial.way == "fine-tuned" else size.tasks)


def estimate_pretraining(method: str, facts: Mapping[str, object], like: str) -> float:
    """Seconds to make the weights of a method, from an epoch on some molecules of the set `like`."""
    epochs = facts.get("epochs")
    preset = preset_for(method)
    given = {key: facts[key] for key in ("precision",) if key in facts}
    wanted = loop_settings(method, preset, like, given, epochs if isinstance(epochs, int) else None)
    graphs = replace(_some(like).part.collection, labels=None, tasks=())
    started = time.process_time()
    with one_thread():
        train(graphs, method, preset=preset, encoder="molecule-gin", training=replace(wanted, epochs=1))
    spent = time.process_time() - started
    count = facts.get("molecules")
    scale = (count if isinstance(count, int) else len(graphs)) / len(graphs)
    return spent * scale * wanted.epochs


def _per_atom(trial: TransferTrial) -> float:
    """Seconds an atom, and a task or an epoch, from a short trial of this way."""
    part = _some(trial.data).part
    started = time.process_time()
    if trial.way == "fine-tuned":
        with TemporaryDirectory() as place:
            settings = replace(trial.tuning(), epochs=1)
            finetune(part, out=Path(place) / "run", settings=settings, split="random", device="cpu")
    else:
        baseline(part, trial.way, seed=trial.seed, split="random")
    spent = time.process_time() - started
    return spent / int(part.collection.node_ptr[-1]) / (1 if trial.way == "fine-tuned" else len(part.tasks))


@dataclass(frozen=True)
class _Some:
    """A few molecules and tasks of a set, and how large it is."""

    part: MoleculeDataset
    atoms: int
    tasks: int


@cache
def _some(data: str) -> _Some:
    whole = read_dataset(data)
    known = ~np.isnan(whole.labels)
    tasks = np.argsort(-known.sum(axis=0), kind="stable")[:TASKS]  # those with the most labels
    rows = spread(len(whole.smiles), MOLECULES)
    collection = whole.collection.take(rows)
    assert collection.labels is not None  # noqa: S101 - read_dataset refuses molecules without labels
    names = tuple(whole.tasks[k] for k in tasks)
    part = MoleculeDataset(
        collection=replace(collection, labels=collection.labels[:, tasks], tasks=names),
        smiles=[whole.smiles[row] for row in rows],
        rows=whole.rows[rows],
        kind=whole.kind,
        classes={name: whole.classes[name] for name in names if name in whole.classes},
        rejected=(),
    )
    return _Some(part, int(whole.collection.node_ptr[-1]), len(whole.tasks))
