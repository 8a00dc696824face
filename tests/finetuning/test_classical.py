"""Classical models of many tasks as arrays."""

import numpy as np
import pytest
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.linear_model import LogisticRegression

from graphsc.finetuning.classical import fit_models, models_from_arrays, trees_per_task
from graphsc.finetuning.trees import pack_trees, trees_of_boosting, trees_of_forest, unpack_trees


@pytest.fixture(scope="module")
def made():
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(160, 12)).astype(np.float32)
    rows[:, 3] = np.round(rows[:, 3])  # equal values, so that thresholds fall between them
    labels = np.stack([rows[:, 0] + rows[:, 3] > 0, rows[:, 1] > 0.3], axis=1).astype(np.float32)
    labels[::5, 1] = np.nan
    return rows, labels, np.arange(160) % 4 < 2, np.arange(160) % 4 == 2


@pytest.mark.parametrize(
    ("model", "convert", "kind"),
    [
        (RandomForestClassifier(20, random_state=0), trees_of_forest, "classes"),
        (RandomForestClassifier(20, random_state=0, class_weight="balanced"), trees_of_forest, "classes"),
        (RandomForestRegressor(20, random_state=0), trees_of_forest, "numbers"),
        (HistGradientBoostingClassifier(max_iter=20, random_state=0), trees_of_boosting, "classes"),
        (HistGradientBoostingRegressor(max_iter=20, random_state=0), trees_of_boosting, "numbers"),
    ],
    ids=["forest", "weighted forest", "regression forest", "boosting", "regression boosting"],
)
def test_trees_give_what_scikit_learn_gives(made, model, convert, kind):
    rows, labels, _, _ = made
    target = labels[:, 0] if kind == "classes" else rows[:, 0] * 3
    model.fit(rows, target)
    trees = convert(model, rows)
    new = np.concatenate([rows, np.round(np.random.default_rng(2).normal(size=(300, 12)), 1)]).astype(
        np.float32
    )
    if kind == "numbers":
        expected = model.predict(new)
    elif convert is trees_of_forest:
        expected = model.predict_proba(new)[:, 1]
    else:
        expected = model.decision_function(new)
    np.testing.assert_allclose(trees.predict(new), expected, rtol=1e-4, atol=1e-5)
    (stored,) = unpack_trees("t", pack_trees("t", [trees]), 12)
    np.testing.assert_array_equal(stored.predict(new), trees.predict(new))
    if convert is trees_of_forest:
        each = [
            tree.predict(new) if kind == "numbers" else tree.predict_proba(new)[:, 1]
            for tree in model.estimators_
        ]
        np.testing.assert_allclose(trees.deviation(new), np.std(each, axis=0), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("spoil", ["left", "feature", "roots", "value"])
def test_spoiled_trees_are_refused(made, spoil):
    rows, labels, _, _ = made
    model = RandomForestClassifier(3, random_state=0).fit(rows, labels[:, 0])
    arrays = pack_trees("t", [trees_of_forest(model, rows)])
    if spoil == "value":
        arrays["t.value"] = arrays["t.value"][:-1]
    else:
        changed = arrays[f"t.{spoil}"].copy()
        # A child that leads back to the root would be an endless walk.
        changed[0 if spoil != "left" else 1] = {"left": 0, "feature": 99, "roots": -3}[spoil]
        arrays[f"t.{spoil}"] = changed
    with pytest.raises(ValueError, match="its trees"):
        unpack_trees("t", arrays, 12)


@pytest.mark.parametrize("family", ["linear", "forest", "boosting"])
def test_every_family_learns_each_task_from_its_own_labels(made, family):
    rows, labels, train, valid = made
    models = fit_models(family, rows, labels, train, valid, "classification", jobs=1)
    scores = models.scores(rows)
    assert scores.shape == labels.shape
    for k in range(2):
        known = ~train & ~np.isnan(labels[:, k])
        positive, negative = scores[known & (labels[:, k] == 1), k], scores[known & (labels[:, k] == 0), k]
        assert (positive[:, None] > negative).mean() > 0.85
    stored = models_from_arrays(family, "x", models.arrays("x"), "classification", 2, 12)
    np.testing.assert_allclose(stored.scores(rows), scores, rtol=1e-6)
    both = fit_models(family, rows, labels, train, valid, "classification", jobs=2).scores(rows)
    np.testing.assert_array_equal(both, scores)  # threads change nothing


def test_labels_of_other_sets_change_nothing_but_the_choice_on_validation(made):
    rows, labels, train, valid = made
    other = labels.copy()
    other[~(train | valid)] = 1 - other[~(train | valid)]
    for family in ("linear", "forest"):
        one, two = (
            fit_models(family, rows, some, train, valid, "classification", jobs=1).scores(rows)
            for some in (labels, other)
        )
        np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize("family", ["linear", "forest", "boosting"])
def test_a_task_with_one_class_gets_the_share_with_two_half_labels_more(made, family):
    rows, labels, train, valid = made
    one_class = labels.copy()
    one_class[:, 1] = 1.0
    scores = fit_models(family, rows, one_class, train, valid, "classification", jobs=1).scores(rows)
    share = (train.sum() + 0.5) / (train.sum() + 1)
    if family == "forest":
        share = (share + 0.5) / 2  # a forest without trees counts as one vote
    np.testing.assert_allclose(scores[:, 1], np.log(share / (1 - share)), rtol=1e-5)


def test_a_balanced_linear_model_is_scikit_learns(made):
    rows, labels, train, _ = made
    none = np.zeros_like(train)
    found = fit_models(
        "linear", rows, labels, train, none, "classification", class_weight="balanced", jobs=1
    ).scores(rows)
    known = train & ~np.isnan(labels[:, 1])
    model = LogisticRegression(C=0.1, max_iter=300, class_weight="balanced").fit(
        rows[known], labels[known, 1]
    )
    np.testing.assert_allclose(found[:, 1], model.decision_function(rows), rtol=1e-3, atol=1e-3)


def test_a_regression_is_in_the_units_of_its_labels(made):
    rows, _, train, valid = made
    target = (100 + 10 * rows[:, :1]).astype(np.float32)
    for family in ("linear", "forest", "boosting"):
        scores = fit_models(family, rows, target, train, valid, "regression", jobs=1).scores(rows)
        assert np.abs(scores - target)[~train].mean() < 5


@pytest.mark.parametrize(("tasks", "trees"), [(1, 500), (12, 500), (27, 222), (617, 50)])
def test_forests_of_many_tasks_have_fewer_trees(tasks, trees):
    assert trees_per_task(tasks) == trees
