from __future__ import annotations

import pytest
import torch

from graphsc.core.errors import ConfigError
from graphsc.views import Choice, Compose, DropNodes, Identity, MaskAttributes, PerturbEdges, Subgraph

RING = (8, [(i, (i + 1) % 8) for i in range(8)])


def test_each_graph_meets_the_operation_it_drew(make, check, seeded):
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


def test_a_choice_of_one_is_that_view(make, seeded, tensors):
    batch = make([RING, RING])
    generator = seeded(3)
    choice = Choice([PerturbEdges()])
    ops = choice.draw(batch, generator)
    state = generator.get_state()
    chosen = tensors(choice(batch, 0.5, generator, ops))
    generator.set_state(state)
    alone = tensors(PerturbEdges()(batch, 0.5, generator))
    assert all(torch.equal(chosen[key], alone[key]) for key in alone)


def test_compose_applies_one_after_the_other(make, seeded, tensors):
    batch = make([RING, RING])
    both = Compose(["drop-nodes", "mask-attributes"])(batch, 0.25, seeded(0))
    generator = seeded(0)
    first = DropNodes()(batch, 0.25, generator)
    second = tensors(MaskAttributes()(first, 0.25, generator))
    assert all(torch.equal(tensors(both)[key], value) for key, value in second.items())
    assert both.ptr.tolist() == [0, 6, 12]
    assert len(both.replaced) == 4


def test_the_draws_of_a_compose_can_be_used_again(make, seeded):
    batch = make([RING] * 30)
    view = Compose(["mask-attributes", Choice(["drop-nodes", "identity"])])
    ops = view.draw(batch, seeded(0))
    result = view(batch, 0.5, seeded(1), ops)
    assert torch.equal(result.ptr.diff() == 4, ops[1] == 0)
    assert Compose(["identity"]).draw(batch, seeded(0)) is None


@pytest.mark.parametrize(
    ("build", "says"),
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
def test_what_cannot_be_built_says_why(build, says):
    with pytest.raises(ConfigError, match=says):
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
