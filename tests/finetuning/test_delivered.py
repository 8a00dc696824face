"""The delivered predictions: the tables of a run, scores by hand, intervals, and what the spread says."""

import csv

import numpy as np
import pytest
from scipy.stats import spearmanr

from graphsc.core.errors import DamagedFileError
from graphsc.finetuning import baselines as baselines_module
from graphsc.finetuning.baselines import baseline
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.delivered import (
    Counts,
    HeldOut,
    Score,
    SpreadRelation,
    assess,
    read_held_out,
    write_baselines,
)
from graphsc.finetuning.finetune import finetune
from graphsc.finetuning.splits import TEST, TRAIN, VALID

NAN = np.nan


def held_out(labels, predicted, *, spread=None, parts=None, **baselines):
    """One task unless the rows are lists."""
    table = {name: np.atleast_2d(np.array(rows, float).T).T for name, rows in baselines.items()}
    labels, predicted = (np.atleast_2d(np.array(rows, float).T).T for rows in (labels, predicted))
    spread = np.zeros_like(predicted) if spread is None else np.atleast_2d(np.array(spread, float).T).T
    return HeldOut(
        list(range(len(labels))), None, ["C"] * len(labels), parts or ["test"] * len(labels), labels,
        predicted, spread, table,
    )  # fmt: skip


def test_the_mean_over_seeds_is_scored_and_not_the_single_seeds():
    """Seeds that err in opposite directions by 1 deliver no error; each of them has an RMSE of 1."""
    labels = np.array([1.0, 2.0, 3.0, 5.0])
    seeds = np.stack([labels + 1, labels - 1])
    found = assess(held_out(labels, seeds.mean(axis=0)), ["y"], "regression")
    assert found.model.scores["rmse"].value == 0
    assert found.model.scores["r2"].value == 1
    assert found.model.scores["spearman"].value == pytest.approx(1)


def test_only_test_molecules_with_a_label_are_scored():
    parts = ["valid", "test", "test", "test", "new"]
    found = assess(held_out([9, 1, 2, NAN, NAN], [0, 2, 2, 7, 7], parts=parts), ["y"], "regression")
    assert found.test == 2
    assert found.model.scores["mae"].value == 0.5


def test_scores_are_means_over_tasks_and_counts_are_at_one_half():
    labels = [[1, 1], [0, NAN], [1, 0], [0, 1]]
    predicted = [[0.9, 0.2], [0.6, 0.5], [0.4, 0.1], [0.1, 0.8]]
    found = assess(held_out(labels, predicted), ["a", "b"], "classification")
    # Task a: of the four pairs, 0.9 wins both and 0.4 beats 0.1. Task b: both positives beat the negative.
    np.testing.assert_allclose(found.model.by_task["roc_auc"], [0.75, 1.0])
    assert found.model.scores["roc_auc"].value == 0.875
    assert found.model.counts == (Counts(2, 1, 2), Counts(2, 1, 1))


def test_recall_and_precision_in_words():
    assert Counts(36, 10, 13).sentence("actives") == (
        "At a probability of one half it finds 10 of 36 actives (28 %); of 13 that it calls so, 10 are."
    )
    assert Counts(36, 0, 0).sentence("actives").endswith("0 of 36 actives (0 %): it calls no molecule so.")


def test_the_accuracy_of_a_column_of_several_classes_is_that_of_the_most_probable():
    labels = [[1, 0, 0], [0, 1, 0], [0, 0, 1], [NAN] * 3]
    predicted = [[0.4, 0.3, 0.2], [0.5, 0.4, 0.1], [0.0, 0.1, 0.05], [1, 0, 0]]
    tasks = ["y=a", "y=b", "y=c"]
    found = assess(held_out(labels, predicted), tasks, "classification", {"y": tuple(tasks)})
    assert found.model.scores["accuracy"].value == pytest.approx(1 / 3)


@pytest.fixture
def numbers():
    return np.random.default_rng(0)


def test_an_interval_of_a_mean_error_is_as_wide_as_its_standard_error_says(numbers):
    errors = numbers.normal(size=400)
    found = assess(held_out(np.zeros(400), errors), ["y"], "regression")
    mae = found.model.scores["mae"]
    wide = 2 * 1.96 * np.abs(errors).std() / 20
    assert mae.high - mae.low == pytest.approx(wide, rel=0.15)
    assert mae.low < mae.value < mae.high


@pytest.mark.parametrize(
    ("noise", "verdict", "words"),
    [
        ({"model": 0.2, "ecfp-forest": 1.0}, "better", "better than a forest on fingerprints and a constant"),
        ({"model": 0.5, "ecfp-forest": 0.5}, "even", "no clear difference to a forest on fingerprints, on "
         "the same split. It is better than a constant."),
        ({"model": 1.0, "ecfp-forest": 0.2}, "worse", "worse than a forest on fingerprints"),
        ({"model": 9.0, "ecfp-forest": 9.0}, "useless", "not clearly better than a constant"),
    ],
)  # fmt: skip
def test_the_verdict_compares_with_simple_models(numbers, noise, verdict, words):
    labels = 2 * numbers.normal(size=120)
    predictions = {name: labels + numbers.normal(scale=scale, size=120) for name, scale in noise.items()}
    predictions["constant"] = np.zeros(120)
    found = assess(held_out(labels, predictions.pop("model"), **predictions), ["y"], "regression")
    assert found.verdict == verdict
    assert words in " ".join(found.sentences())
    gain = found.contenders[1].gain
    difference = found.contenders[1].scores["rmse"].value - found.model.scores["rmse"].value
    assert gain.value == pytest.approx(difference)  # positive where the model's error is smaller
    assert gain.low <= gain.value <= gain.high


def test_no_test_molecules_and_no_baselines_have_no_verdict():
    found = assess(held_out([1, 2], [1, 2], parts=["valid", "valid"]), ["y"], "regression")
    assert found.verdict == "unknown"
    assert "No test molecules" in found.sentences()[0]
    assert found.to_json()["scores"]["model"]["rmse"] == {"value": None, "low": None, "high": None}


def test_spread_and_error_on_validation_are_correlated_as_scipy_says(numbers):
    """The test molecules, whose spread would be perfect, do not count."""
    spread, errors = numbers.random(60), numbers.normal(size=60)
    errors[40:] = spread[40:]
    parts = ["valid"] * 40 + ["test"] * 20
    relation = assess(held_out(np.zeros(60), errors, spread=spread, parts=parts), ["y"], "regression").spread
    expected = spearmanr(spread[:40], np.abs(errors[:40])).statistic
    assert relation.correlation.value == pytest.approx(expected)
    assert relation.molecules == 40
    assert not relation.informative
    assert "Do not read it as uncertainty" in relation.sentence()


def test_a_spread_that_follows_the_error_is_informative(numbers):
    errors = numbers.normal(size=40)
    found = assess(
        held_out(np.zeros(40), errors, spread=np.abs(errors), parts=["valid"] * 40), ["y"], "regression"
    )
    assert found.spread.correlation.value == pytest.approx(1)
    assert "a larger spread tends to go with a larger error" in found.spread.sentence()


def test_a_weak_relation_is_called_weak():
    """Its interval excludes 0, so that the spread does tell something."""
    sentence = SpreadRelation(Score(0.26, 0.08, 0.44), 33, "parts").sentence()
    assert "only weakly. Do not read it as uncertainty." in sentence
    assert "does not tell" not in sentence


def test_few_validation_molecules_say_nothing_and_a_single_seed_has_no_spread():
    few = assess(held_out([0] * 9, range(9), spread=range(9), parts=["valid"] * 9), ["y"], "regression")
    assert "cannot be said" in few.spread.sentence()
    assert assess(held_out([0] * 20, range(20)), ["y"], "regression").spread is None
    assert not SpreadRelation(Score(0.5, -0.1, 0.9), 50).informative


@pytest.fixture(scope="module")
def run(table, tmp_path_factory):
    """Two seeds with simple models; one molecule has no label at all, and all have ids."""
    from graphsc.finetuning.finetune import FineTuneSettings

    home = tmp_path_factory.mktemp("delivered")
    header, *lines = table.read_text().splitlines()
    named = [f"M{number},{line}" for number, line in enumerate(lines)]
    named[0] = named[0].replace(",0,20.000", ",,")
    (home / "named.csv").write_text("\n".join([f"id,{header}", *named]) + "\n")
    molecules = read_dataset(home / "named.csv", labels="nitrogen")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines_module, "TREES", 20)
        found = finetune(
            molecules, out=home / "run", settings=FineTuneSettings(epochs=2, batch_size=16), seeds=[0, 1],
            encoder_settings={"width": 8, "depth": 2}, device="cpu", split="random", baselines=True,
        )  # fmt: skip
        yield home / "run", molecules, found


def test_predictions_have_ids_and_molecules_without_any_label(run):
    folder, _, found = run
    with open(folder / "predictions.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == [f"M{row['row']}" for row in rows]
    parts = found.results[0].parts
    expected = {"valid": (parts == VALID).sum(), "test": (parts == TEST).sum(), "new": int(parts[0] == TRAIN)}
    assert {part: sum(row["part"] == part for row in rows) for part in expected} == expected
    assert {row["nitrogen"] for row in rows if row["part"] == "new"} <= {""}


def test_stored_predictions_of_simple_models_are_those_of_the_baselines(run):
    folder, molecules, found = run
    stored = read_held_out(folder, molecules.tasks, molecules.kind)
    test = stored.of("test")
    for way in ("constant", "ecfp-forest", "ecfp-linear", "rdkit-linear", "ecfp-boosting"):
        task = baseline(molecules, way, split="random").rules["fit"].test[0]
        scores = np.asarray(task.scores, float)
        if way.endswith(("linear", "boosting")):
            scores = 1 / (1 + np.exp(-scores))
        np.testing.assert_allclose(stored.baselines[way][test, 0], scores, atol=2e-3)
    assert [one.name for one in found.assessment.contenders] == [
        "model", "ecfp-forest", "ecfp-linear", "ecfp-boosting", "rdkit-forest", "rdkit-linear",
        "rdkit-boosting", "constant",
    ]  # fmt: skip


def test_simple_models_of_a_fraction_of_the_labels_are_averaged_over_the_seeds(run, tmp_path):
    """Each seed draws other labels, so the constant is the mean of two means."""
    from graphsc.finetuning.dataset import select_labelled
    from graphsc.finetuning.splits import split_molecules

    _, molecules, _ = run
    parts = split_molecules(molecules.smiles, "random")
    write_baselines(tmp_path / "b.csv", molecules, parts, 0.2, [0, 1])
    train = np.flatnonzero(parts == TRAIN)
    means = [
        molecules.labels[select_labelled(molecules.labels, train, "classification", 0.2, seed), 0].mean()
        for seed in (0, 1)
    ]
    with open(tmp_path / "b.csv") as file:
        constants = {row["nitrogen_constant"] for row in csv.DictReader(file)}
    assert [float(value) for value in constants] == pytest.approx([np.mean(means)])


def test_a_finished_run_keeps_its_tables_and_another_seed_renews_them(run, small, tmp_path):
    import shutil

    folder, molecules, _ = run
    shutil.copytree(folder, tmp_path / "run")
    arguments = {**small(epochs=2, dropout=0.5), "baselines": True}
    before = {name: (folder / name).stat().st_mtime_ns for name in ("predictions.csv", "baselines.csv")}
    finetune(molecules, out=folder, seeds=[0, 1], **arguments)
    assert {name: (folder / name).stat().st_mtime_ns for name in before} == before
    old = (folder / "predictions.csv").read_text()
    finetune(molecules, out=tmp_path / "run", seeds=[0, 1, 2], **arguments)
    assert (tmp_path / "run" / "predictions.csv").read_text() != old


@pytest.mark.parametrize("name", ["predictions.csv", "baselines.csv"])
def test_a_damaged_table_is_refused(run, tmp_path, name):
    import shutil

    folder, molecules, _ = run
    for file in ("predictions.csv", "baselines.csv"):
        shutil.copy(folder / file, tmp_path / file)
    text = (tmp_path / name).read_text()
    (tmp_path / name).write_text(text.replace("0.", "1.", 1))
    with pytest.raises(DamagedFileError, match="does not match its check"):
        read_held_out(tmp_path, molecules.tasks, molecules.kind)


def test_a_folder_without_predictions_has_none(tmp_path):
    assert read_held_out(tmp_path, ["y"], "regression") is None
