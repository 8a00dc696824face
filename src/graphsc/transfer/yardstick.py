"""What fine-tuning has to beat: fingerprints with classical models, and a linear probe on frozen vectors.

All on the same split, with the same scores, and through the same kind of result.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.errors import ConfigError
from graphsc.encoders.embedding import embed, reestimate_batchnorm
from graphsc.training.run import environment
from graphsc.transfer.classical import STRENGTHS, TREES, Model, Rows, fit_tasks
from graphsc.transfer.few import rows_to_train
from graphsc.transfer.fingerprints import BITS, RADIUS, ecfp
from graphsc.transfer.held import held_out, judge
from graphsc.transfer.labelled import Labelled
from graphsc.transfer.result import TransferResult
from graphsc.transfer.split import TRAIN, VALID, WORDS, How, Parts, split_molecules
from graphsc.transfer.start import NONE, start_from

Way = Literal["ecfp-forest", "ecfp-linear", "frozen"]
WAYS = ("ecfp-forest", "ecfp-linear", "frozen")


def yardstick(
    molecules: Labelled,
    way: Way,
    weights: str | Path = NONE,
    *,
    seed: int = 0,
    split: How = "scaffold",
    split_seed: int = 0,
    parts: Parts | None = None,
    label_fraction: float = 1.0,
    rows: Rows | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TransferResult:
    """Fit one yardstick and judge it on the molecules that were held out.

    `ecfp-forest` and `ecfp-linear` need no weights; `frozen` is a linear probe on the vectors of an encoder
    that is not trained further. A linear model's strength is chosen on validation. `parts` is a ready-made
    split, `rows` are ready-made fingerprints or vectors.
    """
    if way not in WAYS:
        raise ConfigError(f"unknown yardstick {way!r}", hint=f"use {', '.join(WAYS)}")
    began = time.monotonic()
    if parts is None:
        parts = split_molecules(molecules.smiles, split, split_seed)
    method, facts = "ecfp", {}
    if way == "frozen":
        start = start_from(weights, molecules.collection.features)
        method, facts = start.method, dict(start.facts)
    if rows is None:
        rows = ecfp(molecules.smiles) if way != "frozen" else frozen_vectors(molecules, weights, parts, seed)
    learn = np.zeros(len(parts), dtype=bool)
    learn[
        rows_to_train(molecules.labels, np.flatnonzero(parts == TRAIN), molecules.kind, label_fraction, seed)
    ] = True
    model: Model = "forest" if way == "ecfp-forest" else "linear"
    scores = fit_tasks(rows, molecules.labels, learn, parts == VALID, molecules.kind, model, seed, progress)
    held, sides = held_out(molecules, parts)
    judged = judge(scores[parts != TRAIN], held, sides, molecules.kind)
    return TransferResult(
        trial={"data": molecules.name, "method": method, "way": way, "seed": seed},
        config={
            "graphsc": __version__,
            "transfer": {
                "kind": molecules.kind, "tasks": list(molecules.tasks), "split": split,
                "split_seed": split_seed, "label_fraction": label_fraction,
            },
            "data": {
                "name": molecules.name, "graphs": len(molecules.collection),
                "content_hash": molecules.collection.content_hash,
            },
            "method": method,
            "weights": facts,
            "seed": seed,
        },
        tasks=molecules.tasks,
        kind=molecules.kind,
        parts=parts,
        rules={"fit": judged},
        words=f"{in_words(way)} Split {split}, 80/10/10: {WORDS[split]}.",
        seconds={"total": round(time.monotonic() - began, 1)},
        environment=environment("cpu"),
    )  # fmt: skip


def frozen_vectors(
    molecules: Labelled, weights: str | Path, parts: Parts, seed: int = 0
) -> NDArray[np.float32]:
    """A vector for each molecule from an encoder that learns nothing here, standardised by training.

    BatchNorm is estimated anew on the training molecules, for untrained encoders and trained ones alike.
    """
    start = start_from(weights, molecules.collection.features)
    encoder = start.build(seed, dropout=0.0)
    collection = replace(molecules.collection, labels=None, tasks=()).with_features(start.features)
    train = parts == TRAIN
    reestimate_batchnorm(encoder, collection.take(train))
    vectors = embed(encoder, collection)
    mean, deviation = vectors[train].mean(axis=0), vectors[train].std(axis=0)
    found: NDArray[np.float32] = (vectors - mean) / np.where(deviation > 0, deviation, 1)
    return found


def in_words(way: str) -> str:
    """What was fitted on what."""
    strengths = ", ".join(f"{strength:g}" for strength in STRENGTHS)
    linear = f"logistic regression (ridge for numbers) for each task, C from {strengths} by validation"
    if way == "frozen":
        return f"The encoder is frozen and its vectors are standardised; {linear}."
    prints = f"ECFP fingerprints (Morgan, radius {RADIUS}, {BITS:,} bits)"
    forest = f"a random forest of {TREES} trees for each task"
    return f"{prints}; {forest if way == 'ecfp-forest' else linear}."
