"""Methods and encoders as objects instead of names."""

import copy

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn
from torch_geometric.nn import GCN

from graphsc import GraphEmbedder, open_collection
from graphsc.core.errors import ConfigError
from graphsc.encoders import Gin, PygEncoder, as_encoder
from graphsc.methods import TrainedMethod, make_recipe
from graphsc.methods.graphcl import GraphCL
from graphsc.training.callbacks import Callback
from graphsc.training.train import model_of, train
from graphsc.training.trainer import TrainSettings

SHORT = TrainSettings(epochs=2, batch_size=20)


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:40")


class Spread(TrainedMethod):
    """A method of a few lines: columns of the embeddings should have unit variance."""

    def objective(self, encoded, player="model"):
        return {"spread": (1 - encoded["anchor"].var(0)).abs().mean()}


def seeded(make):
    torch.manual_seed(7)
    return make()


def test_an_object_is_trained_exactly_as_the_same_method_by_name(graphs):
    by_name = train(graphs, "graphcl", training=SHORT).model
    method = make_recipe("graphcl", graphs).build(graphs.features, SHORT.seed)
    by_object = train(graphs, method, training=SHORT).model
    np.testing.assert_array_equal(by_object.embed(graphs), by_name.embed(graphs))


def test_an_encoder_object_is_trained_in_place(graphs):
    encoder = Gin(graphs.features, width=4)
    before = copy.deepcopy(encoder.state_dict())
    run = train(graphs, "graphcl", encoder=encoder, training=SHORT)
    assert run.model.method.encoder is encoder
    assert run.config["encoder"] == "object:graphsc.encoders.gin.Gin"
    assert not torch.equal(before["blocks.0.bias"], encoder.blocks[0].bias)


def test_a_method_object_is_trained_in_place(graphs):
    method = seeded(lambda: Spread(Gin(graphs.features, width=4)))
    before = copy.deepcopy(method.state_dict())
    run = train(graphs, method, training={"epochs": 2, "batch_size": 20})
    assert run.model.method is method
    assert any(not torch.equal(before[name], value) for name, value in method.state_dict().items())
    assert "loss_spread" in run.metrics.rows[0]


def test_a_pyg_module_is_an_encoder_and_its_width_is_found(graphs):
    encoder = as_encoder(GCN(-1, 8, 2, 5), graphs.features)
    assert isinstance(encoder, PygEncoder)
    assert encoder.dimensions == 5
    assert train(graphs, "graphcl", encoder=encoder, training=SHORT).model.dimensions == 5


def test_a_module_that_is_no_encoder_is_refused(graphs):
    with pytest.raises(ConfigError, match="no attribute `dimensions`"):
        train(graphs, encoder=nn.Linear(3, 3), training=SHORT)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"encoder": nn.Identity(), "settings": {"encoder.width": 3}}, "encoder.width cannot be set"),
        ({"encoder": nn.Identity(), "method": "wl"}, "wl has no encoder"),
        ({"method": Spread(nn.Identity()), "settings": {"rate": 1}}, "settings and presets are for"),
        ({"method": Spread(nn.Identity()), "encoder": nn.Identity()}, "has its own encoder"),
    ],
)
def test_what_an_object_decides_itself_cannot_be_set(graphs, options, sentence):
    for module in options.values():
        if isinstance(module, nn.Module):
            module.dimensions = 3
    with pytest.raises(ConfigError, match=sentence):
        train(graphs, **options)


def test_a_run_with_objects_resumes_and_another_class_is_refused(graphs, tmp_path):
    def run(make, epochs, out):
        return train(graphs, seeded(make), training=TrainSettings(epochs=epochs, batch_size=20), out=out)

    def spread():
        return Spread(Gin(graphs.features, width=4))

    whole = run(spread, 3, tmp_path / "whole").model.embed(graphs)
    run(spread, 1, tmp_path / "parts")
    parts = run(spread, 3, tmp_path / "parts").model.embed(graphs)
    np.testing.assert_array_equal(whole, parts)
    with pytest.raises(ConfigError, match="other settings: method"):
        run(lambda: GraphCL(Gin(graphs.features, width=4), operations=("drop-nodes",)), 3, tmp_path / "parts")


def test_a_saved_model_is_loaded_with_another_such_object(graphs, tmp_path):
    def gcn():
        return GCN(-1, 8, 2, 5)

    run = train(graphs, "graphcl", encoder=gcn(), training=SHORT, out=tmp_path / "run")
    expected = run.model.embed(graphs)
    np.testing.assert_allclose(model_of(tmp_path / "run", encoder=gcn()).embed(graphs), expected, atol=1e-6)
    with pytest.raises(ConfigError, match=r"passed as an object of .*GCN, and none is given"):
        model_of(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"Gin is given"):
        model_of(tmp_path / "run", encoder=Gin(graphs.features))
    with pytest.raises(ConfigError, match="weights are of another model"):
        model_of(tmp_path / "run", encoder=GCN(-1, 9, 2, 5))


def test_the_estimator_takes_an_encoder_and_leaves_it_as_it_was(graphs):
    encoder = seeded(lambda: GCN(-1, 8, 2, 5))
    embedder = GraphEmbedder("graphcl", encoder=encoder, epochs=1)
    rows = embedder.fit_transform(graphs)
    assert rows.shape == (40, 5)
    assert encoder.convs[0].lin.in_channels == -1  # not even initialised
    np.testing.assert_array_equal(clone(embedder).fit_transform(graphs), rows)


def test_the_estimator_takes_a_method(graphs, tmp_path):
    method = seeded(lambda: Spread(Gin(graphs.features, width=4)))
    embedder = GraphEmbedder(method, epochs=1).fit(graphs)
    assert embedder.get_feature_names_out()[0] == "spread0"
    assert clone(embedder).get_params()["method"].state_dict().keys() == method.state_dict().keys()
    embedder.save(tmp_path / "m.safetensors")
    again = GraphEmbedder.load(tmp_path / "m.safetensors", method=method)
    np.testing.assert_array_equal(again.transform(graphs), embedder.transform(graphs))
    assert again.fit(graphs).model_.recipe.method.endswith("Spread")


class Count(Callback):
    def __init__(self):
        self.epochs = []

    def on_epoch_end(self, trainer):
        self.epochs.append((trainer.epoch, trainer.settings.schedule, trainer.settings.seed))


def test_the_estimator_takes_settings_of_the_loop_callbacks_and_a_folder(graphs, tmp_path):
    count = Count()
    training = {"epochs": 2, "schedule": "cosine", "clip": 1.0}
    out = tmp_path / "run"
    embedder = GraphEmbedder(training=training, callbacks=[count], out=out, random_state=3).fit(graphs)
    assert count.epochs == [(1, "cosine", 3), (2, "cosine", 3)]
    assert (out / "model.safetensors").exists()
    assert GraphEmbedder.load(out).encoder == "gin"
    assert embedder.get_params()["training"] is training


def test_whole_settings_of_the_loop_win_but_for_the_seed(graphs):
    count = Count()
    loop = TrainSettings(epochs=1, schedule="linear", seed=9)
    GraphEmbedder(epochs=5, training=loop, callbacks=[count], random_state=3).fit(graphs)
    assert count.epochs == [(1, "linear", 3)]


def test_a_seed_among_the_settings_of_the_loop_is_refused(graphs):
    with pytest.raises(ConfigError, match="random_state"):
        GraphEmbedder(training={"seed": 1}).fit(graphs)


def test_a_loaded_embedder_trains_the_encoder_of_its_model(graphs, tmp_path):
    pytest.importorskip("rdkit")
    smiles = ["CCO", "CCN", "c1ccccc1", "CC(=O)O"] * 3
    small = {"encoder.width": 4, "encoder.depth": 1}
    GraphEmbedder("graphcl", encoder="molecule-gin", settings=small, epochs=1, out=tmp_path).fit(smiles)
    again = GraphEmbedder.load(tmp_path).set_params(epochs=1).fit(smiles)
    assert again.model_.recipe.encoder == "molecule-gin"
