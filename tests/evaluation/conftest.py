"""Clouds of points, and nested cross-validation by scikit-learn."""

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from sklearn.model_selection import GridSearchCV, StratifiedKFold


def _clouds(sizes, *, apart=1.0, width=6, seed=0, scale=10.0):
    """One normal cloud per class, close enough for errors, in mixed order."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.repeat(np.arange(len(sizes)), sizes))
    centres = generator.normal(size=(len(sizes), width)) * apart
    return (centres[labels] + generator.normal(size=(len(labels), width))) * scale, labels


def _by_grid_search(
    model, parameter, grid, values, labels, fold, *, gram=False, inner_folds=5, order="shuffled"
):
    """Predictions, chosen values and inner accuracies by `GridSearchCV` on every fold."""
    predictions, chosen, inner = np.empty_like(labels), [], []
    cv = StratifiedKFold(inner_folds, shuffle=True, random_state=0) if order == "shuffled" else inner_folds
    for number in range(fold.max() + 1):
        train, test = np.flatnonzero(fold != number), np.flatnonzero(fold == number)
        search = GridSearchCV(model, {parameter: list(grid)}, cv=cv)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search.fit(values[np.ix_(train, train)] if gram else values[train], labels[train])
        predictions[test] = search.predict(values[np.ix_(test, train)] if gram else values[test])
        chosen.append(float(search.best_params_[parameter]))
        inner.append(search.cv_results_["mean_test_score"])
    return predictions, tuple(chosen), np.stack(inner)


@pytest.fixture(scope="session")
def clouds() -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    return _clouds


@pytest.fixture(scope="session")
def by_grid_search() -> Callable[..., tuple[np.ndarray, tuple[float, ...], np.ndarray]]:
    return _by_grid_search
