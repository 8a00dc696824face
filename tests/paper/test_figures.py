"""Figures from stored results: numbers and files."""

import csv
import io
import re

import numpy as np
import pytest

from graphsc.paper.figures import convergence_curve
from graphsc.paper.gather import gather
from graphsc.paper.make import make
from graphsc.paper.recipe import Request, expand, read_recipe

TWO = Request(data=["mutag"], seeds=2)


def records(output):
    return list(csv.DictReader(io.StringIO(output.csv())))


@pytest.mark.parametrize("name", ["figure1", "figure3", "figure4", "figure5"])
def test_a_figure_without_results_is_drawn_and_counts_missing_trials(name, tmp_path):
    output = make(read_recipe(name), Request("quick"), tmp_path)
    paths = output.write(tmp_path / "out", name)
    assert [path.suffix for path in paths] == [".md", ".csv", ".tex", ".png", ".svg"]
    assert "have not run yet" in paths[0].read_text()


@pytest.mark.parametrize("name", ["figure1", "figure3", "figure4", "figure5"])
def test_files_are_the_same_each_time_and_have_no_date(name, fill, tmp_path):
    recipe = read_recipe(name)
    curve = (
        {"curve": lambda cell: {e: 80 + e / 20 for e in cell.trial.curve} or None}
        if name == "figure3"
        else {}
    )
    fill(expand(recipe, TWO), lambda cell: 80 + cell.trial.seed, **curve)
    once = [p.read_bytes() for p in make(recipe, TWO, tmp_path / "results").write(tmp_path / "a", name)]
    again = [p.read_bytes() for p in make(recipe, TWO, tmp_path / "results").write(tmp_path / "b", name)]
    assert once == again
    markdown, _, latex, png, svg = once
    assert b"not run" not in markdown
    assert rb"\toprule" in latex
    assert png[:4] == b"\x89PNG"
    assert len(png) > 10_000
    assert b"MUTAG" in svg
    assert not re.search(rb"20[0-9]{2}-[0-9]{2}-[0-9]{2}", svg)


def test_accuracy_by_number_of_negatives(fill, tmp_path):
    recipe = read_recipe("figure1")
    cells = expand(recipe, TWO)
    fill(cells, lambda cell: 70 + cell.trial.seed if cell.point.get("training.batch_size") == 32 else None)
    rows = {
        (r["part"], r["method"], r["negatives"]): r for r in records(make(recipe, TWO, tmp_path / "results"))
    }
    assert rows["batch", "graphcl", "31"]["accuracy"] == "70.5"
    assert rows["batch", "graphcl", "31"]["deviation"] == "0.7071"
    assert rows["batch", "graphcl", "63"]["accuracy"] == ""
    assert ("sampled", "graphcl", "127") in rows


def test_differences_to_graphcl_by_rates(fill, tmp_path):
    recipe = read_recipe("figure4")

    def accuracy(cell):
        if cell.part == "reference":
            return 75
        return 78 if (cell.point["weak_rate"], cell.point["strong_rate"]) == (0.1, 0.25) else None

    fill(expand(recipe, TWO), accuracy)
    output = make(recipe, TWO, tmp_path / "results")
    differences = {(r["weak_rate"], r["strong_rate"]): r["difference"] for r in records(output)}
    assert len(differences) == 21
    assert differences["0.1", "0.25"] == "3.0"
    assert differences["0.2", "0.4"] == ""
    rows = {row[0]: row for row in output.sheets[0].table.rows}
    assert rows["graphsc, MUTAG, weak rate 0.1"][3] == "+3.00 ± 0.00"


def test_the_deviation_of_a_difference_is_over_seeds(fill, tmp_path):
    """GraphCL has 70 and 72, the pair 75 and 79: differences of 5 and 7, their deviation is the root of 2."""
    recipe = read_recipe("figure4")
    values = {"reference": (70, 72), "rates": (75, 79)}
    fill(expand(recipe, TWO), lambda cell: values[cell.part][cell.trial.seed])
    (first, *_) = records(make(recipe, TWO, tmp_path / "results"))
    assert (first["difference"], first["deviation"]) == ("6.0", "1.4142")


def test_data_sets_without_results_are_not_drawn_but_named(fill, tmp_path):
    recipe, request = read_recipe("figure5"), Request(data=["mutag", "proteins"], seeds=1)
    fill(expand(recipe, request), lambda cell: 80 if cell.trial.data == "mutag" else None)
    output = make(recipe, request, tmp_path / "results")
    titles = [axis.get_title(loc="left") for axis in output.figure.axes]
    assert "MUTAG" in titles
    assert "PROTEINS" not in titles
    assert any(note.startswith("Not run: PROTEINS (all rows)") for note in output.sheets[0].table.notes)


def test_accuracy_by_weight(fill, tmp_path):
    recipe = read_recipe("figure5")
    fill(expand(recipe, TWO), lambda cell: 82 if cell.point.get("lambda_factor") == 10 else None)
    accuracies = {
        (r["weight"], r["value"]): r["accuracy"] for r in records(make(recipe, TWO, tmp_path / "results"))
    }
    assert accuracies["lambda_factor", "10.0"] == "82.0"
    assert accuracies["lambda_factor", "1.0"] == ""
    assert accuracies["lambda_masked", "10.0"] == ""


def test_epochs_until_a_curve_has_converged_and_until_it_is_stable(fill, tmp_path):
    recipe = read_recipe("figure3")
    request = Request(data=["mutag"], seeds=1, methods=["graphsc"])
    # 60 until epoch 6; 80 at 7; 60 again at 8; 80 from 9 on.
    store = fill(
        expand(recipe, request),
        lambda _: 80,
        curve=lambda cell: {e: 80 if e == 7 or e >= 9 else 60 for e in cell.trial.curve},
    )
    curve = convergence_curve(gather(recipe, request, store), "MUTAG", "graphsc")
    assert (curve.converged_at, curve.stable_from) == (7, 9)
    assert curve.final == pytest.approx(80)
    assert curve.gain == pytest.approx(20)
    np.testing.assert_array_equal(curve.epochs, recipe.parts[0].curve)


def test_a_flat_curve_has_converged_at_epoch_0(fill):
    recipe, request = read_recipe("figure3"), Request(data=["mutag"], seeds=1, methods=["graphsc"])
    store = fill(
        expand(recipe, request), lambda _: 80, curve=lambda cell: dict.fromkeys(cell.trial.curve, 80)
    )
    curve = convergence_curve(gather(recipe, request, store), "MUTAG", "graphsc")
    assert (curve.converged_at, curve.stable_from, curve.gain) == (0, 0, 0)
