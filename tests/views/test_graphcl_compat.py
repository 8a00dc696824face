"""GraphCL's published augmentations, against its code rewritten as loops."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import torch
from scipy.stats import chi2_contingency

from graphsc.views import VIEWS

GRAPHS = [(25, [(i, i + 1) for i in range(24)]), (9, [(0, 1), (1, 2)])]


def view(name):
    return VIEWS.get(f"graphcl-{name}")()


def test_counts_are_rounded_down(make, seeded):
    batch = make(GRAPHS)
    assert view("drop-nodes")(batch, 0.1, seeded(0)).ptr.diff().tolist() == [23, 9]
    masked = view("mask-attributes")(batch, 0.1, seeded(0)).replaced
    assert torch.bincount(batch.batch[masked], minlength=2).tolist() == [2, 0]


def test_single_directions_of_edges_are_deleted(make, seeded):
    result = view("perturb-edges")(make(GRAPHS), 0.1, seeded(0))
    assert result.edge_ptr.diff().tolist() == [48 - 4, 4]
    assert not result.undirected


def star_by_hand(n, neighbours, rate, rng):
    """The published walk: the set of candidates never grows beyond the first node's neighbours."""
    wanted, kept, count = int(rate * n), [rng.randrange(n)], 0
    candidates = sorted(neighbours[kept[0]])
    while len(kept) <= wanted:
        count += 1
        if count > n or not candidates:
            break
        node = rng.choice(candidates)
        if node not in kept:
            kept.append(node)
    return tuple(sorted(kept))


def test_the_subgraph_is_a_star_of_at_most_the_rate(make, seeded):
    n, edges = 6, [(0, 1), (0, 2), (0, 3), (0, 4), (4, 5), (3, 3)]
    neighbours = {u: set() for u in range(n)}
    for u, v in edges:
        neighbours[u].add(v)
        neighbours[v].add(u)
    rng, trials = random.Random(0), 4000
    for rate in (0.2, 0.5, 0.8):
        expected = Counter(star_by_hand(n, neighbours, rate, rng) for _ in range(trials))
        result = view("subgraph")(make([(n, edges)] * trials), rate, seeded(2))
        names, ptr = result.codes[:, 0].tolist(), result.ptr.tolist()
        observed = Counter(tuple(names[a:b]) for a, b in itertools.pairwise(ptr))
        kinds = sorted(kind for kind in expected | observed if expected[kind] + observed[kind] > 9)
        table = [[expected[kind] for kind in kinds], [observed[kind] for kind in kinds]]
        assert chi2_contingency(table).pvalue > 0.005
        assert max(map(len, observed)) <= int(rate * n) + 1
