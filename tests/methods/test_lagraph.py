"""LaGraph: the loss against its equation, and its variants."""

from dataclasses import replace

import networkx
import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.lagraph import LaGraph
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:12")


def build(graphs, **settings):
    return make_recipe("lagraph", graphs, settings).build(graphs.features, 0)


def step(method, graphs, seed=0):
    """Views, encoded rows and losses of the whole collection."""
    views = method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(seed))
    encoded = {name: value.float() for name, value in method.encode(views).items()}
    return views, encoded, method.objective(encoded)


def decoded_by_hand(method, rows, activate=False):
    first, _, norm, last = list(method.decoder)[:4]
    hidden = (rows @ first.weight.T + first.bias).clamp(min=0)
    hidden = (hidden - hidden.mean(0)) / (hidden.var(0, unbiased=False) + norm.eps).sqrt()
    result = (hidden * norm.weight + norm.bias) @ last.weight.T + last.bias
    return result.clamp(min=0) if activate else result


@pytest.mark.parametrize("activate", [False, True])
def test_reconstruction_is_the_mean_square_over_all_nodes(graphs, activate):
    method = build(graphs, activate_output=activate)
    _, _, losses = step(method, graphs)
    batch = GraphBatch.of(graphs)
    with torch.no_grad():
        result = decoded_by_hand(method, method.encoder.node_layers(batch)[-1], activate)
    expected = ((result - batch.dense_x()) ** 2).sum() / result.numel()
    torch.testing.assert_close(losses["reconstruction"], expected)


def test_several_codes_and_floats_are_reconstructed(mixed):
    """Two label columns, degrees and two float attributes: the target is all of them, side by side."""
    method = LaGraph(make_recipe("untrained", mixed).build(mixed.features, 0).encoder)
    _, _, losses = step(method, mixed)
    batch = GraphBatch.of(mixed)
    with torch.no_grad():
        result = decoded_by_hand(method, method.encoder.node_layers(batch)[-1])
    torch.testing.assert_close(losses["reconstruction"], ((result - batch.dense_x()) ** 2).mean())


def test_invariance_is_over_whole_graphs(graphs):
    method = build(graphs, alpha=3.0)
    views, encoded, losses = step(method, graphs)
    with torch.no_grad():
        moved = method.encoder(views["anchor"]) - method.encoder(views["masked"])
    torch.testing.assert_close(losses["invariance"], 3.0 * (moved**2).mean().sqrt())
    assert set(encoded) == {"anchor", "masked", "nodes", "codes"}


def test_invariance_of_nodes_is_over_the_masked_ones(graphs):
    method = build(graphs, invariance="nodes", alpha=3.0)
    views, _, losses = step(method, graphs)
    with torch.no_grad():
        clean, masked = (method.encoder.node_layers(views[name])[-1] for name in ("anchor", "masked"))
    total = sum(float(((clean[i] - masked[i]) ** 2).sum()) for i in views["masked"].replaced.tolist())
    expected = 3.0 * (total / (len(views["masked"].replaced) * clean.shape[1])) ** 0.5
    assert losses["invariance"].item() == pytest.approx(expected, rel=1e-4)


def test_masked_nodes_have_noise_around_zero_and_edges_stay(graphs):
    method = build(graphs, rate=0.5, std=2.0)
    views = method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))
    noise = views["masked"].replacement
    assert abs(float(noise.mean())) < 0.2
    assert float(noise.std()) == pytest.approx(2.0, rel=0.1)
    assert torch.equal(views["masked"].source, views["anchor"].source)
    assert views["anchor"].replaced is None


def test_rounded_counts_mask_a_node_of_every_graph_and_cut_ones_may_not(make):
    """One in ten of 4 and of 19 nodes: 1 and 2 rounded, 0 and 1 cut."""
    graphs = make([(4, []), (19, [])])
    result = {}
    for counts in ("rounded", "cut"):
        views = build(graphs, counts=counts).views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))
        result[counts] = torch.bincount(views["masked"].batch[views["masked"].replaced], minlength=2).tolist()
    assert result == {"rounded": [1, 2], "cut": [0, 1]}


@pytest.mark.parametrize("invariance", ["graphs", "nodes"])
def test_an_empty_mask_has_finite_gradients(graphs, invariance):
    """The root of a mean square of 0, where the naive gradient is infinity times 0."""
    method = build(graphs, rate=0.0, invariance=invariance)
    _, _, losses = step(method, graphs)
    assert losses["invariance"].item() == 0
    sum(losses.values()).backward()
    assert all(torch.isfinite(weight.grad).all() for weight in method.parameters())


def test_parts_encoded_separately_and_joined_equal_the_whole(graphs):
    """Encodings of several ranks can be concatenated: BatchNorm aside, the loss is that of one batch."""
    method = build(graphs, invariance="nodes", **{"encoder.norm": "none"})
    views, _, whole = step(method, graphs)
    parts = []
    for start, stop in ((0, 5), (5, 12)):
        rows = np.arange(start, stop)
        clean = GraphBatch.gather(graphs, rows)
        first, last = int(views["anchor"].ptr[start]), int(views["anchor"].ptr[stop])
        inside = (views["masked"].replaced >= first) & (views["masked"].replaced < last)
        masked = replace(
            clean,
            replaced=views["masked"].replaced[inside] - first,
            replacement=views["masked"].replacement[inside],
        )
        parts.append(method.encode({"anchor": clean, "masked": masked}))
    joined = method.objective({name: torch.cat([part[name].float() for part in parts]) for name in parts[0]})
    for name, value in whole.items():
        torch.testing.assert_close(joined[name], value)


def test_a_term_without_weight_is_left_out(graphs):
    assert set(step(build(graphs, alpha=0.0), graphs)[2]) == {"reconstruction"}


def test_invariance_of_nodes_trains(graphs):
    settings = {"invariance": "nodes"}
    rows = train(graphs, "lagraph", settings=settings, training=TrainSettings(epochs=30)).metrics.rows
    assert np.mean([row["loss"] for row in rows[-5:]]) < 0.75 * rows[0]["loss"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("PROTEINS", (0.3, 2.0, 1.0, 1e-6, 5)),
        ("DD", (0.1, 0.5, 10.0, 1e-5, 15)),
        ("MUTAG", (0.05, 0.5, 10.0, 1e-5, 50)),
        ("REDDIT-BINARY", (0.05, 0.5, 10.0, 1e-3, 15)),
        ("IMDB-BINARY", (0.05, 0.5, 10.0, 1e-4, 5)),
        ("NCI1", (0.1, 1.0, 10.0, 1e-5, 10)),  # the command's defaults; the notebook does not have it
    ],
)
def test_published_settings(graphs, name, expected):
    recipe = make_recipe("lagraph", replace(graphs, name=name), preset="published")
    training = training_settings("lagraph", "published", name)
    result = [recipe.settings[key] for key in ("rate", "std", "alpha")]
    assert (*result, training["learning_rate"], training["epochs"]) == expected
    assert recipe.settings["counts"] == "cut"


def test_published_graphs_have_self_loops_everywhere(graphs):
    batch = GraphBatch.of(graphs)
    method = make_recipe("lagraph", graphs, preset="published").build(graphs.features, 0)
    views = method.views(batch, torch.Generator().manual_seed(0))
    last = set((batch.ptr[1:] - 1).tolist())
    expected = {node for node in range(batch.num_nodes) if node not in last}
    for view in views.values():
        source, destination = view.edge_index
        assert set(source[source == destination].tolist()) == expected
    with torch.no_grad():
        assert torch.equal(method.eval()(batch), method.encoder(views["anchor"]))


def test_degrees_count_self_loops_up_to_their_cap():
    star = open_collection([networkx.star_graph(5)], features="degree:4")
    method = make_recipe("lagraph", star, preset="published").build(star.features, 0)
    views = method.views(GraphBatch.of(star), torch.Generator().manual_seed(0))
    # The centre has 5 neighbours, above the cap; the leaves 1 and a loop, the last of them none.
    assert views["anchor"].codes[:, 0].tolist() == [4, 2, 2, 2, 2, 1]


def test_published_weights_are_initialised_as_torch_does(graphs):
    """Uniform within 1 / sqrt(inputs), biases too; Xavier's bound and zeros by default."""
    published = make_recipe("lagraph", graphs, preset="published").build(graphs.features, 0)
    first, second = published.encoder.blocks[:2]
    inputs = graphs.features.width
    for weight, count in ((first.first.weight, inputs), (first.bias, inputs), (second.bias, 32),
                          (second.first.weight, 32), (second.second.weight, 32), (second.second.bias, 32),
                          (published.decoder[0].weight, 32), (published.decoder[3].bias, 32)):  # fmt: skip
        assert 0.5 * count**-0.5 < float(weight.detach().abs().max()) <= count**-0.5
    default = build(graphs)
    assert not default.encoder.blocks[0].bias.any()
    assert (
        float(default.encoder.blocks[1].second.weight.detach().abs().max()) > 32**-0.5
    )  # Xavier: sqrt(6 / 64)


@pytest.mark.parametrize("settings", [{"rate": 1.5}, {"std": -1.0}, {"alpha": -1.0}])
def test_settings_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)


def test_an_encoder_of_unknown_features_is_refused(graphs):
    class Blind(nn.Module):
        dimensions, readout = 3, "sum"

        def nodes(self, batch):
            return torch.zeros(batch.num_nodes, 3)

    with pytest.raises(ConfigError, match="does not say which"):
        LaGraph(Blind())
