"""GCC: structural features, sub-graphs by walks, the queue and the moving averages."""

import math
from dataclasses import replace

import networkx
import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders.inference import embed
from graphsc.methods import gcc, make_recipe
from graphsc.methods.gcc import hubs, return_probabilities


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:20")


def build(graphs, **settings):
    return make_recipe("gcc", graphs, settings).build(graphs.features, 0)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def diagonals_of_powers(graph, steps):
    """For each node and t the entry (i, i) of (D^-1 A)^t."""
    adjacency = networkx.to_numpy_array(graph, nodelist=sorted(graph))
    walk = adjacency / np.maximum(adjacency.sum(1, keepdims=True), 1)
    return np.stack([np.diag(np.linalg.matrix_power(walk, t + 1)) for t in range(steps)], 1)


@pytest.mark.parametrize("columns", [4, 256])  # several blocks, and one
def test_return_probabilities_are_diagonals_of_powers(monkeypatch, columns):
    monkeypatch.setattr(gcc, "COLUMNS", columns)
    some = [networkx.gnp_random_graph(size, 0.4, seed=size) for size in (3, 9, 14)]
    some += [networkx.empty_graph(2), networkx.star_graph(5)]
    found = return_probabilities(GraphBatch.of(open_collection(some)), 7)
    np.testing.assert_allclose(
        found, np.concatenate([diagonals_of_powers(graph, 7) for graph in some]), atol=1e-6
    )


def test_return_probabilities_without_edges_are_zero():
    batch = GraphBatch.of(open_collection([networkx.empty_graph(3)]))
    assert return_probabilities(batch, 4).tolist() == [[0.0] * 4] * 3


def test_hubs_are_all_nodes_of_the_largest_degree():
    batch = GraphBatch.of(open_collection([networkx.path_graph(4), networkx.star_graph(3)]))
    assert hubs(batch).tolist() == [False, True, True, False, True, False, False, False]


def test_views_are_connected_parts_around_one_seed_per_graph(graphs):
    method = build(graphs)
    views = method.views(GraphBatch.of(graphs), seeded())
    for view in views.values():
        assert view.num_graphs == 20
        seed = view.codes[:, 1] == 1
        assert torch.bincount(view.batch[seed], minlength=20).tolist() == [1] * 20
        for part in view.to_pyg().to_data_list():
            whole = networkx.Graph(part.edge_index.T.tolist())
            whole.add_nodes_from(range(part.num_nodes))
            assert networkx.is_connected(whole)


def test_features_describe_the_sub_graph_and_not_the_graph(graphs):
    view = build(graphs, positions=5).views(GraphBatch.of(graphs), seeded())["positive"]
    np.testing.assert_array_equal(view.codes[:, 0], view.in_degree)
    torch.testing.assert_close(view.floats, return_probabilities(view, 5))


def test_node_labels_are_not_used_unless_asked_for(graphs):
    batch = GraphBatch.of(graphs)
    other = replace(batch, codes=(batch.codes + 1) % graphs.features.cardinalities[0])
    for own, same in ((False, True), (True, False)):
        method = build(graphs, own_features=own).eval()
        assert torch.equal(method.embed(batch), method.embed(other)) == same


def test_whole_graphs_are_embedded_with_their_hubs_as_seeds(graphs):
    method = build(graphs).eval()
    batch = GraphBatch.of(graphs)
    described = method.encoder.describe(batch, hubs(batch))
    with torch.no_grad():
        expected = method.encoder.gin(described)
    np.testing.assert_allclose(embed(method, graphs), expected, rtol=1e-5, atol=1e-5)


def test_both_encoders_see_the_features_of_the_views(graphs):
    method = build(graphs).eval()
    views = method.views(GraphBatch.of(graphs), seeded())
    found = method.encode(views)
    with torch.no_grad():
        torch.testing.assert_close(found["positive"], method.encoder.gin(views["positive"]))
    assert not found["positive"].requires_grad


def encoded_at(rows, index, seed=0):
    torch.manual_seed(seed)
    return {
        "anchor": torch.randn(rows, 96),
        "positive": torch.randn(rows, 96),
        "index": torch.tensor(index),
    }


def test_negatives_are_keys_of_other_graphs_in_batch_and_queue(graphs):
    method = build(graphs, temperature=0.5, queue=4).eval()
    before = encoded_at(3, [0, 1, 2], seed=1)
    now = encoded_at(2, [1, 5], seed=2)
    unit = torch.nn.functional.normalize
    with torch.no_grad():
        old_keys = unit(method.key_head(before["positive"]))
        method.after_step(before, 0.5)
        found = float(method.objective(now)["contrast"])
        query, key = unit(method.head(now["anchor"])), unit(method.key_head(now["positive"]))
    losses = []
    for row, own in enumerate([1, 5]):
        others = [key[other] for other in range(2) if other != row]
        others += [old_keys[old] for old, graph in enumerate([0, 1, 2]) if graph != own]
        agree = math.exp(float(query[row] @ key[row]) / 0.5)
        against = sum(math.exp(float(query[row] @ other) / 0.5) for other in others)
        losses.append(-math.log(agree / (agree + against)))
    assert found == pytest.approx(sum(losses) / 2, rel=1e-5)


def test_a_step_queues_keys_of_the_old_average_and_then_moves_it(graphs):
    method = build(graphs, momentum=0.75, queue=8)
    rows = encoded_at(3, [4, 5, 6])
    with torch.no_grad():
        keys = method.key_head(rows["positive"])
        for parameter in [*method.encoder.parameters(), *method.head.parameters()]:
            parameter += 1.0
    before = [value.clone() for value in method.key_encoder.parameters()]
    with torch.no_grad():
        method.after_step(rows, 0.1)
    torch.testing.assert_close(method.queue.vectors(), keys)
    assert method.owners.vectors().flatten().tolist() == [4, 5, 6]
    for own, old in zip(method.key_encoder.parameters(), before, strict=True):
        torch.testing.assert_close(own, old + 0.25)


@pytest.mark.parametrize(
    "wrong",
    [{"steps": 0}, {"restart": 1.0}, {"positions": 0}, {"temperature": 0.0}, {"queue": 0}, {"momentum": 1.1}],
)
def test_values_out_of_range_are_refused(graphs, wrong):
    with pytest.raises(ConfigError):
        build(graphs, **wrong)
