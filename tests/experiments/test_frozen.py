"""Linear models on frozen vectors: test molecules stay unseen, scores are kept, and the card has them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DamagedFileError
from graphsc.data.datasets.catalog import NAMED, find
from graphsc.experiments import frozen
from graphsc.experiments.card_notes import frozen_notes
from graphsc.experiments.frozen import (
    Score,
    check_sets,
    curve_figure,
    frozen_scores,
    models_of,
    read_scores,
    score_table,
    write_scores,
)
from graphsc.training.model_io import weights_hash
from graphsc.training.pretrain import loop_settings, pretrain
from graphsc.training.train import model_of

pytest.importorskip("rdkit")
SMILES = [
    "C" * i + middle + "C" * j for i in range(1, 5) for middle in ("N", "O", "c1ccccc1") for j in range(4)
]
needs_bace = pytest.mark.skipif(find(NAMED["bace"]) is None, reason="BACE is not on this machine")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frozen") / "run"
    small = {"encoder.depth": 2, "encoder.width": 8, "neck": 8, "environment_bits": 64}
    loop = loop_settings("graphsc-plus", "molecules", "-", {"batch_size": 16, "seed": 0}, 1)
    pretrain(SMILES, "graphsc-plus", settings=small, training=loop, out=folder, held_out=4, snapshots=16)
    return folder


def score(seen, data, value, model="mine", part="valid"):
    return Score(model, "" if model == "ecfp" else f"hash{seen}", seen, data, part, value, 1)


def test_a_run_gives_its_snapshots_in_order_and_a_file_itself(run):
    names = [path.name for path in models_of(run)]
    assert names == sorted(names)
    assert names[0] == "000000000000.safetensors"
    assert len(names) >= 3
    assert models_of(run / "model.safetensors") == [run / "model.safetensors"]


def test_fewer_coordinates_leave_the_scores_of_linear_models():
    from sklearn.linear_model import LogisticRegression, Ridge

    rng = np.random.default_rng(0)
    rows = rng.normal(size=(40, 60)).astype(np.float32)
    labels, train = rng.integers(0, 2, 40), np.arange(40) < 25
    fewer = frozen.onto_span(rows, train)
    assert fewer.shape == (40, 25)
    for model in (LogisticRegression(C=0.1, tol=1e-10, max_iter=5000), Ridge(3.0)):
        scores = [
            (fitted.decision_function if hasattr(fitted, "decision_function") else fitted.predict)(part)
            for part in (rows.astype(float), fewer.astype(float))
            for fitted in [model.fit(part[train], labels[train])]
        ]
        np.testing.assert_allclose(scores[0], scores[1], atol=1e-4)
    np.testing.assert_array_equal(frozen.onto_span(rows[:, :9], train), rows[:, :9])


@needs_bace
def test_the_validation_part_is_scored_without_the_test_molecules(run, tmp_path):
    whole, parts = frozen._open("BACE", "test")
    without, of_without = frozen._open("BACE", "valid")
    assert len(without.smiles) == int((parts != 2).sum()) < len(whole.smiles)
    assert set(of_without.tolist()) == {0, 1}
    last = models_of(run)[-1]
    store = tmp_path / "scores.jsonl"
    scores = frozen_scores([last], ["BACE"], store=store)
    assert [entry.model for entry in scores] == ["graphsc-plus-molecules", "ecfp"]
    assert all(0.5 < entry.roc_auc < 1 for entry in scores)
    # Scored again by scikit-learn on the same vectors and strengths.
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import roc_auc_score

    rows = model_of(last).method.encoder
    vectors = frozen.frozen_vectors(without, last, of_without)
    fit, valid = of_without == 0, of_without == 1
    assert vectors.shape == (len(without.smiles), rows.dimensions)
    labels = without.labels[:, 0]
    best = max(
        roc_auc_score(
            labels[valid],
            LogisticRegression(C=c, max_iter=500)
            .fit(vectors[fit], labels[fit])
            .decision_function(vectors[valid]),
        )
        for c in (0.001, 0.01, 0.1, 1.0, 10.0)
    )
    assert scores[0].roc_auc == pytest.approx(best, abs=1e-4)
    (note,) = frozen_notes(read_scores(store), last)
    assert f"BACE {100 * scores[0].roc_auc:.1f}" in note
    assert f"fingerprints {100 * scores[1].roc_auc:.2f}" in note
    changed = [replace(scores[0], roc_auc=0.25), scores[1]]
    write_scores(store, changed)
    assert frozen_scores([last], ["BACE"], store=store) == changed  # nothing is computed again


def test_scores_are_read_as_written_and_a_damaged_file_is_refused(tmp_path):
    scores = [score(20, "BACE", 0.7), score(10, "BACE", 0.6), score(0, "BACE", 0.8, "ecfp")]
    path = tmp_path / "scores.jsonl"
    write_scores(path, scores)
    assert sorted(read_scores(path), key=lambda entry: entry.roc_auc) == [scores[1], scores[0], scores[2]]
    assert [json.loads(line)["seen"] for line in path.read_text().splitlines()] == [0, 10, 20]
    path.write_text('{"model": 1}\n')
    with pytest.raises(DamagedFileError, match="no scores"):
        read_scores(path)


def test_the_table_has_an_average_where_a_row_has_all_sets():
    scores = [
        score(10, "BACE", 0.6), score(10, "BBBP", 0.8), score(20, "BACE", 0.65),
        score(0, "BACE", 0.7, "ecfp"), score(0, "BBBP", 0.9, "ecfp"),
    ]  # fmt: skip
    assert score_table(scores).rows == (
        ("mine", "10", "80.0", "60.0", "70.00"),
        ("mine", "20", "-", "65.0", "-"),
        ("ecfp", "-", "90.0", "70.0", "80.00"),
    )


def test_the_curve_has_a_panel_per_set_and_their_average():
    scores = [score(seen, data, 0.6 + seen / 1e8) for seen in (0, 10**6, 10**7) for data in ("BACE", "BBBP")]
    figure = curve_figure([*scores, score(0, "BACE", 0.7, "ecfp"), score(0, "BBBP", 0.9, "ecfp")])
    shown = [axis for axis in figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in shown] == ["average", "BBBP", "BACE"]
    line = shown[0].lines[0]
    np.testing.assert_allclose(line.get_xdata(), [0, 1, 10])
    np.testing.assert_allclose(line.get_ydata(), [60, 61, 70])


def test_unknown_sets_are_refused():
    assert check_sets(["bace", "Tox21"]) == ["BACE", "Tox21"]
    with pytest.raises(ConfigError, match="none of the eight"):
        check_sets(["BASE"])


def test_no_scores_of_the_model_give_no_notes(run):
    assert frozen_notes([score(10, "BACE", 0.6)], models_of(run)[-1]) == []
    own = Score("mine", weights_hash(models_of(run)[-1]), 10, "BACE", "test", 0.6, 1)
    assert frozen_notes([own], models_of(run)[-1])[0].endswith("test part: BACE 60.0; average 60.00")
