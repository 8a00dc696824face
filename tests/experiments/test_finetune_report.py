"""Reports on fine-tuning runs."""

import re
import shutil

import numpy as np
import pytest

pytest.importorskip("rdkit")

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.experiments.finetune_report import (
    _Names,
    is_transfer_run,
    molecule_galleries,
    transfer_report,
    transfer_reports,
)
from graphsc.finetuning import baselines
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.delivered import read_held_out
from graphsc.finetuning.finetune import FineTuneSettings, finetune

RINGS = ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1")
SMILES = ["C" * n + ring for ring in RINGS for n in range(6)]


def tune(table, out, **changes):
    settings = {"settings": FineTuneSettings(epochs=2), "seeds": [0, 1], "baselines": True, **changes}
    return finetune(
        read_dataset(table), out=out, encoder_settings={"width": 8, "depth": 1}, split="random", device="cpu",
        **settings,
    )  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def few_trees():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baselines, "TREES", 5)
        yield


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("table") / "made.csv"
    lines = [f"L-{number},{text},{len(text) / 3:.2f}" for number, text in enumerate(SMILES)]
    lines[0] = "L-0,c1ccccc1,"  # without a label
    lines += ["L-98,not a molecule,1.0", "L-99,CCO,n.d."]
    path.write_text("\n".join(["id,smiles,logp", *lines]) + "\n")
    return path


@pytest.fixture(scope="module")
def run_once(table, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tuned") / "run"
    tune(table, folder)
    return folder


@pytest.fixture
def run(run_once, tmp_path):
    """A finished run of two seeds, to be changed at will."""
    return shutil.copytree(run_once, tmp_path / "run")


def test_a_regression_shows_predicted_against_measured(run):
    assert is_transfer_run(run)
    page = transfer_report(run)
    assert page.lead.startswith("RMSE ")
    assert [figure.title for figure in page.figures] == [
        "Scores during training", "logp: predicted and measured",
    ]  # fmt: skip
    tables = {table.title: table for table in page.tables}
    assert [row[:2] for row in tables["Split"].rows][:3] == [["train", "19"], ["valid", "2"], ["test", "3"]]
    wrong = page.galleries[-1]
    assert wrong.title == "Largest errors"
    errors = [abs(float(card.facts["predicted"]) - float(card.facts["label"])) for card in wrong.cards]
    assert errors == pytest.approx(sorted(errors, reverse=True), abs=0.02)  # three digits are shown
    assert len(errors) == 3  # of test, not of validation
    assert all(card.facts["id"].startswith("L-") for card in wrong.cards)
    assert all(card.svg.startswith("<svg ") for gallery in page.galleries for card in gallery.cards)


def test_the_score_at_the_top_is_that_of_the_delivered_predictions(run):
    """Worked out from the table of predictions, which averages the seeds."""
    held_out = read_held_out(run, ["logp"], "regression")
    test = held_out.of("test") & ~np.isnan(held_out.labels[:, 0])
    errors = (held_out.predicted - held_out.labels)[test, 0]
    page = transfer_report(run)
    shown = float(re.match(r"RMSE ([0-9.]+) ", page.verdict.sentences[0])[1])
    assert shown == pytest.approx(np.sqrt(np.square(errors).mean()), abs=6e-4)
    assert [row[0] for row in page.verdict.table.rows] == [
        "this model", "a forest on fingerprints", "a linear model on fingerprints",
        "boosting on fingerprints",
        "a forest on descriptors", "a linear model on descriptors", "boosting on descriptors", "a constant",
    ]  # fmt: skip


def test_rows_are_counted_and_reasons_given(run):
    page = transfer_report(run)
    assert (page.about["rows read"], page.about["molecules used"]) == ("26", "24")
    assert page.about["rows rejected"] == "2, listed in rejected.csv"
    rejected = next(table for table in page.tables if table.title == "Rejected rows")
    assert sorted(rejected.rows) == [
        ["label 'n.d.' of 'logp' is not a number", "1"],
        ["not a SMILES string", "1"],
    ]


def test_censored_labels_are_said(tmp_path):
    lines = [f"{text},{'>' if n == 3 else ''}{len(text)}.5" for n, text in enumerate(SMILES)]
    (tmp_path / "c.csv").write_text("\n".join(["smiles,logp", *lines]) + "\n")
    tune(tmp_path / "c.csv", tmp_path / "run", seeds=[0], baselines=False)
    (note,) = transfer_report(tmp_path / "run").notes
    assert note.startswith("1 labels of 'logp' are censored, such as '>")


def test_new_molecules_of_another_table_are_predicted_and_drawn(run, tmp_path):
    (tmp_path / "new.csv").write_text("id,smiles\nN-1,CCCCc1ccncc1\nN-2,no\nN-3,CCCl\n")
    gallery = transfer_reports([run], new=str(tmp_path / "new.csv")).galleries[0]
    assert gallery.title == "Worth a test: new molecules"
    assert {card.facts["id"] for card in gallery.cards} == {"N-1", "N-3"}
    assert "label" not in gallery.cards[0].facts
    assert "1 rows have no molecule" in gallery.caption


def test_new_molecules_that_have_a_label_are_not_worth_a_test(run, tmp_path):
    """A table of all molecules, of which some are measured, listed the measured ones too."""
    lines = ("id,smiles,logp", "N-1,CCCCc1ccncc1,2.5", "N-2,CCCl,", "N-3,no,", "N-4,CCCCl,n/a", "N-5,CCBr,>3")
    (tmp_path / "all.csv").write_text("\n".join(lines) + "\n")
    gallery = transfer_reports([run], new=str(tmp_path / "all.csv")).galleries[0]
    assert {card.facts["id"] for card in gallery.cards} == {"N-2", "N-4"}
    assert "2 have a label already and are left out" in gallery.caption


def test_classes_have_recall_in_words_and_a_confusion_matrix_with_their_names(tmp_path):
    lines = [f"{text},{'yes' if 'n' in text.lower() else 'no'}" for text in SMILES]
    (tmp_path / "a.csv").write_text("\n".join(["smiles,active", *lines]) + "\n")
    tune(tmp_path / "a.csv", tmp_path / "run")
    page = transfer_report(tmp_path / "run")
    assert any(
        re.search(r"it finds \d of \d molecules of class 'yes'", line) for line in page.verdict.sentences
    )
    assert {card.facts["label"] for card in page.galleries[-1].cards} <= {"yes", "no"}
    matrix = next(figure.svg for figure in page.figures if figure.title == "Confusion matrix")
    assert ">yes<" in matrix


def test_three_classes_have_an_accuracy_and_a_matrix(tmp_path):
    smiles = ["C" * n + ring for ring in RINGS for n in range(15)]
    lines = [f"{text},{('low', 'medium', 'high')[n % 3]}" for n, text in enumerate(smiles)]
    (tmp_path / "l.csv").write_text("\n".join(["smiles,level", *lines]) + "\n")
    tune(tmp_path / "l.csv", tmp_path / "run")
    page = transfer_report(tmp_path / "run")
    assert "accuracy" in page.verdict.table.headers
    assert "level: confusion matrix" in [figure.title for figure in page.figures]


def test_several_label_fractions_are_a_learning_curve(table, tmp_path):
    for fraction in (0.2, 1.0):
        tune(table, tmp_path / "curve" / f"labels-{fraction:g}", label_fraction=fraction, seeds=[0])
    assert is_transfer_run(tmp_path / "curve")
    page = transfer_reports([tmp_path / "curve"])
    assert page.figures[0].title == "Learning curve"
    table = page.tables[0]
    assert list(table.headers) == ["Model", "0.2 (4 labels)", "1 (18 labels)"]
    assert table.rows[0][0] == "this model"
    assert ["run", "curve"] in [list(item) for item in page.about.items()]


def test_an_unfinished_run_is_reported_as_far_as_it_is(run):
    shutil.rmtree(run / "seed-1" / "checkpoints")
    (run / "seed-1" / "result.json").unlink()
    page = transfer_report(run)
    assert page.warnings == ["This run is not finished: 1 of 2 seeds are; seed-1 is at epoch 2 of 2."]
    (run / "seed-0" / "result.json").unlink()
    (run / "predictions.csv").unlink()
    page = transfer_report(run)
    assert page.verdict is None
    assert [figure.title for figure in page.figures] == ["Scores during training"]
    for seed in ("seed-0", "seed-1"):
        (run / seed / "metrics.csv").unlink()
    with pytest.raises(NotFoundError, match="has not finished an epoch"):
        transfer_report(run)


# Galleries.


@pytest.fixture
def galleries(tmp_path):
    def read(*lines):
        header = "row,smiles,part,a,a_probability,a_spread,b,b_probability,b_spread\n"
        (tmp_path / "predictions.csv").write_text(header + "\n".join(lines))
        held_out = read_held_out(tmp_path, ("a", "b"), "classification")
        return molecule_galleries(held_out, ("a", "b"), "classification")

    return read


def test_new_molecules_are_those_without_a_label_and_errors_those_of_test(galleries):
    """CC has no label for b, CCCC none for a; CCC has both, so its spread of 0.4 is not shown."""
    new, wrong = galleries(
        "0,CC,valid,1,0.1,0.1,,0.5,0.2", "1,CCC,test,1,0.9,0.3,0,0.2,0.4", "2,CCCC,test,,0.1,0,1,0.05,0.01",
    )  # fmt: skip
    assert new.title == "New molecules on which the seeds disagree most"
    assert [(card.name, *card.facts.values()) for card in new.cards] == [
        ("CC", "b", "0.50", "0.20"), ("CCCC", "a", "0.10", "0.00"),
    ]  # fmt: skip
    assert [(card.name, *card.facts.values()) for card in wrong.cards] == [
        ("CCCC", "b", "0.05", "1"), ("CCC", "b", "0.20", "0"),
    ]  # fmt: skip


def test_a_molecule_with_a_censored_label_is_not_new(galleries):
    """It has been tested; its label was dropped, and it was listed as one without a label."""
    new, wrong = galleries("0,CC,new,>8.4,0.1,0.1,1,0.5,0.2", "1,CCC,test,,0.9,0.3,0,0.2,0.4")
    assert [(card.name, card.facts["task"]) for card in new.cards] == [("CCC", "a")]
    assert [card.name for card in wrong.cards] == ["CCC"]


def test_one_seed_has_no_spread_and_no_label_has_no_error(galleries):
    assert [gallery.title for gallery in galleries("0,CC,test,1,0.1,0,,0.5,0")] == ["Largest errors"]
    assert galleries("0,CC,test,,0.1,0,,0.5,0") == []


def test_an_invalid_molecule_is_shown_without_a_picture(galleries):
    (card, *_) = galleries("0,<b>no</b>,test,1,0.1,0.1,,0.5,0")[0].cards
    assert (card.name, card.svg) == ("<b>no</b>", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [("0,CC,test,1,much,0.1,,0.5,0", "not a table of predictions"), ("0,CC", "row 1 has 2 cells, not 9")],
)
def test_a_damaged_table_of_predictions_is_refused(galleries, line, said):
    with pytest.raises(DamagedFileError, match=said):
        galleries(line)


@pytest.mark.parametrize(
    ("predicted", "spread", "texts"),
    [(6.0, 0.5, ("6.00", "0.50")), (6.72, 0.0454, ("6.72", "0.045")), (123.4, 0.3, ("123", "0.30"))],
)
def test_a_card_never_rounds_a_spread_to_nothing(predicted, spread, texts):
    names = _Names(["y"], "regression", ["CCO"], None)
    facts = names.card(0, 0, predicted, None, spread).facts
    assert (facts["predicted"], facts["spread"]) == texts
