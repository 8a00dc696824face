"""Hand-made results with known numbers."""

import numpy as np
import pytest

from graphsc.experiments.result import Curve, Result, ResultStore

FOLDS = 10


def make_result(trial, accuracy, *, per_fold=100, inner=None, curve=None):
    """A result with this accuracy in per cent, the same in every fold or one per fold."""
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


@pytest.fixture(name="make_result")
def make_result_fixture():
    return make_result


@pytest.fixture
def fill(tmp_path):
    """`fill(planned, accuracy)` stores a result for each planned trial with an accuracy that is not None."""
    store = ResultStore(tmp_path / "results")

    def put(planned, accuracy, **options):
        for cell in planned:
            if accuracy(cell) is not None:
                extra = {key: option(cell) for key, option in options.items()}
                store.put(cell.trial, make_result(cell.trial, accuracy(cell), **extra))
        return store

    return put
