"""The transfer table: a plan, what has run and what has not, numbers from stored files alone."""

import numpy as np
import pytest

pytest.importorskip("rdkit")

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.evaluation.metrics import Task
from graphsc.experiments.published import published_transfer
from graphsc.experiments.transfer_plan import TransferTrial, read_transfer_plan
from graphsc.experiments.transfer_run import TransferStore, run_transfer, weights_in
from graphsc.experiments.transfer_table import transfer_text
from graphsc.finetuning import baselines as classical
from graphsc.finetuning.result import HeldOutScores, TransferResult
from graphsc.training.callbacks import Reporter

PLAN = """
transfer:
  pretraining: {{data: moses, molecules: 200000}}
  tables:
    frozen:
      title: Frozen
      trials:
        - {{data: [{data}], way: ecfp-forest, label: ECFP}}
        - {{data: [{data}], way: frozen, methods: [none, graphcl]}}
"""


class Saying(Reporter):
    def __init__(self):
        self.said = []

    def log(self, sentence):
        self.said.append(sentence)


@pytest.fixture
def table(ring_molecules, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN.format(data=ring_molecules))
    return tmp_path / "plan.yaml"


def test_what_is_stored_is_not_run_again_and_missing_weights_are_named(table, tmp_path, monkeypatch):
    monkeypatch.setattr(classical, "TREES", 5)
    (plan,) = read_transfer_plan(table)
    store, said = TransferStore(tmp_path / "results"), Saying()
    outcomes = run_transfer(
        plan.trials(), store, tmp_path / "runs", weights_in(tmp_path / "pre"), device="cpu", reporter=said
    )
    assert [outcome.error is None for outcome in outcomes] == [True, True, False]
    assert "there are no weights of graphcl" in outcomes[2].error
    assert said.said[0] == "3 trials: 0 stored, 3 to run"
    again = run_transfer(plan.trials(), store, tmp_path / "runs", weights_in(tmp_path / "pre"))
    assert len(again) == 1
    stored = sorted(store.folder.rglob("*.json"))
    assert len(stored) == 2
    assert all(path.stat().st_size < 20_000 for path in stored)


def test_a_fine_tuning_trial_is_stored_and_its_folder_goes(table, tmp_path):
    settings = {"epochs": 1, "batch_size": 16}
    trial = TransferTrial(str(tmp_path / "made.csv"), "graphcl", "fine-tuned", 1, settings=settings)
    from graphsc.data.readers import open_collection
    from graphsc.training.train import train
    from graphsc.training.trainer import TrainSettings

    graphs = open_collection(tmp_path / "made.csv")
    small = {"encoder.width": 8, "encoder.depth": 2}
    train(
        graphs, "graphcl", settings=small, encoder="molecule-gin", device="cpu",
        training=TrainSettings(epochs=1), out=tmp_path / "pre" / "graphcl",
    )  # fmt: skip
    store = TransferStore(tmp_path / "results")
    (outcome,) = run_transfer([trial], store, tmp_path / "runs", weights_in(tmp_path / "pre"), device="cpu")
    assert outcome.error is None
    kept = store.get(trial)
    assert kept is not None
    assert kept.trial["settings"]["epochs"] == 1
    assert str(tmp_path) not in store.path(trial).read_text()
    assert set(kept.rules) == {"last", "best"} or set(kept.rules) == {"last"}
    assert not list((tmp_path / "runs").rglob("checkpoints"))


def stored(store, trial, auc_pairs, rule="fit"):
    """A result whose ROC-AUC is the given share of ten pairs (one positive, ten negatives)."""
    scores = np.append(auc_pairs - 0.5, np.arange(10.0))
    task = Task(np.append(1.0, np.zeros(10)), scores)
    rules = {rule: HeldOutScores.of([task], [], "classification")}
    store.put(trial, TransferResult({}, {}, ("t",), "classification", np.array([0, 1, 2]), rules, "Words."))


def test_the_table_is_made_of_stored_results_and_leaves_the_rest_empty(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "transfer:\n  pretraining: {data: moses, molecules: 200000}\n  tables:\n    frozen:\n"
        "      title: Frozen\n      trials:\n"
        "        - {data: [bace, bbbp], way: frozen, methods: [none, graphsc], seeds: 2}\n"
    )
    (plan,) = read_transfer_plan(tmp_path / "plan.yaml")
    store = TransferStore(tmp_path)
    assert "none of 8 trials has run yet" in transfer_text(plan, store)
    for trial in plan.trials():
        if trial.method == "graphsc":
            stored(store, trial, 6 if trial.seed else 8)
        elif trial.data == "bbbp":
            stored(store, trial, 5)
    text = transfer_text(plan, store)
    assert "2 of 8 trials have not run yet" in text
    header, _, first, second = [line for line in text.splitlines() if line.startswith("|")]
    assert header == "| pre-training | BBBP | BACE | average |"
    grey = '<span class="published">{} ± {}</span>'.format
    assert first.split(" | ")[1] == f"50.00 ± 0.00<br>{grey('65.80', '4.50')}"
    assert first.split(" | ")[2] == grey("70.10", "5.40")  # not run, so only the published number
    assert second.split(" | ")[1] == f"**70.00 ± 10.00**<br>{grey('72.16', '1.42')}"
    assert second.split(" | ")[3].startswith("70.00<br>")
    assert "200,000 molecules of MOSES" in text
    assert "Words." in text


def test_a_new_default_or_other_weights_are_another_trial():
    base = TransferTrial("bbbp", "graphsc", "fine-tuned", settings={"epochs": 5})
    others = [
        TransferTrial("bbbp", "graphsc", "fine-tuned", settings={"epochs": 6}),
        TransferTrial("bbbp", "graphsc", "fine-tuned", settings={"epochs": 5}, pretraining={"molecules": 7}),
        TransferTrial("bbbp", "graphsc", "frozen"),
        TransferTrial("bbbp", "graphsc", "fine-tuned", seed=1, settings={"epochs": 5}),
    ]
    assert len({trial.key() for trial in (base, *others)}) == 5
    # What the weights are made from says nothing where there are none.
    none = [TransferTrial("bbbp", "none", "frozen", pretraining={"molecules": n}) for n in (1, 2)]
    assert none[0].key() == none[1].key()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tables: {}", "one key, `transfer`"),
        ("transfer: {tables: {}}", "needs `pretraining` and `tables`"),
        ("transfer: table3", "needs `pretraining` and `tables`"),
        ("transfer: tabel4", "table4"),
        ("transfer: {pretraining: {}, tables: {a: {title: x}}}", "needs `title` and `trials`"),
        (
            "transfer: {pretraining: {}, tables: {a: {title: x, trials: [{data: [bbbp], way: guess}]}}}",
            "'way'",
        ),
        (
            "transfer: {pretraining: {}, tables: {a: {title: x, trials: [{data: [bbbp], way: frozen, "
            "settings: {epoch: 3}}]}}}",
            "did you mean 'epochs'",
        ),
    ],
)
def test_a_wrong_plan_is_refused_naming_what_is_wrong(tmp_path, text, said):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(ConfigError, match=said):
        read_transfer_plan(tmp_path / "plan.yaml")


def test_weights_lie_in_a_folder_of_their_method_s_name(tmp_path):
    with pytest.raises(NotFoundError, match="graphsc"):
        weights_in(tmp_path)("graphsc")


def test_missing_weights_are_made_once_where_something_can_make_them(tmp_path):
    asked = []

    def pretrain(method, path):
        asked.append(method)
        path.mkdir(parents=True)
        (path / "model.safetensors").write_bytes(b"weights")

    find = weights_in(tmp_path, pretrain)
    assert find("graphcl") == find("graphcl") == tmp_path / "graphcl"
    assert asked == ["graphcl"]


def test_published_numbers_are_the_paper_s():
    rows = published_transfer()
    assert len(rows) == 13
    assert rows["graphsc"]["BBBP"] == (72.16, 1.42)
    assert np.mean([cell[0] for cell in rows["graphsc"].values()]) == pytest.approx(73.37, abs=0.01)
    assert set(rows["simgrace"]) == {"BBBP", "ToxCast", "SIDER"}
