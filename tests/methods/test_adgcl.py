"""AD-GCL: edge weights, the penalty on dropped edges, and the gradients of each player."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders.gin import Gin
from graphsc.encoders.pyg import PygEncoder
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.adgcl import ADGCL
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def motifs():
    return open_collection("motifs:24")


@pytest.fixture(scope="module")
def odd():
    """Degenerate graphs: a loop, an isolated node, a graph without edges, a single node."""
    networkx = pytest.importorskip("networkx")
    looped = networkx.path_graph(4)
    looped.add_edge(1, 1)
    looped.add_node(4)
    return open_collection(
        [looped, networkx.empty_graph(3), networkx.empty_graph(1), networkx.cycle_graph(5)]
    )


def build(collection, seed=0, **settings):
    return make_recipe("adgcl", collection, settings).build(collection.features, seed)


def pairs_of(batch, weight):
    """Weight of every entry by its ends."""
    return dict(zip(map(tuple, batch.edge_index.T.tolist()), weight.tolist(), strict=True))


@pytest.mark.parametrize("name", ["motifs", "odd"])
def test_logits_are_the_network_on_both_ends_of_an_edge(request, name):
    """One direction at a time, written out per edge; the mean of both where they share a weight."""
    batch = GraphBatch.of(request.getfixturevalue(name))
    features = request.getfixturevalue(name)
    learner = build(features, directions="independent").view_learner.eval()
    one_way = pairs_of(batch, learner.logits(batch, learner.encoder.nodes(batch)))
    nodes = learner.encoder.nodes(batch).detach()
    for (u, v), logit in one_way.items():
        row = torch.cat([nodes[u], nodes[v]])
        assert logit == pytest.approx(learner.second(learner.first(row).relu()).item(), abs=1e-3, rel=1e-4)
    shared = build(features).view_learner.eval()
    edges, logits = shared.edges(batch), shared.logits(batch, shared.encoder.nodes(batch))
    for u, v, logit in zip(edges.source.tolist(), edges.destination.tolist(), logits.tolist(), strict=True):
        assert logit == pytest.approx((one_way[u, v] + one_way[v, u]) / 2, abs=1e-3, rel=1e-4)


@pytest.mark.parametrize("name", ["motifs", "odd"])
def test_both_directions_of_an_edge_have_one_weight(request, name):
    batch = GraphBatch.of(request.getfixturevalue(name))
    weight, _ = build(request.getfixturevalue(name)).view_learner(batch)
    result = pairs_of(batch, weight)
    assert all(result[u, v] == result[v, u] for u, v in result)
    assert len(set(result.values())) > len(result) / 3  # and other edges another


def test_directions_may_be_independent(motifs):
    batch = GraphBatch.of(motifs)
    weight, _ = build(motifs, directions="independent").view_learner(batch)
    result = pairs_of(batch, weight)
    assert sum(result[u, v] != result[v, u] for u, v in result) > 0.9 * len(result)


def test_the_noise_is_logistic(motifs):
    """With logits of zero and temperature 1 a weight is uniform; at 0.1 it is nearly zero or one."""
    batch = GraphBatch.of(open_collection("motifs:200"))
    shares = {}
    for temperature in (1.0, 0.1):
        learner = build(motifs, edge_temperature=temperature).view_learner
        nn.init.zeros_(learner.second.weight)
        torch.manual_seed(0)
        weight, _ = learner(batch)
        shares[temperature] = [
            float(((weight > low) & (weight < low + 0.1)).float().mean()) for low in (0.0, 0.5, 0.9)
        ]
    np.testing.assert_allclose(shares[1.0], 0.1, atol=0.02)
    # P(w < 0.1) = P(noise < T log(1/9)) = 1 / (1 + 9^T)
    np.testing.assert_allclose(shares[0.1][0], 1 / (1 + 9**0.1), atol=0.02)


@pytest.mark.parametrize("directions", ["shared", "independent"])
@pytest.mark.parametrize("name", ["motifs", "odd"])
def test_dropped_share_is_the_mean_over_each_graphs_edges(request, name, directions):
    batch = GraphBatch.of(request.getfixturevalue(name))
    weight, dropped = build(request.getfixturevalue(name), directions=directions).view_learner(batch)
    result = pairs_of(batch, weight)
    graph = batch.batch.tolist()
    expected = []
    for number in range(batch.num_graphs):
        if directions == "shared":
            own = [1 - w for (u, v), w in result.items() if u <= v and graph[u] == number]
        else:
            own = [1 - w for (u, _), w in result.items() if graph[u] == number]
        expected.append(sum(own) / len(own) if own else 0.0)
    np.testing.assert_allclose(dropped.detach(), expected, atol=1e-6)


def test_the_players_have_opposed_losses(motifs):
    """From the same rows; NT-Xent both ways written out as a loop."""
    method = build(motifs, drop_penalty=3.0)
    encoded = method.encode({"anchor": GraphBatch.of(motifs)}, "view")
    view, model = method.objective(encoded, "view"), method.objective(encoded, "model")
    with torch.no_grad():
        a, p = (method.head(encoded[name]) for name in ("anchor", "positive"))
        cosine = torch.nn.functional.cosine_similarity(a[:, None], p[None], dim=2)
        scores = (cosine / 0.2).double().exp().tolist()
        size, expected = len(scores), 0.0
        for i in range(size):
            row = sum(scores[i][j] for j in range(size) if j != i)
            column = sum(scores[j][i] for j in range(size) if j != i)
            expected -= (math.log(scores[i][i] / row) + math.log(scores[i][i] / column)) / 2 / size
    assert model["contrast"].item() == pytest.approx(expected, abs=1e-4)
    assert view["contrast"].item() == pytest.approx(-expected, abs=1e-4)
    assert view["dropped"].item() == pytest.approx(3 * encoded["dropped"].mean().item())
    assert set(model) == {"contrast"}


@pytest.mark.parametrize("other_player", ["training", "evaluation"])
@pytest.mark.parametrize("turn", ["view", "model"])
def test_gradients_reach_the_player_alone(motifs, turn, other_player):
    method = build(motifs, other_player=other_player)
    for player in method.players():
        assert len(player.parameters) > 0
    encoded = method.encode({"anchor": GraphBatch.of(motifs)}, turn)
    torch.stack(list(method.objective(encoded, turn).values())).sum().backward()
    for player in method.players():
        for parameter in player.parameters:
            assert parameter.requires_grad
            assert (parameter.grad is not None) == (player.name == turn)


def test_every_parameter_has_one_player(motifs):
    method = build(motifs)
    played = [id(parameter) for player in method.players() for parameter in player.parameters]
    assert sorted(played) == sorted(id(parameter) for parameter in method.parameters())


def test_the_view_learner_gets_a_gradient_from_the_contrast(motifs):
    """Its gradient passes through the encoder's messages, not only through the penalty on dropped edges."""
    method = build(motifs)
    encoded = method.encode({"anchor": GraphBatch.of(motifs)}, "view")
    method.objective(encoded, "view")["contrast"].backward()
    assert method.view_learner.first.weight.grad.abs().sum() > 0


def test_encoder_gradient_by_a_weight_is_that_of_finite_differences(motifs):
    """The first layer's messages, scaled by one edge's weight more or less."""
    from dataclasses import replace

    batch = GraphBatch.of(motifs[:2])
    encoder = build(motifs).encoder.double().eval()
    weight = torch.full((batch.num_edges,), 0.5, dtype=torch.float64, requires_grad=True)

    def value(w):
        return encoder(replace(batch, edge_weight=w)).square().sum()

    value(weight).backward()
    for edge in (0, 7):
        step = torch.zeros_like(weight)
        step[edge] = 1e-6
        numeric = (value(weight.detach() + step) - value(weight.detach() - step)) / 2e-6
        assert float(weight.grad[edge]) == pytest.approx(numeric.item(), rel=1e-4)


@pytest.mark.parametrize("turn", ["view", "model"])
def test_the_other_player_keeps_its_running_statistics_in_evaluation_mode(motifs, turn):
    method = build(motifs, other_player="evaluation")
    rests = method.encoder if turn == "view" else method.view_learner
    before = {name: value.clone() for name, value in rests.named_buffers()}
    method.encode({"anchor": GraphBatch.of(motifs)}, turn)
    assert all(torch.equal(value, before[name]) for name, value in rests.named_buffers())
    assert all(module.training for module in method.modules())


def test_the_two_encoders_have_one_shape_and_different_weights(motifs):
    method = build(motifs, **{"encoder.depth": 2, "encoder.norm": "before"})
    one, two = method.encoder.state_dict(), method.view_learner.encoder.state_dict()
    assert {name: value.shape for name, value in one.items()} == {
        name: value.shape for name, value in two.items()
    }
    assert not torch.equal(one["blocks.0.first.weight"], two["blocks.0.first.weight"])
    again = build(motifs, **{"encoder.depth": 2, "encoder.norm": "before"}).view_learner.state_dict()
    assert all(torch.equal(value, again[name]) for name, value in method.view_learner.state_dict().items())


@pytest.mark.parametrize("turn", ["view", "model"])
def test_graphs_without_any_edge_are_finite(odd, turn):
    collection = odd[np.array([1, 2])]
    method = build(collection)
    losses = method.objective(method.encode({"anchor": GraphBatch.of(collection)}, turn), turn)
    total = torch.stack(list(losses.values())).sum()
    total.backward()
    assert torch.isfinite(total)
    gradients = [parameter.grad for parameter in method.parameters() if parameter.grad is not None]
    assert gradients
    assert all(torch.isfinite(gradient).all() for gradient in gradients)


def test_odd_graphs_train(odd):
    rows = train(odd, "adgcl", training=TrainSettings(epochs=2)).metrics.rows
    assert np.isfinite([row["loss"] for row in rows]).all()
    assert all(0 <= row["dropped_edges"] <= 1 for row in rows)


def test_a_low_penalty_drops_more_edges(motifs):
    dropped = {
        price: train(
            motifs, "adgcl", settings={"drop_penalty": price}, training=TrainSettings(epochs=10)
        ).metrics.rows[-1]["dropped_edges"]
        for price in (0.0, 20.0)
    }
    assert dropped[0.0] > dropped[20.0] + 0.2


def test_published_preset_is_the_five_layer_encoder(motifs):
    recipe = make_recipe("adgcl", motifs, preset="published")
    assert recipe.build(motifs.features, 0).dimensions(motifs.features) == 32
    assert recipe.encoder_settings["depth"] == 5
    assert training_settings("adgcl", "published", "MUTAG") == {
        "epochs": 150,
        "batch_size": 32,
        "learning_rate": 0.001,
    }


@pytest.mark.parametrize(
    "settings", [{"drop_penalty": -1.0}, {"temperature": 0.0}, {"edge_temperature": 0.0}, {"hidden": 0}]
)
def test_settings_out_of_range_are_refused(motifs, settings):
    with pytest.raises(ConfigError):
        ADGCL(Gin(motifs.features), **settings)


def test_an_encoder_without_fresh_is_refused():
    with pytest.raises(ConfigError, match="second encoder"):
        ADGCL(PygEncoder(nn.Linear(3, 3), 3))
