"""Infomax: the loss against its equation."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.infomax import Infomax


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:9")


def encoded_by(method, graphs, rows=None):
    batch = GraphBatch.gather(graphs, np.arange(len(graphs)) if rows is None else np.array(rows))
    return method.encode(method.views(batch, torch.Generator()))


@pytest.mark.parametrize("readout", ["sum", "mean"])
def test_the_loss_is_the_equation_written_out(graphs, readout):
    settings = {"encoder.depth": 2, "encoder.width": 4, "encoder.readout": readout}
    method = make_recipe("infomax", graphs, settings).build(graphs.features, 0)
    result = method.objective(encoded_by(method, graphs))["information"]
    batch = GraphBatch.of(graphs)
    with torch.no_grad():
        nodes = method.encoder.nodes(batch).double()
        weight = method.bilinear.double()
    own = other = 0.0
    summaries = []
    for g in range(9):
        rows = nodes[batch.ptr[g] : batch.ptr[g + 1]]
        summaries.append(1 / (1 + (-rows.mean(0)).exp()))
    for i, node in enumerate(nodes):
        g = int(batch.batch[i])
        own += math.log1p(math.exp(-float(node @ (weight @ summaries[g]))))
        other += math.log1p(math.exp(float(node @ (weight @ summaries[(g + 1) % 9]))))
    assert result.item() == pytest.approx((own + other) / len(nodes), rel=1e-4)


def test_the_initial_weights_are_uniform_within_the_published_bound(graphs):
    weight = make_recipe("infomax", graphs).build(graphs.features, 0).bilinear
    bound = 96**-0.5
    assert weight.shape == (96, 96)
    assert 0.95 * bound < weight.max() <= bound
    assert weight.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.05)


def test_the_encoder_runs_once_per_step(graphs):
    method = make_recipe("infomax", graphs).build(graphs.features, 0)
    calls = []
    method.encoder.blocks[0].register_forward_hook(lambda *_: calls.append(1))
    encoded_by(method, graphs)
    assert len(calls) == 1


def test_one_graph_has_no_other_summary(graphs):
    method = make_recipe("infomax", graphs).build(graphs.features, 0)
    encoded = encoded_by(method, graphs, [0])
    summary = encoded["local"].mean(0).sigmoid()
    expected = torch.nn.functional.softplus(-encoded["local"] @ (method.bilinear @ summary)).mean()
    torch.testing.assert_close(method.objective(encoded)["information"], expected)
    assert method.pretext(encoded).score == 0.5


def test_pretext_counts_scores_of_own_summaries_above_others(graphs):
    """With the unit matrix and vectors made by hand: graph 0 points one way, graph 1 the other."""
    method = make_recipe("infomax", graphs, {"encoder.width": 1, "encoder.depth": 2}).build(
        graphs.features, 0
    )
    with torch.no_grad():
        method.bilinear.copy_(torch.eye(2))
    mean = torch.tensor([[9.0, -9.0], [-9.0, 9.0]])
    local = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0]])
    result = method.pretext({"mean": mean, "local": local, "size": torch.tensor([2, 1])})
    assert (result.score, result.chance) == (1.0, 0.5)


def test_the_published_preset(graphs):
    training = training_settings("infomax", "published", graphs.name)
    assert training == {"learning_rate": 1e-3, "batch_size": 256, "epochs": 100}


def test_an_encoder_without_node_vectors_is_refused():
    with pytest.raises(ConfigError, match="needs node embeddings"):
        Infomax(nn.Linear(3, 3))
