"""The diagnosis of training: what is measured, and that stored cases are not run again."""

import numpy as np
import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.paper import diagnosis
from graphsc.training.callbacks import Reporter


def test_explained_variance_is_one_for_a_linear_function_and_not_above_zero_for_noise():
    generator = np.random.default_rng(0)
    rows = generator.normal(size=(300, 5))
    exact = rows @ generator.normal(size=(5, 2)) + 3
    noise = generator.normal(size=(300, 2))
    assert diagnosis.explained_variance(rows, exact, 0) == pytest.approx(1, abs=0.02)
    assert diagnosis.explained_variance(rows, exact[:, :1], 0) == pytest.approx(1, abs=0.02)
    assert diagnosis.explained_variance(rows, noise, 0) < 0.02


def test_a_nearly_constant_column_with_one_outlier_spoils_no_other_graph():
    generator = np.random.default_rng(1)
    rows = np.c_[generator.normal(size=(200, 3)), 1e-4 * generator.normal(size=200)]
    rows[7, 3] = 1e3
    assert diagnosis.explained_variance(rows, rows[:, :1] + 2 * rows[:, 1:2], 0) > 0.9


def test_colour_counts_are_those_of_the_second_round():
    """On a path of four nodes and a triangle the second round has two colours on the path, one elsewhere."""
    networkx = pytest.importorskip("networkx")
    graphs = open_collection([networkx.path_graph(4), networkx.complete_graph(3)])
    counts = np.square(diagnosis.colour_counts(graphs))
    assert sorted(counts[0].round().tolist()) == [0, 2, 2]
    assert sorted(counts[1].round().tolist()) == [0, 0, 3]


def test_gradient_norms_are_those_of_each_term_by_itself():
    motifs = open_collection("motifs:20")
    method = make_recipe("graphsc", motifs).build(motifs.features, 0)
    batch = GraphBatch.gather(motifs, np.arange(16))
    before = {name: value.clone() for name, value in method.state_dict().items()}
    norms, active = diagnosis.gradient_norms(method, batch, seed=3)
    assert all(torch.equal(value, before[name]) for name, value in method.state_dict().items())
    assert set(norms) == set(diagnosis.TERMS)
    assert 0 <= active <= 1
    method.train()
    generator = diagnosis.torch_generator(3, "diagnosis")
    loss = method.objective(method.encode(method.views(batch, generator)))["masked"]
    loss.backward()
    expected = sum(float(p.grad.square().sum()) for p in method.encoder.parameters()) ** 0.5
    assert norms["masked"] == pytest.approx(expected, rel=1e-4)


def test_stored_cases_are_read_and_drawn_and_not_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(diagnosis, "DATA", "motifs:60")
    monkeypatch.setattr(diagnosis, "SEEDS", (7,))
    monkeypatch.setattr(diagnosis, "SIZES", ((2, 4),))
    monkeypatch.setattr(diagnosis, "LEARNING_RATES", (0.01,))
    monkeypatch.setattr(diagnosis, "EPOCHS", (0, 1, 2))
    assert "Not run yet" in diagnosis.write_diagnosis(tmp_path, tmp_path / "images")
    diagnosis.run_diagnosis(tmp_path, Reporter())
    (case,) = diagnosis.cases()
    snapshots = diagnosis.read_diagnosis(tmp_path)[case]
    assert [snapshot.epoch for snapshot in snapshots] == [0, 1, 2]
    assert len(snapshots[0].layers) == 2
    monkeypatch.setattr(diagnosis, "diagnose", lambda *_: pytest.fail("it is stored"))
    diagnosis.run_diagnosis(tmp_path, Reporter())
    text = diagnosis.write_diagnosis(tmp_path, tmp_path / "images")
    assert "2 x 4, rate 0.01" in text
    assert len(list((tmp_path / "images").glob("*.png"))) == 3
