"""InfoGraph: the loss against its equation, and the two forms of its prior."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.infograph import InfoGraph
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:12")


def build(graphs, **settings):
    return make_recipe("infograph", graphs, settings).build(graphs.features, 0)


def losses_of(method, graphs, rows=None):
    batch = GraphBatch.gather(graphs, np.arange(len(graphs)) if rows is None else np.array(rows))
    encoded = method.encode(method.views(batch, torch.Generator()))
    return encoded, method.objective({name: value.float() for name, value in encoded.items()})


def test_the_loss_is_the_equation_written_out(graphs):
    """Heads and scores node by node and graph by graph, from the encoder's own two methods."""
    method = build(graphs, **{"encoder.depth": 2, "encoder.width": 4})
    batch = GraphBatch.of(graphs)
    _, losses = losses_of(method, graphs)

    def head(module, row):
        hidden = row
        for layer in (layer for layer in module.block.modules() if isinstance(layer, nn.Linear)):
            hidden = (layer.weight @ hidden + layer.bias).clamp(min=0)
        return hidden + module.shortcut.weight @ row + module.shortcut.bias

    with torch.no_grad():
        local = [head(method.local_head, row).double() for row in method.encoder.nodes(batch)]
        global_ = [head(method.global_head, row).double() for row in method.encoder(batch)]
    positive = negative = 0.0
    for i, node in enumerate(local):
        for g, whole in enumerate(global_):
            score = float(node @ whole)
            softplus = max(-score, 0) + math.log1p(math.exp(-abs(score)))  # of -score
            if batch.ptr[g] <= i < batch.ptr[g + 1]:
                positive += math.log(2) - softplus
            else:
                negative += softplus + score - math.log(2)
    n, b = len(local), len(global_)
    assert losses["information"].item() == pytest.approx(negative / (n * (b - 1)) - positive / n, rel=1e-4)


def test_the_head_has_three_layers_and_a_shortcut(graphs):
    head = build(graphs).local_head
    assert sum(isinstance(module, nn.Linear) for module in head.modules()) == 4
    # With its block silenced, the head is the shortcut; ReLU is the block's last word.
    nn.init.constant_([m for m in head.block.modules() if isinstance(m, nn.Linear)][-1].bias, -1e9)
    rows = torch.randn(3, 96)
    torch.testing.assert_close(head(rows), rows @ head.shortcut.weight.T + head.shortcut.bias)


def test_the_encoder_runs_once_per_step(graphs):
    method = build(graphs)
    calls = []
    method.encoder.blocks[0].register_forward_hook(lambda *_: calls.append(1))
    losses_of(method, graphs)
    assert len(calls) == 1


def test_parts_encoded_separately_and_joined_equal_the_whole(graphs):
    """Encodings of several ranks can be concatenated: BatchNorm aside, the loss is that of one batch."""
    method = build(graphs, **{"encoder.norm": "none"})
    whole = losses_of(method, graphs)[1]["information"]
    parts = [losses_of(method, graphs, rows)[0] for rows in (range(5), range(5, 12))]
    joined = {name: torch.cat([part[name].float() for part in parts]) for name in parts[0]}
    torch.testing.assert_close(method.objective(joined)["information"], whole)


def test_embeddings_are_the_encoders_not_the_heads(graphs):
    method = build(graphs).eval()
    batch = GraphBatch.of(graphs)
    torch.testing.assert_close(method.embed(batch), method.encoder(batch))


def test_the_prior_is_off_by_default(graphs):
    method = build(graphs)
    encoded, losses = losses_of(method, graphs)
    assert set(losses) == {"information"}
    assert method.discriminator is None
    assert "noise" not in encoded


def prior_gradients(graphs, form):
    """Gradients of the prior term for the first weights of encoder and discriminator, and its value."""
    method = build(graphs, prior=0.1, prior_form=form)
    torch.manual_seed(0)
    encoded, losses = losses_of(method, graphs)
    weights = [next(method.encoder.parameters()), next(method.discriminator.parameters())]
    return *torch.autograd.grad(losses["prior"], weights), losses["prior"], method, encoded


def test_the_prior_is_the_cross_entropy_of_noise_and_graphs(graphs):
    *_, loss, method, encoded = prior_gradients(graphs, "joint")
    with torch.no_grad():
        of_noise = torch.sigmoid(method.discriminator(encoded["noise"]).double())
        of_graphs = torch.sigmoid(method.discriminator(encoded["anchor"]).double())
    expected = -0.1 * (of_noise.log().mean() + (1 - of_graphs).log().mean())
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    assert 0 <= encoded["noise"].min() < 0.1 < 0.9 < encoded["noise"].max() < 1


def test_adversarial_encoder_maximises_the_discriminator_loss(graphs):
    encoder, discriminator, loss, *_ = prior_gradients(graphs, "joint")
    against, same, value, *_ = prior_gradients(graphs, "adversarial")
    torch.testing.assert_close(value, loss)
    torch.testing.assert_close(same, discriminator)
    torch.testing.assert_close(against, -encoder)
    assert encoder.abs().max() > 0


@pytest.mark.parametrize("form", ["adversarial", "joint"])
def test_training_with_the_prior_stays_finite(graphs, form):
    settings = {"prior": 0.1, "prior_form": form}
    rows = train(graphs, "infograph", settings=settings, training=TrainSettings(epochs=3)).metrics.rows
    assert all(np.isfinite(row["loss_prior"]) for row in rows)


def test_one_graph_has_own_pairs_only(graphs):
    method = build(graphs)
    encoded, losses = losses_of(method, graphs, [0])
    with torch.no_grad():
        scores = method.local_head(encoded["local"]) @ method.global_head(encoded["anchor"])[0]
    expected = (torch.nn.functional.softplus(-scores) - math.log(2)).mean()
    torch.testing.assert_close(losses["information"], expected)


def test_the_published_preset(graphs):
    recipe = make_recipe("infograph", graphs, preset="published")
    assert recipe.encoder_settings["depth"] == 5
    assert recipe.settings["batch_norm_embedding"] == "running"
    assert training_settings("infograph", "published", graphs.name)["learning_rate"] == 1e-3


def test_a_negative_weight_is_refused(graphs):
    with pytest.raises(ConfigError, match="prior"):
        build(graphs, prior=-1.0)


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        InfoGraph(nn.Linear(3, 3))
