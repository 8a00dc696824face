"""The ensemble: parts, weights, calibration, its files, what it predicts and why."""

import csv
from dataclasses import replace

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import Crippen

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.core.serialization import load_tensors, save_tensors
from graphsc.data.molecules.conversion import read_molecules
from graphsc.evaluation.metrics import Task, r2, roc_auc
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.delivered import read_held_out
from graphsc.finetuning.ensemble import choose_weights, fit_ensemble, fit_slopes, load_ensemble, parts_of
from graphsc.finetuning.explain import explain, without_each_node
from graphsc.finetuning.finetune import FineTuneSettings, finetune
from graphsc.finetuning.model import load_predictor, resolve_encoder
from graphsc.finetuning.predict import predict_table
from graphsc.finetuning.property_model import Domain, load_property_model

ALL = ("encoder", "linear", "forest", "boosting")


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    import graphsc.finetuning.baselines as baselines
    import graphsc.finetuning.classical as classical

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(classical, "MOST_TREES", 20)
        patch.setattr(classical, "FEWEST_TREES", 20)
        patch.setattr(baselines, "TREES", 20)
        yield


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    """Nitrogen or not, by an ensemble whose head sees fingerprints."""
    folder = tmp_path_factory.mktemp("ensemble") / "run"
    molecules = read_dataset(table, labels="nitrogen")
    settings = FineTuneSettings(epochs=2, batch_size=16, features=("ecfp",), class_weight="balanced")
    found = finetune(
        molecules, "none", out=folder, settings=settings, seeds=(0, 1), split="random", device="cpu",
        encoder_settings={"width": 8, "depth": 2}, baselines=True, model="ensemble", jobs=1,
    )  # fmt: skip
    return folder, molecules, found


def test_an_ensemble_has_all_parts_and_its_weights_add_up_to_one(run):
    folder, _, found = run
    ensemble = load_ensemble(folder / "ensemble.safetensors")
    assert set(ensemble.weights) == set(ALL)
    assert sum(ensemble.weights.values()) == pytest.approx(1)
    assert {part.name for part in found.assessment.parts} == set(ALL)
    assert found.assessment.calibration is not None
    assert len(found.results) == 2


def test_what_is_stored_is_what_is_predicted(run):
    """predictions.csv of the run, `predict`, and the weighted mean of parts.csv by hand."""
    folder, molecules, _ = run
    held_out = read_held_out(folder, molecules.tasks, molecules.kind)
    model = load_property_model(folder)
    places = [molecules.rows.tolist().index(row) for row in held_out.rows]
    mean, spread = model.predict(molecules.collection.take(np.array(places)), held_out.smiles)
    np.testing.assert_allclose(mean, held_out.predicted, atol=1e-5)
    np.testing.assert_allclose(spread, held_out.spread, atol=1e-5)
    ensemble = model.ensemble
    total = 0.0
    for name, weight in ensemble.weights.items():
        share = np.clip(held_out.parts_scores[name][:, 0], 1e-6, 1 - 1e-6)
        total = total + weight * ensemble.slopes[name] * np.log(share / (1 - share))
    calibration = ensemble.calibrations[0]
    by_hand = 1 / (1 + np.exp(-(calibration.slope * total + calibration.shift)))
    # Scores of the encoder for validation molecules are of other epochs than the delivered one.
    test = held_out.of("test")
    np.testing.assert_allclose(held_out.predicted[test, 0], by_hand[test], atol=1e-3)


def test_a_part_is_weighed_by_scores_that_its_epoch_was_not_chosen_by(run):
    """An encoder that seems perfect on validation, but was not on the folds that did not choose it."""
    folder, molecules, found = run
    parts = found.results[0].parts
    train, valid = parts == 0, parts == 1
    truth = molecules.labels[valid]
    other = [load_predictor(folder / f"seed-{seed}" / "best.safetensors") for seed in (0, 1)]
    spec = resolve_encoder("none", molecules.collection.features, settings={"width": 8, "depth": 2})

    def fit(scores):
        return fit_ensemble(
            molecules, "ensemble", ("encoder", "linear"), spec, train, valid, other, unchosen=scores, jobs=1
        )

    perfect, _ = fit([8 * truth - 4, 8 * truth - 4])
    noise, scores = fit([4 - 8 * truth, np.full_like(truth, np.nan)])
    assert noise.weights["encoder"] < perfect.weights["encoder"] - 0.2
    # The mean of the seeds' probabilities; the second seed has no such scores, so its own are taken.
    own = other[1].predict(
        molecules.collection.take(np.flatnonzero(valid)), [molecules.smiles[k] for k in np.flatnonzero(valid)]
    )
    mean = (1 / (1 + np.exp(8 * truth - 4)) + own) / 2
    np.testing.assert_allclose(scores["encoder"][valid], np.log(mean / (1 - mean)), rtol=1e-4)


def test_the_same_call_again_fits_nothing_and_another_model_replaces_the_ensemble(run, tmp_path, monkeypatch):
    import shutil
    import sys

    folder, molecules, found = run
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    settings = FineTuneSettings(epochs=2, batch_size=16, features=("ecfp",), class_weight="balanced")
    again = {
        "out": copy, "settings": settings, "seeds": (0, 1), "split": "random", "device": "cpu",
        "encoder_settings": {"width": 8, "depth": 2}, "baselines": True,
    }  # fmt: skip
    module = sys.modules["graphsc.finetuning.finetune"]
    with monkeypatch.context() as patch:
        patch.setattr(module, "fit_ensemble", None)
        same = finetune(molecules, "none", model="ensemble", **again)
    assert same.assessment.to_json() == found.assessment.to_json()
    other = finetune(molecules, "none", model="encoder", **again)
    assert list(load_ensemble(copy / "ensemble.safetensors").weights) == ["encoder"]
    assert [part.name for part in other.assessment.parts] == ["encoder"]
    # A single part spreads over its seeds.
    mean, spread = load_property_model(copy).predict(
        molecules.collection.take(np.arange(4)), molecules.smiles[:4]
    )
    assert spread.any()
    assert ((mean > 0) & (mean < 1)).all()


def test_predictions_have_the_nearest_training_molecule(run, tmp_path):
    folder, molecules, found = run
    train = found.results[0].parts == 0
    known = [molecules.smiles[k] for k in np.flatnonzero(train)]
    source = tmp_path / "new.csv"
    source.write_text(f"name,smiles\nA,{known[3]}\nB,no molecule\nC,FC(F)(F)Cl\n")
    done = predict_table(folder, source, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == [
        "name", "smiles", "nitrogen_probability", "nitrogen_spread", "nearest_training", "nearest_similarity",
        "reason",
    ]  # fmt: skip
    assert (rows[0]["nearest_training"], rows[0]["nearest_similarity"]) == (known[3], "1.000")
    assert (rows[1]["nearest_training"], rows[1]["nearest_similarity"]) == ("", "")
    assert rows[1]["reason"]
    assert float(rows[2]["nearest_similarity"]) < 0.3
    assert done.far == 1
    assert done.models == 5  # two seeds and three classical parts
    # Several processes give the same table.
    predict_table(folder, source, tmp_path / "two.csv", jobs=2, chunk=1)
    assert (tmp_path / "two.csv").read_text() == (tmp_path / "out.csv").read_text()
    # The last epoch: the fine-tuned encoders alone.
    last = predict_table(folder, source, tmp_path / "last.csv", rule="last")
    assert last.models == 2


@pytest.mark.parametrize("model", ["forest", "linear", "boosting"])
def test_a_single_classical_part_trains_no_encoder(molecules, tmp_path, model):
    found = finetune(
        molecules,
        "none",
        out=tmp_path / "run",
        split="random",
        device="cpu",
        model=model,
        baselines=True,
        jobs=1,
    )
    assert not found.results
    assert not list((tmp_path / "run").glob("seed-*"))
    assert found.assessment.model.scores["roc_auc"].value > 0.8
    (tmp_path / "new.csv").write_text("smiles\nCCc1ccncc1\n")
    done = predict_table(tmp_path / "run", tmp_path / "new.csv", tmp_path / "p.csv")
    assert done.models == 1
    with open(tmp_path / "p.csv", newline="") as file:
        spread = next(csv.DictReader(file))["nitrogen_spread"]
    if model == "forest":  # over its trees, each of which votes 0 or 1 here
        assert 0 < float(spread) <= 0.5
        assert "spread over trees" in found.assessment.spread.sentence()
    else:
        assert spread == ""
        assert found.assessment.spread is None
        assert "has no spread" in done.spread


def test_vectors_of_no_pretraining_are_refused(molecules, tmp_path):
    with pytest.raises(ConfigError, match="no pre-trained vectors"):
        finetune(molecules, "none", out=tmp_path / "run", model="vectors")
    assert "vectors" not in parts_of("ensemble", "none")
    assert "vectors" in parts_of("ensemble", "graphsc-moses")


def test_frozen_vectors_are_a_part_with_pretrained_weights(molecules, tmp_path):
    found = finetune(
        molecules, "graphsc-moses", out=tmp_path / "run", split="random", device="cpu", model="vectors",
        baselines=True, jobs=1,
    )  # fmt: skip
    assert [part.name for part in found.assessment.parts] == ["vectors"]
    stored = load_property_model(tmp_path / "run")
    held_out = read_held_out(tmp_path / "run", molecules.tasks, molecules.kind)
    collection = read_molecules(held_out.smiles).collection
    np.testing.assert_allclose(stored.predict(collection, held_out.smiles)[0], held_out.predicted, atol=1e-4)


# Weights.


def test_a_part_that_is_right_gets_more_weight_than_one_that_is_noise(rng):
    labels = (rng.random((300, 1)) < 0.5).astype(float)
    right = 2 * labels - 1 + rng.normal(size=labels.shape)
    noise = rng.normal(size=labels.shape)
    weights = choose_weights({"right": right, "noise": noise, "more": rng.normal(size=labels.shape)}, labels,
                             "classification")  # fmt: skip
    assert weights["right"] > 0.8
    assert sum(weights.values()) == pytest.approx(1)


def test_parts_that_cannot_be_told_apart_all_count():
    """Twelve molecules, of which each part has another positive and another negative wrong."""
    labels = np.array([[0.0], [1.0]] * 6)
    scores = {}
    for name, wrong in (("one", [0, 3]), ("two", [4, 9])):
        scores[name] = labels + 0.01 * np.arange(12.0)[:, None]
        scores[name][wrong] += 1 - 2 * labels[wrong]
    weights = choose_weights(scores, labels, "classification")
    assert min(weights.values()) > 0.4


def test_equal_parts_and_unusable_labels_give_equal_weights(rng):
    scores = rng.normal(size=(40, 1))
    labels = (scores > 0).astype(float)
    both = {"one": scores, "two": scores}
    assert choose_weights(both, labels, "classification") == pytest.approx({"one": 0.5, "two": 0.5})
    assert choose_weights(both, np.ones_like(labels), "classification") == {"one": 0.5, "two": 0.5}
    assert choose_weights({"one": scores}, labels, "classification") == {"one": 1.0}


def test_weights_of_a_regression_follow_the_squared_error_in_each_tasks_own_units(rng):
    labels = rng.normal(size=(200, 2)) * [1, 1000]
    near = labels + rng.normal(size=labels.shape) * [0.1, 100]
    far = labels + rng.normal(size=labels.shape) * [2, 2000]
    weights = choose_weights({"near": near, "far": far}, labels, "regression")
    assert weights["near"] > 0.8


def test_the_scale_of_a_part_does_not_decide_its_weight(rng):
    labels = (rng.random((400, 1)) < 0.5).astype(float)
    scores = 2 * labels - 1 + rng.normal(size=labels.shape)
    slopes = fit_slopes({"one": scores, "loud": 10 * scores}, labels, "classification")
    assert slopes["one"] == pytest.approx(10 * slopes["loud"], rel=0.2)


# Damage.


def test_a_damaged_ensemble_is_refused(run, tmp_path):
    folder, *_ = run
    tensors, facts = load_tensors(folder / "ensemble.safetensors", "ensemble")
    spoiled = dict(tensors)
    spoiled["forest.left"] = tensors["forest.left"] * 0
    save_tensors(tmp_path / "a.safetensors", "ensemble", spoiled, facts)
    with pytest.raises(DamagedFileError, match="lead nowhere"):
        load_ensemble(tmp_path / "a.safetensors")
    save_tensors(tmp_path / "b.safetensors", "ensemble", tensors, {**facts, "weights": {"magic": 1.0}})
    with pytest.raises(DamagedFileError, match="parts do not fit"):
        load_ensemble(tmp_path / "b.safetensors")
    content = bytearray((folder / "ensemble.safetensors").read_bytes())
    content[-5] ^= 1
    (tmp_path / "c.safetensors").write_bytes(content)
    with pytest.raises(DamagedFileError):
        load_ensemble(tmp_path / "c.safetensors")


def test_a_domain_is_stored_and_read(tmp_path):
    domain = Domain.of(["é", "two\nlines", ""], ["CCO", "c1ccccc1", "CCN"])
    domain.save(tmp_path / "d.safetensors")
    stored = Domain.load(tmp_path / "d.safetensors")
    assert stored.names == ("é", "two lines", "")
    index, similarity = stored.nearest(["Cc1ccccc1", "CCN"])
    assert index.tolist() == [1, 2]
    assert similarity[1] == 1.0


# Why.


def test_each_graph_lacks_one_atom_and_its_bonds():
    whole = read_molecules(["CC(=O)N"]).collection
    found = without_each_node(whole)
    assert len(found) == 4
    atoms = [graph.nodes.codes[:, 0].tolist() for graph in found.graphs()]
    carbon, oxygen, nitrogen = 5, 7, 6
    assert atoms == [
        [carbon, oxygen, nitrogen], [carbon, oxygen, nitrogen], [carbon, carbon, nitrogen],
        [carbon, carbon, oxygen],
    ]  # fmt: skip
    edges = [graph.edge_index.shape[1] // 2 for graph in found.graphs()]
    assert edges == [2, 0, 2, 2]  # atom 1 has all three bonds


def test_the_atom_that_decides_has_the_largest_contribution(table, tmp_path):
    """A forest on fingerprints knows nitrogen: leaving it out lowers the log-odds most."""
    molecules = read_dataset(table, labels="nitrogen")
    finetune(molecules, "none", out=tmp_path / "run", split="random", device="cpu", model="linear", jobs=1)
    model = load_property_model(tmp_path / "run")
    found = explain(model, "CCCC1CCNCC1")
    assert found.contributions.shape == (9, 1)
    assert int(found.contributions[:, 0].argmax()) == 6
    assert found.contributions[6, 0] > 0
    assert explain(model, "C") is None
    assert explain(model, "no molecule") is None


# Regression.


@pytest.fixture(scope="module")
def logp(tmp_path_factory):
    """Computed log P of small molecules with noise, a copy in other units, and missing labels."""
    rng = np.random.default_rng(0)
    chains = ["", "C", "CC", "CCC", "CCO", "CCN", "CC(=O)", "FC", "ClC", "CS", "OC", "NC(=O)", "CCCCC", "C=C"]
    rings = [
        "c1ccccc1",
        "c1ccncc1",
        "C1CCCCC1",
        "c1ccoc1",
        "C1CCNCC1",
        "c1ccsc1",
        "c1ccc2ccccc2c1",
        "C1CCOC1",
    ]
    smiles = [chain + ring for chain in chains for ring in rings]
    values = [Crippen.MolLogP(Chem.MolFromSmiles(text)) + rng.normal() * 0.1 for text in smiles]
    lines = ["smiles,logp,scaled"]
    for number, (text, value) in enumerate(zip(smiles, values, strict=True)):
        lines.append(f"{text},{value:.3f},{'' if number % 9 == 0 else f'{1000 + 100 * value:.1f}'}")
    path = tmp_path_factory.mktemp("logp") / "logp.csv"
    path.write_text("\n".join(lines) + "\n")
    return read_dataset(path, labels="*")


def test_a_regression_of_two_units_is_predicted_in_its_own(logp, tmp_path):
    settings = FineTuneSettings(epochs=2, batch_size=16, features=("ecfp", "rdkit"))
    found = finetune(
        logp, "none", out=tmp_path / "run", settings=settings, split="random", device="cpu", model="ensemble",
        encoder_settings={"width": 8, "depth": 2}, baselines=True, jobs=1,
    )  # fmt: skip
    held_out = read_held_out(tmp_path / "run", logp.tasks, logp.kind)
    test = held_out.of("test")
    for k in range(2):
        known = test & ~np.isnan(held_out.labels[:, k])
        assert r2(Task(held_out.labels[known, k], held_out.predicted[known, k])) > 0.7
    assert found.assessment.calibration is None
    assert set(found.assessment.model.scores) == {"rmse", "mae", "r2", "spearman"}
    np.testing.assert_allclose(held_out.predicted[:, 1], 1000 + 100 * held_out.predicted[:, 0], atol=60)


def test_features_beside_the_encoder_change_what_it_learns(molecules, tmp_path):
    """The head can read the answer off a fingerprint that the narrow encoder does not show."""
    settings = FineTuneSettings(epochs=30, batch_size=16, dropout=0.0)
    scores = {}
    for features in ((), ("ecfp",)):
        run = finetune(
            molecules, "none", out=tmp_path / f"run{len(features)}", split="random", device="cpu",
            settings=replace(settings, features=features), encoder_settings={"width": 1, "depth": 1},
        )  # fmt: skip
        scores[features] = run.results[0].rules["last"]
    assert roc_auc(scores[("ecfp",)].test[0]) > 0.95
    assert roc_auc(scores[("ecfp",)].test[0]) >= roc_auc(scores[()].test[0])


def test_settings_at_their_old_values_are_not_in_the_identity():
    assert not {"features", "class_weight"} & set(FineTuneSettings().to_json())
    assert FineTuneSettings(features=("rdkit",)).to_json()["features"] == ["rdkit"]
    with pytest.raises(ConfigError):
        FineTuneSettings(features=("magic",))
