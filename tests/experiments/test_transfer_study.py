"""Trials of transfer as cells of a study: any worker runs them, any machine reads what came out."""

import pytest

pytest.importorskip("rdkit")
pytest.importorskip("optuna")

from graphsc.core.run_folder import RunFolder
from graphsc.experiments.storage import open_storage
from graphsc.experiments.study import Study
from graphsc.experiments.trial import TransferTrial
from graphsc.experiments.result import ResultStore
from graphsc.experiments.trial import ProbeTrial
from graphsc.experiments.worker import OtherMachineError, Worker

PRETRAINING = {"data": "", "molecules": 24, "epochs": 1}


@pytest.fixture
def opened(tmp_path):
    """The study as another process would open it."""
    return lambda: Study(open_storage(str(tmp_path / "study.journal"), create=True), "transfer", create=True)


def trial(molecules, way="ecfp-linear", method="ecfp", **changes):
    return TransferTrial(str(molecules), method, way, **changes)


def worker(study, folder):
    return Worker(study, folder / "runs", folder / "results", lambda _: None, 0.05)


def test_a_trial_is_the_same_one_after_a_journey(ring_molecules):
    asked = trial(
        ring_molecules, "fine-tuned", "graphcl", seed=2, settings={"epochs": 3}, pretraining=PRETRAINING
    )
    assert TransferTrial.from_json(asked.to_json()) == asked
    assert TransferTrial.from_json(asked.to_json()).key() == asked.key()


def test_cells_of_both_kinds_are_run_and_read_on_a_machine_without_them(opened, ring_molecules, tmp_path):
    asked = [trial(ring_molecules), trial(ring_molecules, "frozen", "none")]
    study = opened()
    assert study.enqueue([*asked, ProbeTrial("motifs:40", "raw")]) == 3
    assert worker(opened(), tmp_path / "one").work(1) == 1
    assert worker(opened(), tmp_path / "two").work() == 2  # of machines that share no folder
    assert opened().fetch(tmp_path / "three") == 3
    for one in asked:
        made = [ResultStore(tmp_path / name / "results").get(one) for name in ("one", "two")]
        (mine,) = [result for result in made if result is not None]
        assert ResultStore(tmp_path / "three").get(one).to_json() == mine.to_json()
    assert opened().fetch(tmp_path / "three") == 0


def test_what_is_stored_is_done_when_it_is_queued(opened, ring_molecules, tmp_path):
    opened().enqueue([trial(ring_molecules)])
    worker(opened(), tmp_path).work()
    other = Study(open_storage(str(tmp_path / "other.journal"), create=True), "again", create=True)
    other.enqueue([trial(ring_molecules), trial(ring_molecules, "frozen", "none")], tmp_path / "results")
    assert [cell.state for cell in other.cells()] == ["done", "waiting"]
    assert other.cells()[0].value == 0  # the scaffold of the test part has one class, and no ROC-AUC


def test_weights_that_are_missing_are_made_once_and_their_card_is_kept(opened, ring_molecules, tmp_path):
    source = {**PRETRAINING, "data": str(ring_molecules)}
    asked = [
        trial(ring_molecules, "frozen", "attrmasking", seed=seed, pretraining=source) for seed in range(2)
    ]
    opened().enqueue(asked)
    assert worker(opened(), tmp_path).work(1) == 1
    weights = RunFolder(tmp_path / "runs" / "pretrain" / "attrmasking").model
    made = weights.stat().st_mtime_ns
    assert worker(opened(), tmp_path).work() == 1
    assert weights.stat().st_mtime_ns == made
    assert (tmp_path / "results" / "transfer" / "weights" / "attrmasking.json").exists()


def test_other_molecules_under_the_same_name_are_refused(opened, ring_molecules, tmp_path):
    opened().enqueue([trial(ring_molecules), trial(ring_molecules, "frozen", "none")])
    worker(opened(), tmp_path / "one").work(1)
    ring_molecules.write_text(ring_molecules.read_text().replace("CCCCc1ccccc1", "CCCOc1ccccc1"))
    from graphsc.experiments.transfer import shared_molecules

    shared_molecules.cache_clear()  # another process would read the file
    with pytest.raises(OtherMachineError, match="is not the"):
        worker(opened(), tmp_path / "two").work()
    assert [cell.state for cell in opened().cells()] == ["done", "waiting"]
