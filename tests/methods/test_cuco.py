"""CuCo: the memory, and which graphs are negatives when."""

import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:24")


def build(graphs, **settings):
    method = make_recipe("cuco", graphs, settings).build(graphs.features, 0)
    method.begin(graphs, torch.Generator().manual_seed(1))
    return method


def encoded(method, graphs, rows=None):
    rows = np.arange(len(graphs)) if rows is None else rows
    batch = GraphBatch.gather(graphs, rows)
    return method.encode(method.views(batch, torch.Generator().manual_seed(0)))


def test_the_memory_holds_the_projected_clean_graphs_in_their_order(graphs):
    method = build(graphs)
    assert method.members.tolist() == list(range(24))
    expected = method.head(method.encoder(GraphBatch.of(graphs)))  # one batch, in training mode
    torch.testing.assert_close(method.memory, expected.detach())


def test_the_memory_before_the_head_as_published(graphs):
    method = build(graphs, memory_vectors="encoder")
    torch.testing.assert_close(method.memory, method.encoder(GraphBatch.of(graphs)).detach())


def test_making_the_memory_leaves_the_running_statistics(graphs):
    method = make_recipe("cuco", graphs).build(graphs.features, 0)
    before = {name: value.clone() for name, value in method.named_buffers()}
    method.begin(graphs, torch.Generator().manual_seed(1))
    assert all(torch.equal(value, before[name]) for name, value in method.named_buffers())
    assert method.training


def test_a_small_memory_is_another_part_of_the_collection_each_epoch(graphs):
    method = build(graphs, memory=10)
    first = method.members.tolist()
    method.after_epoch(graphs, torch.Generator().manual_seed(2))
    assert len(first) == len(method.members) == len(method.memory) == 10
    assert first == sorted(set(first)) != method.members.tolist()


def test_a_graph_is_not_its_own_negative(graphs):
    method = build(graphs, memory=10, negatives=24, temperature=1.0)
    method.after_step({}, 1.0)
    rows = encoded(method, graphs)
    with torch.no_grad():
        found = method.objective(rows)["contrast"]
        unit = torch.nn.functional.normalize
        anchor, positive = unit(method.head(rows["anchor"])), unit(method.head(rows["positive"]))
        memory = unit(method.memory)
    losses = []
    for graph in range(24):
        own = float(anchor[graph] @ positive[graph])
        others = [
            float(anchor[graph] @ memory[row])
            for row, member in enumerate(method.members.tolist())
            if member != graph
        ]
        if graph not in method.members.tolist():  # nine negatives for all: one row has at most M - 1
            others = sorted(others)[:9]
        losses.append(-own + np.log(np.exp(own) + np.exp(others).sum()))
    assert float(found) == pytest.approx(np.mean(losses), rel=1e-5)


def test_negatives_become_harder_with_progress(graphs):
    method = build(graphs, negatives=4)
    rows, losses = encoded(method, graphs), []
    for progress in (0.0, 0.25, 1.0):
        method.after_step({}, progress)
        assert method.extra_metrics(rows)["memory_share"] == pytest.approx(progress**0.5)
        torch.manual_seed(0)
        losses.append(float(method.objective(rows)["contrast"].detach()))
    assert losses == sorted(losses)
    assert losses[0] < losses[2]


def test_without_a_memory_the_batch_is_the_memory(graphs):
    method = make_recipe("cuco", graphs).build(graphs.features, 0)
    assert torch.isfinite(method.objective(encoded(method, graphs))["contrast"])


def test_the_memory_is_not_part_of_the_model(graphs):
    run = train(graphs, "cuco", training=TrainSettings(epochs=1))
    assert not any("memory" in name or "members" in name for name in run.model.method.state_dict())


@pytest.mark.parametrize("settings", [{"pace": 0.0}, {"memory": 0}, {"negatives": 0}, {"temperature": 0.0}])
def test_values_out_of_range_are_refused(graphs, settings):
    with pytest.raises(ConfigError):
        make_recipe("cuco", graphs, settings).build(graphs.features, 0)
