"""CGC: both players' losses against their equations, the counterfactuals, and the clusters."""

import math

import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.methods.cgc import CGC
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:16]


def build(graphs, **settings):
    method = make_recipe("cgc", graphs, settings).build(graphs.features, 0)
    method.begin(graphs, torch.Generator().manual_seed(0))
    return method


def encoded_of(method, graphs, player):
    torch.manual_seed(0)
    views = method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))
    return method.encode(views, player)


def cosine(a, b):
    return float(a @ b) / float(a.norm() * b.norm())


def probabilities(method, graph):
    """Of the clusters that exist, by the equation."""
    exponentials = [math.exp(10 * cosine(graph, centre)) for centre in method.centres if centre.any()]
    return [value / sum(exponentials) for value in exponentials]


def test_the_generators_loss_is_the_equation(graphs):
    method = build(graphs, similarity=0.3)
    encoded = encoded_of(method, graphs, "generator")
    losses = method.objective(encoded, "generator")
    total, left = 0.0, 0
    for i, anchor in enumerate(encoded["anchor"]):
        own = probabilities(method, anchor)
        own = own.index(max(own))
        for name in ("edges", "features"):
            made = probabilities(method, encoded[name][i].detach())
            if made.index(max(made)) == own:
                total -= math.log(1 - made[own])
            else:
                left += 1
    assert 0 < left < 32
    assert losses["class"].item() == pytest.approx(total / 16, rel=1e-4)
    assert losses["similarity"].item() == pytest.approx(0.3 * encoded["weakened"].mean().item(), rel=1e-5)


@pytest.mark.parametrize("others", [False, True])
def test_the_models_loss_is_the_equation(graphs, others):
    method = build(graphs, others=others, temperature=0.3)
    encoded = encoded_of(method, graphs, "model")
    loss = method.objective(encoded)["contrast"].item()
    with torch.no_grad():
        rows = {name: method.head(encoded[name]) for name in ("anchor", "positive", "edges", "features")}
    total = 0.0
    for i, z in enumerate(rows["anchor"]):
        own = probabilities(method, encoded["anchor"][i].detach())
        top = math.exp(cosine(z, rows["positive"][i]) / 0.3)
        below = top
        for name in ("edges", "features"):
            made = probabilities(method, encoded[name][i].detach())
            if made.index(max(made)) != own.index(max(own)):
                below += math.exp(cosine(z, rows[name][i]) / 0.3)
        if others:
            below += sum(math.exp(cosine(z, rows["positive"][j]) / 0.3) for j in range(16) if j != i)
        total -= math.log(top / below)
    assert loss == pytest.approx(total / 16, rel=1e-3)


def test_counterfactuals_have_weaker_edges_or_weaker_features(graphs):
    method, batch = build(graphs), GraphBatch.of(graphs)
    made, weakened = method.generator(batch)
    edges, features = made["edges"], made["features"]
    assert torch.equal(edges.dense_x(), batch.dense_x())
    assert torch.equal(features.edge_index, batch.edge_index)
    weight = dict(zip(map(tuple, batch.edge_index.T.tolist()), edges.edge_weight.tolist(), strict=True))
    assert all(0 < value < 1 and weight[v, u] == value for (u, v), value in weight.items())
    keep = features.dense_x().sum(1)
    assert ((keep > 0) & (keep < 1)).all()
    first = slice(0, int(batch.ptr[1]))
    share = [1 - value for (u, v), value in weight.items() if v < batch.ptr[1]]
    expected = sum(share) / len(share) + (1 - keep[first]).mean().item()
    assert weakened[0].item() == pytest.approx(expected, rel=1e-4)


def test_counterfactuals_begin_near_their_graphs(graphs):
    assert build(graphs).generator(GraphBatch.of(graphs))[1].mean() / 2 < 0.25


def test_a_generator_that_learns_makes_graphs_leave_their_cluster(graphs):
    options = {"settings": {"similarity": 0.0}, "training": TrainSettings(epochs=40, learning_rate=0.003)}
    rows = train(graphs, "cgc", **options).metrics.rows
    assert max(row["left_cluster"] for row in rows[20:]) > rows[0]["left_cluster"] + 0.2


def test_the_players_do_not_train_each_other(graphs):
    method = build(graphs)
    for player in method.players():
        method.zero_grad(set_to_none=True)
        sum(method.objective(encoded_of(method, graphs, player.name), player.name).values()).backward()
        own = {id(parameter) for parameter in player.parameters}
        assert all(
            (parameter.grad is not None) == (id(parameter) in own) for parameter in method.parameters()
        )


def test_clusters_are_of_graphs_alike_and_leave_the_method_unchanged():
    graphs = open_collection("mutag")
    method = make_recipe("cgc", graphs, {"clusters": 3}).build(graphs.features, 0)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    method.begin(graphs, torch.Generator().manual_seed(0))
    changed = [key for key, value in method.state_dict().items() if not torch.equal(value, before[key])]
    assert changed == ["centres"]
    with torch.no_grad():
        rows = method.encoder(GraphBatch.of(graphs))
        unit = nn.functional.normalize(rows)
        cluster = method._clusters(rows).argmax(1)
    assert len(cluster.unique()) == 3
    alike = unit @ unit.T
    same = cluster[:, None] == cluster
    assert alike[same].mean() > alike[~same].mean() + 0.2


def test_few_graphs_have_few_clusters(graphs):
    method = make_recipe("cgc", graphs, {"clusters": 8}).build(graphs.features, 0)
    method.begin(graphs[:8], torch.Generator().manual_seed(0))
    assert int(method.centres.any(1).sum()) == 2


@pytest.mark.parametrize(
    "settings", [{"clusters": 1}, {"similarity": -1.0}, {"hidden": 0}, {"temperature": 0.0}]
)
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        make_recipe("cgc", graphs, settings).build(graphs.features, 0)


def test_an_encoder_that_cannot_be_copied_is_refused():
    class Plain(nn.Linear):
        dimensions = 3

    with pytest.raises(ConfigError, match="second encoder"):
        CGC(Plain(3, 3), operations=("drop-nodes",))
