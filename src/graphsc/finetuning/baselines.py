"""What fine-tuning has to beat: fingerprints with classical models, and a linear probe on frozen vectors.

All on the same split, with the same scores, and through the same kind of result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.errors import ConfigError
from graphsc.core.registry import require
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.evaluation.metrics import Kind, Task, rmse, roc_auc
from graphsc.finetuning.dataset import MoleculeDataset, rows_to_train
from graphsc.finetuning.model import NONE, start_from
from graphsc.finetuning.result import TransferResult, held_out, judge
from graphsc.finetuning.splits import TRAIN, VALID, WORDS, How, Parts, split_molecules
from graphsc.training.train import environment

# One classical model a task: a linear one with its strength chosen on validation, or a random forest.
#
# A task learns from the molecules that have its label. Where they are all of one class there is nothing to
# learn, and every molecule gets the same score.


Model = Literal["linear", "forest"]
STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # C of a logistic regression, 1 / alpha of a ridge
TREES = 500

Rows = NDArray[np.floating] | NDArray[np.uint8]
Column = NDArray[np.floating]


class _Fitted(Protocol):
    def fit(self, rows: Rows, labels: Column) -> object: ...


def fit_tasks(
    rows: Rows,
    labels: NDArray[np.floating],
    train: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    kind: Kind,
    model: Model,
    seed: int = 0,
    say: Callable[[int, int], None] = lambda done, total: None,
) -> NDArray[np.float32]:
    """Molecules x tasks: scores of what was not trained on, by models that were fitted on `train` alone.

    Rows of `train` have NaN: nobody asks for their scores, and in a large set they are most of the work.
    """
    scores = np.full(labels.shape, np.nan, dtype=np.float32)
    held = ~train
    given = _sparse(rows) if model == "linear" and rows.dtype == np.uint8 else rows
    for k in range(labels.shape[1]):
        known = ~np.isnan(labels[:, k])
        learn, choose = train & known, valid & known
        target = labels[:, k]
        if not learn.any():
            scores[held, k] = 0.0  # nothing is known
        elif len(np.unique(target[learn])) == 1:
            scores[held, k] = target[learn][0]
        elif model == "forest":
            scores[held, k] = _score(_forest(kind, seed), given[learn], target[learn], given[held], kind)
        else:
            scores[held, k] = _linear(given, target, learn, held, choose[held], kind)
        say(k + 1, labels.shape[1])
    return scores


def _sparse(rows: Rows) -> Rows:
    """Fingerprints as the few bits that are set in each: forty times less to multiply."""
    from scipy.sparse import csr_matrix

    found: Rows = csr_matrix(rows, dtype=np.float64)
    return found


def _linear(
    rows: Rows,
    target: Column,
    learn: NDArray[np.bool_],
    held: NDArray[np.bool_],
    choose: NDArray[np.bool_],
    kind: Kind,
) -> NDArray[np.float32]:
    """The strength that validation likes best; of equal ones the smoother. One in the middle without it.

    `choose` marks, among the rows of `held`, those of validation that have this label.
    """
    known = target[held][choose]
    strengths: tuple[float, ...] = STRENGTHS
    if not choose.any() or (kind == "classification" and len(np.unique(known)) < 2):
        strengths = (STRENGTHS[len(STRENGTHS) // 2],)
    best, found = -np.inf, np.zeros(int(held.sum()), dtype=np.float32)
    for strength in strengths:
        given = _score(_straight(kind, strength), rows[learn], target[learn], rows[held], kind)
        task = Task(known, given[choose])
        worth = 0.0 if len(strengths) == 1 else roc_auc(task) if kind == "classification" else -rmse(task)
        if worth > best:
            best, found = worth, given
    return found


def _score(model: _Fitted, rows: Rows, target: Column, wanted: Rows, kind: Kind) -> NDArray[np.float32]:
    import warnings

    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a weak fit has a weak score on validation
        model.fit(rows, target)
    if kind == "regression":
        return np.asarray(model.predict(wanted), dtype=np.float32)  # type: ignore[attr-defined]
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(wanted), dtype=np.float32)
    return np.asarray(model.predict_proba(wanted)[:, 1], dtype=np.float32)  # type: ignore[attr-defined]


def _forest(kind: Kind, seed: int) -> _Fitted:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make = RandomForestClassifier if kind == "classification" else RandomForestRegressor
    forest: _Fitted = make(n_estimators=TREES, random_state=seed)
    return forest


def _straight(kind: Kind, strength: float) -> _Fitted:
    from sklearn.linear_model import LogisticRegression, Ridge

    made: _Fitted = (
        LogisticRegression(C=strength, max_iter=500)
        if kind == "classification"
        else Ridge(alpha=1 / strength)
    )
    return made


# Extended-connectivity fingerprints: what chemists describe molecules by when they train nothing.


RADIUS, BITS = 2, 2048


def ecfp(smiles: Sequence[str], radius: int = RADIUS, bits: int = BITS) -> NDArray[np.uint8]:
    """Molecules x bits: which circular neighbourhoods up to this radius occur; zeros without a molecule."""
    chem, generators = require("rdkit.Chem"), require("rdkit.Chem.rdFingerprintGenerator")
    generator = generators.GetMorganGenerator(radius=radius, fpSize=bits)
    found = np.zeros((len(smiles), bits), dtype=np.uint8)
    with require("rdkit.rdBase").BlockLogs():
        for place, text in enumerate(smiles):
            molecule = chem.MolFromSmiles(text)
            if molecule is not None:
                found[place] = generator.GetFingerprintAsNumPy(molecule)
    return found


Way = Literal["ecfp-forest", "ecfp-linear", "frozen"]
WAYS = ("ecfp-forest", "ecfp-linear", "frozen")


def baseline(
    molecules: MoleculeDataset,
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
    """Fit one baseline and judge it on the molecules that were held out.

    `ecfp-forest` and `ecfp-linear` need no weights; `frozen` is a linear probe on the vectors of an encoder
    that is not trained further. A linear model's strength is chosen on validation. `parts` is a ready-made
    split, `rows` are ready-made fingerprints or vectors.
    """
    if way not in WAYS:
        raise ConfigError(f"unknown baseline {way!r}", hint=f"use {', '.join(WAYS)}")
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
    molecules: MoleculeDataset, weights: str | Path, parts: Parts, seed: int = 0
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
