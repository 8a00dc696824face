"""ContextPred: balls and rings against NetworkX, and the loss against its equation."""

import math

import networkx
import pytest
import torch
from torch import nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.encoders import PygEncoder
from graphsc.methods import make_recipe
from graphsc.methods.contextpred import ContextPred
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

SMALL = {"encoder.depth": 2, "encoder.width": 8}


@pytest.fixture(scope="module")
def originals():
    """Sparse graphs with large distances, and one too small for a ring."""
    trees = [networkx.random_labeled_tree(12, seed=seed) for seed in range(7)]
    return [*trees[:3], networkx.path_graph(2), *trees[3:]]


@pytest.fixture(scope="module")
def graphs(originals):
    return open_collection(originals)


def build(graphs, **settings):
    return make_recipe("contextpred", graphs, SMALL | settings).build(graphs.features, 0)


def test_ball_ring_and_overlap_are_by_distance(graphs, originals):
    method, batch = build(graphs), GraphBatch.of(graphs)
    assert (method.radius, method.inner, method.outer) == (2, 1, 4)
    assert (method.encoder.depth, method.context_encoder.depth) == (2, 3)
    views = method.views(batch, torch.Generator().manual_seed(0))
    ball, ring = views["ball"], views["ring"]
    centres, overlaps = views.sampled["centre"], views.sampled["overlap"]
    assert ball.index.tolist() == ring.index.tolist() == [0, 1, 2, 4, 5, 6, 7]  # the short path is left out
    for place, g in enumerate(ball.index.tolist()):
        marks = centres[ball.ptr[place] : ball.ptr[place + 1]]
        sizes = [int(part.ptr[place + 1] - part.ptr[place]) for part in (ball, ring)]
        shared = int(overlaps[ring.ptr[place] : ring.ptr[place + 1]].sum())
        assert int(marks.sum()) == 1
        # Which node the centre is, by its place among the nodes within two hops.
        result = []
        for node in originals[g]:
            far = networkx.single_source_shortest_path_length(originals[g], node)
            near = sorted(other for other in far if far[other] <= 2)
            if near.index(node) == int(marks.nonzero()) and len(near) == sizes[0]:
                result.append((sum(1 < d <= 4 for d in far.values()), sum(d == 2 for d in far.values())))
        assert (sizes[1], shared) in result


def test_a_path_from_its_end(graphs):
    """Radius 2 on a path of nine: from an end, nodes 0 to 2 against 2 to 4, sharing 2."""
    paths = open_collection([networkx.path_graph(9)] * 30)
    views = build(paths).views(GraphBatch.of(paths), torch.Generator().manual_seed(0))
    ball, ring = views["ball"], views["ring"]
    ends = 0
    for g in range(30):
        nodes = int(ball.ptr[g + 1] - ball.ptr[g])
        marks = views.sampled["overlap"][ring.ptr[g] : ring.ptr[g + 1]].tolist()
        if nodes == 3:  # an end is its centre
            ends += 1
            assert marks in ([True, False, False], [False, False, True])
            assert views.sampled["centre"][ball.ptr[g] : ball.ptr[g + 1]].tolist() in (
                [True, False, False],
                [False, False, True],
            )
    assert ends > 0


@pytest.mark.parametrize(("negatives", "scaled"), [(1, True), (3, False)])
def test_the_loss_is_the_equation_written_out(graphs, negatives, scaled):
    method = build(graphs, negatives=negatives, scaled=scaled)
    views = method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))
    result = method.objective(method.encode(views))["context"]
    ball, ring = views["ball"], views["ring"]
    with torch.no_grad():
        nodes = method.encoder.node_layers(ball)[-1].double()
        around = method.context_encoder.node_layers(ring)[-1].double()
    root = math.sqrt(nodes.shape[1]) if scaled else 1.0
    centres = [nodes[i] / root for i in range(len(nodes)) if views.sampled["centre"][i]]
    contexts = []
    for g in range(7):
        shared = [
            around[i] for i in range(int(ring.ptr[g]), int(ring.ptr[g + 1])) if views.sampled["overlap"][i]
        ]
        contexts.append(sum(shared) / len(shared))
    own = sum(math.log1p(math.exp(-float(centres[g] @ contexts[g]))) for g in range(7)) / 7
    other = 0.0
    for g in range(7):
        for shift in range(1, negatives + 1):
            other += math.log1p(math.exp(float(centres[g] @ contexts[(g + shift) % 7]))) / 7 / negatives
    assert result.item() == pytest.approx(own + negatives * other, rel=1e-4)


def test_graphs_without_any_ring_have_zero_loss(graphs):
    small = open_collection([networkx.path_graph(2), networkx.complete_graph(4), networkx.star_graph(0)] * 3)
    rows = train(small, "contextpred", training=TrainSettings(epochs=2)).metrics.rows
    assert [row["loss"] for row in rows] == [0, 0]


def test_pretext_scores_own_contexts_above_the_next(graphs):
    method = build(graphs)
    centre = torch.tensor([[1.0, 0.0], [0.0, 1.0], [9.0, 9.0]])
    context = torch.tensor([[2.0, 1.0], [1.0, 2.0], [9.0, 9.0]])
    result = method.pretext({"centre": centre, "context": context, "real": torch.tensor([1.0, 1.0, 0.0])})
    assert (result.score, result.chance) == (1.0, 0.5)


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"context_size": 0}, "context_size"), ({"negatives": 0}, "negatives"), ({"inner": 2}, "overlap")],
)
def test_settings_out_of_range_are_refused(graphs, settings, words):
    with pytest.raises(ConfigError, match=words):
        build(graphs, **settings)


def test_an_encoder_without_fresh_is_refused():
    with pytest.raises(ConfigError, match="shallower encoder"):
        ContextPred(PygEncoder(nn.Linear(3, 3), 3))


def test_contexts_that_differ_are_told_apart():
    """Eight rings with a node label each: from near 2 log 2, the loss of guessing, to less than half."""
    rings = []
    for kind in range(8):
        ring = networkx.cycle_graph(14)
        networkx.set_node_attributes(ring, kind, "label")
        rings.append(ring)
    training = TrainSettings(epochs=100, batch_size=8, learning_rate=0.003)
    rows = train(open_collection(rings), "contextpred", training=training).metrics.rows
    losses = [row["loss"] for row in rows]
    assert losses[0] > 1
    assert sum(losses[-10:]) / 10 < losses[0] / 2
