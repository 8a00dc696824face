"""Encoder passes of a step, counted on methods whose number is known from their definition."""

import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.methods import make_recipe
from graphsc.training.callbacks import passes_per_step


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("graphsc", {}, 3),
        ("graphsc", {"batch_norm_views": "joint"}, 3),  # one call on all three views joined
        ("graphcl", {}, 2),
        ("infograph", {}, 1),
        ("lagraph", {}, 2),
        ("simgrace", {}, 2),
        ("rgcl", {}, 3),
        ("adgcl", {}, 6),
    ],
)
def test_number_of_a_method_and_nothing_moves(motifs, name, settings, expected):
    method = make_recipe(name, motifs, settings).build(motifs.features, 0)
    before = {key: value.clone() for key, value in method.state_dict().items()}
    state = torch.random.get_rng_state()
    found = passes_per_step(method, GraphBatch.of(motifs), torch.Generator().manual_seed(0))
    assert found == expected
    assert method.training
    assert torch.equal(state, torch.random.get_rng_state())
    for key, value in method.state_dict().items():
        assert torch.equal(value, before[key]), key
