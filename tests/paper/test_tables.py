"""Tables from stored results, with empty cells for the rest."""

import csv
import io
import json

import pytest

from graphsc.core.errors import DamagedFileError
from graphsc.paper.make import make
from graphsc.paper.recipe import SEARCH, Request, expand, read_recipe
from graphsc.paper.tables import measure

MUTAG = Request(data=["mutag"], seeds=2, methods=["untrained", "graphcl", "graphsc"], search=False)
ACCURACY = {"untrained": 80, "graphcl": 85, "graphsc": 83}


def cells_by_row(sheet):
    return {name: cells for name, *cells in sheet.table.rows}


def test_a_table_without_results_has_every_row_and_the_published_numbers(tmp_path):
    (sheet,) = make(read_recipe("table3"), Request(search=False), tmp_path).sheets
    assert len(sheet.table.rows) == 17
    assert sheet.table.columns[1:3] == ("NCI1", "PROTEINS")
    ours = cells_by_row(sheet)["graphsc"]
    assert [entry.text for entry in ours] == [""] * 9
    assert ours[0].published == "81.12 ± 0.40"
    assert ours[-1].published == "1.5"
    assert "510 of 510 trials have not run yet." in sheet.table.notes


def test_missing_results_leave_empty_cells(fill, tmp_path):
    recipe = read_recipe("table3")
    planned = expand(recipe, MUTAG)
    fill(
        planned,
        lambda cell: (
            None if cell.trial.method == "graphcl" else ACCURACY[cell.trial.method] + cell.trial.seed
        ),
    )
    (sheet,) = make(recipe, MUTAG, tmp_path / "results").sheets
    rows = cells_by_row(sheet)
    assert rows["graphsc"][0].text.startswith("83.50 ± 0.71")  # 83 and 84
    assert rows["graphsc"][0].best
    assert rows["graphcl"][0].text == ""
    assert "2 of 6 trials have not run yet." in sheet.table.notes
    assert "Not run: MUTAG (graphcl)." in sheet.table.notes


def test_ranks_and_records_follow_from_the_results(fill, tmp_path):
    recipe = read_recipe("table3")
    fill(expand(recipe, MUTAG), lambda cell: ACCURACY[cell.trial.method])
    output = make(recipe, MUTAG, tmp_path / "results")
    rows = cells_by_row(output.sheets[0])
    assert [rows[name][-1].text for name in ("graphcl", "graphsc", "untrained")] == ["1.00", "2.00", "3.00"]
    records = list(csv.DictReader(io.StringIO(output.csv())))
    ours = next(record for record in records if record["method"] == "graphsc")
    assert (ours["mean"], ours["against untrained"], ours["published"]) == ("83.0", "3.0", "89.19")


def test_ablations_are_tested_against_the_full_model(fill, tmp_path):
    recipe = read_recipe("table5")
    request = Request(data=["mutag"], seeds=2)
    fill(expand(recipe, request), lambda cell: 90 if cell.trial.method == "graphsc" else 80 + cell.trial.seed)
    (sheet,) = make(recipe, request, tmp_path / "results").sheets
    rows = cells_by_row(sheet)
    assert rows["graphsc-rd"][0].text.endswith("†")
    assert rows["graphsc"][-1].text == "90.00"
    assert any("*graphsc*" in note for note in sheet.table.notes)


def test_the_nested_search_is_a_second_table(fill, tmp_path):
    recipe = read_recipe("table3")
    request = Request(data=["mutag"], seeds=1, methods=["untrained", "graphsc"], search=True)
    planned = expand(recipe, request)
    # Deeper encoders of GraphSC are better, on inner folds too.
    deep = {c.trial.key(): "weak_rate" in c.point and c.point["encoder.depth"] == 5 for c in planned}
    fill(
        planned, lambda cell: 88 if deep[cell.trial.key()] else 80,
        inner=lambda cell: None if cell.part != SEARCH else 0.9 if deep[cell.trial.key()] else 0.8,
    )  # fmt: skip
    fixed, chosen, leaky = make(recipe, request, tmp_path / "results").sheets
    assert cells_by_row(fixed)["graphsc"][0].text == "80.00"
    assert cells_by_row(chosen)["graphsc"][0].text.startswith("88.00")
    assert cells_by_row(chosen)["untrained"][0].text == "80.00"
    assert any("from 30 candidates" in note for note in chosen.table.notes)
    assert not any("from 8 candidates" in note for note in chosen.table.notes)  # as many for both
    assert cells_by_row(leaky)["graphsc"][0].text == "88.00 LEAKY"
    assert cells_by_row(leaky)["untrained"][0].text == "80.00 LEAKY"
    assert "LEAKY" in leaky.table.notes[0]


def test_statistics_are_measured_once_and_shown_above_the_printed_ones(tmp_path, monkeypatch):
    monkeypatch.setenv("GRAPHSC_DATA", str(tmp_path))  # a machine without the larger data set
    measure(["mutag", "reddit-multi-5k"], tmp_path)
    stored = tmp_path / "statistics" / "sets" / "MUTAG.json"
    before = stored.read_text()
    measure(["mutag"], tmp_path)
    assert stored.read_text() == before
    (sheet,) = make(read_recipe("table1"), Request(data=["mutag", "reddit-multi-5k"]), tmp_path).sheets
    (_, *mutag), (_, *missing) = sheet.table.rows
    # 188 graphs, 3,371 nodes and 3,721 bonds give the averages that every paper prints.
    assert [entry.text for entry in mutag[1:]] == ["188", "17.93", "19.79"]
    assert [entry.published for entry in mutag[1:]] == ["188", "17.93", "19.79"]
    assert [entry.text for entry in missing[1:]] == ["", "", ""]
    assert missing[1].published == "4,999"


def test_table_2_counts_both_directions_of_an_edge(tmp_path):
    measure(["mutag"], tmp_path)
    (sheet,) = make(read_recipe("table2"), Request(data=["mutag"]), tmp_path).sheets
    assert sheet.table.rows[0][-1].text == f"{2 * 3721 / 188:.2f}"


def test_damaged_statistics_are_refused(tmp_path):
    measure(["mutag"], tmp_path)
    path = tmp_path / "statistics" / "sets" / "MUTAG.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "graphs": "many"}))
    with pytest.raises(DamagedFileError, match="damaged"):
        make(read_recipe("table1"), Request(data=["mutag"]), tmp_path)
