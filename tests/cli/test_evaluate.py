"""evaluate, compare and results, through the command line."""

import csv
import json

import numpy as np
import pytest

from graphsc.data.readers import open_collection
from graphsc.experiments.result import ResultStore, load_result


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    from graphsc.cli import main

    folder = tmp_path_factory.mktemp("runs") / "r"
    assert main.run(["train", "motifs:48", "--epochs", "1", "--out", str(folder)]) == 0
    return folder


def test_evaluate_prints_accuracy_deviation_and_the_rule(run, trained):
    code, out, _ = run("evaluate", trained, "--folds", 4)
    assert code == 0
    facts = dict(line.split("\t") for line in out.splitlines())
    assert facts["accuracy"].endswith(" %")
    assert float(facts["deviation over folds"]) > 0
    assert "The last epoch is evaluated" in facts["protocol"]


def test_evaluate_json_holds_what_the_number_follows_from(run, trained):
    _, out, _ = run("evaluate", trained, "--folds", 4, "--json", "--full", "--fold-seeds", 2)
    found = json.loads(out)
    assert len(found["predictions"]) == len(found["folds"]) == 48
    assert found["accuracy"] == pytest.approx(sum(found["fold_accuracies"]) / 4)
    assert len(found["resplit_accuracies"]) == 2


def test_evaluate_keeps_the_result_in_the_run_s_folder(run, trained):
    _, out, _ = run("evaluate", trained, "--folds", 4, "--json", "--full")
    kept = load_result(trained / "result.json")
    assert kept.predictions.tolist() == json.loads(out)["predictions"]
    assert kept.fold.tolist() == json.loads(out)["folds"]


def test_json_has_an_array_per_line_and_the_long_ones_only_on_request(run, trained):
    """It had a line per graph."""
    _, out, _ = run("evaluate", trained, "--folds", 4, "--json")
    found = json.loads(out)
    assert "predictions" not in found
    assert len(out.splitlines()) == len(found) + 2  # a line per key, and the braces
    (line,) = [line for line in out.splitlines() if '"fold_accuracies"' in line]
    assert json.loads("{" + line.rstrip(",") + "}") == {"fold_accuracies": found["fold_accuracies"]}


def test_leaky_selection_is_called_leaky(run, trained):
    _, out, _ = run("evaluate", trained, "--folds", 4, "--selection", "legacy-leaky")
    assert "LEAKY" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--folds", 400), "folds asked"),
        (("--folds", 1), "use 2 or more"),
        (("--selection", "best"), "selection"),
    ],
)
def test_evaluate_says_what_is_wrong_in_one_line(run, trained, arguments, said):
    code, _, err = run("evaluate", trained, *arguments)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_evaluate_of_no_run_says_so(run, tmp_path):
    code, _, err = run("evaluate", tmp_path)
    assert code == 2
    assert "holds no run" in err


def test_compare_prints_a_row_a_method_and_ranks_over_data_sets(run, tmp_path):
    places = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    asked = ("motifs:40", "motifs:44", "--methods", "raw,untrained", "--seeds", 1, "--folds", 3, "--jobs", 1)
    code, out, err = run("compare", *asked, "--out", tmp_path / "ranks.png", *places)
    assert code == 0
    assert "4 trials: 0 stored, 4 to run" in err
    assert out.count("\traw\t") == 2
    assert "p against untrained" in out
    assert (tmp_path / "ranks.png").stat().st_size > 1000
    code, again, err = run("compare", *asked, *places)
    assert "4 stored, 0 to run" in err
    assert again == out
    assert "Over folds: the standard deviation over the folds of a seed (ddof = 0)" in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "needs graphs"),
        (("motifs:40", "--methods", "grahpsc"), "did you mean 'graphsc'"),
        (("motifs:40", "--methods", ","), "at least one method"),
        (("motifs:40", "--set", "marign=1"), "marign"),
        (("motifs:40", "--methods", "raw", "--seeds", "0"), "one seed"),
        (("motifs:40", "--methods", "raw", "--out", "x.pdf"), ".md, .csv"),
    ],
)
def test_compare_says_what_is_wrong_before_anything_runs(run, tmp_path, arguments, said, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = run("compare", *arguments)
    assert code == 2
    assert said in err
    assert err.count("\n") == 1


def test_a_source_without_labels_is_bad_input_and_no_divergence(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for verb in (
        ("compare", "molecule-like:20", "--methods", "raw", "--seeds", 1, "--folds", 3, "--jobs", 1),
        ("sweep", "molecule-like:20", "--space", "paper", "--trials", 1),
    ):
        code, _, err = run(*verb)
        assert code == 2
        assert "has no labels" in err


def test_a_comparison_is_written_as_latex_and_as_a_full_table(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("motifs:40", "motifs:44", "--methods", "raw,untrained", "--seeds", 2, "--folds", 3, "--jobs", 1)
    code, out, err = run("compare", *asked, "--out", "table.tex")
    assert code == 0, err
    assert out.splitlines()[-1] == "As one page: graphsc report results --out report.html"
    latex = (tmp_path / "table.tex").read_text()
    assert latex.count("\\\\") == 3  # header and two methods
    assert r"\begin{tabular}{lrrr}" in latex
    assert run("compare", *asked, "--out", "table.csv")[0] == 0
    with open(tmp_path / "table.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["data"], row["method"]) for row in rows] == [
        (data, method) for data in ("motifs:40", "motifs:44") for method in ("raw", "untrained")
    ]
    stored = [result for result in ResultStore("results").all() if result.method == "raw"]
    for row in rows:
        folds = np.array([[float(row[f"seed {seed} fold {fold}"]) for fold in range(3)] for seed in (0, 1)])
        assert float(row["mean"]) == pytest.approx(folds.mean(), rel=1e-12)
        assert float(row["over seeds"]) == pytest.approx(folds.mean(axis=1).std(ddof=1), rel=1e-9)
        if row["method"] == "raw":
            (expected,) = [r for r in stored if (r.data, r.seed) == (row["data"], 1)]
            np.testing.assert_allclose(folds[1], 100 * expected.accuracies, rtol=1e-12)
    for data in ("motifs:40", "motifs:44"):
        of_data = [row for row in rows if row["data"] == data]
        assert sum(float(row["rank"]) for row in of_data) == 3
        best = max(of_data, key=lambda row: float(row["mean"]))
        assert float(best["rank"]) == min(float(row["rank"]) for row in of_data)
    average = {row["method"]: float(row["average rank"]) for row in rows}
    raw = [float(row["rank"]) for row in rows if row["method"] == "raw"]
    assert average["raw"] == pytest.approx(sum(raw) / 2)
    code, out, _ = run("compare", *asked, "--json", "--full")
    cells = json.loads(out)["cells"]
    assert np.shape(cells[0]["accuracies"]) == (2, 3)


PLAN = "tables: {t: {title: T, trials: [{data: ['motifs:40'], methods: [raw, untrained], folds: 3}]}}\n"


def test_results_run_what_is_missing_and_write_the_page(run, tmp_path):
    plan, page = tmp_path / "plan.yaml", tmp_path / "page.md"
    plan.write_text(PLAN)
    page.write_text("# Results\n<!-- table: t -->\n<!-- end -->\n")
    where = ("--results", tmp_path / "results")
    _, out, _ = run("results", "run", plan, "--dry-run", *where)
    assert out.count("\n") == 3  # a header and two trials
    code, _, err = run("results", "run", plan, "--runs", tmp_path / "runs", "--jobs", 1, *where)
    assert code == 0
    assert "[2/2] untrained" in err
    code, out, _ = run("results", "write", plan, page, *where)
    assert code == 0
    assert "| untrained |" in page.read_text()
    _, out, _ = run("results", "write", plan, page, *where)
    assert "nothing has changed" in out
    _, out, _ = run("results", "table", plan, "--tables", "t", *where)
    assert "| raw |" in out


def test_a_table_that_is_not_in_the_plan_is_named(run, tmp_path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(PLAN)
    code, _, err = run("results", "table", plan, "--tables", "x")
    assert code == 2
    assert "no table 'x'" in err


def test_two_files_of_one_name_are_two_data_sets(run, tmp_path):
    """Row 20: results belong to graphs, not to names."""
    places = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    for folder, graphs in (("a", "motifs:24"), ("b", "motifs:36")):
        open_collection(graphs).save(tmp_path / folder / "same.safetensors")
    sources = [tmp_path / folder / "same.safetensors" for folder in ("a", "b")]
    asked = ("--methods", "raw", "--seeds", 1, "--folds", 3, "--jobs", 1, "--json", *places)
    alone = [json.loads(run("compare", source, *asked)[1])["cells"][0]["summary"] for source in sources]
    code, out, err = run("compare", *sources, *asked)
    assert code == 0
    assert "2 trials: 2 stored, 0 to run" in err
    cells = json.loads(out)["cells"]
    assert [cell["summary"] for cell in cells] == alone
    assert len({cell["data"] for cell in cells}) == 2
    # The first one's graphs take the second one's place.
    sources[1].write_bytes(sources[0].read_bytes())
    code, out, err = run("compare", sources[1], *asked)
    assert "1 trials: 1 stored, 0 to run" in err  # the graphs are known under the other path
    assert json.loads(out)["cells"][0]["summary"] == alone[0]


def test_a_file_that_is_replaced_in_place_is_evaluated_anew(run, tmp_path):
    places = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    path = tmp_path / "mine.safetensors"
    for graphs in ("motifs:24", "motifs:36"):
        open_collection(graphs).save(path)
        code, _, err = run(
            "compare", path, "--methods", "raw", "--seeds", 1, "--folds", 3, "--jobs", 1, *places
        )
        assert code == 0
        assert "1 trials: 0 stored, 1 to run" in err


def test_a_file_called_like_a_known_data_set_is_not_that_data_set(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    open_collection("motifs:24").save(tmp_path / "MUTAG.safetensors")
    asked = ("--methods", "raw,graphsc", "--epochs", 1, "--seeds", 1, "--folds", 3, "--jobs", 1, "--json")
    code, out, err = run("compare", "MUTAG.safetensors", *asked)
    assert code == 0, err
    assert [len(result.labels) for result in ResultStore(tmp_path / "results").all()] == [24, 24]
    assert [cell["published"] for cell in json.loads(out)["cells"]] == [None, None]
    (tmp_path / "MUTAG").write_text("no graphs")
    code, _, err = run("compare", "MUTAG", *asked)
    assert (code, "no reader accepts this file or folder (MUTAG)" in err) == (2, True)


def test_compare_sets_the_loop_and_says_which_methods_ignore_it(run, tmp_path):
    asked = ("--methods", "raw,wl,graphcl", "--seeds", 1, "--folds", 3, "--jobs", 1)
    places = ("--results", tmp_path / "results", "--runs", tmp_path / "runs")
    settings = ("--set", "training.learning_rate=0.02", "--set", "training.epochs=1")
    code, _, err = run("compare", "motifs:24", *asked, *places, *settings)
    assert code == 0, err
    for method in ("raw", "wl"):
        assert f"note: {method} does not train; training.learning_rate, training.epochs ignored" in err
    trials = {result.method: result.trial for result in ResultStore(tmp_path / "results").all()}
    assert trials["graphcl"]["training"]["learning_rate"] == 0.02
    assert trials["raw"]["training"] == {"seed": 0}
    code, _, err = run("compare", "motifs:24", *asked, *places, "--set", "training.learnig_rate=1")
    assert (code, "did you mean 'training.learning_rate'" in err) == (2, True), err


def test_evaluate_of_a_folder_of_runs_says_how_to_list_them(run, tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "config.yaml").touch()
    code, _, err = run("evaluate", tmp_path)
    assert code == 2
    assert f"graphsc runs {tmp_path}" in err
