"""GraphLoG: its three terms, its tree of prototypes, and the clustering that initialises it."""

import math

import pytest
import torch

from graphsc.core.errors import ConfigError, DivergedError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.graphlog import cluster, nearest_centre
from graphsc.methods.pretraining import masked_nodes
from graphsc.training.callbacks import Callback
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings

SMALL = {"encoder.depth": 2, "encoder.width": 6}


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:30")


def build(graphs, **settings):
    method = make_recipe("graphlog", graphs, SMALL | settings).build(graphs.features, 0)
    method.begin(graphs, torch.Generator().manual_seed(3))
    return method


def cosine(one, other):
    return (one @ other / one.norm() / other.norm()).item()


def step(method, graphs):
    views = method.views(GraphBatch.of(graphs), torch.Generator().manual_seed(0))
    torch.manual_seed(0)
    encoded = method.encode(views)
    return views, encoded, method.objective(encoded)


@pytest.mark.parametrize("intra", ["own", "hidden"])
def test_local_terms_are_the_equations_written_out(graphs, intra):
    method = build(graphs, intra=intra, temperature=0.5)
    views, _, losses = step(method, graphs)
    clean, masked = views["anchor"], views["masked"]
    hidden = set(masked_nodes(masked).tolist())
    with torch.no_grad():
        h, h_masked = (method.head(method.encoder.nodes(batch)).double() for batch in (clean, masked))
        g, g_masked = (method.head(method.encoder(batch)).double() for batch in (clean, masked))
    total = 0.0
    for j in hidden:
        own = range(int(clean.ptr[clean.batch[j]]), int(clean.ptr[clean.batch[j] + 1]))
        shares = {i: math.exp(cosine(h[i], h_masked[j]) / 0.5) for i in own}
        above = shares[j] if intra == "own" else sum(shares[i] for i in own if i in hidden)
        total -= math.log(above / sum(shares.values()))
    assert losses["intra"].item() == pytest.approx(total / len(hidden), rel=1e-4)
    total = 0.0
    for j in range(30):
        shares = [math.exp(cosine(g[i], g_masked[j]) / 0.5) for i in range(30)]
        total -= math.log(shares[j] / sum(shares))
    assert losses["inter"].item() == pytest.approx(total / 30, rel=1e-4)
    assert losses["prototypes"].item() == 0  # there are none before the first epoch is over


def test_the_tree_has_a_parent_for_every_child_and_a_child_for_every_parent(graphs):
    method = build(graphs, local_epochs=0, prototypes=12)
    counts = method.alive.sum(1).tolist()
    assert 12 >= counts[0] >= counts[1] >= counts[2] >= 1
    assert counts[1] <= -(-counts[0] // 2)
    for level in range(2):
        parents = method.parent[level][method.alive[level]]
        assert set(parents.tolist()) == set(method.alive[level + 1].nonzero().flatten().tolist())
        for child, parent in zip(method.alive[level].nonzero().flatten(), parents, strict=True):
            row = method.prototypes[level, child]
            best = max(
                method.alive[level + 1].nonzero().flatten().tolist(),
                key=lambda k, row=row, level=level: cosine(row, method.prototypes[level + 1, k]),
            )
            assert best == int(parent)


def test_the_prototypes_term_has_its_weight_and_moves_them(graphs):
    for weight in (0.1, 0.7):
        method = build(graphs, local_epochs=0, search="best", prototype_weight=weight)
        *_, losses = step(method, graphs)
        if weight == 0.1:
            tenth = losses["prototypes"].item()
    assert losses["prototypes"].item() == pytest.approx(7 * tenth, rel=1e-5)
    losses["prototypes"].backward()
    moved = method.prototypes.grad.abs().sum(2) > 0
    assert moved.any()
    assert not (moved & ~method.alive).any()


def test_prototypes_come_after_the_local_epochs_and_then_learn(graphs):
    counts, rows = [], []

    class Look(Callback):
        def on_train_start(self, trainer):
            self.on_epoch_end(trainer)

        def on_epoch_end(self, trainer):
            counts.append(int(trainer.method.alive.sum()))
            rows.append(trainer.method.prototypes.detach().clone())

    run = train(
        graphs,
        "graphlog",
        settings=SMALL | {"local_epochs": 2},
        training=TrainSettings(epochs=4),
        callbacks=[Look()],
    )
    assert counts[:2] == [0, 0]
    assert counts[2] == counts[3] == counts[4] > 0
    assert not torch.equal(rows[2], rows[3])
    assert [row["loss_prototypes"] > 0 for row in run.metrics.rows] == [False, False, True, True]
    assert run.metrics.rows[-1]["prototypes"] == counts[4]


def test_initialising_prototypes_leaves_batchnorm_unchanged(graphs):
    method = make_recipe("graphlog", graphs, SMALL | {"placing_graphs": 7}).build(graphs.features, 0)
    before = {name: value.clone() for name, value in method.encoder.named_buffers()}
    method.after_epoch(graphs, torch.Generator().manual_seed(0))
    assert 0 < int(method.alive[0].sum()) <= 7
    for name, value in method.encoder.named_buffers():
        assert torch.equal(value, before[name]), name


def test_pretext_counts_copies_nearest_to_their_originals(graphs):
    method = build(graphs)
    method.head = torch.nn.Identity()
    anchor = torch.eye(4)
    result = method.pretext({"anchor": anchor, "masked": anchor[[0, 1, 3, 2]] + 0.1})
    assert (result.score, result.chance) == (0.5, 0.25)


def test_the_published_preset(graphs):
    recipe = make_recipe("graphlog", graphs, preset="published")
    assert (recipe.settings["intra"], recipe.settings["search"]) == ("hidden", "best")
    training = training_settings("graphlog", "published", graphs.name)
    assert (training["batch_size"], training["epochs"]) == (512, 11)


def test_divergence_is_reported(graphs):
    """NaN vectors have no path; the training loop must report it, not the sampling."""
    with pytest.raises(DivergedError, match="graphlog"):
        train(
            graphs, "graphlog", settings=SMALL | {"local_epochs": 0},
            training=TrainSettings(epochs=4, learning_rate=1e30),
        )  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "words"),
    [({"levels": 0}, "levels"), ({"temperature": 0.0}, "temperature"), ({"rate": -0.1}, "rate")],
)
def test_settings_out_of_range_are_refused(graphs, settings, words):
    with pytest.raises(ConfigError, match=words):
        build(graphs, **settings)


def three_clusters(each=80):
    """Three narrow directions of the plane."""
    generator = torch.Generator().manual_seed(0)
    angles = torch.tensor([0.0, 2.0, 4.0]).repeat_interleave(each)
    angles = angles + 0.05 * torch.randn(3 * each, generator=generator)
    return torch.stack([angles.cos(), angles.sin()], 1)


def test_every_cluster_has_a_centre_and_every_centre_a_point():
    points = three_clusters()
    result = cluster(points, 8, 10, passes=5, rate=0.05, generator=torch.Generator().manual_seed(1))
    for angle in (0.0, 2.0, 4.0):
        direction = torch.tensor([math.cos(angle), math.sin(angle)])
        assert (result.rows[result.alive] @ direction).max() > 0.99
    assert set(nearest_centre(points, result.rows, result.alive).tolist()) == set(
        result.alive.nonzero().flatten().tolist()
    )
    assert not result.rows[~result.alive].any()
    torch.testing.assert_close(result.rows[result.alive].norm(dim=1), torch.ones(int(result.alive.sum())))


def test_one_step_attracts_the_winner_and_repels_the_rival():
    """Two points, each a centre at first: each wins itself and has the other for its rival."""
    points = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    result = cluster(points, 2, 2, passes=1, rate=0.1, generator=torch.Generator().manual_seed(0))
    # A centre stays where it won and moves away from the other by 0.1 * 0.05 of the way, then to length one.
    moved = torch.tensor([1.0, 0.0]) - 0.005 * (torch.tensor([0.0, 1.0]) - torch.tensor([1.0, 0.0]))
    expected = moved / moved.norm()
    assert any(torch.allclose(row, expected) for row in result.rows)
    assert any(torch.allclose(row, expected.flip(0)) for row in result.rows)


def test_fewer_points_than_centres():
    points = torch.eye(3)
    result = cluster(points, 50, 50, passes=2, rate=0.05, generator=torch.Generator().manual_seed(0))
    assert result.rows.shape == (50, 3)
    assert int(result.alive.sum()) == 3
    one = cluster(points[:1], 50, 50, passes=2, rate=0.05, generator=torch.Generator())
    assert one.alive.nonzero().tolist() == [[0]]
    torch.testing.assert_close(one.rows[0], points[0])
