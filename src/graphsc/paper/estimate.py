"""Estimates how long trials take on this machine, by a short training and evaluation of some of the graphs.

The estimate is rough by design. Each kind of trial is measured once and scaled up: training grows with the
number of graphs, a probe with its square, fine-tuning with the number of atoms and epochs, and models fitted
on molecules with the number of atoms and known labels. Nothing is stored.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast

import numpy as np

from graphsc.core.errors import GraphscError
from graphsc.core.run_folder import RunFolder
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.datasets.sources import parse_sources
from graphsc.evaluation.cross_validation import evaluate
from graphsc.experiments.probe import labels_of
from graphsc.experiments.result import AnyTrial
from graphsc.experiments.runner import one_thread, shared_collection
from graphsc.experiments.trial import MODEL, ProbeTrial, TransferTrial
from graphsc.finetuning.baselines import BaselineName, Rows, baseline, frozen_vectors, rows_for
from graphsc.finetuning.dataset import MoleculeDataset, read_dataset
from graphsc.finetuning.finetune import finetune
from graphsc.finetuning.model import NONE
from graphsc.finetuning.splits import TRAIN, split_molecules
from graphsc.methods import METHODS
from graphsc.training.pretrain import loop_settings, preset_for
from graphsc.training.train import train

TRAINED_GRAPHS = 256  # of the short training; at least one batch
PROBED_GRAPHS = 400  # of the short evaluation
MOLECULES, TASKS = 256, 4  # of the short transfer
LIMIT = 60.0  # seconds of measuring


def estimate(trials: Sequence[AnyTrial], limit: float = LIMIT) -> list[float]:
    """Seconds per trial on one core, without pre-training; similar trials are measured once.

    One kind of each data set and method is measured first. After `limit` seconds, kinds that are left take
    the mean of the measured ones of their data set and method, or of all.
    """
    kinds = [_probe_kind(t) if isinstance(t, ProbeTrial) else _transfer_kind(t) for t in trials]
    examples = dict(zip(reversed(kinds), reversed(trials), strict=True))
    pairs = [(trial.data, trial.method) for trial in trials]
    first = dict(zip(reversed(pairs), reversed(kinds), strict=True))
    measured: dict[tuple[object, ...], _Rates] = {}
    started = time.monotonic()
    for kind in dict.fromkeys([*reversed(first.values()), *kinds]):
        if measured and time.monotonic() - started > limit:
            break
        trial = examples[kind]
        measured[kind] = (
            _Rates(_probe_seconds(trial)) if isinstance(trial, ProbeTrial) else _transfer_rates(trial)
        )
    alike: dict[tuple[str, str], list[_Rates]] = {}
    for pair, kind in dict.fromkeys(zip(pairs, kinds, strict=True)):
        if kind in measured:
            alike.setdefault(pair, []).append(measured[kind])
    everything = list(measured.values())
    seconds = []
    for trial, pair, kind in zip(trials, pairs, kinds, strict=True):
        rates = measured[kind] if kind in measured else _mean(alike.get(pair, everything))
        seconds.append(rates.once if isinstance(trial, ProbeTrial) else _transfer_seconds(trial, rates))
    return seconds


@dataclass(frozen=True)
class _Rates:
    """Seconds of a probe; or per atom, of an epoch of fine-tuning or of features, and of fits per label."""

    once: float
    per_task: float = 0.0


def _mean(rates: Sequence[_Rates]) -> _Rates:
    return _Rates(float(np.mean([r.once for r in rates])), float(np.mean([r.per_task for r in rates])))


def estimate_missing_weights(trials: Sequence[AnyTrial], folder: Path) -> dict[tuple[str, str], float]:
    """Seconds to pre-train the weights that are not in `folder`, by data set and method."""
    needing = [
        trial
        for trial in trials
        if isinstance(trial, TransferTrial) and trial.needs_weights and MODEL not in trial.pretraining
    ]
    missing = {t.method: t for t in reversed(needing) if not RunFolder(folder / t.method).model.exists()}
    return {
        (str(trial.pretraining.get("data", "")), method): _pretraining_seconds(
            method, trial.pretraining, trial.data
        )
        for method, trial in sorted(missing.items())
    }


def time_text(seconds: float) -> str:
    """`4 min`, `3.5 h`, `2.1 days`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    if seconds < 36 * 3600:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.1f} days"


def _evenly_spaced(count: int, most: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Up to `most` positions over the whole file, because files are often sorted by class."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))


# Probe trials.


def _probe_kind(trial: ProbeTrial) -> tuple[object, ...]:
    """All that the time of a trial depends on."""
    settings = trial.identity()["settings"]
    assert isinstance(settings, dict)  # noqa: S101 - narrows the type
    encoder = tuple((key, str(value)) for key, value in settings.items() if key.startswith("encoder."))
    loop = trial.loop()
    return (
        trial.data_name, trial.features, trial.method, encoder, loop.epochs, loop.batch_size,
        trial.protocol, trial.curve,
    )  # fmt: skip


def _probe_seconds(trial: ProbeTrial) -> float:
    """From the second epoch on some graphs, and an evaluation of their embeddings."""
    with one_thread():
        collection = shared_collection(trial)
        loop = trial.loop()
        some = _evenly_spaced(len(collection), max(TRAINED_GRAPHS, loop.batch_size))
        part = collection[some]
        started = time.monotonic()
        run = train(
            part, trial.method, settings=trial.settings, preset=trial.preset, encoder=trial.encoder,
            training=replace(loop, epochs=2),
        )  # fmt: skip
        fitting = time.monotonic() - started
        scale = len(collection) / len(some)
        kind = METHODS.get(trial.method).kind
        if run.metrics.rows:
            training = run.metrics.rows[-1]["seconds"] * scale * loop.epochs
        elif kind == "trained":
            training = 0.0  # an encoder that does not train
        else:
            training = fitting * (scale**2 if kind == "gram" else scale)
        started = time.monotonic()
        rows = run.model.embed(part)
        embedding = (time.monotonic() - started) * scale
        started = time.monotonic()
        probed = _evenly_spaced(len(part), PROBED_GRAPHS)
        codes, _ = labels_of(part)
        values = rows[np.ix_(probed, probed)] if run.model.gram else rows[probed]
        try:
            evaluate(values, codes[probed], trial.protocol, gram=run.model.gram)
        except GraphscError:  # too few of these graphs belong to a class
            return training
        probe = (time.monotonic() - started) * (len(collection) / len(probed)) ** 2
    return training + (embedding + probe) * max(1, len(trial.curve) + 1)


# Transfer trials, measured in processor time, so that other processes do not count.


@dataclass(frozen=True)
class _Sample:
    """Some molecules and tasks of a data set, and the size of the whole."""

    part: MoleculeDataset
    atoms: int
    tasks: float  # known labels per molecule


@cache
def _sample(data: str) -> _Sample:
    whole = read_dataset(data)
    known = ~np.isnan(whole.labels)
    tasks = np.argsort(-known.sum(axis=0), kind="stable")[:TASKS]  # those with the most labels
    rows = _evenly_spaced(len(whole.smiles), MOLECULES)
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
    return _Sample(part, int(whole.collection.node_ptr[-1]), float(known.sum() / len(known)))


def _tunes(trial: TransferTrial) -> bool:
    """Whether fine-tuning takes most of the time; an ensemble counts as that of its encoders."""
    return trial.way in ("ensemble", "fine-tuned")


def _transfer_kind(trial: TransferTrial) -> tuple[object, ...]:
    return "fine-tuned" if _tunes(trial) else trial.way, replace(trial.tuning(), epochs=1)


def _transfer_seconds(trial: TransferTrial, rates: _Rates) -> float:
    """Fine-tuning grows with atoms and epochs (less if it stops early), fits with atoms and labels."""
    whole, tuning = _sample(trial.data), trial.tuning()
    times = tuning.epochs * len(tuning.learning_rates) * trial.members if _tunes(trial) else 1
    return whole.atoms * (times * rates.once + whole.tasks * rates.per_task)


def _transfer_rates(trial: TransferTrial) -> _Rates:
    """From a short trial."""
    part = _sample(trial.data).part
    atoms = int(part.collection.node_ptr[-1])
    if _tunes(trial):
        settings = replace(trial.tuning(), epochs=1, learning_rates=trial.tuning().learning_rates[:1])

        def tune() -> None:
            with TemporaryDirectory() as folder:
                finetune(part, out=Path(folder) / "run", settings=settings, split="random", device="cpu")

        return _Rates(_spent(tune) / atoms)
    parts = split_molecules(part.smiles, "random")

    def features() -> Rows:
        if trial.way == "frozen":
            return frozen_vectors(part, NONE, parts, trial.seed)
        return rows_for(trial.way, part.smiles, parts == TRAIN)

    rows = features()
    labels = float((~np.isnan(part.labels)).sum() / len(part.labels))
    way = cast(BaselineName, trial.way)
    fit = _spent(lambda: baseline(part, way, seed=trial.seed, split="random", parts=parts, rows=rows))
    return _Rates(_spent(features) / atoms, fit / atoms / labels)


def _spent(work: Callable[[], object]) -> float:
    """Seconds of the processor. The first call also imports and compiles, so the second is measured."""
    work()
    started = time.process_time()
    work()
    return time.process_time() - started


def _pretraining_seconds(method: str, pretraining: Mapping[str, object], like: str) -> float:
    """From one epoch on some molecules of the data set `like`."""
    epochs = pretraining.get("epochs")
    preset = preset_for(method)
    changes = {key: pretraining[key] for key in ("precision",) if key in pretraining}
    loop = loop_settings(method, preset, like, changes, epochs if isinstance(epochs, int) else None)
    graphs = replace(_sample(like).part.collection, labels=None, tasks=())
    with one_thread():
        spent = _spent(
            lambda: train(
                graphs, method, preset=preset, encoder="molecule-gin", training=replace(loop, epochs=1)
            )
        )
    return spent * _pretraining_molecules(pretraining) / len(graphs) * loop.epochs


def _pretraining_molecules(pretraining: Mapping[str, object]) -> float:
    """Molecules that an epoch has; of sources without a limit, as many as the catalogue knows, weighted."""
    molecules = pretraining.get("molecules")
    if isinstance(molecules, int):
        return molecules
    sources = parse_sources(str(pretraining.get("data", "")))
    return sum(weight * NAMED[name.lower()].graphs for name, weight in sources if name.lower() in NAMED)
