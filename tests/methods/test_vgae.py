"""VGAE: the loss against its equation, the noise, and what is reconstructed."""

import math

import pytest
import torch
from torch import nn
from torch.distributions import Normal, kl_divergence

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.losses import gaussian_kl
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.vgae import VGAE


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:6]


def build(graphs, **settings):
    method = make_recipe("vgae", graphs, settings).build(graphs.features, 0)
    torch.manual_seed(1)
    nn.init.normal_(method.gaussian.weight[method.latent :], std=0.1)  # as after some training
    return method


def views_of(method, graphs, seed=0):
    return method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(seed))


def test_the_loss_is_the_equation_written_out(graphs):
    method = build(graphs, latent=3, divergence=0.7, **{"encoder.width": 4})
    views = views_of(method, graphs)
    losses = method.objective(method.encode(views))
    batch, noise = views["anchor"], views.sampled["noise"].tolist()
    with torch.no_grad():
        nodes = method.encoder.nodes(batch)
        mean, log_std = (part.tolist() for part in method.gaussian(nodes).chunk(2, 1))
    z = [
        [m + e * math.exp(s) for m, e, s in zip(*row, strict=True)]
        for row in zip(mean, noise, log_std, strict=True)
    ]

    def entropy(pairs, sign):
        products = [sum(a * b for a, b in zip(z[u], z[v], strict=True)) for u, v in pairs]
        return sum(math.log1p(math.exp(-sign * product)) for product in products) / len(pairs)

    edges = [(u, v) for u, v in batch.edge_index.T.tolist() if u < v]
    absent = views["absent"].edge_index.T.tolist()
    assert len(absent) == len(edges)
    assert losses["edges"].item() == pytest.approx((entropy(edges, 1) + entropy(absent, -1)) / 2, rel=1e-4)
    total, graph = 0.0, batch.batch.tolist()
    for i, (row, deviations) in enumerate(zip(mean, log_std, strict=True)):
        kl = sum((m * m + math.exp(2 * s) - 1 - 2 * s) / 2 for m, s in zip(row, deviations, strict=True))
        total += kl / graph.count(graph[i])
    assert losses["divergence"].item() == pytest.approx(0.7 * total / len(mean), rel=1e-4)


def test_the_divergence_is_that_of_torch():
    mean, log_std = torch.randn(2, 7, 3).unbind()
    expected = kl_divergence(Normal(mean, log_std.exp()), Normal(0.0, 1.0)).sum(1)
    torch.testing.assert_close(gaussian_kl(mean, log_std), expected)
    assert gaussian_kl(torch.zeros(1, 3), torch.zeros(1, 3)).item() == 0


def test_absent_pairs_are_within_graphs_and_are_no_edges(graphs):
    views = views_of(build(graphs, negatives=2.0), graphs)
    batch, absent = views["anchor"], views["absent"]
    pairs = set(map(tuple, absent.edge_index.T.tolist()))
    assert not pairs & set(map(tuple, batch.edge_index.T.tolist()))
    assert all(batch.batch[u] == batch.batch[v] for u, v in pairs)
    assert len(pairs) == batch.num_edges


def test_noise_matters_in_training_only(graphs):
    method = build(graphs)
    one, two = views_of(method, graphs, 0), views_of(method, graphs, 0)
    two.sampled["noise"] = -two.sampled["noise"]
    assert not torch.equal(method.encode(one)["edges"], method.encode(two)["edges"])
    method.eval()
    assert torch.equal(method.encode(one)["edges"], method.encode(two)["edges"])


def test_deviations_begin_at_one(graphs):
    method = make_recipe("vgae", graphs).build(graphs.features, 0)
    mean, log_std = method.gaussian(torch.randn(3, 96)).chunk(2, 1)
    assert mean.any()
    assert not log_std.any()


def test_a_large_deviation_stays_finite(graphs):
    method = build(graphs)
    nn.init.constant_(method.gaussian.bias, 100.0)
    total = sum(method.objective(method.encode(views_of(method, graphs))).values())
    assert torch.isfinite(total)


def test_no_divergence_without_weight(graphs):
    method = build(graphs, divergence=0.0)
    assert set(method.objective(method.encode(views_of(method, graphs)))) == {"edges"}


def test_the_published_preset(graphs):
    recipe = make_recipe("vgae", graphs, preset="published")
    assert (recipe.encoder_settings["width"], recipe.settings["latent"]) == (32, 16)
    assert training_settings("vgae", "published", graphs.name)["epochs"] == 200


@pytest.mark.parametrize("settings", [{"latent": 0}, {"negatives": 0.0}, {"divergence": -1.0}])
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        make_recipe("vgae", graphs, settings).build(graphs.features, 0)


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        VGAE(nn.Linear(3, 3))
