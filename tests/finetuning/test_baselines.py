"""Baselines: one classical model per task, fitted on training labels alone and scored on the same split."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

from graphsc.core.errors import ConfigError
from graphsc.evaluation.metrics import Task, roc_auc
from graphsc.finetuning import baselines
from graphsc.finetuning.baselines import STRENGTHS, baseline, ecfp, fit_tasks, frozen_vectors, rows_for
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.features import RawFeatures
from graphsc.finetuning.splits import TEST, TRAIN, VALID, split_molecules


def test_fingerprints_are_those_of_rdkit():
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    found = ecfp(["CCO", "c1ccccc1C", "nonsense"])
    assert found.shape == (3, 2048)
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    for row, text in zip(found, ["CCO", "c1ccccc1C"], strict=False):
        assert set(np.flatnonzero(row)) == set(generator.GetFingerprint(Chem.MolFromSmiles(text)).GetOnBits())
    assert not found[2].any()


@pytest.fixture
def made(rng):
    rows = rng.normal(size=(120, 5))
    labels = np.stack([rows[:, 0] + rng.normal(size=120) > 0, rows[:, 1] > 0], axis=1).astype(float)
    labels[::7, 0] = np.nan
    parts = np.arange(120) % 4
    return rows, labels, parts < 2, parts == 2


def test_the_strength_is_chosen_by_validation(made):
    rows, labels, train, valid = made
    found = fit_tasks(rows, labels, train, valid, "classification", "linear")
    known = ~np.isnan(labels[:, 0])
    best = (-1.0, None)
    for strength in STRENGTHS:
        model = LogisticRegression(C=strength, max_iter=500).fit(
            rows[train & known], labels[train & known, 0]
        )
        scores = model.decision_function(rows)
        area = roc_auc(Task(labels[valid & known, 0], scores[valid & known]))
        if area > best[0]:
            best = (area, scores)
    np.testing.assert_allclose(found[~train, 0], best[1][~train], rtol=1e-4, atol=1e-4)
    assert np.isnan(found[train]).all()


def test_a_task_with_one_class_or_no_training_label_gets_a_constant_score(made):
    rows, labels, train, valid = made
    labels[train, 0], labels[train, 1] = 1.0, np.nan
    found = fit_tasks(rows, labels, train, valid, "classification", "linear")
    assert set(found[~train, 0]) == {1.0}
    assert set(found[~train, 1]) == {0.0}


def test_a_regression_is_fitted_by_ridge(made):
    rows, _, train, valid = made
    target = (rows @ np.array([1.0, 2, 0, 0, 3]))[:, None]
    found = fit_tasks(rows, target, train, valid, "regression", "linear")
    expected = Ridge(alpha=1 / max(STRENGTHS)).fit(rows[train], target[train, 0]).predict(rows)
    np.testing.assert_allclose(found[~train, 0], expected[~train], rtol=1e-3, atol=1e-3)


def test_sparse_and_dense_fingerprints_give_the_same_scores(made):
    rows, labels, train, valid = made
    bits = (rows > 0).astype(np.uint8)
    sparse = fit_tasks(bits, labels, train, valid, "classification", "linear")
    dense = fit_tasks(bits.astype(np.float64), labels, train, valid, "classification", "linear")
    np.testing.assert_allclose(sparse[~train], dense[~train], rtol=1e-3, atol=1e-3)


def test_a_forest_on_sparse_fingerprints_is_that_on_dense_ones(made, monkeypatch):
    monkeypatch.setattr(baselines, "TREES", 20)
    rows, labels, train, valid = made
    bits = (rows > 0).astype(np.uint8)
    sparse = fit_tasks(bits, labels, train, valid, "classification", "forest")
    dense = fit_tasks(bits.astype(np.float64), labels, train, valid, "classification", "forest")
    np.testing.assert_array_equal(sparse[~train], dense[~train])


@pytest.mark.parametrize("way", ["ecfp-forest", "rdkit-linear"])
def test_features_that_are_known_are_not_computed_again(way, monkeypatch):
    smiles, train = ["CCO", "c1ccncc1", "CC(=O)O", "nothing"], np.array([True, True, True, False])
    raw = RawFeatures.of(smiles, ("ecfp", "rdkit"))
    expected = rows_for(way, smiles, train)
    monkeypatch.setattr(baselines, "ecfp", None)
    monkeypatch.setattr(baselines, "descriptors", None)
    np.testing.assert_array_equal(rows_for(way, smiles, train, raw), expected)


@pytest.mark.parametrize("way", ["ecfp-forest", "ecfp-linear", "frozen"])
def test_every_baseline_is_scored_on_the_test_molecules_of_the_split(molecules, monkeypatch, way):
    monkeypatch.setattr(baselines, "TREES", 20)
    parts = split_molecules(molecules.smiles, "random")
    vectors = None
    if way == "frozen":
        vectors = np.array([[smiles.lower().count("n")] for smiles in molecules.smiles], dtype=float)
    found = baseline(molecules, way, split="random", rows=vectors)
    np.testing.assert_array_equal(found.parts, parts)
    test = found.rules["fit"].test[0]
    np.testing.assert_array_equal(test.labels, molecules.labels[parts == TEST, 0])
    if way == "frozen":
        assert found.score("fit") == 1.0  # the vector is the answer
    assert len(found.rules["fit"].valid[0].labels) == (parts == VALID).sum()


def test_test_labels_change_no_score(molecules, monkeypatch):
    from dataclasses import replace

    monkeypatch.setattr(baselines, "TREES", 5)
    parts = split_molecules(molecules.smiles, "random")
    labels = np.where((parts == TEST)[:, None], 1 - molecules.labels, molecules.labels).astype(np.float32)
    swapped = replace(molecules, collection=replace(molecules.collection, labels=labels))
    one, two = (baseline(m, "ecfp-forest", split="random").rules["fit"].test[0] for m in (molecules, swapped))
    np.testing.assert_array_equal(one.scores, two.scores)
    assert not np.array_equal(one.labels, two.labels)


def test_frozen_vectors_are_standardised_on_training_molecules(table):
    molecules = read_dataset(table, labels="nitrogen")
    parts = split_molecules(molecules.smiles, "random")
    rows = frozen_vectors(molecules, "none", parts)
    assert rows.shape == (64, 300)
    train = rows[parts == TRAIN]
    np.testing.assert_allclose(train.mean(axis=0), 0, atol=1e-4)
    spread = train.std(axis=0)
    np.testing.assert_allclose(spread[spread > 0], 1, atol=1e-3)


def test_an_unknown_baseline_is_refused(molecules):
    with pytest.raises(ConfigError, match="unknown baseline"):
        baseline(molecules, "by eye")
