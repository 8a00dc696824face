"""Figures are made of what is stored: their numbers, and their files."""

import csv
import io
import re

import numpy as np
import pytest

from graphsc.paper.figures import curve_of
from graphsc.paper.gather import gather
from graphsc.paper.make import make
from graphsc.paper.recipe import Request, expand, read_recipe

TWO = Request(data=["mutag"], seeds=2)


def records(made):
    return list(csv.DictReader(io.StringIO(made.csv())))


@pytest.mark.parametrize("name", ["figure1", "figure3", "figure4", "figure5"])
def test_a_figure_of_nothing_is_drawn_and_says_so(name, tmp_path):
    made = make(read_recipe(name), Request("quick"), tmp_path)
    paths = made.write(tmp_path / "out", name)
    assert [path.suffix for path in paths] == [".md", ".csv", ".tex", ".png", ".svg"]
    assert "have not run yet" in paths[0].read_text()


@pytest.mark.parametrize("name", ["figure1", "figure3", "figure4", "figure5"])
def test_files_are_drawn_and_the_same_each_time_without_a_date(name, fill, tmp_path):
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


def test_accuracy_stands_at_its_number_of_negatives(fill, tmp_path):
    recipe = read_recipe("figure1")
    cells = expand(recipe, TWO)
    fill(cells, lambda cell: 70 + cell.trial.seed if cell.point.get("training.batch_size") == 32 else None)
    found = {
        (r["part"], r["method"], r["negatives"]): r for r in records(make(recipe, TWO, tmp_path / "results"))
    }
    assert found["batch", "graphcl", "31"]["accuracy"] == "70.5"
    assert found["batch", "graphcl", "31"]["deviation"] == "0.5"
    assert found["batch", "graphcl", "63"]["accuracy"] == ""
    assert ("sampled", "graphcl", "127") in found


def test_differences_to_graphcl_stand_at_their_rates(fill, tmp_path):
    recipe = read_recipe("figure4")

    def accuracy(cell):
        if cell.part == "reference":
            return 75
        return 78 if (cell.point["weak_rate"], cell.point["strong_rate"]) == (0.1, 0.25) else None

    fill(expand(recipe, TWO), accuracy)
    made = make(recipe, TWO, tmp_path / "results")
    found = {(r["weak_rate"], r["strong_rate"]): r["difference"] for r in records(made)}
    assert len(found) == 21
    assert found["0.1", "0.25"] == "3.0"
    assert found["0.2", "0.4"] == ""
    assert {row[0]: row for row in made.sheets[0].table.rows}["graphsc, MUTAG, weak rate 0.1"][
        3
    ].text == "+3.00"


def test_accuracy_stands_at_its_weight(fill, tmp_path):
    recipe = read_recipe("figure5")
    fill(expand(recipe, TWO), lambda cell: 82 if cell.point.get("lambda_factor") == 10 else None)
    found = {
        (r["weight"], r["value"]): r["accuracy"] for r in records(make(recipe, TWO, tmp_path / "results"))
    }
    assert found["lambda_factor", "10.0"] == "82.0"
    assert found["lambda_factor", "1.0"] == ""
    assert found["lambda_masked", "10.0"] == ""


def test_epochs_to_come_near_and_to_stay_near_the_end(fill, tmp_path):
    recipe = read_recipe("figure3")
    request = Request(data=["mutag"], seeds=1, methods=["graphsc"])
    cells = expand(recipe, request)
    # 60 until epoch 6; 80 at 7; 60 again at 8; 80 from 9 on.
    store = fill(
        cells, lambda _: 80, curve=lambda cell: {e: 80 if e == 7 or e >= 9 else 60 for e in cell.trial.curve}
    )  # fmt: skip
    curve = curve_of(gather(cells, store), "MUTAG", "graphsc")
    assert (curve.near, curve.stays) == (7, 9)
    assert curve.end == pytest.approx(80)
    assert curve.gain == pytest.approx(20)
    np.testing.assert_array_equal(curve.epochs, recipe.parts[0].curve)


def test_a_flat_curve_is_near_its_end_from_the_beginning(fill):
    cells = expand(read_recipe("figure3"), Request(data=["mutag"], seeds=1, methods=["graphsc"]))
    store = fill(cells, lambda _: 80, curve=lambda cell: dict.fromkeys(cell.trial.curve, 80))
    curve = curve_of(gather(cells, store), "MUTAG", "graphsc")
    assert (curve.near, curve.stays, curve.gain) == (0, 0, 0)
