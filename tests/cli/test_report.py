"""`graphsc report`: runs as one HTML page."""

from dataclasses import replace
from html.parser import HTMLParser

import pytest

from graphsc.cli import main
from graphsc.core.run_folder import RunFolder
from graphsc.data.readers import open_collection
from graphsc.evaluation.metrics import class_scores, confusion_matrix
from graphsc.experiments.run_evaluation import evaluate_run

HOSTILE = "<script>alert(1)</script>"


class Page(HTMLParser):
    """Texts in their order, headings, images by their titles, and elements by id."""

    def __init__(self, path):
        super().__init__()
        self.texts, self.headings, self.images, self.ids, self.tags = [], [], [], [], set()
        self.in_heading = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.add(tag)
        self.images += [attributes["alt"]] if tag == "img" else []
        self.ids += [attributes["id"]] if "id" in attributes else []
        self.in_heading = tag in ("h1", "h2")

    def handle_data(self, data):
        if data.strip():
            self.texts.append(data.strip())
            if self.in_heading:
                self.headings.append(data.strip())
        self.in_heading = False

    def cells_after(self, text, number):
        at = self.texts.index(text)
        return self.texts[at + 1 : at + 1 + number]


def train(folder, source="motifs:24", *more):
    assert main.run(["train", source, "--out", str(folder), *more]) == 0
    return folder


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two seeds of GraphSC and one of the untrained encoder, on the same graphs."""
    folder = tmp_path_factory.mktemp("runs")
    return [
        train(folder / "first", "motifs:24", "--epochs", "2"),
        train(folder / "second", "motifs:24", "--epochs", "2", "--seed", "1"),
        train(folder / "untrained", "motifs:24", "--method", "untrained"),
    ]


@pytest.fixture(scope="module")
def single_page(runs, tmp_path_factory):
    out = tmp_path_factory.mktemp("page") / "r.html"
    assert main.run(["report", str(runs[0]), "--out", str(out), "--jobs", "1"]) == 0
    return Page(out)


def test_the_report_of_one_run_has_all_sections(single_page):
    assert single_page.images == [
        "Confusion matrix", "Maps of the graphs", "Loss", "Health of the representation",
    ]  # fmt: skip
    for heading in (
        "Overview",
        "Results",
        "Evaluation protocol",
        "Scores by class",
        "Environment",
        "Settings",
    ):
        assert heading in single_page.headings
    assert "Evaluated for this report." in single_page.texts
    assert any("The last epoch is evaluated" in text for text in single_page.texts)


def test_the_settings_on_the_page_are_those_of_the_run(single_page, runs):
    from graphsc.core.config import dump_yaml

    assert dump_yaml(RunFolder(runs[0]).load_config()).strip() in single_page.texts


def test_scores_by_class_are_computed_from_the_predictions(single_page, runs):
    evaluated = evaluate_run(runs[0])
    scores = class_scores(confusion_matrix(evaluated.evaluation.labels, evaluated.evaluation.predictions, 2))
    for code, name in enumerate(evaluated.result.classes):
        expected = [f"{100 * score[code]:.1f}" for score in (scores.precision, scores.recall, scores.f1)]
        assert single_page.cells_after(name, 4) == [*expected, "12"]


def test_runs_on_the_same_graphs_share_a_table(run, runs, tmp_path):
    code, out, _ = run("report", *runs, "--no-maps", "--jobs", 1, "--out", tmp_path / "r.html")
    assert code == 0
    assert "Accuracy on motifs: graphsc " in out
    page = Page(tmp_path / "r.html")
    assert page.headings[0] == "graphsc, untrained on motifs"
    assert page.images.count("Accuracy by method") == 1
    assert page.images.count("Confusion matrix") == 2
    assert "Maps of the graphs" not in page.images
    assert "0, 1" in page.texts  # the seeds of one row
    assert len(page.ids) == len(set(page.ids))


def test_runs_of_one_method_are_named_by_the_settings_that_differ(run, runs, tmp_path):
    other = train(tmp_path / "other", "motifs:24", "--epochs", "2", "--set", "margin=0.3")
    code, _, _ = run("report", runs[0], other, "--no-maps", "--no-evaluate", "--out", tmp_path / "r.html")
    assert code == 0
    headings = Page(tmp_path / "r.html").headings
    assert any("margin=0.3" in heading for heading in headings)
    assert any("none of them evaluated" in text for text in Page(tmp_path / "r.html").texts)


def test_runs_on_different_graphs_get_a_section_each(run, runs, tmp_path):
    other = train(tmp_path / "other", "motifs:20", "--method", "untrained")
    arguments = ("--no-maps", "--no-evaluate", "--out", tmp_path / "r.html")
    code, out, _ = run("report", runs[0], other, *arguments)
    assert code == 0
    assert "2 runs on 2 collections of graphs" in out
    assert Page(tmp_path / "r.html").headings[1:] == ["graphsc on motifs", "untrained on motifs"]


def test_without_labels_the_report_says_what_is_missing(run, tmp_path):
    plain = replace(open_collection("motifs:12"), labels=None, tasks=(), classes={})
    plain.save(tmp_path / "plain.safetensors")
    folder = train(tmp_path / "r", str(tmp_path / "plain.safetensors"), "--epochs", "1")
    code, _, _ = run("report", folder, "--out", tmp_path / "r.html")
    assert code == 0
    page = Page(tmp_path / "r.html")
    assert any("Not evaluated: motifs has no labels" in text for text in page.texts)
    assert page.images == ["Maps of the graphs", "Loss", "Health of the representation"]
    assert "Scores by class" not in page.headings


def test_too_few_graphs_for_the_folds_leave_out_only_the_accuracy(run, tmp_path):
    folder = train(tmp_path / "r", "motifs:10", "--method", "untrained")
    code, _, _ = run("report", folder, "--no-maps", "--out", tmp_path / "r.html")
    assert code == 0
    assert any(text.startswith("Not evaluated: ") for text in Page(tmp_path / "r.html").texts)


def test_a_stored_result_is_not_computed_again(run, tmp_path):
    run("compare", "motifs:24", "--methods", "untrained", "--seeds", 1, "--folds", 4, "--jobs", 1,
        "--results", tmp_path / "results", "--runs", tmp_path / "runs")  # fmt: skip
    (stored,) = (tmp_path / "runs").rglob("result.json")
    code, _, err = run("report", stored.parent, "--out", tmp_path / "r.html")
    assert code == 0
    assert "evaluating" not in err
    assert any("4 stratified folds" in text for text in Page(tmp_path / "r.html").texts)


def test_hostile_names_do_not_become_elements(run, tmp_path):
    plain = open_collection("motifs:24")
    hostile = replace(plain, tasks=(HOSTILE,), classes={HOSTILE: (HOSTILE, f"{HOSTILE}2")}, name=HOSTILE)
    hostile.save(tmp_path / "h.safetensors")
    folder = train(tmp_path / "r", str(tmp_path / "h.safetensors"), "--method", "untrained")
    code, _, _ = run("report", folder, "--out", tmp_path / "r.html")
    assert code == 0
    page = Page(tmp_path / "r.html")
    assert "script" not in page.tags
    assert f"untrained on {HOSTILE}" in page.headings


def test_no_run_is_an_error(run, tmp_path):
    code, _, err = run("report", "--out", tmp_path / "r.html")
    assert code == 2
    assert "no run to report on" in err
