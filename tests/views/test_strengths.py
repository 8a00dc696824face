from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsc.core.errors import ConfigError
from graphsc.views import Choice, Compose, DropNodes, MaskAttributes, PerturbEdges, Subgraph, weak_and_strong

RING = (8, [(i, (i + 1) % 8) for i in range(8)])
SMALL = [(2, [(0, 1)]), (3, [(0, 1), (1, 2)]), (1, []), RING]


def named(batch):
    """For each graph the codes of its nodes, which tell them apart."""
    names, ptr = batch.codes[:, 0].tolist(), batch.ptr.tolist()
    return [set(names[a:b]) for a, b in itertools.pairwise(ptr)]


@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
def test_the_strong_view_changes_one_more_even_where_rates_round_alike(make, seeded, coupling):
    batch = make(SMALL)
    for view in (DropNodes(), Subgraph()):
        weak, strong = weak_and_strong(view, batch, 0.01, 0.02, seeded(0), coupling)
        assert weak.ptr.diff().tolist() == [1, 2, 1, 7]
        assert strong.ptr.diff().tolist() == [1, 1, 1, 6]
    weak, strong = weak_and_strong(MaskAttributes(), batch, 0.01, 0.02, seeded(0), coupling)
    assert torch.bincount(weak.batch[weak.replaced]).tolist() == [1, 1, 1, 1]
    assert torch.bincount(strong.batch[strong.replaced]).tolist() == [2, 2, 1, 2]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 0.9), st.floats(0.01, 1))
def test_nested_views_change_all_that_the_weak_one_does(make, edges_of, seed, weak_rate, step):
    batch = make([*SMALL, (5, [])])
    strong_rate = min(1.0, weak_rate + step)

    def both(view):
        generator = torch.Generator().manual_seed(seed)
        return weak_and_strong(view, batch, weak_rate, strong_rate, generator, "nested")

    for view in (DropNodes(), Subgraph()):
        weak, strong = both(view)
        assert all(s <= w for w, s in zip(named(weak), named(strong), strict=True))
    weak, strong = both(MaskAttributes())
    masked = {} if weak.replaced is None else dict(zip(weak.replaced.tolist(), weak.replacement, strict=True))
    rows = dict(zip(strong.replaced.tolist(), strong.replacement, strict=True))
    assert all(torch.equal(rows[node], row) for node, row in masked.items())
    weak, strong = both(PerturbEdges())
    for old, w, s in zip(edges_of(batch), edges_of(weak), edges_of(strong), strict=True):
        assert (old - w) <= (old - s)
        assert (w - old) <= (s - old)


def test_one_draw_of_operations_serves_both_strengths(make, seeded):
    batch = make([RING] * 50)
    view = Choice([DropNodes(), MaskAttributes()])
    for coupling in ("same", "nested"):
        weak, strong = weak_and_strong(view, batch, 0.1, 0.5, seeded(0), coupling)
        assert torch.equal(weak.ptr.diff() == 7, strong.ptr.diff() == 4)
    weak, strong = weak_and_strong(view, batch, 0.1, 0.5, seeded(0), "independent")
    assert not torch.equal(weak.ptr.diff() == 7, strong.ptr.diff() == 4)


def test_a_compose_has_a_weak_and_a_strong_view(make, seeded):
    view = Compose([Choice(["drop-nodes", "subgraph"]), MaskAttributes()])
    weak, strong = weak_and_strong(view, make([RING] * 4), 0.1, 0.12, seeded(0))
    assert weak.ptr.diff().tolist() == [7] * 4
    assert strong.ptr.diff().tolist() == [6] * 4
    assert len(strong.replaced) == 8


def test_a_weak_rate_of_zero_is_the_graph_itself(make, seeded):
    batch = make(SMALL)
    for coupling in ("same", "independent", "nested"):
        assert weak_and_strong(DropNodes(), batch, 0.0, 0.1, seeded(0), coupling)[0] is batch


@pytest.mark.parametrize(
    ("rates", "coupling", "says"),
    [
        ((0.2, 0.2), "same", "below"),
        ((0.3, 0.2), "same", "below"),
        ((-0.1, 0.2), "same", "between 0 and 1"),
        ((0.1, 1.5), "same", "between 0 and 1"),
        ((0.1, float("nan")), "same", "between 0 and 1"),
        ((0.1, 0.2), "twin", "coupling"),
    ],
)
def test_wrong_rates_and_couplings_are_refused(make, seeded, rates, coupling, says):
    with pytest.raises(ConfigError, match=says):
        weak_and_strong(DropNodes(), make(SMALL), *rates, seeded(0), coupling)


def test_views_that_cannot_nest_say_so(make, seeded):
    with pytest.raises(ConfigError, match="nested"):
        weak_and_strong(Compose(["drop-nodes"]), make(SMALL), 0.1, 0.2, seeded(0), "nested")


@pytest.mark.parametrize(
    "view",
    [Choice(["graphcl-subgraph"]), Choice(["identity", "graphcl-subgraph"]), Compose(["graphcl-subgraph"])],
)
@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
def test_views_whose_rate_is_kept_are_refused(make, seeded, view, coupling):
    with pytest.raises(ConfigError, match="keeps more at a larger rate"):
        weak_and_strong(view, make(SMALL), 0.1, 0.2, seeded(0), coupling)
