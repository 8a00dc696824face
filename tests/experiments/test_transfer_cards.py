"""Cards of the weights: kept beside the results, and a row each on the page."""

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("rdkit")

from graphsc.experiments.transfer_cards import cards_text

from graphsc.cli.results import run_transfer_plan, write_transfer_page
from graphsc.core.errors import ConfigError
from graphsc.experiments.transfer import CardStore, check_weights
from graphsc.training.model_io import write_card
from graphsc.training.pretrain import pretrain

PLAN = """
transfer:
  pretraining: {{data: "{data}", epochs: 1}}
  tables:
    frozen: {{title: Frozen, trials: [{{data: ["{data}"], way: frozen, methods: [none, graphcl]}}]}}
"""
ROOT = Path(__file__).parents[2]


def test_a_card_is_kept_with_the_results_and_stands_on_the_page(ring_molecules, tmp_path):
    (tmp_path / "plan.yaml").write_text(PLAN.format(data=ring_molecules))
    small = {"encoder.depth": 2, "encoder.width": 8}
    done = pretrain(
        ring_molecules, "graphcl", settings=small, epochs=1, held_out=3, out=tmp_path / "pre" / "graphcl"
    )
    places = {"results": tmp_path / "results", "runs": tmp_path / "runs", "weights": tmp_path / "pre"}
    run_transfer_plan(tmp_path / "plan.yaml", None, **places, dry_run=False)
    assert CardStore(tmp_path / "results").get("graphcl") == done.card
    page = tmp_path / "page.md"
    page.write_text("<!-- table: weights -->\n<!-- end -->\n")
    assert write_transfer_page(page, tmp_path / "plan.yaml", tmp_path / "results")
    row = next(line for line in page.read_text().splitlines() if line.startswith("| graphcl "))
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    # 32 molecules, 3 of them held out.
    assert cells[1:4] == ["29", "1", "2"]
    assert cells[-3:] == [f"{value:.3f}" for value in (done.card.chance, done.card.before, done.card.after)]


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"molecules": 29, "epochs": 1, "precision": "full"}, None),
        ({}, None),
        ({"molecules": 30}, "molecules 29, not 30"),
        ({"epochs": 5}, "epochs 1, not 5"),
        ({"precision": "bf16"}, "precision full, not bf16"),
        ({"data": "moses"}, "data made, not moses"),
    ],
)
def test_weights_that_were_made_otherwise_are_refused(ring_molecules, tmp_path, facts, said):
    small = {"encoder.depth": 1, "encoder.width": 4}
    pretrain(ring_molecules, "graphcl", settings=small, epochs=1, held_out=3, out=tmp_path / "run")
    if said is None:
        check_weights(tmp_path / "run", facts)
        return
    with pytest.raises(ConfigError, match=said):
        check_weights(tmp_path / "run", facts)


def test_weights_without_a_card_are_taken_as_they_are(tmp_path):
    check_weights(tmp_path, {"molecules": 3})


def test_methods_without_weights_are_counted_and_a_method_without_a_task_has_no_figures(
    tmp_path, ring_molecules
):
    store = CardStore(tmp_path)
    assert "No weights" in cards_text(["graphsc"], store)
    small = {"encoder.depth": 1, "encoder.width": 4}
    card = pretrain(ring_molecules, "untrained", settings=small, held_out=3).card
    write_card(tmp_path, replace(card, pretext=None, chance=None, before=None, after=None))
    store.keep("untrained", tmp_path)
    text = cards_text(["graphsc", "untrained"], store)
    assert "1 of 2 methods have not been pre-trained yet" in text
    assert text.splitlines()[2].endswith("|  |  |  |  |")


def test_the_page_says_what_is_stored(tmp_path):
    page = tmp_path / "page.md"
    page.write_text((ROOT / "docs/transfer-results.md").read_text())
    assert not write_transfer_page(page, ROOT / "results/transfer.yaml", ROOT / "results")
