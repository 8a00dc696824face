"""Transfer trials: plans, pre-trained weights, and tables from stored results."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rdkit")

from graphsc.core.errors import ConfigError, NotFoundError
from graphsc.evaluation.metrics import Task
from graphsc.experiments.plan import read_plan
from graphsc.experiments.published import published_transfer
from graphsc.experiments.result import ResultStore
from graphsc.experiments.runner import check_outcomes, run_trials
from graphsc.experiments.tables import table_text
from graphsc.experiments.transfer import CardStore, PretrainedWeights, cards_table, check_weights
from graphsc.experiments.trial import TransferTrial
from graphsc.finetuning import baselines as classical
from graphsc.finetuning.result import HeldOutScores, TransferResult
from graphsc.methods import METHODS
from graphsc.paper.pages import write_tables
from graphsc.training.callbacks import Reporter
from graphsc.training.model_io import write_card
from graphsc.training.pretrain import pretrain

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


class RecordingReporter(Reporter):
    def __init__(self):
        self.messages = []

    def log(self, sentence):
        self.messages.append(sentence)


@pytest.fixture
def table(ring_molecules, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN.format(data=ring_molecules))
    return tmp_path / "plan.yaml"


def test_stored_trials_are_not_run_again_and_missing_weights_are_named(table, tmp_path, monkeypatch):
    monkeypatch.setattr(classical, "TREES", 5)
    (plan,) = read_plan(table)
    store, reporter = ResultStore(tmp_path / "results"), RecordingReporter()
    weights = PretrainedWeights(tmp_path / "pre", store.folder, make=False)
    outcomes = run_trials(plan.trials(), store, tmp_path / "runs", weights=weights, reporter=reporter)
    assert [outcome.error is None for outcome in outcomes] == [True, True, False]
    assert "there are no weights of graphcl" in outcomes[2].error
    assert reporter.messages[0] == "3 trials: 0 stored, 3 to run"
    reporter = RecordingReporter()
    run_trials(plan.trials(), store, tmp_path / "runs", weights=weights, reporter=reporter)
    assert reporter.messages[0].startswith("3 trials: 2 stored, 1 to run, about ")
    lines = store.path(plan.trials()[0]).read_text().splitlines()
    assert len(lines) == 2
    assert all(len(line) < 20_000 for line in lines)


def test_a_fine_tuning_trial_is_stored_and_its_folder_is_removed(table, tmp_path):
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
    store = ResultStore(tmp_path / "results")
    weights = PretrainedWeights(tmp_path / "pre", store.folder, make=False)
    (outcome,) = run_trials([trial], store, tmp_path / "runs", weights=weights)
    assert outcome.error is None
    result = store.get(trial)
    assert result is not None
    assert result.trial["settings"]["epochs"] == 1
    assert str(tmp_path) not in store.path(trial).read_text()
    assert set(result.rules) == {"last", "best"} or set(result.rules) == {"last"}
    assert not list((tmp_path / "runs").rglob("checkpoints"))


def ensemble_plan(tmp_path, data, model):
    """A plan with one ensemble of two small encoders that starts from a model file."""
    (tmp_path / "plan.yaml").write_text(
        "transfer:\n  pretraining: {}\n  tables:\n    delivered:\n      title: Delivered\n      trials:\n"
        f"        - {{data: [{data}], way: ensemble, methods: [graphcl], model: {model}, members: 2,\n"
        "           settings: {epochs: 1, batch_size: 16, features: [ecfp]}, label: ensemble}\n"
    )
    (plan,) = read_plan(tmp_path / "plan.yaml")
    return plan


def small_model(folder, graphs, seed=0):
    from graphsc.training.train import train
    from graphsc.training.trainer import TrainSettings

    train(
        graphs, "graphcl", settings={"encoder.width": 8, "encoder.depth": 2}, encoder="molecule-gin",
        device="cpu", training=TrainSettings(epochs=1, seed=seed), out=folder,
    )  # fmt: skip
    return folder / "model.safetensors"


def test_an_ensemble_trial_stores_what_is_delivered_and_each_part(ring_molecules, tmp_path, monkeypatch):
    from graphsc.data.readers import open_collection
    from graphsc.finetuning import classical as parts_module

    monkeypatch.setattr(parts_module, "MOST_TREES", 5)
    monkeypatch.setattr(parts_module, "FEWEST_TREES", 5)
    monkeypatch.setattr(classical, "BOOSTING", {**classical.BOOSTING, "max_iter": 3})
    plan = ensemble_plan(
        tmp_path, ring_molecules, small_model(tmp_path / "pre", open_collection(ring_molecules))
    )
    store = ResultStore(tmp_path / "results")
    (outcome,) = run_trials(plan.trials(), store, tmp_path / "runs")
    assert outcome.error is None
    (trial,) = plan.trials()
    result = store.get(trial)
    assert set(result.rules) == {"fit", "encoder", "linear", "vectors", "forest", "boosting"}
    assert sum(result.config["ensemble"]["weights"].values()) == pytest.approx(1, abs=1e-3)
    assert "mean of 2 seeds" in result.words
    text = table_text(plan, store)
    rows = [line.split("|")[1].strip() for line in text.splitlines() if line.startswith("| ")][2:]
    assert rows == [
        "part: fine-tuned encoder", "part: linear model on fingerprints and descriptors",
        "part: linear model on frozen vectors", "part: random forest on all features",
        "part: gradient boosting on all features", "ensemble",
    ]  # fmt: skip
    best = max(result.score(rule) for rule in result.rules if rule != "fit")
    assert f"made {100 * (result.score('fit') - best):+.2f}." in text


def test_the_result_of_an_ensemble_belongs_to_the_file_of_its_model(ring_molecules, tmp_path):
    from graphsc.data.readers import open_collection

    graphs = open_collection(ring_molecules)
    keys = set()
    for seed in (0, 1):
        model = small_model(tmp_path / f"pre{seed}", graphs, seed)
        (tmp_path / "model.safetensors").write_bytes(model.read_bytes())
        (trial,) = ensemble_plan(tmp_path, ring_molecules, tmp_path / "model.safetensors").trials()
        assert list(trial.member_seeds) == [0, 1]
        keys.add(trial.key())
    assert len(keys) == 2


def test_a_plan_can_say_a_union_of_sources_and_the_papers_grid(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "transfer:\n  pretraining: {data: 'moses:1,zinc250k:3', epochs: 2}\n  tables:\n    grid:\n"
        "      title: Grid\n      rules: [best]\n      trials:\n"
        "        - {data: [bace], way: fine-tuned, methods: [graphsc], seeds: 5,\n"
        "           settings: {epochs: 100, learning_rates: [1e-4, 5e-4, 1e-3], every: 20}}\n"
    )
    (plan,) = read_plan(tmp_path / "plan.yaml")
    assert [trial.seed for trial in plan.trials()] == [0, 1, 2, 3, 4]
    identity = plan.trials()[0].identity()
    assert identity["settings"]["learning_rates"] == [1e-4, 5e-4, 1e-3]
    assert identity["settings"]["every"] == 20
    weights = identity["pretraining"]
    assert weights["data"] == "moses:1,zinc250k:3"
    assert weights["training"]["epochs"] == 2
    assert "seen" not in weights  # how many an epoch has is decided by the files
    table = table_text(plan, ResultStore(tmp_path))
    assert "none of 5 trials has run yet" in table


def put(store, trial, auc_pairs, rule="fit"):
    """Store a result whose ROC-AUC is `auc_pairs` of ten pairs (one positive, ten negatives)."""
    scores = np.append(auc_pairs - 0.5, np.arange(10.0))
    task = Task(np.append(1.0, np.zeros(10)), scores)
    rules = {rule: HeldOutScores.of([task], [], "classification")}
    store.put(trial, TransferResult({}, {}, ("t",), "classification", np.array([0, 1, 2]), rules, "Words."))


def test_the_table_has_stored_results_and_empty_cells_for_the_rest(tmp_path):
    (tmp_path / "plan.yaml").write_text(
        "transfer:\n  pretraining: {data: moses, molecules: 200000}\n  tables:\n    frozen:\n"
        "      title: Frozen\n      trials:\n"
        "        - {data: [bace, bbbp], way: frozen, methods: [none, graphsc], seeds: 2}\n"
    )
    (plan,) = read_plan(tmp_path / "plan.yaml")
    store = ResultStore(tmp_path)
    assert "none of 8 trials has run yet" in table_text(plan, store)
    for trial in plan.trials():
        if trial.method == "graphsc":
            put(store, trial, 6 if trial.seed else 8)
        elif trial.data == "bbbp":
            put(store, trial, 5)
    text = table_text(plan, store)
    assert "2 of 8 trials have not run yet" in text
    header, _, first, second = [line for line in text.splitlines() if line.startswith("|")]
    assert header == "| pre-training | BBBP | BACE | average |"
    grey = '<span class="published">{} ± {}</span>'.format
    assert first.split(" | ")[1] == f"50.00 ± 0.00<br>{grey('65.80', '4.50')}"
    assert first.split(" | ")[2] == grey("70.10", "5.40")  # not run, so only the published number
    assert second.split(" | ")[1] == f"**70.00 ± 14.14**<br>{grey('72.16', '1.42')}"
    assert second.split(" | ")[3].startswith("70.00<br>")
    assert "200,000 molecules of MOSES" in text
    assert "Words." in text


def test_other_settings_or_weights_are_another_trial(monkeypatch):
    base = TransferTrial("bbbp", "graphsc", "fine-tuned", settings={"epochs": 5})
    others = [
        TransferTrial("bbbp", "graphsc", "fine-tuned", settings={"epochs": 6}),
        TransferTrial("bbbp", "graphsc", "fine-tuned", settings={"epochs": 5}, pretraining={"molecules": 7}),
        TransferTrial("bbbp", "graphsc", "frozen"),
        TransferTrial("bbbp", "graphsc", "fine-tuned", seed=1, settings={"epochs": 5}),
    ]
    keys = {trial.key() for trial in (base, *others)}
    assert len(keys) == 5
    # A preset of the pre-training method that changes is another trial, though the plan says nothing of it.
    assert base.identity()["pretraining"]["training"]["batch_size"] == 256
    monkeypatch.setitem(METHODS.get("graphsc").presets, "molecules", {"training.batch_size": 128})
    assert base.key() not in keys
    # Without weights, pre-training is not part of the trial.
    none = [TransferTrial("bbbp", "none", "frozen", pretraining={"molecules": n}) for n in (1, 2)]
    assert none[0].key() == none[1].key()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("other: {}", "`tables` and `transfer`"),
        ("transfer: {tables: {}}", "needs `pretraining` and `tables`"),
        ("transfer: table3", "needs `pretraining` and `tables`"),
        ("transfer: tabel4", "no recipe 'tabel4'"),
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
def test_a_wrong_plan_is_refused(tmp_path, text, message):
    (tmp_path / "plan.yaml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        read_plan(tmp_path / "plan.yaml")


def trial_from(pretraining, method="graphcl"):
    return TransferTrial("bbbp", method, "frozen", pretraining=pretraining)


def test_weights_are_in_a_folder_named_after_their_method(tmp_path):
    with pytest.raises(NotFoundError, match="graphsc"):
        PretrainedWeights(tmp_path, tmp_path / "results", make=False).of(trial_from({}, "graphsc"))


def test_missing_weights_are_pretrained_once_as_the_table_says(ring_molecules, tmp_path):
    weights = PretrainedWeights(tmp_path / "pre", tmp_path / "results")
    asked = {"data": str(ring_molecules), "epochs": 1, "settings": {"encoder.width": 8, "encoder.depth": 1}}
    path = weights.of(trial_from(asked))
    assert path == tmp_path / "pre" / "graphcl"
    before = (path / "model.safetensors").stat().st_mtime_ns
    assert weights.of(trial_from(asked)) == path
    assert (path / "model.safetensors").stat().st_mtime_ns == before


def test_published_numbers_are_those_of_the_paper():
    rows = published_transfer()
    assert len(rows) == 13
    assert rows["graphsc"]["BBBP"] == (72.16, 1.42)
    assert np.mean([cell[0] for cell in rows["graphsc"].values()]) == pytest.approx(73.37, abs=0.01)
    assert set(rows["simgrace"]) == {"BBBP", "ToxCast", "SIDER"}


CARD_PLAN = """
transfer:
  pretraining: {{data: "{data}", epochs: 1, settings: {{encoder.depth: 2, encoder.width: 8}}}}
  tables:
    frozen: {{title: Frozen, trials: [{{data: ["{data}"], way: frozen, methods: [none, graphcl]}}]}}
"""
ROOT = Path(__file__).parents[2]


def test_a_model_card_is_kept_with_the_results_and_shown_on_the_page(ring_molecules, tmp_path):
    (tmp_path / "plan.yaml").write_text(CARD_PLAN.format(data=ring_molecules))
    small = {"encoder.depth": 2, "encoder.width": 8}
    done = pretrain(
        ring_molecules, "graphcl", settings=small, epochs=1, held_out=3, out=tmp_path / "pre" / "graphcl"
    )
    plan, store = read_plan(tmp_path / "plan.yaml"), ResultStore(tmp_path / "results")
    weights = PretrainedWeights(tmp_path / "pre", store.folder)
    check_outcomes(run_trials(plan[0].trials(), store, tmp_path / "runs", weights=weights))
    (trial,) = [trial for trial in plan[0].trials() if trial.needs_weights]
    assert CardStore(tmp_path / "results").get(trial) == done.card
    page = tmp_path / "page.md"
    page.write_text("<!-- table: weights -->\n<!-- end -->\n")
    assert write_tables(page, plan, store)
    row = next(line for line in page.read_text().splitlines() if line.startswith("| graphcl "))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # 32 molecules, 3 of them held out.
    assert cells[1:4] == ["29", "1", "2"]
    assert cells[-3:] == [f"{value:.3f}" for value in (done.card.chance, done.card.before, done.card.after)]


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"molecules": 29, "precision": "full"}, None),
        ({}, None),
        ({"molecules": 30}, "molecules 29, not 30"),
        ({"epochs": 5}, "epochs 1, not 5"),
        ({"precision": "bf16"}, "precision full, not bf16"),
        ({"data": "moses"}, "data made, not moses"),
        ({"preset": "default"}, "operations .*, not|batch_size 256, not 128|temperature 0.1, not 0.2"),
        ({"settings": {"encoder.depth": 1, "encoder.width": 4, "rate": 0.3}}, "rate 0.2, not 0.3"),
        ({"settings": {"encoder.depth": 1}}, "encoder.width 4, not 300"),
    ],
)
def test_weights_with_other_pretraining_are_refused(ring_molecules, tmp_path, facts, message):
    small = {"encoder.depth": 1, "encoder.width": 4}
    pretrain(ring_molecules, "graphcl", settings=small, epochs=1, held_out=3, out=tmp_path / "run")
    trial = trial_from({"epochs": 1, "settings": small, **facts})
    if message is None:
        check_weights(tmp_path / "run", trial)
        return
    with pytest.raises(ConfigError, match=message):
        check_weights(tmp_path / "run", trial)


def test_weights_without_a_card_are_accepted(tmp_path):
    check_weights(tmp_path, trial_from({"molecules": 3}))


def test_methods_without_weights_are_counted_and_a_method_without_a_task_has_no_scores(
    tmp_path, ring_molecules
):
    store = CardStore(tmp_path)
    trials = [TransferTrial("bbbp", method, way="frozen") for method in ("graphsc", "untrained")]
    assert cards_table(trials[:1], store) is None
    small = {"encoder.depth": 1, "encoder.width": 4}
    card = pretrain(ring_molecules, "untrained", settings=small, held_out=3).card
    write_card(tmp_path, replace(card, pretext=None, chance=None, before=None, after=None))
    store.keep(trials[1], tmp_path)
    text = cards_table(trials, store).markdown()
    assert "1 of 2 methods have not been pre-trained yet" in text
    assert text.splitlines()[2].endswith("|  |  |  |  |")
    # Other weights of the same method have a card of their own.
    assert store.get(TransferTrial("bbbp", "untrained", way="frozen", pretraining={"epochs": 2})) is None
    assert store.get(TransferTrial("bace", "untrained", way="fine-tuned")) == store.get(trials[1])


def test_the_transfer_page_equals_the_stored_results(tmp_path):
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs/transfer-results.md").read_text())
    assert not write_tables(page, read_plan(ROOT / "results/transfer.yaml"), ResultStore(ROOT / "results"))


def test_every_method_of_table_4_pretrains_as_published():
    """As Hu et al.'s code: Adam at 1e-3, batches of 256 (GraphLoG: 512), the mean over atoms."""
    trials = [t for table in read_plan(ROOT / "results/transfer.yaml") for t in table.trials()]
    weights = {
        trial.method: trial.weights() for trial in trials if trial.needs_weights and trial.way != "ensemble"
    }
    assert len(weights) == 12
    for method, found in weights.items():
        assert found["preset"] == "molecules"
        assert found["training"]["learning_rate"] == 1e-3
        assert found["training"]["batch_size"] == (512 if method == "graphlog" else 256)
        assert found["settings"]["encoder.readout"] == "mean"
        assert found["seen"] == 200_000
        assert found["steps"] == 5 * -(-40_000 // found["training"]["batch_size"])
    # Raw inner products.
    assert weights["edgepred"]["settings"]["scaled"] is False
    assert weights["contextpred"]["settings"]["scaled"] is False
