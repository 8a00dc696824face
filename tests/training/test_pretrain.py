"""Pre-training: the sample of molecules, pretext scores, the run folder, and resuming after a stop."""

import json
import tracemalloc

import numpy as np
import pytest
import torch
from test_resume import StopAt, assert_equal, outcome

from graphsc.core.config import read_config
from graphsc.core.errors import ConfigError
from graphsc.core.files import StoppedError
from graphsc.data.readers import open_collection
from graphsc.encoders.inference import embed
from graphsc.training import trainer
from graphsc.training.model_io import card_of, read_card
from graphsc.training.pretrain import loop_settings, preset_for, pretrain
from graphsc.training.train import model_of

pytest.importorskip("rdkit")
SMALL = {"encoder.depth": 2, "encoder.width": 16}
SMILES = [
    "C" * length + middle + "C" * other
    for length in range(1, 5)
    for middle in ("C(=O)N", "c1ccc(O)cc1", "C1CCNC1", "OC(F)", "/C=C/C", "C(C)(C)", "N", "S(=O)(=O)", "C#C")
    for other in range(4)
]


def small(method="graphsc", **changes):
    """Training of a few seconds on a hundred molecules."""
    options = {"settings": SMALL, "epochs": 2, "held_out": 14, **changes}
    settings = {"batch_size": 32, "seed": options.pop("seed", 0)}
    loop = loop_settings(method, preset_for(method), "-", settings, options.pop("epochs"))
    return pretrain(SMILES, method, training=loop, **options)


@pytest.mark.parametrize(
    ("method", "passes", "chance"),
    [
        ("graphsc", 3, 0.5),
        ("graphcl", 2, 1 / 14),
        ("joao", 2, 1 / 14),
        ("joaov2", 2, 1 / 14),
        # The view learner's encoder and twice the other, for each of two players.
        ("adgcl", 6, 1 / 14),
        ("simgrace", 2, 1 / 14),
        ("rgcl", 3, 1 / 14),
    ],
)
def test_every_method_is_scored_on_unseen_molecules(method, passes, chance):
    done = small(method, epochs=1)
    card = done.card
    assert (card.graphs, card.held_out, card.data_graphs) == (130, 14, 144)
    assert (card.seen, card.steps, card.epochs) == (130 - 2, 4, 1)  # the last two are too few for a batch
    assert card.passes_per_step == passes
    assert card.chance == pytest.approx(chance)
    assert 0 <= card.before <= 1
    assert 0 <= card.after <= 1
    assert card.preset == "molecules"
    assert not set(done.sample.training.rows.tolist()) & set(done.sample.held_out.rows.tolist())


def test_learning_raises_the_score():
    """On average over seeds: with 14 unseen molecules, a single run may end as it began."""
    cards = [small("graphcl", epochs=25, molecules=100, seed=seed).card for seed in range(5)]
    before, after = (np.mean([getattr(card, when) for card in cards]) for when in ("before", "after"))
    assert after > max(before, 3 * cards[0].chance)


def test_folder_has_model_card_and_scores_but_no_vectors(tmp_path):
    card = small(out=tmp_path / "r", molecules=60, name="mine", licence="CC0").card
    folder = tmp_path / "r"
    assert read_card(folder / "card.json") == card
    assert (card.name, card.licence, card.data_licence) == ("mine", "CC0", "not stated")
    text = (folder / "card.md").read_text()
    assert "60 of 144 molecules" in text
    assert "chance 0.5000" in text
    assert list((folder / "embeddings").iterdir()) == []
    assert read_config(folder / "config.yaml")["data"]["graphs"] == 60
    stored = json.loads((folder / "pretext.json").read_text())
    assert sorted(stored["scores"]) == ["0", "2"]
    assert stored["scores"]["2"]["score"] == card.after


def test_card_lists_the_loss_of_every_epoch(tmp_path):
    done = small(out=tmp_path / "r", molecules=60, epochs=3)
    losses = [row["loss"] for row in done.run.metrics.rows]
    assert done.card.losses == pytest.approx(losses, abs=1e-5)
    shown = ", ".join(f"{loss:.4f}" for loss in losses)
    assert f"| loss by epoch | {shown} |" in (tmp_path / "r" / "card.md").read_text()


@pytest.mark.parametrize("method", ["graphsc", "rgcl"])
def test_stopped_pretraining_ends_as_an_uninterrupted_one(tmp_path, method):
    whole = small(method, out=tmp_path / "whole").card
    with pytest.raises(StoppedError):
        small(method, out=tmp_path / "parts", reporter=StopAt(6))
    torch.manual_seed(9)
    parts = small(method, out=tmp_path / "parts").card
    assert_equal(outcome(tmp_path / "whole"), outcome(tmp_path / "parts"))
    assert (parts.before, parts.after, parts.seen) == (whole.before, whole.after, whole.seen)


def test_pretext_scores_do_not_change_training(tmp_path):
    """The scores draw random numbers and re-estimate BatchNorm."""
    from graphsc.training.train import train

    done = small(out=tmp_path / "scored")
    train(
        done.sample.training, settings=SMALL, preset="molecules", encoder="molecule-gin",
        training=loop_settings("graphsc", "molecules", "-", {"batch_size": 32}, 2), out=tmp_path / "alone",
    )  # fmt: skip
    assert_equal(outcome(tmp_path / "scored"), outcome(tmp_path / "alone"))


def test_fewer_epochs_than_before_a_stop_are_scored_too(tmp_path):
    with pytest.raises(StoppedError):
        small(out=tmp_path / "r", epochs=3, reporter=StopAt(4))  # after one epoch
    one = small(out=tmp_path / "r", epochs=1).card
    assert one.epochs == 1
    assert one.after == small(epochs=1).card.after


def test_the_seed_chooses_the_molecules():
    one, two, three = (
        pretrain(SMILES, settings=SMALL, epochs=0, molecules=50, held_out=10, seed=seed) for seed in (0, 0, 1)
    )
    assert one.card.data_hash == two.card.data_hash != three.card.data_hash


def test_presets_have_the_published_training_settings():
    settings = loop_settings("graphsc", "molecules", "moses", {})
    assert (settings.learning_rate, settings.batch_size, settings.epochs) == (1e-3, 256, 80)


def test_more_molecules_than_there_are_and_methods_without_steps_are_refused():
    with pytest.raises(ConfigError, match="ask for 1 to 134"):
        pretrain(SMILES, molecules=140, held_out=10)
    with pytest.raises(ConfigError, match="nothing to pre-train"):
        pretrain(SMILES, "wl")


def test_model_embeds_other_molecules(tmp_path):
    small(out=tmp_path / "r", molecules=60)
    rows = model_of(tmp_path / "r").embed(open_collection(["CCO", "c1ccccc1Br"]))
    assert rows.shape == (2, 16)
    assert np.isfinite(rows).all()


def test_a_memory_mapped_collection_is_never_copied(tmp_path, monkeypatch):
    """The most that Python holds at once while training on nearly all of a file stays below a third of it."""
    made = open_collection("molecule-like:30000")
    made.save(tmp_path / "many.safetensors")
    size = (tmp_path / "many.safetensors").stat().st_size
    del made
    three = lambda graphs, *_: [np.arange(k, graphs, 600) for k in range(3)]  # noqa: E731
    monkeypatch.setattr(trainer, "batches_of_epoch", three)
    options = {"settings": {"encoder.depth": 1, "encoder.width": 8}, "encoder": "gin", "epochs": 1}
    pretrain("molecule-like:300", **options)  # imports are not what is measured
    mapped = open_collection(tmp_path / "many.safetensors")  # nor is its verification, 16 MB at a time
    tracemalloc.start()
    try:
        pretrain(mapped, **options, out=tmp_path / "r", held_out=500)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert size > 5e6
    assert peak < size / 3


def test_unseen_rows_embed_as_the_method_would(tmp_path):
    done = small(out=tmp_path / "r", molecules=60)
    held = done.sample.held_out.copy()
    np.testing.assert_allclose(
        model_of(tmp_path / "r").embed(held), embed(done.run.model.method, held), rtol=1e-5, atol=1e-6
    )


def two_lists(tmp_path):
    """SMILES in two files, of which the second repeats ten."""
    first, second = tmp_path / "one.smi", tmp_path / "two.smi"
    first.write_text("\n".join(SMILES[:80]) + "\n")
    second.write_text("\n".join(SMILES[70:]) + "\n")
    return f"{first}:1,{second}:2.5"


def of_union(tmp_path, out, monkeypatch, **changes):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    options = {"settings": SMALL | {"neck": 8}, "held_out": 14, "snapshots": 100, **changes}
    loop = loop_settings("graphsc-plus", "molecules", "-", {"batch_size": 32, "seed": 3}, 2)
    return pretrain(two_lists(tmp_path), "graphsc-plus", training=loop, out=out, **options)


def test_a_union_is_sampled_by_its_weights_and_said_on_the_card(tmp_path, monkeypatch):
    done = of_union(tmp_path, tmp_path / "run", monkeypatch)
    sources = read_config(tmp_path / "run" / "config.yaml")["data"]["sources"]
    different = len(set(map(canonical, SMILES)))
    assert sum(part["kept"] for part in sources) == different
    assert sources[1]["duplicates"] >= 10
    assert [part["weight"] for part in sources] == [1.0, 2.5]
    assert any("excluded by InChIKey" in note for note in done.card.notes)
    first = sources[0]["kept"] * (different - 14) / different  # about so many are trained on
    expected = 2 * (first + 2.5 * (different - 14 - first))
    assert done.card.seen == pytest.approx(expected, rel=0.15)


def canonical(smiles):
    from rdkit import Chem

    return Chem.MolToSmiles(Chem.MolFromSmiles(smiles))


def test_snapshots_are_models_with_cards_and_a_stopped_run_resumes_exactly(tmp_path, monkeypatch):
    whole = of_union(tmp_path, tmp_path / "whole", monkeypatch)
    with pytest.raises(StoppedError):
        of_union(tmp_path, tmp_path / "stopped", monkeypatch, reporter=StopAt(6))
    again = of_union(tmp_path, tmp_path / "stopped", monkeypatch)
    states = [done.run.model.method.state_dict() for done in (whole, again)]
    assert all(torch.equal(states[0][key], states[1][key]) for key in states[0])
    names = {path.name for path in (tmp_path / "whole" / "snapshots").iterdir()}
    assert names <= {path.name for path in (tmp_path / "stopped" / "snapshots").iterdir()}
    assert "000000000000.safetensors" in names
    last = max(names)
    model = model_of(tmp_path / "whole" / "snapshots" / last)
    assert model.dimensions == 2 * (144 + 2 * 16)
    card = card_of(tmp_path / "whole" / "snapshots" / last)
    assert (card.steps, card.method) == (int(last[:12]) // 32, "graphsc-plus")


def test_a_weight_is_how_often_an_epoch_has_a_graph():
    weights = np.array([1.0] * 400 + [2.5] * 400 + [0.25] * 400)
    epochs = [np.concatenate(trainer.batches_of_epoch(1200, 64, 0, epoch, weights)) for epoch in range(40)]
    counts = [np.bincount(epoch, minlength=1200) for epoch in epochs]
    assert all((count[:400] == 1).mean() > 0.97 for count in counts)  # but for a last batch that is too small
    assert all(set(count[400:800].tolist()) <= {1, 2, 3} for count in counts)
    assert np.mean(counts, axis=0)[400:800].mean() == pytest.approx(2.5, abs=0.05)
    assert np.mean(counts, axis=0)[800:].mean() == pytest.approx(0.25, abs=0.02)
    again = np.concatenate(trainer.batches_of_epoch(1200, 64, 0, 7, weights))
    assert np.array_equal(again, epochs[7])
    assert not np.array_equal(epochs[6][:1000], epochs[7][:1000])


DESCRIBED = {**SMALL, "neck": 8, "environment_bits": 64}


def described(tmp_path, epochs, out, **options):
    (tmp_path / "all.smi").write_text("\n".join(SMILES))
    loop = loop_settings("graphsc-plus", "descriptors", "-", {"batch_size": 32}, epochs)
    return pretrain(
        f"{tmp_path}/all.smi:1", "graphsc-plus", preset="descriptors", settings=DESCRIBED, training=loop,
        out=tmp_path / out, held_out=14, **options,
    )  # fmt: skip


def test_descriptors_of_a_union_are_learned_and_a_stop_changes_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole = described(tmp_path, 2, "whole")
    assert np.isfinite([row["loss_descriptors"] for row in whole.run.metrics.rows]).all()
    assert whole.run.model.method.target_scale.count[0] == whole.card.seen
    with pytest.raises(StoppedError):
        described(tmp_path, 2, "parts", reporter=StopAt(5))
    described(tmp_path, 2, "parts")
    assert_equal(outcome(tmp_path / "whole"), outcome(tmp_path / "parts"))


def test_the_card_of_a_run_that_began_with_another_counts_both(tmp_path):
    first = small(out=tmp_path / "first", epochs=2).card
    second = small(out=tmp_path / "second", epochs=1, start=tmp_path / "first").card
    third = small(out=tmp_path / "third", epochs=1, start=tmp_path / "second", snapshots=1000).card
    assert (first.seen, second.seen, third.seen) == (256, 384, 512)
    assert (first.steps, second.steps, third.steps) == (8, 12, 16)
    assert (second.epochs, third.epochs) == (3, 4)
    assert third.seconds > second.seconds > first.seconds
    assert third.losses[:3] == second.losses
    assert third.before == first.before
    assert "after 384 molecules, which are counted in; 128 of its own" in third.notes[-1]
    snapshots = sorted((tmp_path / "third" / "snapshots").iterdir())
    assert [card_of(path).seen for path in snapshots] == [384, 512]
