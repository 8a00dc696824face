"""How long trials of transfer would take here: each way on a few molecules and tasks, scaled up.

Rough by design. Every way grows with the atoms of a set, fitted models also with its tasks, and is measured
on one set only, by the time of the processor, so that a busy machine does not count. Nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from graphsc.experiments.reproduce.calibrate import spread
from graphsc.experiments.single import one_thread
from graphsc.experiments.transfer_plan import TransferTrial
from graphsc.training.pretrain import loop_settings, preset_for
from graphsc.training.run import train
from graphsc.transfer.finetune import finetune
from graphsc.transfer.labelled import Labelled, read_labelled
from graphsc.transfer.yardstick import yardstick

MOLECULES = 256
TASKS = 4


def estimate_transfer(trials: Sequence[TransferTrial]) -> list[float]:
    """Seconds for each trial on one core, weights being there; each way is measured on the first set."""
    known: dict[tuple[object, ...], float] = {}
    found = []
    with one_thread():
        for trial in trials:
            epochs = trial.tuning().epochs if trial.way == "fine-tuned" else 1
            like = (trial.way, replace(trial.tuning(), epochs=1))
            if like not in known:
                known[like] = _per_atom(trial)
            size = _some(trial.data)
            tasks = 1 if trial.way == "fine-tuned" else size.tasks  # one model has all of them
            found.append(known[like] * size.atoms * tasks * epochs)
    return found


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
        yardstick(part, trial.way, seed=trial.seed, split="random")
    spent = time.process_time() - started
    return spent / int(part.collection.node_ptr[-1]) / (1 if trial.way == "fine-tuned" else len(part.tasks))


@dataclass(frozen=True)
class _Some:
    """A few molecules and tasks of a set, and how large it is."""

    part: Labelled
    atoms: int
    tasks: int


@cache
def _some(data: str) -> _Some:
    whole = read_labelled(data)
    known = ~np.isnan(whole.labels)
    tasks = np.argsort(-known.sum(axis=0), kind="stable")[:TASKS]  # those with the most labels
    rows = spread(len(whole.smiles), MOLECULES)
    collection = whole.collection.take(rows)
    assert collection.labels is not None  # noqa: S101 - read_labelled refuses molecules without labels
    names = tuple(whole.tasks[k] for k in tasks)
    part = Labelled(
        collection=replace(collection, labels=collection.labels[:, tasks], tasks=names),
        smiles=[whole.smiles[row] for row in rows],
        rows=whole.rows[rows],
        kind=whole.kind,
        classes={name: whole.classes[name] for name in names if name in whole.classes},
        rejected=(),
    )
    return _Some(part, int(whole.collection.node_ptr[-1]), len(whole.tasks))
