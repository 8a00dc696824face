"""GraphCL: its views, its loss, and the differences of the published code."""

import math
from itertools import pairwise

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.readers import open_collection
from graphsc.methods import make_recipe, training_settings
from graphsc.views import DropNodes, GraphCLDropNodes, PerturbEdges, Subgraph


@pytest.fixture(scope="module")
def graphs():
    return open_collection("motifs:12")


def build(collection, **settings):
    preset = settings.pop("preset", "default")
    return make_recipe("graphcl", collection, settings, preset=preset).build(collection.features, 0)


def views_of(method, batch, seed=0):
    return method.views(batch, torch.Generator().manual_seed(seed))


def by_loop(rows, columns, temperature, with_positive=False):
    """The mean over rows of -log(S_ii / sum S_ij), written as a loop."""
    total = 0.0
    for i, row in enumerate(rows):
        scores = [
            math.exp(float(row @ column) / float(row.norm() * column.norm()) / temperature)
            for column in columns
        ]
        total -= math.log(scores[i] / sum(s for j, s in enumerate(scores) if with_positive or j != i))
    return total / len(rows)


@pytest.mark.parametrize("with_positive", [False, True])
def test_loss_equals_the_equation_written_out(graphs, with_positive):
    method = build(graphs, temperature=0.5, positive_in_denominator=with_positive)
    views = views_of(method, GraphBatch.of(graphs))
    losses = method.objective(method.encode(views))
    with torch.no_grad():
        # Each view by itself: BatchNorm takes the statistics of one view.
        first, second = (method.head(method.encoder(views[name])) for name in ("anchor", "positive"))
        expected = by_loop(first.double(), second.double(), 0.5, with_positive)
    assert set(losses) == {"contrast"}
    assert losses["contrast"].item() == pytest.approx(expected, abs=1e-4)


def test_both_views_are_perturbed_independently(graphs):
    batch = GraphBatch.of(graphs)
    method = build(graphs, operations=["drop-nodes"], rate=0.3)
    views = views_of(method, batch)
    dropped = (batch.ptr.diff() * 0.3).round()
    for view in views.values():
        assert torch.equal(batch.ptr.diff() - view.ptr.diff(), dropped.long())
    assert not torch.equal(views["anchor"].rowptr, views["positive"].rowptr)


def test_with_one_view_the_anchor_is_the_graph_itself(graphs):
    batch = GraphBatch.of(graphs)
    views = views_of(build(graphs, two_views=False), batch)
    assert views["anchor"] is batch
    assert views["positive"] is not batch


def test_operations_follow_the_kind_of_graphs(graphs, mixed):
    def kinds(collection):
        return {type(view) for view in build(collection).view.views}

    assert kinds(graphs) == {DropNodes, PerturbEdges}
    assert kinds(mixed) == {DropNodes, Subgraph}


def test_number_of_negatives_reaches_the_loss(graphs):
    # Equal vectors make every score equal, so that the loss counts the negatives.
    rows = torch.ones(12, 96)
    for count, expected in ((None, 11), (4, 4), (1, 1), (50, 11)):
        loss = build(graphs, negatives=count).objective({"anchor": rows, "positive": rows})["contrast"]
        assert loss.item() == pytest.approx(math.log(expected), abs=1e-4)


def test_negatives_are_drawn_from_torchs_global_generator(graphs):
    method = build(graphs, negatives=2)
    encoded = method.encode(views_of(method, GraphBatch.of(graphs)))
    result = []
    for seed in (0, 0, 1):
        torch.manual_seed(seed)
        result.append(method.objective(encoded)["contrast"].item())
    assert result[0] == result[1] != result[2]


def test_published_views_are_those_of_the_code(graphs):
    """One view; a tenth of the nodes cut off to a whole number; a star of at most a fifth and one."""
    batch = GraphBatch.of(graphs)
    sizes = batch.ptr.diff().tolist()
    dropping = build(graphs, preset="published", operations=["drop-nodes"])
    assert isinstance(dropping.view, GraphCLDropNodes)
    views = views_of(dropping, batch)
    assert views["positive"].ptr.diff().tolist() == [n - n // 10 for n in sizes]
    views = views_of(build(graphs, preset="published", operations=["subgraph"]), batch)
    kept = views["positive"].ptr.diff().tolist()
    assert all(1 <= k <= n // 5 + 1 for k, n in zip(kept, sizes, strict=True))
    assert max(kept) > 2


def test_published_subgraph_has_its_own_size_beside_other_operations(graphs):
    batch = GraphBatch.of(graphs)
    method = build(graphs, preset="published", operations=["drop-nodes", "subgraph"], subgraph_keeps=0.5)
    generator = torch.Generator().manual_seed(0)
    ops = method.view.draw(batch, generator)
    kept = method.view(batch, method.rate, generator, ops).ptr.diff()
    sizes = batch.ptr.diff()
    assert torch.equal(kept[ops == 0], (sizes - sizes // 10)[ops == 0])
    assert (kept[ops == 1] <= (sizes // 2 + 1)[ops == 1]).all()
    assert (kept[ops == 1] > (sizes // 10 + 1)[ops == 1]).any()  # more than the rate of 0.1 would keep
    assert {0, 1} == set(ops.tolist())


def loops_of(batch):
    """Per graph, whether each node has a self-loop."""
    edges = set(zip(*batch.edge_index.tolist(), strict=True))
    starts = batch.ptr.tolist()
    return [[(node, node) in edges for node in range(a, b)] for a, b in pairwise(starts)]


@pytest.mark.parametrize(
    ("operations", "kept"),
    [
        (["drop-nodes"], False),
        (["subgraph"], False),
        (["mask-attributes"], True),
        (["drop-nodes", "perturb-edges"], False),
    ],
)
def test_published_graphs_have_self_loops_that_most_views_strip(graphs, operations, kept):
    batch = GraphBatch.of(graphs)
    assert not any(map(any, loops_of(batch)))
    views = views_of(build(graphs, preset="published", operations=operations), batch)
    all_but_the_last = [[True] * (n - 1) + [False] for n in batch.ptr.diff().tolist()]
    assert loops_of(views["anchor"]) == all_but_the_last
    assert views["anchor"].num_edges == batch.num_edges + batch.num_nodes - batch.num_graphs
    if kept:
        assert loops_of(views["positive"]) == all_but_the_last
    else:
        assert not any(map(any, loops_of(views["positive"])))


def test_published_edges_are_deleted_from_graphs_with_self_loops(graphs):
    batch = GraphBatch.of(graphs)
    views = views_of(build(graphs, preset="published", operations=["perturb-edges"]), batch)
    edges = batch.edge_ptr.diff() + batch.ptr.diff() - 1
    assert torch.equal(views["positive"].edge_ptr.diff(), edges - edges // 10)


def test_published_embeddings_are_of_graphs_with_self_loops(graphs):
    batch = GraphBatch.of(graphs)
    method = build(graphs, preset="published").eval()
    with torch.no_grad():
        expected = method.encoder(views_of(method, batch)["anchor"])
        assert torch.equal(method(batch), expected)
        assert not torch.allclose(method(batch), method.encoder(batch))


def test_published_training_is_that_of_the_code():
    result = training_settings("graphcl", "published", "mutag")
    assert result == {"learning_rate": 0.01, "epochs": 20, "batch_size": 128}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above zero"),
        ({"negatives": 0}, "negatives must be at least 1"),
        ({"rate": 1.5}, "between 0 and 1"),
        ({"operations": []}, "at least one view"),
        ({"augmentations": "graphcl", "subgraph_keeps": 2.0}, "between 0 and 1"),
    ],
)
def test_settings_out_of_range_are_refused(graphs, settings, message):
    with pytest.raises(ConfigError, match=message):
        build(graphs, **settings)
