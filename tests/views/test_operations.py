"""Drop nodes, mask attributes and perturb edges, against definitions worked out by hand or by counting."""

from __future__ import annotations

import gc
import weakref
from collections import Counter
from dataclasses import replace
from itertools import combinations, permutations

import pytest
import torch
from scipy.stats import chisquare

from graphsc.core.errors import ConfigError
from graphsc.data.features import HIDDEN
from graphsc.views import Compose, DropNodes, GraphCLMaskAttributes, MaskAttributes, PerturbEdges
from graphsc.views.base import Perturbation, apply_perturbation
from graphsc.views.operations import edge_pairs

SMALL_GRAPHS = [(5, [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (2, 2)]), (2, [(0, 1)]), (3, [])]


def test_dropping_nodes_leaves_the_induced_subgraph(make, check):
    batch = make(SMALL_GRAPHS)
    keep = [1, 2, 4, 6, 7, 9]  # nodes 1, 2, 4 | 1 | 0, 2
    mask = torch.zeros(10, dtype=torch.bool)
    mask[keep] = True
    weighted = replace(batch, edge_weight=torch.arange(batch.num_edges, dtype=torch.float32))
    result = apply_perturbation(weighted, Perturbation(nodes=mask))
    check(result)
    expected = []
    for position, (u, v) in enumerate(batch.edge_index.T.tolist()):
        if u in keep and v in keep:
            expected.append((keep.index(u), keep.index(v), position))
    assert result.edge_index.T.tolist() == [[u, v] for u, v, _ in expected]
    positions = [position for *_, position in expected]
    assert result.edge_weight.tolist() == positions
    assert torch.equal(result.edge_codes, batch.edge_codes[positions])
    assert torch.equal(result.edge_floats, batch.edge_floats[positions])
    assert torch.equal(result.codes, batch.codes[keep])
    assert torch.equal(result.floats, batch.floats[keep])
    assert result.ptr.tolist() == [0, 3, 4, 6]
    assert result.y is batch.y
    assert torch.equal(result.index, batch.index)


def test_replaced_rows_follow_their_nodes(make, seeded):
    batch = MaskAttributes()(make(SMALL_GRAPHS), 0.7, seeded(0))
    result = DropNodes()(batch, 0.5, seeded(1))
    before, after = batch.dense_x(), result.dense_x()
    # The noise makes masked rows unlike any other, and codes tell the other nodes of a graph apart.
    for row, graph in zip(after, result.batch.tolist(), strict=True):
        same = (before[batch.batch == graph] == row).all(1)
        assert same.sum() == 1


def test_dropped_nodes_are_drawn_uniformly(make, seeded):
    batch = make([(4, [])] * 2000, plain=True)
    batch = replace(batch, floats=torch.arange(8000.0)[:, None])
    left = DropNodes()(batch, 0.25, seeded(0)).floats.flatten() % 4
    assert all(abs(int((left == i).sum()) - 1500) < 90 for i in range(4))


def test_gradients_reach_edge_weights(make, seeded):
    batch = make(SMALL_GRAPHS)
    weight = torch.ones(batch.num_edges, requires_grad=True)
    view = DropNodes()(replace(batch, edge_weight=weight), 0.3, seeded(0))
    view.edge_weight.sum().backward()
    assert weight.grad.sum() == view.num_edges


GRAPHS = [(8, [(0, 1), (2, 3)]), (3, [(0, 1)])]


def test_masked_rows_are_noise_and_the_others_untouched(make, seeded):
    batch = make([(2000, [])], plain=True)
    result = MaskAttributes()(batch, 0.5, seeded(0))
    assert len(result.replaced) == 1000
    noise = result.replacement
    assert abs(float(noise.mean()) - 0.5) < 0.03
    assert abs(float(noise.std()) - 0.5) < 0.03
    rest = torch.ones(2000, dtype=torch.bool)
    rest[result.replaced] = False
    assert torch.equal(result.dense_x()[rest], batch.dense_x()[rest])
    assert torch.equal(result.dense_x()[result.replaced], noise)
    assert result.source is batch.source


def test_a_second_mask_adds_to_the_first(make, seeded):
    batch = make(GRAPHS)
    first = MaskAttributes()(batch, 0.5, seeded(0))
    second = MaskAttributes(mean=100.0, std=0.0)(first, 0.5, seeded(1))
    overwritten = (second.dense_x() == 100).all(1)
    assert overwritten.sum() == 4 + 2
    assert torch.equal(second.dense_x()[~overwritten], first.dense_x()[~overwritten])
    assert set(first.replaced.tolist()) <= set(second.replaced.tolist())


def test_a_token_replaces_codes_and_floats(make, seeded):
    batch = make(GRAPHS)
    result = MaskAttributes(token=8)(batch, 0.4, seeded(0))
    masked = result.codes[:, 0] == 8
    assert [int(masked[:8].sum()), int(masked[8:].sum())] == [3, 1]
    assert (result.codes[masked, 1] == 0).all()
    assert (result.floats[masked] == 0).all()
    assert torch.equal(result.codes[~masked], batch.codes[~masked])
    assert result.replaced is None


def test_a_token_overwrites_noise(make, seeded):
    batch = make(GRAPHS)
    result = Compose([MaskAttributes(), MaskAttributes(token=8)])(batch, 1.0, seeded(0))
    assert len(result.replaced) == 0
    assert (result.codes[:, 0] == 8).all()


def test_a_token_out_of_range_is_refused(make, seeded):
    with pytest.raises(ConfigError, match="token 9"):
        MaskAttributes(token=9)(make(GRAPHS), 0.4, seeded(0))


def with_hidden_code(batch):
    """The same batch with code 8 of the first column meaning a hidden node."""
    first, *others = batch.features.columns
    values = tuple(HIDDEN if code == 8 else str(code) for code in range(first.cardinality))
    return replace(batch, features=replace(batch.features, columns=(replace(first, values=values), *others)))


@pytest.mark.parametrize("value", ["auto", "token"])
def test_a_feature_scheme_with_a_code_for_hidden_nodes_uses_it(make, seeded, value):
    result = MaskAttributes(value=value)(with_hidden_code(make(GRAPHS)), 1.0, seeded(0))
    assert (result.codes[:, 0] == 8).all()
    assert result.replaced is None


def test_noise_overrides_a_code_for_hidden_nodes(make, seeded):
    batch = with_hidden_code(make(GRAPHS))
    result = MaskAttributes(value="noise")(batch, 1.0, seeded(0))
    assert torch.equal(result.codes, batch.codes)
    assert len(result.replaced) == 11


def test_the_graphcl_mask_is_always_noise(make, seeded):
    assert len(GraphCLMaskAttributes()(with_hidden_code(make(GRAPHS)), 1.0, seeded(0)).replaced) == 11


def test_value_token_without_any_token_is_refused(make, seeded):
    with pytest.raises(ConfigError, match="no code for hidden nodes"):
        MaskAttributes(value="token")(make(GRAPHS), 0.4, seeded(0))


@pytest.mark.parametrize(
    "setting", [{"std": -1.0}, {"token": -1}, {"value": "zero"}, {"value": "noise", "token": 1}]
)
def test_invalid_mask_settings_are_refused(setting):
    with pytest.raises(ConfigError):
        MaskAttributes(**setting)


CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
MIXED = [(5, CYCLE), (1, []), (6, [(0, 3), (3, 5), (0, 5), (1, 2)]), (3, [(0, 2)])]


def undirected(counter):
    """Each pair once, with its multiplicity."""
    return Counter({(u, v): times for (u, v), times in counter.items() if u <= v})


def test_as_many_absent_edges_are_added_as_dropped(make, edges_of, check, seeded):
    batch = make(MIXED)
    for seed in range(30):
        result = PerturbEdges()(batch, 0.4, seeded(seed))
        check(result)
        for before, after in zip(edges_of(batch), edges_of(result), strict=True):
            before, after = undirected(before), undirected(after)
            gone, new = before - after, after - before
            count = max(1, round(0.4 * before.total())) if before else 0
            assert gone.total() == new.total() == count
            assert not set(new) & set(before)
            assert all(u != v and times == 1 for (u, v), times in new.items())


def test_mode_drop_adds_no_edges(make, edges_of, seeded):
    batch = make(MIXED)
    result = PerturbEdges(mode="drop")(batch, 0.4, seeded(0))
    assert result.sorted_sources
    for before, after in zip(edges_of(batch), edges_of(result), strict=True):
        assert not after - before
        assert (before - after).total() == 2 * (max(1, round(0.2 * before.total())) if before else 0)


@pytest.mark.parametrize("directed", [False, True])
def test_dropped_and_added_edges_are_uniform(make, edges_of, seeded, directed):
    edges = [(0, 1), (2, 0), (0, 3), (3, 2)] if directed else [(0, 1), (0, 2), (0, 3), (2, 3)]
    batch = make([(4, edges)] * 1500, directed=directed, plain=True)
    gone, new = Counter(), Counter()
    before = edges_of(batch)[0]
    for after in edges_of(PerturbEdges()(batch, 0.25, seeded(3))):
        gone.update(before - after)
        new.update(after - before)
    pairs = permutations(range(4), 2) if directed else combinations(range(4), 2)
    there = [pair for pair in pairs if pair in before]
    absent = [
        pair
        for pair in (permutations(range(4), 2) if directed else combinations(range(4), 2))
        if pair not in before
    ]
    assert sum(gone[pair] for pair in there) == sum(new[pair] for pair in absent) == 1500
    assert chisquare([gone[pair] for pair in there]).pvalue > 0.01
    assert chisquare([new[pair] for pair in absent]).pvalue > 0.01


def test_a_nearly_complete_graph_gets_all_absent_pairs(make, edges_of, seeded):
    full = list(combinations(range(7), 2))
    batch = make([(7, [pair for pair in full if pair != (2, 5)]), (7, full)])
    first, second = map(undirected, edges_of(PerturbEdges()(batch, 0.5, seeded(0))))
    assert (2, 5) in first
    assert first.total() == 20 - 10 + 1
    assert second.total() == 21 - 10


def test_duplicate_edges_and_self_loops_count_as_edges(make, edges_of, check, seeded):
    edges = [(0, 1), (0, 1), (1, 1), (1, 1), (1, 2), (0, 2)]
    batch = make([(3, edges)])
    assert edge_pairs(batch).ptr.tolist() == [0, 6]
    for seed in range(20):
        result = PerturbEdges(mode="drop")(batch, 0.5, seeded(seed))
        check(result)
        assert undirected(edges_of(result)[0]).total() == 3


def test_edge_pairs_of_a_batch_with_unsorted_rows(make, seeded):
    batch = PerturbEdges()(make(MIXED), 0.5, seeded(0))
    assert not batch.sorted_sources
    pairs = edge_pairs(batch)
    every = torch.arange(len(pairs.source))
    first, second = pairs.all_entries(every).view(2, -1)
    assert torch.equal(pairs.entries(every), first)
    assert torch.equal(batch.edge_index[:, first], batch.edge_index[:, second].flip(0))
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(batch.num_edges))


def test_attributes_stay_with_their_edges_and_new_edges_copy_one_of_their_graph(make, seeded):
    batch = replace(make(MIXED), edge_weight=torch.full((make(MIXED).num_edges,), 3.0))
    owners = {tuple(e): f for e, f in zip(batch.edge_index.T.tolist(), batch.edge_floats, strict=True)}
    result = PerturbEdges()(batch, 0.5, seeded(0))
    copied = {}
    for i, (u, v) in enumerate(result.edge_index.T.tolist()):
        value = result.edge_floats[i]
        if (u, v) in owners:
            assert value == owners[u, v]
            assert result.edge_weight[i] == 3.0
        else:
            assert int(value) // 10_000 == int(result.batch[u])  # the float begins with the graph
            assert result.edge_weight[i] == 1.0
            copied[u, v] = value
        assert result.edge_codes[i] == value.long() % 5
    assert copied
    assert all(copied[v, u] == value for (u, v), value in copied.items())


def test_a_large_sparse_graph(make, edges_of, seeded):
    batch = make([(400, [(i, i + 1) for i in range(399)])], plain=True)
    before, after = edges_of(batch)[0], edges_of(PerturbEdges()(batch, 0.2, seeded(0)))[0]
    assert (before - after).total() == (after - before).total() == 160


def test_an_unknown_mode_is_refused():
    with pytest.raises(ConfigError, match="mode"):
        PerturbEdges(mode="add")


def test_cached_edge_pairs_do_not_keep_their_batch_alive(make, seeded):
    batch = make(MIXED)
    PerturbEdges()(batch, 0.5, seeded(0))
    assert edge_pairs(batch) is edge_pairs(batch)
    reference = weakref.ref(batch)
    del batch
    gc.collect()
    assert reference() is None
