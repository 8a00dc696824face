"""Pretext scores: of hand-made rows, the same whenever asked, and in the method's own space."""

import pytest
import torch

from graphsc.methods import METHODS, make_recipe
from graphsc.methods.base import Pretext
from graphsc.training.callbacks import pretext_of

SCORED = ["graphsc", "graphsc-rd", "graphsc-mse", "graphcl", "joao", "joaov2", "adgcl", "simgrace", "rgcl",
          "infograph", "lagraph"]  # fmt: skip


def made(name, motifs, **settings):
    return make_recipe(name, motifs, settings).build(motifs.features, 0)


@pytest.mark.parametrize("name", SCORED)
def test_a_score_is_repeated_exactly_and_leaves_the_method_alone(motifs, name):
    method = made(name, motifs)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    one = pretext_of(method, motifs, 0)
    torch.rand(3)
    assert pretext_of(method, motifs, 0) == one
    assert 0 <= one.score <= 1
    assert 0 < one.chance < 1
    assert method.training
    for key, value in method.state_dict().items():
        assert torch.equal(value, before[key]), key


@pytest.mark.parametrize("name", [name for name in SCORED if name not in ("infograph", "lagraph")])
def test_chance_is_what_their_task_gives(motifs, name):
    chance = 0.5 if name.startswith("graphsc") else 1 / len(motifs)
    assert pretext_of(made(name, motifs), motifs, 0).chance == pytest.approx(chance)


def test_no_task_no_score(motifs):
    assert METHODS.get("untrained").kind == "trained"
    assert pretext_of(made("untrained", motifs), motifs, 0) is None
    assert pretext_of(made("graphsc", motifs), motifs[:0], 0) is None


def identity_head(head):
    """Let a head hand positive rows on as they are."""
    for layer in (head[0], head[2]):
        torch.nn.init.eye_(layer.weight)
        torch.nn.init.zeros_(layer.bias)


def test_graphsc_counts_triplets_in_its_distance_space(motifs):
    # The weak view is longer, but points as the graph does; the strong one is nearer as it comes.
    encoded = {
        "anchor": torch.tensor([[1.0, 0.0, 0.0, 0.0]]).repeat(2, 24),
        "positive": torch.tensor([[9.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]]).repeat(1, 24),
        "negative": torch.tensor([[1.0, 1.0, 0.0, 0.0], [1.0, 0.1, 0.0, 0.0]]).repeat(1, 24),
    }
    for space, score in (("unit", 0.5), ("raw", 0.0)):
        method = made("graphsc", motifs, distance_space=space)
        identity_head(method.first_head)
        assert method.pretext(encoded) == Pretext("weak view nearer than strong", score, 0.5)


def test_graphcl_looks_for_the_other_view(motifs):
    method = made("graphcl", motifs)
    identity_head(method.head)
    rows = torch.eye(96)[:4]
    found = method.pretext({"anchor": rows, "positive": rows[[0, 1, 3, 2]]})
    assert (found.score, found.chance) == (0.5, 0.25)


def test_infograph_ranks_own_nodes(motifs):
    method = made("infograph", motifs)
    method.local_head = method.global_head = torch.nn.Identity()
    graphs = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    # Two nodes of the first graph, one of the other.
    local = torch.tensor([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
    # Own pairs score 1, 0 and 0.5; the others 0, 1 and 0.5. Of nine comparisons 3 hold and 3 are ties.
    found = method.pretext({"anchor": graphs, "local": local, "size": torch.tensor([2, 1])})
    assert found.score == pytest.approx((3 + 3 / 2) / 9)


class Fixed(torch.nn.Module):
    """Says the same whatever it is asked."""

    def __init__(self, answer):
        super().__init__()
        self.answer = answer

    def forward(self, _):
        return self.answer


def test_lagraph_names_nodes_and_chance_names_the_commonest(motifs):
    method = made("lagraph", motifs)
    known = motifs.features.cardinalities[0]
    codes = torch.tensor([[0], [0], [0], [min(1, known - 1)]])
    method.decoder = Fixed(torch.nn.functional.one_hot(codes[[0, 1, 3, 3], 0], known).float())
    found = method.pretext({"anchor": torch.zeros(1, 96), "nodes": torch.zeros(4, 32), "codes": codes})
    assert (found.score, found.chance) == (0.75, 0.75)
