"""The page of a fine-tuning run, for numbers and for what is not there yet."""

import pytest

pytest.importorskip("rdkit")

from graphsc.core.errors import NotFoundError
from graphsc.experiments.transfer_report import is_transfer_run, transfer_report
from graphsc.transfer.finetune import finetune
from graphsc.transfer.labelled import read_labelled
from graphsc.transfer.settings import FineTuneSettings


@pytest.fixture
def run(tmp_path):
    smiles = ["C" * n + ring for ring in ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "C1CCNCC1") for n in range(6)]
    lines = [f"{text},{len(text) / 3:.2f}" for text in smiles]
    (tmp_path / "made.csv").write_text("\n".join(["smiles,logp", *lines]) + "\n")
    finetune(
        read_labelled(tmp_path / "made.csv"), out=tmp_path / "run", settings=FineTuneSettings(epochs=2),
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
    spreads = [float(row[3]) for row in tables["Most uncertain molecules"].rows]
    assert spreads == sorted(spreads, reverse=True)
    assert len(spreads) == 5


def test_a_run_that_has_not_finished_is_refused(run):
    for path in run.glob("seed-*/result.json"):
        path.unlink()
    with pytest.raises(NotFoundError, match="has not finished"):
        transfer_report(run)
