"""Choice, Compose, and pairs of weak and strong views."""

from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphsc.core.errors import ConfigError
from graphsc.views import (
    Choice,
    Compose,
    DropNodes,
    Identity,
    MaskAttributes,
    PerturbEdges,
    Subgraph,
    weak_and_strong,
)

RING = (8, [(i, (i + 1) % 8) for i in range(8)])


def test_each_graph_gets_the_operation_it_drew(make, check, seeded):
    batch = make([RING] * 60)
    view = Choice([DropNodes(), PerturbEdges(), MaskAttributes(), Identity(), Subgraph()])
    ops = view.draw(batch, seeded(0))
    assert ops.unique().tolist() == [0, 1, 2, 3, 4]
    result = view(batch, 0.25, seeded(1), ops)
    check(result)
    nodes = result.ptr.diff()
    masked = torch.bincount(result.batch[result.replaced], minlength=60)
    assert torch.equal(nodes == 6, (ops == 0) | (ops == 4))
    assert torch.equal(masked == 2, ops == 2)
    for g in range(60):
        rows = slice(int(result.edge_ptr[g]), int(result.edge_ptr[g + 1]))
        ends = result.edge_index[:, rows] - result.ptr[g]
        far = ((ends[0] - ends[1]).abs() % 8 % 6 != 1).any() if nodes[g] == 8 else False
        assert bool(far) == (int(ops[g]) == 1)
    assert torch.equal(result.codes[result.batch == 0][:, 0].unique(), result.codes[result.batch == 0][:, 0])


def test_probabilities_are_followed(make, seeded):
    batch = make([(1, [])] * 4000, plain=True)
    ops = Choice(["drop-nodes", "identity", "subgraph"], [1, 0, 3]).draw(batch, seeded(0))
    counts = torch.bincount(ops, minlength=3)
    assert counts[1] == 0
    assert abs(int(counts[2]) - 3000) < 110


def test_a_choice_of_one_view_equals_that_view(make, seeded, tensors):
    batch = make([RING, RING])
    generator = seeded(3)
    choice = Choice([PerturbEdges()])
    ops = choice.draw(batch, generator)
    state = generator.get_state()
    chosen = tensors(choice(batch, 0.5, generator, ops))
    generator.set_state(state)
    alone = tensors(PerturbEdges()(batch, 0.5, generator))
    assert all(torch.equal(chosen[key], alone[key]) for key in alone)


def test_compose_applies_views_in_sequence(make, seeded, tensors):
    batch = make([RING, RING])
    both = Compose(["drop-nodes", "mask-attributes"])(batch, 0.25, seeded(0))
    generator = seeded(0)
    first = DropNodes()(batch, 0.25, generator)
    second = tensors(MaskAttributes()(first, 0.25, generator))
    assert all(torch.equal(tensors(both)[key], value) for key, value in second.items())
    assert both.ptr.tolist() == [0, 6, 12]
    assert len(both.replaced) == 4


def test_draws_of_a_compose_can_be_reused(make, seeded):
    batch = make([RING] * 30)
    view = Compose(["mask-attributes", Choice(["drop-nodes", "identity"])])
    ops = view.draw(batch, seeded(0))
    result = view(batch, 0.5, seeded(1), ops)
    assert torch.equal(result.ptr.diff() == 4, ops[1] == 0)
    assert Compose(["identity"]).draw(batch, seeded(0)) is None


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Choice([]), "at least one"),
        (lambda: Choice([Choice(["identity"])]), "plain views"),
        (lambda: Choice(["identity"], [0.5, 0.5]), "2 probabilities"),
        (lambda: Choice(["identity", "subgraph"], [0.0, 0.0]), "probabilities"),
        (lambda: Choice(["identity", "subgraph"], [-1.0, 2.0]), "probabilities"),
        (lambda: Choice(["subgrap"]), "subgraph"),
        (lambda: Compose([]), "at least one"),
        (lambda: Compose([Compose(["identity"])]), "in one"),
    ],
)
def test_invalid_combinations_are_refused(build, message):
    with pytest.raises(ConfigError, match=message):
        build()


def test_wrong_ops_are_refused(make, seeded):
    batch = make([RING, RING])
    choice = Choice(["drop-nodes", "identity"])
    for ops in (torch.tensor([0]), torch.tensor([0, 2]), torch.tensor([-1, 0])):
        with pytest.raises(ConfigError, match="ops"):
            choice(batch, 0.2, seeded(0), ops)
    with pytest.raises(ConfigError, match="no operations"):
        DropNodes()(batch, 0.2, seeded(0), torch.tensor([0, 0]))
    with pytest.raises(ConfigError, match="ops"):
        Compose([choice])(batch, 0.2, seeded(0), torch.tensor([0, 0]))


SMALL_GRAPHS = [(2, [(0, 1)]), (3, [(0, 1), (1, 2)]), (1, []), RING]


def node_codes(batch):
    """Per graph, the codes of its nodes, which identify them."""
    names, ptr = batch.codes[:, 0].tolist(), batch.ptr.tolist()
    return [set(names[a:b]) for a, b in itertools.pairwise(ptr)]


@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
def test_the_strong_view_changes_one_more_element_even_if_counts_round_to_the_same(make, seeded, coupling):
    batch = make(SMALL_GRAPHS)
    for view in (DropNodes(), Subgraph()):
        weak, strong = weak_and_strong(view, batch, 0.01, 0.02, seeded(0), coupling)
        assert weak.ptr.diff().tolist() == [1, 2, 1, 7]
        assert strong.ptr.diff().tolist() == [1, 1, 1, 6]
    weak, strong = weak_and_strong(MaskAttributes(), batch, 0.01, 0.02, seeded(0), coupling)
    assert torch.bincount(weak.batch[weak.replaced]).tolist() == [1, 1, 1, 1]
    assert torch.bincount(strong.batch[strong.replaced]).tolist() == [2, 2, 1, 2]


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**31), st.floats(0, 0.9), st.floats(0.01, 1))
def test_the_nested_strong_view_includes_all_changes_of_the_weak_one(make, edges_of, seed, weak_rate, step):
    batch = make([*SMALL_GRAPHS, (5, [])])
    strong_rate = min(1.0, weak_rate + step)

    def both(view):
        generator = torch.Generator().manual_seed(seed)
        return weak_and_strong(view, batch, weak_rate, strong_rate, generator, "nested")

    for view in (DropNodes(), Subgraph()):
        weak, strong = both(view)
        assert all(s <= w for w, s in zip(node_codes(weak), node_codes(strong), strict=True))
    weak, strong = both(MaskAttributes())
    masked = {} if weak.replaced is None else dict(zip(weak.replaced.tolist(), weak.replacement, strict=True))
    rows = dict(zip(strong.replaced.tolist(), strong.replacement, strict=True))
    assert all(torch.equal(rows[node], row) for node, row in masked.items())
    weak, strong = both(PerturbEdges())
    for old, w, s in zip(edges_of(batch), edges_of(weak), edges_of(strong), strict=True):
        assert (old - w) <= (old - s)
        assert (w - old) <= (s - old)


def test_both_strengths_share_one_draw_of_operations(make, seeded):
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
    batch = make(SMALL_GRAPHS)
    for coupling in ("same", "independent", "nested"):
        assert weak_and_strong(DropNodes(), batch, 0.0, 0.1, seeded(0), coupling)[0] is batch


@pytest.mark.parametrize(
    ("rates", "coupling", "message"),
    [
        ((0.2, 0.2), "same", "below"),
        ((0.3, 0.2), "same", "below"),
        ((-0.1, 0.2), "same", "between 0 and 1"),
        ((0.1, 1.5), "same", "between 0 and 1"),
        ((0.1, float("nan")), "same", "between 0 and 1"),
        ((0.1, 0.2), "twin", "coupling"),
    ],
)
def test_wrong_rates_and_couplings_are_refused(make, seeded, rates, coupling, message):
    with pytest.raises(ConfigError, match=message):
        weak_and_strong(DropNodes(), make(SMALL_GRAPHS), *rates, seeded(0), coupling)


def test_nested_coupling_is_refused_for_views_without_it(make, seeded):
    with pytest.raises(ConfigError, match="nested"):
        weak_and_strong(Compose(["drop-nodes"]), make(SMALL_GRAPHS), 0.1, 0.2, seeded(0), "nested")


@pytest.mark.parametrize(
    "view",
    [Choice(["graphcl-subgraph"]), Choice(["identity", "graphcl-subgraph"]), Compose(["graphcl-subgraph"])],
)
@pytest.mark.parametrize("coupling", ["same", "independent", "nested"])
def test_views_whose_rate_is_the_part_kept_are_refused(make, seeded, view, coupling):
    with pytest.raises(ConfigError, match="keeps more at a larger rate"):
        weak_and_strong(view, make(SMALL_GRAPHS), 0.1, 0.2, seeded(0), coupling)
