"""GIC: summaries of graphs and clusters against the equations, and the corruption."""

import math

import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.gic import GIC, cluster_summaries


@pytest.fixture(scope="module")
def graphs():
    return open_collection("mutag")[:8]


def build(graphs, **settings):
    return make_recipe("gic", graphs, settings).build(graphs.features, 0)


def views_of(method, graphs, seed=0):
    return method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(seed))


def sigmoid(x):
    return 1 / (1 + math.exp(-x))


def soft_kmeans(rows, order, clusters, sharpness, steps):
    """Summaries, node by node and centre by centre."""
    unit = [[x / math.sqrt(sum(y * y for y in row)) for x in row] for row in rows]
    ranked = sorted(range(len(rows)), key=lambda i: order[i])
    centres = [unit[i] for i in ranked[: max(1, min(clusters, len(rows) // 4))]]
    for _ in range(steps + 1):
        assignment = []
        for row in unit:
            weights = []
            for centre in centres:
                length = math.sqrt(sum(x * x for x in centre))
                cosine = sum(a * b for a, b in zip(row, centre, strict=True)) / length
                weights.append(math.exp(sharpness * cosine))
            assignment.append([weight / sum(weights) for weight in weights])
        centres = [
            [
                sum(assignment[i][k] * unit[i][j] for i in range(len(unit)))
                / sum(assignment[i][k] for i in range(len(unit)))
                for j in range(len(unit[0]))
            ]
            for k in range(len(centres))
        ]
    width = range(len(unit[0]))
    return [
        [sigmoid(sum(r * c[j] for r, c in zip(row, centres, strict=True))) for j in width]
        for row in assignment
    ]


@pytest.mark.parametrize(("clusters", "steps"), [(3, 4), (100, 1), (1, 0)])
def test_cluster_summaries_are_soft_kmeans(clusters, steps):
    torch.manual_seed(0)
    rows, order = torch.randn(21, 4, dtype=torch.float64), torch.rand(21)
    found = cluster_summaries(rows, order, clusters, sharpness=5.0, steps=steps)
    expected = soft_kmeans(rows.tolist(), order.tolist(), clusters, 5.0, steps)
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64))


def test_well_separated_clusters_have_one_summary_each():
    rows = torch.eye(3, dtype=torch.float64).repeat_interleave(8, 0)
    # A start in each of the three.
    order = torch.arange(24.0)
    order[[0, 8, 16]] = torch.tensor([-3.0, -2.0, -1.0])
    found = cluster_summaries(rows, order, 3, sharpness=50.0, steps=3)
    torch.testing.assert_close(found, rows.sigmoid(), atol=1e-6, rtol=0)


def test_the_loss_is_the_equation_written_out(graphs):
    method = build(graphs, alpha=0.3, clusters=4, cluster_steps=2, **{"encoder.width": 2})
    views = views_of(method, graphs)
    losses = method.objective(method.encode(views))
    batch = views["anchor"]
    with torch.no_grad():
        local, corrupted = (method.encoder.nodes(views[name]) for name in ("anchor", "corrupted"))
    own = soft_kmeans(local.tolist(), views.sampled["order"].tolist(), 4, 10.0, 2)
    graph_loss = cluster_loss = 0.0
    for i in range(batch.num_nodes):
        g = int(batch.batch[i])
        summary = local[batch.ptr[g] : batch.ptr[g + 1]].mean(0).sigmoid()
        scores = [float(rows[i] @ method.bilinear.detach() @ summary) for rows in (local, corrupted)]
        graph_loss -= math.log(sigmoid(scores[0])) + math.log(sigmoid(-scores[1]))
        scores = [float(rows[i] @ torch.tensor(own[i])) for rows in (local, corrupted)]
        cluster_loss -= math.log(sigmoid(scores[0])) + math.log(sigmoid(-scores[1]))
    nodes = batch.num_nodes
    assert losses["graph"].item() == pytest.approx(0.3 * graph_loss / nodes, rel=1e-4)
    assert losses["cluster"].item() == pytest.approx(0.7 * cluster_loss / nodes, rel=1e-4)


def test_corruption_exchanges_features_and_nothing_else(graphs):
    views = views_of(build(graphs), graphs)
    batch, corrupted = views["anchor"], views["corrupted"]
    assert torch.equal(batch.edge_index, corrupted.edge_index)
    assert torch.equal(batch.ptr, corrupted.ptr)
    assert not torch.equal(batch.codes, corrupted.codes)
    assert torch.equal(batch.codes.sort(0).values, corrupted.codes.sort(0).values)


@pytest.mark.parametrize(("alpha", "names"), [(0.0, {"cluster", "graph"}), (1.0, {"graph"})])
def test_one_term_alone(graphs, alpha, names):
    method = build(graphs, alpha=alpha)
    losses = method.objective(method.encode(views_of(method, graphs)))
    assert set(losses) == names
    sum(losses.values()).backward()
    assert all(parameter.grad is not None for parameter in method.parameters())
    if alpha == 0:
        assert losses["graph"].item() == 0


@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_the_summary_is_the_mean_of_all_nodes_even_if_few_are_contrasted(graphs, readout):
    method = build(graphs, max_nodes=10, **{"encoder.readout": readout})
    views = views_of(method, graphs)
    encoded = method.encode(views)
    assert len(encoded["local"]) == len(encoded["corrupted"]) == len(encoded["order"]) == 10
    nodes = method.encoder.nodes(views["anchor"]).split(views["anchor"].ptr.diff().tolist())
    torch.testing.assert_close(encoded["mean"], torch.stack([part.mean(0) for part in nodes]))


def test_the_published_preset(graphs):
    assert make_recipe("gic", graphs, preset="published").settings["clusters"] == 128
    assert training_settings("gic", "published", graphs.name)["epochs"] == 2000


@pytest.mark.parametrize(
    "settings", [{"clusters": 0}, {"sharpness": 0.0}, {"cluster_steps": -1}, {"alpha": 1.5}, {"max_nodes": 0}]
)
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        build(graphs, **settings)


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        GIC(nn.Linear(3, 3))
