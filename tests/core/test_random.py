import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.random import derive_seed, numpy_generator, torch_generator

ARGUMENTS = (7, "views", 3, 11)
CHANGED = [(8, "views", 3, 11), (7, "order", 3, 11), (7, "views", 4, 11), (7, "views", 3, 12)]


def draw_numpy(*arguments):
    return numpy_generator(*arguments).random(8).tolist()


def draw_torch(*arguments):
    return torch.rand(8, generator=torch_generator(*arguments)).tolist()


@pytest.mark.parametrize("draw", [draw_numpy, draw_torch])
def test_same_arguments_give_the_same_draws(draw):
    assert draw(*ARGUMENTS) == draw(*ARGUMENTS)


@pytest.mark.parametrize("draw", [draw_numpy, draw_torch])
@pytest.mark.parametrize("other", CHANGED, ids=["seed", "purpose", "epoch", "step"])
def test_each_argument_changes_the_draws(draw, other):
    assert draw(*ARGUMENTS) != draw(*other)


@pytest.mark.parametrize("draw", [draw_numpy, draw_torch])
def test_draws_do_not_depend_on_global_state(draw):
    before = draw(*ARGUMENTS)
    np.random.seed(1)
    torch.manual_seed(1)
    assert draw(*ARGUMENTS) == before


@pytest.mark.parametrize("draw", [draw_numpy, draw_torch])
def test_drawing_leaves_global_state_alone(draw):
    torch.manual_seed(1)
    np.random.seed(1)
    before = torch.get_rng_state(), np.random.get_state()[1]
    draw(*ARGUMENTS)
    assert torch.equal(torch.get_rng_state(), before[0])
    assert np.array_equal(np.random.get_state()[1], before[1])


def test_a_seed_is_the_same_on_every_machine():
    # The first 8 bytes of BLAKE2b-64("7\x1fviews\x1f3\x1f11") by b2sum -l 64, little-endian, halved.
    assert derive_seed(*ARGUMENTS) == 5732257960318523782


@given(st.integers(), st.text(), st.integers(0, 10**6), st.integers(0, 10**9))
def test_a_seed_fits_63_bits(seed, purpose, epoch, step):
    assert 0 <= derive_seed(seed, purpose.encode("utf-8", "replace").decode(), epoch, step) < 2**63


def test_seeds_of_neighbouring_steps_differ():
    seeds = {derive_seed(s, p, e, t) for s in range(5) for p in "ab" for e in range(12) for t in range(12)}
    assert len(seeds) == 5 * 2 * 12 * 12


def test_numpy_integers_give_the_same_seed():
    assert derive_seed(np.int64(7), "views", np.int32(3), np.uint8(11)) == derive_seed(*ARGUMENTS)
