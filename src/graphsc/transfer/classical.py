"""One classical model a task: a linear one with its strength chosen on validation, or a random forest.

A task learns from the molecules that have its label. Where they are all of one class there is nothing to
learn, and every molecule gets the same score.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from graphsc.evaluation.tasks import Kind, Task, rmse, roc_auc

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
