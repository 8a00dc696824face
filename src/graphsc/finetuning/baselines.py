"""Baselines of fine-tuning: fingerprints with classical models, and a linear probe on frozen embeddings.

They use the same splits, metrics and kind of result as fine-tuning.
"""

from __future__ import annotations

import time
import warnings
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
from graphsc.finetuning.dataset import MoleculeDataset, select_labelled
from graphsc.finetuning.model import NONE, resolve_encoder
from graphsc.finetuning.result import TransferResult, held_out_set, score_held_out
from graphsc.finetuning.splits import DESCRIPTIONS, TRAIN, VALID, Parts, SplitKind, split_molecules
from graphsc.training.train import environment

BaselineName = Literal["constant", "ecfp-forest", "ecfp-linear", "frozen"]
BASELINES = ("constant", "ecfp-forest", "ecfp-linear", "frozen")
Model = Literal["constant", "linear", "forest"]
Rows = NDArray[np.floating] | NDArray[np.uint8]

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # C of a logistic regression, 1 / alpha of a ridge regression
TREES = 500
MODELS: dict[str, Model] = {
    "constant": "constant",
    "ecfp-forest": "forest",
    "ecfp-linear": "linear",
    "frozen": "linear",
}
RADIUS, BITS = 2, 2048  # of the fingerprints


def baseline(
    molecules: MoleculeDataset,
    way: BaselineName,
    weights: str | Path = NONE,
    *,
    seed: int = 0,
    split: SplitKind = "scaffold",
    split_seed: int = 0,
    parts: Parts | None = None,
    label_fraction: float = 1.0,
    rows: Rows | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> TransferResult:
    """Fit one baseline and score it on the held-out molecules.

    `constant` predicts the mean training label for every molecule; `ecfp-forest` and `ecfp-linear` use
    fingerprints; `frozen` is a linear probe on the embeddings of an
    encoder that is not trained further, from `weights` or, with `"none"`, with random initialisation.
    `parts` is a precomputed split, `rows` are precomputed fingerprints or embeddings (molecules x width).
    """
    if way not in BASELINES:
        raise ConfigError(f"unknown baseline {way!r}", hint=f"use {', '.join(BASELINES)}")
    started = time.monotonic()
    if parts is None:
        parts = split_molecules(molecules.smiles, split, split_seed)
    method, facts = "constant" if way == "constant" else "ecfp", {}
    if way == "frozen":
        encoder = resolve_encoder(weights, molecules.collection.features)
        method, facts = encoder.method, dict(encoder.facts)
    if rows is None:
        if way == "constant":
            rows = np.zeros((len(parts), 1), dtype=np.uint8)
        else:
            frozen = way == "frozen"
            rows = frozen_vectors(molecules, weights, parts, seed) if frozen else ecfp(molecules.smiles)
    train = np.zeros(len(parts), dtype=bool)
    candidates = np.flatnonzero(parts == TRAIN)
    train[select_labelled(molecules.labels, candidates, molecules.kind, label_fraction, seed)] = True
    scores = fit_tasks(
        rows, molecules.labels, train, parts == VALID, molecules.kind, MODELS[way], seed, progress
    )
    held_out, held_parts = held_out_set(molecules, parts)
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
        rules={"fit": score_held_out(scores[parts != TRAIN], held_out, held_parts, molecules.kind)},
        words=f"{_protocol(way)} Split {split}, 80/10/10: {DESCRIPTIONS[split]}.",
        seconds={"total": round(time.monotonic() - started, 1)},
        environment=environment("cpu"),
    )  # fmt: skip


def _protocol(way: BaselineName) -> str:
    """A description of the baseline, to be printed beside its scores."""
    strengths = ", ".join(f"{strength:g}" for strength in STRENGTHS)
    linear = f"logistic regression (ridge for numbers) for each task, C from {strengths} by validation"
    if way == "constant":
        return "The mean of the training labels of each task, for every molecule."
    if way == "frozen":
        return f"The encoder is frozen and its vectors are standardised; {linear}."
    prints = f"ECFP fingerprints (Morgan, radius {RADIUS}, {BITS:,} bits)"
    forest = f"a random forest of {TREES} trees for each task"
    return f"{prints}; {forest if way == 'ecfp-forest' else linear}."


def ecfp(smiles: Sequence[str], radius: int = RADIUS, bits: int = BITS) -> NDArray[np.uint8]:
    """Extended-connectivity (Morgan) fingerprints: molecules x bits, zeros for an invalid molecule."""
    chem, generators = require("rdkit.Chem"), require("rdkit.Chem.rdFingerprintGenerator")
    generator = generators.GetMorganGenerator(radius=radius, fpSize=bits)
    fingerprints = np.zeros((len(smiles), bits), dtype=np.uint8)
    with require("rdkit.rdBase").BlockLogs():
        for row, text in enumerate(smiles):
            molecule = chem.MolFromSmiles(text)
            if molecule is not None:
                fingerprints[row] = generator.GetFingerprintAsNumPy(molecule)
    return fingerprints


def frozen_vectors(
    molecules: MoleculeDataset, weights: str | Path, parts: Parts, seed: int = 0
) -> NDArray[np.float32]:
    """Embeddings of a frozen encoder (molecules x dimensions), standardised on the training molecules.

    BatchNorm is re-estimated on the training molecules, for trained and untrained encoders alike.
    """
    spec = resolve_encoder(weights, molecules.collection.features)
    encoder = spec.build(seed, dropout=0.0)
    collection = replace(molecules.collection, labels=None, tasks=()).with_features(spec.features)
    train = parts == TRAIN
    reestimate_batchnorm(encoder, collection.take(train))
    embeddings = embed(encoder, collection)
    mean, deviation = embeddings[train].mean(axis=0), embeddings[train].std(axis=0)
    standardised: NDArray[np.float32] = (embeddings - mean) / np.where(deviation > 0, deviation, 1)
    return standardised


def fit_tasks(
    rows: Rows,
    labels: NDArray[np.floating],
    train: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    kind: Kind,
    model: Model,
    seed: int = 0,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> NDArray[np.float32]:
    """Fit one classical model per task on the training molecules that have its label.

    The strength of a linear model is chosen on the validation molecules. A task whose training labels are
    all equal gets a constant score.

    Returns:
        Scores, molecules x tasks. Training molecules have NaN: in a large data set, scoring them would be
        most of the work.
    """
    scores = np.full(labels.shape, np.nan, dtype=np.float32)
    held_out = ~train
    if model == "linear" and rows.dtype == np.uint8:
        rows = _sparse(rows)
    for k in range(labels.shape[1]):
        target = labels[:, k]
        known = ~np.isnan(target)
        fit, choose = train & known, valid & known
        if not fit.any():
            scores[held_out, k] = 0.0
        elif model == "constant" or len(np.unique(target[fit])) == 1:
            scores[held_out, k] = target[fit].mean()
        elif model == "forest":
            scores[held_out, k] = _score(_forest(kind, seed), rows[fit], target[fit], rows[held_out], kind)
        else:
            scores[held_out, k] = _fit_linear(rows, target, fit, held_out, choose[held_out], kind)
        progress(k + 1, labels.shape[1])
    return scores


class _Estimator(Protocol):
    def fit(self, rows: Rows, labels: NDArray[np.floating]) -> object: ...


def _sparse(rows: Rows) -> Rows:
    """Fingerprints as a sparse matrix: forty times less to multiply."""
    from scipy.sparse import csr_matrix

    sparse: Rows = csr_matrix(rows, dtype=np.float64)
    return sparse


def _fit_linear(
    rows: Rows,
    target: NDArray[np.floating],
    fit: NDArray[np.bool_],
    held_out: NDArray[np.bool_],
    choose: NDArray[np.bool_],
    kind: Kind,
) -> NDArray[np.float32]:
    """Scores of the held-out rows by the strength with the best validation score, of equal ones the smallest.

    `choose` marks the validation rows with this label among the held-out ones. Without any, the middle
    strength is used.
    """
    known = target[held_out][choose]
    strengths: tuple[float, ...] = STRENGTHS
    if not choose.any() or (kind == "classification" and len(np.unique(known)) < 2):
        strengths = (STRENGTHS[len(STRENGTHS) // 2],)
    best, best_scores = -np.inf, np.zeros(int(held_out.sum()), dtype=np.float32)
    for strength in strengths:
        scores = _score(_linear(kind, strength), rows[fit], target[fit], rows[held_out], kind)
        task = Task(known, scores[choose])
        quality = 0.0 if len(strengths) == 1 else roc_auc(task) if kind == "classification" else -rmse(task)
        if quality > best:
            best, best_scores = quality, scores
    return best_scores


def _score(
    model: _Estimator, rows: Rows, target: NDArray[np.floating], held_out: Rows, kind: Kind
) -> NDArray[np.float32]:
    """Fit a model and score the held-out rows."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a poor fit has a poor validation score
        model.fit(rows, target)
    if kind == "regression":
        return np.asarray(model.predict(held_out), dtype=np.float32)  # type: ignore[attr-defined]
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(held_out), dtype=np.float32)
    return np.asarray(model.predict_proba(held_out)[:, 1], dtype=np.float32)  # type: ignore[attr-defined]


def _forest(kind: Kind, seed: int) -> _Estimator:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make = RandomForestClassifier if kind == "classification" else RandomForestRegressor
    forest: _Estimator = make(n_estimators=TREES, random_state=seed)
    return forest


def _linear(kind: Kind, strength: float) -> _Estimator:
    from sklearn.linear_model import LogisticRegression, Ridge

    model: _Estimator = (
        LogisticRegression(C=strength, max_iter=500)
        if kind == "classification"
        else Ridge(alpha=1 / strength)
    )
    return model
