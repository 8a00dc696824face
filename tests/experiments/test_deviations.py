"""Disagreements with published numbers are found by arithmetic, not by eye."""

import numpy as np

from graphsc.experiments.deviations import KNOWN
from graphsc.paper.analyses import deviations_table
from graphsc.experiments.published import published
from graphsc.experiments.result import Result
from graphsc.methods import METHODS


def result(right, method="graphsc", data="MUTAG", features="auto", preset="default"):
    """A result with `right` of 100 predictions right, in one fold."""
    labels = np.zeros(100, np.int64)
    predictions = np.where(np.arange(100) < right, 0, 1)
    trial = {
        "data": data, "features": features, "method": method, "preset": preset, "training": {"seed": 0},
        "fold_seed": 0, "selection": "last", "inductive": False,
    }  # fmt: skip
    return Result(
        trial=trial, config={}, classes=("a", "b"), labels=labels, fold=labels, predictions=predictions,
        chosen=(1.0,), epochs=(1,), inner_accuracy=0.5, words="",
    )  # fmt: skip


def test_a_cell_beyond_two_published_deviations_is_listed_with_the_suspects():
    # 89.19 ± 1.83 is published: 80 lies five deviations below, 90 within one.
    text = deviations_table([result(80), result(70, features="constant"), result(60, preset="published")])
    assert "| graphsc | MUTAG | 80.00 | 89.19 ± 1.83 | 70.00 | 60.00 |" in text


def test_what_brings_ours_near_explains_the_cell():
    # 74.28 ± 0.76 is published: 75 and 73 lie within two deviations, 80 and 60 do not.
    def found(feature, settings, data="IMDB-BINARY"):
        ours = [result(80, data=data), result(feature, data=data, features="constant")]
        return deviations_table([*ours, result(settings, data=data, preset="published")])

    assert "| 75.00 | 60.00 | the feature |" in found(75, 60)
    assert "| 75.00 | 73.00 | the feature or the settings |" in found(75, 73)
    # On MUTAG (89.19 ± 1.83) the published runs had the labels of nodes: the constant cannot be the reason.
    assert "| 86.00 | 60.00 |  |" in found(86, 60, "MUTAG")


def test_results_with_few_labels_are_no_reruns():
    few = result(10)
    few.trial["protocol"] = {"label_share": 0.01}
    assert "| graphsc | MUTAG | 80.00 |" in deviations_table([result(80), few])


def test_a_cell_within_two_published_deviations_is_not():
    assert "| graphsc |" not in deviations_table([result(90)])


def test_every_published_method_is_one_of_ours_and_is_explained():
    for method in published():
        assert method in METHODS
        assert method in KNOWN
