"""Reports on fine-tuning runs."""

import numpy as np
import pytest

pytest.importorskip("rdkit")

from graphsc.core.errors import DamagedFileError, NotFoundError
from graphsc.experiments.finetune_report import is_transfer_run, molecule_galleries, transfer_report
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.finetune import FineTuneSettings, finetune
from graphsc.finetuning.result import TransferResult


@pytest.fixture
def run(tmp_path):
    smiles = ["C" * n + ring for ring in ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1") for n in range(6)]
    lines = [f"{text},{len(text) / 3:.2f}" for text in smiles]
    (tmp_path / "made.csv").write_text("\n".join(["smiles,logp", *lines]) + "\n")
    finetune(
        read_dataset(tmp_path / "made.csv"), out=tmp_path / "run", settings=FineTuneSettings(epochs=2),
        encoder_settings={"width": 8, "depth": 1}, seeds=[0, 1], split="random", device="cpu",
    )  # fmt: skip
    return tmp_path / "run"


def test_a_regression_shows_predicted_against_measured(run):
    assert is_transfer_run(run)
    page = transfer_report(run)
    assert page.lead.startswith("RMSE ")
    assert [figure.title for figure in page.figures] == [
        "Scores during training", "logp: predicted and measured",
    ]  # fmt: skip
    tables = {table.title: table for table in page.tables}
    assert [row[0] for row in tables["Scores by task"].rows] == ["logp"]
    assert [row[:2] for row in tables["Split"].rows] == [["train", "19"], ["valid", "2"], ["test", "3"]]
    uncertain, wrong = page.galleries
    assert uncertain.title == "Most uncertain molecules"
    spreads = [float(card.facts["predicted"].partition(" ± ")[2]) for card in uncertain.cards]
    assert spreads == sorted(spreads, reverse=True)
    assert len(spreads) == 5
    assert wrong.title == "Largest errors"
    errors = [abs(float(card.facts["predicted"]) - float(card.facts["label"])) for card in wrong.cards]
    assert errors == pytest.approx(sorted(errors, reverse=True), abs=0.02)  # three digits are shown
    assert len(errors) == 3  # of test, not of validation
    assert all(card.svg.startswith("<svg ") for gallery in page.galleries for card in gallery.cards)


def write(path, lines):
    path.write_text("row,smiles,part,a,a_probability,a_spread,b,b_probability,b_spread\n" + "\n".join(lines))


def two_tasks():
    return TransferResult({}, {}, ("a", "b"), "classification", np.array([0, 1, 2]), {}, "")


def test_molecules_are_shown_with_their_most_uncertain_or_wrong_task(tmp_path):
    """CCC is the most uncertain, by its task b; CCCC has the largest error, and a label for b only."""
    write(tmp_path / "p.csv", [
        "0,CC,valid,1,0.1,0.1,,0.5,0.2", "1,CCC,test,1,0.9,0.3,0,0.2,0.4", "2,CCCC,test,,0.1,0,1,0.05,0.01",
    ])  # fmt: skip
    uncertain, wrong = molecule_galleries(tmp_path / "p.csv", two_tasks())
    assert [(card.name, *card.facts.values()) for card in uncertain.cards] == [
        ("CCC", "b", "0.20 ± 0.40", "0"),
        ("CC", "b", "0.50 ± 0.20", "unknown"),
        ("CCCC", "b", "0.05 ± 0.01", "1"),
    ]
    assert [(card.name, *card.facts.values()) for card in wrong.cards] == [
        ("CCCC", "b", "0.05", "1"),
        ("CCC", "b", "0.20", "0"),
    ]


def test_one_seed_has_no_uncertainty_and_no_label_has_no_error(tmp_path):
    write(tmp_path / "p.csv", ["0,CC,test,1,0.1,0,,0.5,0"])
    assert [gallery.title for gallery in molecule_galleries(tmp_path / "p.csv", two_tasks())] == [
        "Largest errors"
    ]
    write(tmp_path / "p.csv", ["0,CC,test,,0.1,0,,0.5,0"])
    assert molecule_galleries(tmp_path / "p.csv", two_tasks()) == []
    assert molecule_galleries(tmp_path / "absent.csv", two_tasks()) == []


def test_an_invalid_molecule_is_shown_without_a_picture(tmp_path):
    write(tmp_path / "p.csv", ["0,<b>no</b>,test,1,0.1,0.1,,0.5,0"])
    (card, *_) = molecule_galleries(tmp_path / "p.csv", two_tasks())[0].cards
    assert (card.name, card.svg) == ("<b>no</b>", "")


@pytest.mark.parametrize(
    ("line", "said"),
    [("0,CC,test,1,much,0.1,,0.5,0", "not a table of predictions"), ("0,CC", "row 1 has 2 cells, not 9")],
)
def test_a_damaged_table_of_predictions_is_refused(tmp_path, line, said):
    write(tmp_path / "p.csv", [line])
    with pytest.raises(DamagedFileError, match=said):
        molecule_galleries(tmp_path / "p.csv", two_tasks())


def test_an_unfinished_run_is_refused(run):
    for path in run.glob("seed-*/result.json"):
        path.unlink()
    with pytest.raises(NotFoundError, match="has not finished"):
        transfer_report(run)
