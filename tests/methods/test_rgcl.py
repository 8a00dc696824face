"""RGCL: node scores, the views sampled by them, and how the explainer learns."""

import numpy as np
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders.gin import Gin
from graphsc.encoders.pyg import PygEncoder
from graphsc.methods import make_recipe, rgcl, training_settings
from graphsc.methods.rgcl import RGCL
from graphsc.training.callbacks import Callback
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings


@pytest.fixture(scope="module")
def motifs():
    return open_collection("motifs:24")


def build(collection, seed=0, **settings):
    return make_recipe("rgcl", collection, settings).build(collection.features, seed)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_scores_are_a_softmax_over_each_graph(motifs):
    """Three layers written with dense matrices, BatchNorm after each, ReLU after all but the last."""
    explainer = build(motifs).explainer.eval()
    batch = GraphBatch.of(motifs)
    adjacency = torch.eye(batch.num_nodes)
    adjacency.index_put_(
        (batch.edge_index[1], batch.edge_index[0]), torch.ones(batch.num_edges), accumulate=True
    )
    with torch.no_grad():
        result = explainer.scores(batch)
        x = batch.dense_x()
        for number, block in enumerate(explainer.blocks):
            first = block.first.weight if number == 0 else block.first.weight.T
            x = block.norm(block.second((adjacency @ x @ first + block.bias).relu()))
            x = x.relu() if number < 2 else x
        assert x.shape == (batch.num_nodes, 1)
        for start, stop in zip(batch.ptr.tolist(), batch.ptr[1:].tolist(), strict=False):
            expected = torch.softmax(x[start:stop, 0] / 5, 0)
            torch.testing.assert_close(result[start:stop], expected, rtol=1e-3, atol=1e-6)


def test_importance_is_the_score_over_the_largest(motifs):
    explainer = build(motifs).explainer.eval()
    batch = GraphBatch.of(motifs)
    with torch.no_grad():
        scores, importance = explainer.scores(batch), explainer.importance(batch)
    for start, stop in zip(batch.ptr.tolist(), batch.ptr[1:].tolist(), strict=False):
        own = scores[start:stop]
        torch.testing.assert_close(importance[start:stop], 0.9 + 0.1 * own / own.max())


def test_stored_scores_follow_the_graphs_of_a_batch(motifs):
    method = build(motifs)
    method.begin(motifs, seeded())
    assert method.training
    rows = np.array([7, 3, 20])
    batch = GraphBatch.gather(motifs, rows)
    assert method.scores.values.dtype == torch.float16
    with torch.no_grad():
        expected = method.explainer.eval().scores(batch)
    torch.testing.assert_close(method.scores.of(batch), expected, atol=1e-4, rtol=1e-3)


def test_scores_of_other_graphs_are_refused(motifs):
    method = build(motifs)
    method.begin(motifs[:10], seeded())
    for rows in (np.array([12]), np.array([23])):
        with pytest.raises(DataError, match="other graphs"):
            method.views(GraphBatch.gather(motifs, rows), seeded())


@pytest.mark.parametrize("begun", [False, True])
def test_views_keep_all_but_a_tenth(motifs, begun):
    method = build(motifs)
    if begun:
        method.begin(motifs, seeded())
    batch = GraphBatch.of(motifs)
    views = method.views(batch, seeded())
    assert views["anchor"] is batch
    expected = [n - int(0.1 * n) for n in batch.ptr.diff().tolist()]
    assert views["positive"].ptr.diff().tolist() == expected
    assert views["complement"].ptr.diff().tolist() == expected


def dropped_by(method, batch, name):
    """How often each node is missing from a view over many draws; nodes are identified by their floats."""
    generator, missing = seeded(1), torch.zeros(batch.num_nodes)
    for _ in range(300):
        missing += 1
        missing[method.views(batch, generator)[name].floats[:, 0].long()] -= 1
    return missing / 300


def test_the_rationale_keeps_high_scores_and_the_complement_drops_them():
    networkx = pytest.importorskip("networkx")
    graph = networkx.path_graph(10)
    for node in graph:
        graph.nodes[node]["number"] = float(node)
    collection = open_collection([graph], features="attributes")
    method = build(collection)
    method.begin(collection, seeded())
    score = torch.full((10,), 0.05)
    score[2], score[6] = 0.5, 0.1
    method.scores = type(method.scores)(score.half(), torch.tensor([0, 10]))
    batch = GraphBatch.of(collection)
    assert batch.floats[:, 0].tolist() == list(range(10))
    kept, turned = dropped_by(method, batch, "positive"), dropped_by(method, batch, "complement")
    assert kept[2] < 0.05
    assert turned[2] > 0.9  # (0 + 0.001) against 8 * 0.451 + 0.401


def test_the_anchor_may_be_a_second_rationale(motifs):
    views = build(motifs, anchor="rationale").views(GraphBatch.of(motifs), seeded())
    assert views["anchor"].num_nodes == views["positive"].num_nodes
    assert not torch.equal(views["anchor"].codes, views["positive"].codes)


@pytest.mark.parametrize("small", [0, 10**9])
def test_rows_are_pooled_by_importance(motifs, monkeypatch, small):
    """View by view and layer by layer; in one pass over all views, and in one pass per view."""
    monkeypatch.setattr(rgcl, "MAX_JOINT_SIZE", small)
    method = build(motifs)
    views = method.views(GraphBatch.of(motifs), seeded())
    with torch.no_grad():
        result = method.encode(views)
        for name, batch in views.items():
            importance = method.explainer.importance(batch)
            pooled = []
            for nodes in method.encoder.node_layers(batch):
                rows = torch.zeros(batch.num_graphs, nodes.shape[1])
                pooled.append(rows.index_add(0, batch.batch, nodes * importance[:, None]))
            torch.testing.assert_close(result[name], torch.cat(pooled, 1), rtol=1e-3, atol=1e-3)


def test_embeddings_ignore_importance(motifs):
    method = build(motifs).eval()
    batch = GraphBatch.of(motifs)
    torch.testing.assert_close(method.embed(batch), method.encoder(batch))


def test_the_explainer_learns(motifs):
    method = build(motifs)
    losses = method.objective(method.encode(method.views(GraphBatch.of(motifs), seeded())))
    torch.stack(list(losses.values())).sum().backward()
    for name, parameter in method.explainer.named_parameters():
        assert torch.isfinite(parameter.grad).all(), name
    assert method.explainer.blocks[0].first.weight.grad.abs().sum() > 0


def cosines(method, encoded, name):
    with torch.no_grad():
        a, other = method.head(encoded["anchor"]), method.head(encoded[name])
        return (torch.nn.functional.cosine_similarity(a[:, None], other[None], dim=2) / 0.2).double().exp()


@pytest.mark.parametrize("inside", [False, True])
def test_default_is_the_sum_of_two_logarithms(motifs, inside):
    method = build(motifs, positive_in_denominator=inside, complement_weight=0.3)
    encoded = method.encode(method.views(GraphBatch.of(motifs), seeded()))
    losses = method.objective(encoded)
    s, c = cosines(method, encoded, "positive"), cosines(method, encoded, "complement")
    size, first, second = len(s), 0.0, 0.0
    for i in range(size):
        others = sum(s[i, j] for j in range(size) if inside or j != i)
        first -= torch.log(s[i, i] / others) / size
        second -= torch.log(s[i, i] / (s[i, i] + c[i].sum())) / size
    assert losses["rationale"].item() == pytest.approx(float(first), abs=1e-4)
    assert losses["complement"].item() == pytest.approx(0.3 * float(second), abs=1e-4)


def test_published_preset_has_one_logarithm(motifs):
    method = make_recipe("rgcl", motifs, preset="published").build(motifs.features, 0)
    encoded = method.encode(method.views(GraphBatch.of(motifs), seeded()))
    s, c = cosines(method, encoded, "positive"), cosines(method, encoded, "complement")
    expected = -(s.diagonal() / s.sum(1) + 0.1 * s.diagonal() / (c.sum(1) + s.diagonal())).log().mean()
    losses = method.objective(encoded)
    assert set(losses) == {"rationale"}
    assert losses["rationale"].item() == pytest.approx(float(expected), abs=1e-4)
    assert training_settings("rgcl", "published", "MUTAG")["epochs"] == 40


def test_scores_change_between_epochs_and_not_within(motifs):
    seen = []

    class Look(Callback):
        def on_train_start(self, trainer):
            self.on_epoch_end(trainer)

        def on_epoch_end(self, trainer):
            seen.append(trainer.method.scores.values.clone())

    training = TrainSettings(epochs=2, batch_size=8)
    method = train(motifs, "rgcl", training=training, callbacks=[Look()]).model.method
    assert len(seen) == 3
    assert not torch.equal(seen[0], seen[1])
    assert torch.equal(seen[2], method.scores.values)


def test_restored_state_gives_the_same_views(motifs):
    method, other = build(motifs), build(motifs, seed=1)
    method.begin(motifs, seeded())
    other.load_state(method.state())
    batch = GraphBatch.gather(motifs, np.array([4, 9, 2]))
    for name, view in method.views(batch, seeded(5)).items():
        assert torch.equal(view.source, other.views(batch, seeded(5))[name].source)
    other.load_state({})
    assert other.state() == {}


@pytest.mark.parametrize("begun", [False, True])
def test_tiny_graphs_are_finite(begun):
    networkx = pytest.importorskip("networkx")
    collection = open_collection([networkx.empty_graph(1), networkx.path_graph(2), networkx.empty_graph(12)])
    method = build(collection, drop_rate=0.9)
    if begun:
        method.begin(collection, seeded())
    views = method.views(GraphBatch.of(collection), seeded())
    assert views["positive"].ptr.diff().tolist() == [1, 1, 2]
    total = torch.stack(list(method.objective(method.encode(views)).values())).sum()
    total.backward()
    assert torch.isfinite(total)
    assert all(torch.isfinite(parameter.grad).all() for parameter in method.parameters())


@pytest.mark.parametrize(
    "settings",
    [{"drop_rate": 1.0}, {"floor": 0.0}, {"temperature": 0.0}, {"complement_weight": -0.1},
     {"least_importance": 1.5}, {"explainer_depth": 0}],
)  # fmt: skip
def test_settings_out_of_range_are_refused(motifs, settings):
    with pytest.raises(ConfigError):
        RGCL(Gin(motifs.features), **settings)


def test_an_encoder_that_cannot_weight_nodes_is_refused():
    with pytest.raises(ConfigError, match="weights nodes"):
        RGCL(PygEncoder(nn.Linear(3, 3), 3))
