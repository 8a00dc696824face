"""Results made by hand, of which every number is known."""

import numpy as np
import pytest

from graphsc.experiments.result import Curve, Result, ResultStore

FOLDS = 10


def make_result(trial, accuracy, *, per_fold=100, inner=None, curve=None):
    """A result with this share of right answers in every fold; `accuracy` in per cent, one or one a fold."""
    right = np.broadcast_to(np.round(np.asarray(accuracy) * per_fold / 100), (FOLDS,)).astype(int)
    fold = np.repeat(np.arange(FOLDS), per_fold)
    labels = np.tile(np.arange(per_fold) % 2, FOLDS)
    wrong = np.concatenate([np.arange(per_fold) >= count for count in right])
    if curve is not None:
        epochs, values = list(curve), np.array(list(curve.values()))
        counts = np.repeat(np.round(values * per_fold / 100).astype(int)[:, None], FOLDS, axis=1)
        curve = Curve(tuple(epochs), counts, np.full(FOLDS, per_fold))
    return Result(
        trial=trial.identity(),
        config={"device": "cpu"},
        classes=("no", "yes"),
        labels=labels,
        fold=fold,
        predictions=np.where(wrong, 1 - labels, labels),
        chosen=(1.0,) * FOLDS,
        epochs=(20,) * FOLDS,
        inner_accuracy=0.5,
        words="By hand.",
        inner_folds=() if inner is None else tuple(np.broadcast_to(inner, (FOLDS,)).tolist()),
        curve=curve,
    )


@pytest.fixture
def by_hand():
    return make_result


@pytest.fixture
def fill(tmp_path):
    """`fill(cells, accuracy_of)` stores a result for each cell for which `accuracy_of(cell)` is not None."""
    store = ResultStore(tmp_path / "results")

    def put(cells, accuracy_of, **options):
        for cell in cells:
            accuracy = accuracy_of(cell)
            if accuracy is not None:
                extra = {key: make(cell) for key, make in options.items()}
                store.put(cell.trial, make_result(cell.trial, accuracy, **extra))
        return store

    put.store = store
    return put
