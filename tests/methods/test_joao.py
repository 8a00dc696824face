"""JOAO: sampled operations, the update of their probabilities, projection heads and the simplex."""

import copy
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import ConfigError
from graphsc.core.serialization import load_tensors
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.methods.contrastive import projection
from graphsc.methods.joao import (
    IDENTITY,
    OPERATIONS,
    apply_heads,
    project_by_bisection,
    project_to_simplex,
)
from graphsc.training.train import train
from graphsc.training.trainer import TrainSettings
from graphsc.views import VIEWS

POINTS = st.lists(st.floats(-50, 50), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:20")


def build(collection, name="joao", **settings):
    preset = settings.pop("preset", "default")
    return make_recipe(name, collection, settings, preset=preset).build(collection.features, 0)


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def with_probabilities(method, *p):
    method.load_state({"probabilities": torch.tensor(p, dtype=torch.float64), "head": torch.tensor(0)})
    return method


def contrast(rows, columns, temperature=0.2):
    """NT-Xent written as a loop."""
    total = 0.0
    for i, row in enumerate(rows.double()):
        scores = [float(torch.cosine_similarity(row, column, 0)) / temperature for column in columns.double()]
        total -= scores[i] - math.log(sum(math.exp(s) for j, s in enumerate(scores) if j != i))
    return total / len(rows)


def test_initial_probabilities_are_uniform(graphs):
    assert build(graphs).probabilities.tolist() == [0.2] * 5


@pytest.mark.parametrize("k", range(5))
def test_views_are_of_the_operation_that_p_names(graphs, k):
    """With all weight on one operation, what changes is what that operation changes."""
    batch = GraphBatch.of(graphs)
    method = with_probabilities(build(graphs), *np.eye(5)[k])
    view = method.views(batch, seeded())["positive"]
    fewer_nodes = (view.ptr.diff() < batch.ptr.diff()).all()
    same_edges = view.num_edges == batch.num_edges and torch.equal(view.source, batch.source)
    assert fewer_nodes == (OPERATIONS[k] in ("drop-nodes", "subgraph"))
    assert same_edges == (OPERATIONS[k] in ("mask-attributes", "identity"))
    assert (view.replaced is not None) == (OPERATIONS[k] == "mask-attributes")


def test_operations_are_drawn_as_often_as_p_says():
    many = open_collection("motifs:400")
    method = with_probabilities(build(many), 0.5, 0.3, 0.2, 0.0, 0.0)
    drawn = method.views(GraphBatch.of(many), seeded()).sampled["second"]
    shares = torch.bincount(drawn, minlength=5) / 400
    # Five standard deviations of a share of 400.
    assert shares.tolist() == pytest.approx([0.5, 0.3, 0.2, 0, 0], abs=0.125)
    assert shares[3] == shares[4] == 0


def test_losses_of_operations_are_those_of_each_alone(graphs):
    method = build(graphs)
    result = method.losses_of_operations(graphs, seeded(3))
    # The same draws in the same order: which graphs, then one view by each operation.
    generator = seeded(3)
    batch = GraphBatch.gather(graphs, torch.randperm(20, generator=generator).numpy())
    with torch.no_grad():
        anchor = method.projections[0](method.encoder(batch))
        for k, name in enumerate(OPERATIONS):
            view = VIEWS.get(name)()(batch, 0.2, generator)
            expected = contrast(anchor, method.projections[0](method.encoder(view)))
            assert result[k].item() == pytest.approx(expected, abs=1e-3), name


def test_estimate_leaves_the_method_unchanged(graphs):
    """Running statistics, mode and weights are as before."""
    method = build(graphs).eval()
    method.encoder.blocks[0].norm.running_mean.fill_(7.0)
    before = copy.deepcopy(method.state_dict())
    method.losses_of_operations(graphs, seeded())
    assert not method.training
    for name, value in method.state_dict().items():
        assert torch.equal(value, before[name]), name


@pytest.mark.parametrize(("share", "count"), [(0.0, 128), (0.2, 128), (0.5, 256), (1.0, 300)])
def test_estimate_uses_its_share_of_the_batches_and_at_least_one(share, count):
    many = open_collection("motifs:300")
    method = build(many, estimate_share=share)
    batches = list(method._sample(many, seeded()))
    rows = torch.cat([batch.index for batch in batches])
    assert len(rows) == len(set(rows.tolist())) == count


@pytest.mark.parametrize("gamma", [0.01, 0.1, 1.0])
def test_update_equals_a_constrained_minimisation(graphs, gamma):
    """p + (loss - gamma (p - 1/5)), and the nearest probabilities by a solver."""
    from scipy.optimize import minimize

    # A high temperature makes the losses similar, so that p does not end in a corner without effect of gamma.
    method = with_probabilities(build(graphs, gamma=gamma, temperature=5.0), 0.1, 0.4, 0.3, 0.05, 0.15)
    losses = method.losses_of_operations(graphs, seeded(5)).numpy()
    method.after_epoch(graphs, seeded(5))
    p = np.array([0.1, 0.4, 0.3, 0.05, 0.15])
    target = p + (losses - gamma * (p - 0.2))
    solved = minimize(
        lambda x: np.sum((x - target) ** 2),
        np.full(5, 0.2),
        bounds=[(0, 1)] * 5,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 1},
        options={"ftol": 1e-12},
    ).x
    assert (solved > 1e-3).all()
    np.testing.assert_allclose(method.probabilities.numpy(), solved, atol=1e-4)


def test_an_easy_operation_loses_weight(graphs):
    """A view equal to its graph is the easiest of all."""
    method = build(graphs)
    losses = method.losses_of_operations(graphs, seeded())
    assert losses.argmin() == IDENTITY
    method.after_epoch(graphs, seeded())
    assert method.probabilities[IDENTITY] < 0.2
    assert method.probabilities.argmax() == losses.argmax()


def test_non_finite_losses_leave_p_unchanged(graphs):
    method = with_probabilities(build(graphs), 0.1, 0.4, 0.3, 0.05, 0.15)
    with torch.no_grad():
        method.projections[0][0].bias.fill_(torch.nan)
    method.after_epoch(graphs, seeded())
    assert method.probabilities.tolist() == [0.1, 0.4, 0.3, 0.05, 0.15]


def test_metrics_show_the_probabilities(graphs):
    rows = train(graphs, "joao", training=TrainSettings(epochs=2)).metrics.rows
    names = [f"probability_{name.replace('-', '_')}" for name in OPERATIONS]
    for row in rows:
        assert sum(row[name] for name in names) == pytest.approx(1)
    assert any(rows[-1][name] != 0.2 for name in names)


def test_each_row_goes_through_its_own_head():
    torch.manual_seed(0)
    heads = torch.nn.ModuleList(projection(6) for _ in range(4))
    rows = torch.randn(9, 6)
    which = torch.tensor([2, 0, 0, 3, 2, 2, 0, 3, 0])  # no row for the second
    result = apply_heads(heads, rows, which)
    for i, k in enumerate(which.tolist()):
        torch.testing.assert_close(result[i], heads[k](rows[i]))
    result.sum().backward()
    assert not any(parameter.grad.any() for parameter in heads[1].parameters())
    assert all(parameter.grad.any() for k in (0, 2, 3) for parameter in heads[k].parameters())


def test_joaov2_projects_each_view_by_its_operation_and_the_graph_by_the_identity(graphs):
    method = build(graphs, "joaov2")
    views = method.views(GraphBatch.of(graphs), seeded())
    assert len(set(views.sampled["second"].tolist())) == 5
    encoded = method.encode(views)
    with torch.no_grad():
        own = method.projections[IDENTITY](encoded["anchor"])
        other = torch.stack(
            [
                method.projections[int(k)](row)
                for k, row in zip(views.sampled["second"], encoded["positive"], strict=True)
            ]
        )
    # The training loop passes all tensors as floats.
    loss = method.objective({name: value.float() for name, value in encoded.items()})["contrast"]
    assert loss.item() == pytest.approx(contrast(own, other), abs=1e-3)


def test_joaov2_estimates_each_loss_through_its_own_head(graphs):
    method = build(graphs, "joaov2")
    before = method.losses_of_operations(graphs, seeded())
    with torch.no_grad():
        method.projections[1][2].weight.neg_()
    after = method.losses_of_operations(graphs, seeded())
    assert [k for k in range(5) if after[k] != before[k]] == [1]


def test_published_joaov2_has_one_head_per_epoch_and_the_first_for_the_graph(graphs):
    method = build(graphs, "joaov2", preset="published")
    method.load_state({"probabilities": torch.full((5,), 0.2), "head": torch.tensor(3)})
    encoded = method.encode(method.views(GraphBatch.of(graphs), seeded()))
    loss = method.objective(encoded)["contrast"]
    with torch.no_grad():
        own, other = method.projections[0](encoded["anchor"]), method.projections[3](encoded["positive"])
    assert loss.item() == pytest.approx(contrast(own, other), abs=1e-3)


def test_published_head_is_drawn_each_epoch_by_the_probabilities(graphs):
    method = build(graphs, "joaov2", preset="published")
    seen = set()
    for seed in range(30):
        method.load_state({"probabilities": torch.full((5,), 0.2).double(), "head": torch.tensor(0)})
        method.begin(graphs, seeded(seed))
        seen.add(method.head_of_epoch)
        method.after_epoch(graphs, seeded(seed))
        assert method.probabilities[method.head_of_epoch] > 0
    assert seen == set(range(5))


@pytest.mark.parametrize(("name", "rate", "epochs"), [("joao", 0.01, 20), ("joaov2", 0.001, 40)])
def test_published_training_is_that_of_the_code(name, rate, epochs):
    result = training_settings(name, "published", "mutag")
    assert result == {"learning_rate": rate, "epochs": epochs, "batch_size": 128}


def test_pairs_change_both_sides_by_the_pair_that_p_names(graphs):
    """All weight on masking first and dropping nodes second."""
    batch = GraphBatch.of(graphs)
    mask, drop = OPERATIONS.index("mask-attributes"), OPERATIONS.index("drop-nodes")
    method = with_probabilities(build(graphs, pairs=True), *np.eye(25)[5 * mask + drop])
    views = method.views(batch, seeded())
    assert views["anchor"].replaced is not None
    assert torch.equal(views["anchor"].source, batch.source)
    assert (views["positive"].ptr.diff() < batch.ptr.diff()).all()


def test_losses_of_pairs_are_those_of_each_alone(graphs):
    method = build(graphs, "joaov2", pairs=True)
    result = method.losses_of_operations(graphs, seeded(3))
    # The same draws in the same order: which graphs, the second side's views, then the first's.
    generator = seeded(3)
    batch = GraphBatch.gather(graphs, torch.randperm(20, generator=generator).numpy())
    with torch.no_grad():
        seconds, firsts = [
            [
                method.projections[k](method.encoder(VIEWS.get(name)()(batch, 0.2, generator)))
                for k, name in enumerate(OPERATIONS)
            ]
            for _ in range(2)
        ]
    expected = [contrast(first, second) for first in firsts for second in seconds]
    assert result.tolist() == pytest.approx(expected, abs=1e-3)


def test_pairs_in_a_run(graphs):
    rows = train(graphs, "joaov2", settings={"pairs": True}, training=TrainSettings(epochs=2)).metrics.rows
    names = [name for name in rows[-1] if name.startswith("probability_")]
    assert len(names) == 25
    assert "probability_drop_nodes_and_identity" in names
    assert sum(rows[-1][name] for name in names) == pytest.approx(1)


@pytest.mark.parametrize("preset", ["default", "published"])
@pytest.mark.parametrize("name", ["joao", "joaov2"])
def test_a_resumed_run_equals_an_uninterrupted_one(graphs, tmp_path, name, preset):
    def go(folder, epochs):
        settings = TrainSettings(epochs=epochs, batch_size=8)
        train(graphs, name, preset=preset, training=settings, out=tmp_path / folder)

    go("whole", 4)
    go("parts", 2)
    go("parts", 4)
    newest = [max((tmp_path / folder / "checkpoints").iterdir()) for folder in ("whole", "parts")]
    (one, _), (two, _) = (load_tensors(path, "checkpoint") for path in newest)
    assert one.keys() == two.keys()
    for key in one:
        assert torch.equal(one[key], two[key]), key
    assert one["state/probabilities"].tolist() != [0.2] * 5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"gamma": -0.1}, "gamma must not be negative"),
        ({"pairs": True, "heads": "epoch"}, "cannot be combined with pairs"),
        ({"estimate_share": 2.0}, "estimate_share must lie"),
        ({"rate": -1.0}, "between 0 and 1"),
        ({"temperature": -1.0}, "temperature must be"),
    ],
)
def test_settings_out_of_range_are_refused(graphs, settings, message):
    with pytest.raises(ConfigError, match=message):
        build(graphs, **settings)


@given(POINTS)
def test_projection_is_the_nearest_probabilities(values):
    """x is nearest to y in a convex set where no corner lies on y's side: (y - x) . (corner - x) <= 0."""
    point = torch.tensor(values, dtype=torch.float64)
    result = project_to_simplex(point)
    assert (result >= 0).all()
    assert result.sum().item() == pytest.approx(1)
    for corner in torch.eye(len(values), dtype=torch.float64):
        assert (point - result) @ (corner - result) <= 1e-9


@pytest.mark.parametrize(
    ("point", "expected"),
    [
        ([0.2, 0.3, 0.5], [0.2, 0.3, 0.5]),
        ([1.2, 1.3, 1.5], [0.2, 0.3, 0.5]),
        ([2.0, 0.0], [1.0, 0.0]),
        ([0.9, 0.5, -3.0], [0.7, 0.3, 0.0]),
        ([7.0], [1.0]),
    ],
)
def test_projections_worked_out_by_hand(point, expected):
    assert project_to_simplex(torch.tensor(point, dtype=torch.float64)).tolist() == pytest.approx(expected)


@given(POINTS)
def test_bisection_comes_near_the_exact_projection(values):
    point = torch.tensor(values, dtype=torch.float64)
    result = project_by_bisection(point)
    assert result.sum().item() == pytest.approx(1)
    assert (result >= 0).all()
    assert (result - project_to_simplex(point)).abs().max() <= 0.02


def test_projection_does_not_modify_its_argument():
    point = torch.tensor([3.0, 1.0])
    project_to_simplex(point)
    project_by_bisection(point)
    assert point.tolist() == [3.0, 1.0]
