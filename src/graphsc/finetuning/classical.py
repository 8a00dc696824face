"""Classical models of many tasks with missing labels: linear models, random forests, gradient boosting.

There is one model per task. Tasks are fitted in parallel threads, which share the rows; scikit-learn's trees
release the interpreter lock. A fitted model is arrays, and is stored as such.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from graphsc.evaluation.metrics import Kind
from graphsc.finetuning.baselines import (
    STRENGTHS,
    Estimator,
    best_strength,
    boosting_model,
    fit_quietly,
)
from graphsc.finetuning.calibration import log_odds
from graphsc.finetuning.trees import Trees, pack_trees, trees_of_boosting, trees_of_forest, unpack_trees

Family = Literal["linear", "forest", "boosting"]
ClassWeight = Literal["none", "balanced"]
Rows = NDArray[np.float32]

MOST_TREES, FEWEST_TREES = 500, 50
ALL_TREES = 6_000  # of all tasks of a forest, as far as each has the fewest: bounds the size of its file
MANY_TASKS = 50  # beyond which the strength of linear models is not searched


def trees_per_task(tasks: int) -> int:
    """500 for up to 12 tasks, then fewer, but at least 50."""
    return max(FEWEST_TREES, min(MOST_TREES, ALL_TREES // max(tasks, 1)))


@dataclass(frozen=True)
class LinearModels:
    """One linear model per task."""

    weights: NDArray[np.float32]  # tasks x features
    bias: NDArray[np.float64]  # tasks

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """Log-odds or values: molecules x tasks."""
        scores: NDArray[np.float64] = rows @ self.weights.T + self.bias
        return scores

    def arrays(self, name: str) -> dict[str, NDArray[np.generic]]:
        return {f"{name}.weights": self.weights, f"{name}.bias": self.bias}


@dataclass(frozen=True)
class TreeModels:
    """Trees per task; `probabilities` says that they vote, as in a forest of a classification."""

    tasks: Sequence[Trees]
    probabilities: bool

    def scores(self, rows: Rows) -> NDArray[np.float64]:
        """Log-odds or values: molecules x tasks."""
        values = np.stack([trees.predict(rows) for trees in self.tasks], axis=1)
        if not self.probabilities:
            return values
        # All trees of a forest may agree, which is no certainty: as if two half votes were added.
        votes = np.array([max(len(trees.roots), 1) for trees in self.tasks])
        return log_odds((values * votes + 0.5) / (votes + 1))

    def deviations(self, rows: Rows) -> NDArray[np.float64]:
        """The standard deviation over the trees, of votes or values: molecules x tasks."""
        return np.stack([trees.deviation(rows) for trees in self.tasks], axis=1)

    def arrays(self, name: str) -> dict[str, NDArray[np.generic]]:
        return pack_trees(name, self.tasks)


Models = LinearModels | TreeModels


def models_from_arrays(
    family: Family, name: str, arrays: dict[str, NDArray[np.generic]], kind: Kind, tasks: int, width: int
) -> Models:
    """Read what `arrays` gave; ValueError where it does not fit."""
    if family == "linear":
        weights, bias = np.asarray(arrays[f"{name}.weights"]), np.asarray(arrays[f"{name}.bias"])
        if weights.shape != (tasks, width) or bias.shape != (tasks,):
            raise ValueError("its linear models have another shape")
        return LinearModels(weights.astype(np.float32), bias.astype(np.float64))
    trees = unpack_trees(name, arrays, width)
    if len(trees) != tasks:
        raise ValueError("it has trees of other tasks")
    return TreeModels(trees, family == "forest" and kind == "classification")


def fit_models(
    family: Family,
    rows: Rows,
    labels: NDArray[np.floating],
    train: NDArray[np.bool_],
    valid: NDArray[np.bool_],
    kind: Kind,
    *,
    class_weight: ClassWeight = "none",
    seed: int = 0,
    jobs: int | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Models:
    """Fit one model per task on the training molecules that have its label.

    A task whose training labels are all equal gets a constant. The strength of a linear model is chosen on
    the validation molecules, unless there are more than 50 tasks.

    Args:
        family: What is fitted.
        rows: Molecules x features.
        labels: Molecules x tasks, NaN where missing.
        train: Marks the training molecules.
        valid: Marks the validation molecules.
        kind: Classification or regression.
        class_weight: Whether both classes count as much as each other in training.
        seed: Of forests and boosting.
        jobs: Threads; by default one per core.
        progress: Called with the tasks done and the tasks in total.
    """
    from joblib import Parallel, delayed

    tasks = labels.shape[1]
    used = np.flatnonzero(rows[train].std(axis=0) > 0) if train.any() else np.arange(rows.shape[1])
    narrow = np.ascontiguousarray(rows[:, used], dtype=np.float32)
    trees = trees_per_task(tasks)
    strengths = STRENGTHS if tasks <= MANY_TASKS else (STRENGTHS[len(STRENGTHS) // 2],)

    def fit(k: int) -> tuple[NDArray[np.float64], float] | Trees:
        target = labels[:, k]
        known = ~np.isnan(target)
        own, choose = train & known, valid & known
        if not own.any() or len(np.unique(target[own])) == 1 or not len(used):
            return _constant(family, target[own], len(used), kind)
        if family == "linear":
            return _fit_linear(narrow, target, own, choose, kind, class_weight, strengths)
        x, y = narrow[own], target[own]
        weight = None if class_weight == "none" or kind == "regression" else "balanced"
        if family == "forest":
            return trees_of_forest(fit_quietly(_forest(kind, seed, trees, weight), x, y), x)
        return trees_of_boosting(fit_quietly(boosting_model(kind, seed, weight), x, y), x)

    count = min(tasks, jobs or os.cpu_count() or 1)
    fitted: list[tuple[NDArray[np.float64], float] | Trees] = []
    parallel = Parallel(n_jobs=count, backend="threading", return_as="generator")
    for done, model in enumerate(parallel(delayed(fit)(k) for k in range(tasks)), start=1):
        fitted.append(model if not isinstance(model, Trees) else model.with_columns(used))
        progress(done, tasks)
    if family == "linear":
        weights = np.zeros((tasks, rows.shape[1]), dtype=np.float32)
        bias = np.zeros(tasks)
        for k, model in enumerate(fitted):
            assert not isinstance(model, Trees)  # noqa: S101 - narrows the type
            weights[k, used], bias[k] = model
        return LinearModels(weights, bias)
    only_trees = [model for model in fitted if isinstance(model, Trees)]
    return TreeModels(only_trees, family == "forest" and kind == "classification")


def _constant(
    family: Family, known: NDArray[np.floating], width: int, kind: Kind
) -> tuple[NDArray[np.float64], float] | Trees:
    """The mean label of a task that cannot be learned; of classes as if two half labels were added."""
    if kind == "regression":
        value = float(known.mean()) if len(known) else 0.0
    else:
        share = (float(known.sum()) + 0.5) / (len(known) + 1)
        value = share if family == "forest" else float(log_odds(np.array(share)))
    return (np.zeros(width), value) if family == "linear" else Trees.constant(value)


def _fit_linear(
    rows: Rows,
    target: NDArray[np.floating],
    own: NDArray[np.bool_],
    choose: NDArray[np.bool_],
    kind: Kind,
    class_weight: ClassWeight,
    strengths: Sequence[float],
) -> tuple[NDArray[np.float64], float]:
    """Weights and bias with the best validation score, of equal ones the weakest; or the middle strength."""
    from sklearn.linear_model import LogisticRegression, Ridge

    def fitted(strength: float) -> tuple[tuple[NDArray[np.float64], float], NDArray[np.float64]]:
        if kind == "classification":
            weight = None if class_weight == "none" else "balanced"
            model = LogisticRegression(C=strength, max_iter=300, class_weight=weight)
        else:
            model = Ridge(alpha=1 / strength)
        fit_quietly(model, rows[own], target[own])
        weights = np.asarray(model.coef_, np.float64).ravel()
        bias = float(np.asarray(model.intercept_).ravel()[0])
        return (weights, bias), rows[choose] @ weights + bias

    return best_strength(strengths, fitted, target[choose], kind)


def _forest(kind: Kind, seed: int, trees: int, weight: str | None) -> Estimator:
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    if kind == "classification":
        return RandomForestClassifier(n_estimators=trees, random_state=seed, class_weight=weight)  # type: ignore[no-any-return]
    return RandomForestRegressor(n_estimators=trees, random_state=seed, max_features=1 / 3)  # type: ignore[no-any-return]
