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
from graphsc.views import PerturbEdges
from graphsc.views.operations import edge_pairs

CYCLE = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)]
MIXED = [(5, CYCLE), (1, []), (6, [(0, 3), (3, 5), (0, 5), (1, 2)]), (3, [(0, 2)])]


def undirected(counter):
    """Each pair once, as often as it is there."""
    return Counter({(u, v): times for (u, v), times in counter.items() if u <= v})


def test_as_many_edges_are_added_as_dropped_and_none_was_there(make, edges_of, check, seeded):
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


def test_only_dropping(make, edges_of, seeded):
    batch = make(MIXED)
    result = PerturbEdges(mode="drop")(batch, 0.4, seeded(0))
    assert result.sorted_sources
    for before, after in zip(edges_of(batch), edges_of(result), strict=True):
        assert not after - before
        assert (before - after).total() == 2 * (max(1, round(0.2 * before.total())) if before else 0)


@pytest.mark.parametrize("directed", [False, True])
def test_any_edge_may_go_and_any_absent_pair_may_come(make, edges_of, seeded, directed):
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


def test_a_nearly_complete_graph_gets_the_pairs_there_are(make, edges_of, seeded):
    full = list(combinations(range(7), 2))
    batch = make([(7, [pair for pair in full if pair != (2, 5)]), (7, full)])
    first, second = map(undirected, edges_of(PerturbEdges()(batch, 0.5, seeded(0))))
    assert (2, 5) in first
    assert first.total() == 20 - 10 + 1
    assert second.total() == 21 - 10


def test_copies_and_loops_are_edges_of_their_own(make, edges_of, check, seeded):
    edges = [(0, 1), (0, 1), (1, 1), (1, 1), (1, 2), (0, 2)]
    batch = make([(3, edges)])
    assert edge_pairs(batch).ptr.tolist() == [0, 6]
    for seed in range(20):
        result = PerturbEdges(mode="drop")(batch, 0.5, seeded(seed))
        check(result)
        assert undirected(edges_of(result)[0]).total() == 3


def test_a_batch_with_unsorted_rows_is_paired_all_the_same(make, seeded):
    batch = PerturbEdges()(make(MIXED), 0.5, seeded(0))
    assert not batch.sorted_sources
    pairs = edge_pairs(batch)
    every = torch.arange(len(pairs.source))
    first, second = pairs.all_entries(every).view(2, -1)
    assert torch.equal(pairs.entries(every), first)
    assert torch.equal(batch.edge_index[:, first], batch.edge_index[:, second].flip(0))
    assert sorted([*first.tolist(), *second.tolist()]) == list(range(batch.num_edges))


def test_attributes_stay_with_their_edges_and_new_edges_take_one_of_their_graph(make, seeded):
    batch = replace(make(MIXED), edge_weight=torch.full((make(MIXED).num_edges,), 3.0))
    owners = {tuple(e): f for e, f in zip(batch.edge_index.T.tolist(), batch.edge_floats, strict=True)}
    result = PerturbEdges()(batch, 0.5, seeded(0))
    given = {}
    for i, (u, v) in enumerate(result.edge_index.T.tolist()):
        value = result.edge_floats[i]
        if (u, v) in owners:
            assert value == owners[u, v]
            assert result.edge_weight[i] == 3.0
        else:
            assert int(value) // 10_000 == int(result.batch[u])  # the float begins with the graph
            assert result.edge_weight[i] == 1.0
            given[u, v] = value
        assert result.edge_codes[i] == value.long() % 5
    assert given
    assert all(given[v, u] == value for (u, v), value in given.items())


def test_large_sparse_graphs_find_pairs_without_a_list_of_all(make, edges_of, seeded):
    batch = make([(400, [(i, i + 1) for i in range(399)])], plain=True)
    before, after = edges_of(batch)[0], edges_of(PerturbEdges()(batch, 0.2, seeded(0)))[0]
    assert (before - after).total() == (after - before).total() == 160


def test_unknown_modes_are_refused():
    with pytest.raises(ConfigError, match="mode"):
        PerturbEdges(mode="add")


def test_what_is_remembered_of_a_batch_goes_with_it(make, seeded):
    batch = make(MIXED)
    PerturbEdges()(batch, 0.5, seeded(0))
    assert edge_pairs(batch) is edge_pairs(batch)
    gone = weakref.ref(batch)
    del batch
    gc.collect()
    assert gone() is None
