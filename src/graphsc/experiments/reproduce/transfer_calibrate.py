"""How long trials of transfer would take here: each kind on a few molecules and tasks, scaled up.

Rough by design. All kinds grow with the number of molecules; fitted models also with that of tasks.
Nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from graphsc.data.collection import GraphCollection
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
EPOCHS = 2


def estimate_transfer(trials: Sequence[TransferTrial]) -> list[float]:
    """Seconds for each trial on one core, weights being there; trials alike but for seed and weights once."""
    known: dict[tuple[object, ...], float] = {}
    found = []
    with one_thread():
        for trial in trials:
            like = (trial.data_name, trial.way, trial.tuning() if trial.way == "fine-tuned" else None)
            if like not in known:
                known[like] = _seconds(trial)
            found.append(known[like])
    return found


def estimate_pretraining(method: str, facts: Mapping[str, object], like: str) -> float:
    """Seconds to make the weights of a method, from some epochs on molecules of the set `like`."""
    some, _, _ = _some(like)
    epochs = facts.get("epochs")
    preset = preset_for(method)
    given = {key: facts[key] for key in ("precision",) if key in facts}
    wanted = loop_settings(method, preset, like, given, epochs if isinstance(epochs, int) else None)
    graphs: GraphCollection = replace(some.collection, labels=None, tasks=())
    with one_thread():
        run = train(
            graphs, method, preset=preset, encoder="molecule-gin", training=replace(wanted, epochs=EPOCHS)
        )
    count = facts.get("molecules")
    scale = (count if isinstance(count, int) else len(graphs)) / len(graphs)
    return run.metrics.rows[-1]["seconds"] * scale * wanted.epochs


def _seconds(trial: TransferTrial) -> float:
    some, molecules, tasks = _some(trial.data)
    if trial.way != "fine-tuned":
        started = time.monotonic()
        yardstick(some, trial.way, seed=trial.seed, split="random")
        spent = time.monotonic() - started
        return spent * molecules / len(some.smiles) * tasks / len(some.tasks)
    short = replace(trial.tuning(), epochs=EPOCHS)
    with TemporaryDirectory() as place:
        started = time.monotonic()
        finetune(some, out=Path(place) / "run", settings=short, split="random", device="cpu")
        spent = time.monotonic() - started
    return spent / EPOCHS * molecules / len(some.smiles) * trial.tuning().epochs


@lru_cache(maxsize=1)
def _some(data: str) -> tuple[Labelled, int, int]:
    """A few molecules and tasks of a set, and how many it has of both."""
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
    return part, len(whole.smiles), len(whole.tasks)
