"""What stored results put on the card of a model, and packing that keeps its weights."""

import numpy as np
import pytest

from graphsc.evaluation.metrics import Task
from graphsc.experiments.card_notes import delivered_notes
from graphsc.experiments.published import published_transfer
from graphsc.experiments.result import ResultStore
from graphsc.experiments.trial import TransferTrial
from graphsc.finetuning.result import HeldOutScores, TransferResult
from graphsc.training.model_files import find_model
from graphsc.training.model_io import card_of, pack, weights_hash

SHIPPED = "graphsc-plus-molecules"


def put(store, trial, **rules):
    """Store ROC-AUC values, in tenths, by rule: one positive above so many of ten negatives."""
    scores = {
        rule: HeldOutScores.of(
            [Task(np.append(1.0, np.zeros(10)), np.append(tenths - 0.5, np.arange(10.0)))],
            [],
            "classification",
        )
        for rule, tenths in rules.items()
    }
    store.put(trial, TransferResult({}, {}, ("t",), "classification", np.array([0, 1, 2]), scores, "Words."))


def ensemble(data, model=SHIPPED, **changes):
    return TransferTrial(data, "graphsc-plus", way="ensemble", pretraining={"model": model}, **changes)


def test_the_card_has_what_fine_tuning_delivers_beside_a_forest_and_published_averages(tmp_path):
    store = ResultStore(tmp_path)
    put(store, ensemble("bace"), fit=8, encoder=7, forest=6)
    put(store, ensemble("bace", seed=1), fit=6, encoder=7, forest=6)
    put(store, ensemble("bbbp"), fit=9, encoder=5, forest=6)
    for data in ("bace", "bbbp", "sider"):
        put(store, TransferTrial(data, "ecfp", way="ecfp-forest"), fit=5)
    put(store, ensemble("sider", find_model("graphsc-moses")), fit=10, encoder=10)  # of another model
    whole, encoder, beside = delivered_notes(store, find_model(SHIPPED))
    assert whole.endswith("the ensemble: BBBP 90.0, BACE 70.0; average 80.00")
    assert encoder.endswith("its fine-tuned encoder alone: BBBP 50.0, BACE 70.0; average 60.00")
    published = published_transfer()["graphsc"]
    mean = (published["BBBP"][0] + published["BACE"][0]) / 2
    assert "over the same 2 sets" in beside
    assert "fingerprints 50.00" in beside
    assert f"GraphSC as published {mean:.2f}" in beside


def test_a_model_without_stored_ensembles_has_no_notes(tmp_path):
    put(ResultStore(tmp_path), TransferTrial("bace", "ecfp", way="ecfp-forest"), fit=5)
    assert delivered_notes(ResultStore(tmp_path), find_model(SHIPPED)) == []


@pytest.mark.parametrize("half", [True, False])
def test_a_note_changes_the_card_and_not_the_weights(tmp_path, half):
    first, second = tmp_path / "first.safetensors", tmp_path / "second.safetensors"
    pack(SHIPPED, first, half=half)
    pack(first, second, half=half, notes=["a note"])
    assert card_of(second).notes == [*card_of(first).notes, "a note"]
    assert weights_hash(second) == weights_hash(first)
    assert (weights_hash(first) == weights_hash(SHIPPED)) is half
