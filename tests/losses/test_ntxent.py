"""NT-Xent against a loop over rows and columns."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import nt_xent, nt_xent_floor


def by_loop(anchor, other, temperature, with_positive=False):
    size, total = len(anchor), 0.0
    for i in range(size):
        scores = []
        for j in range(size):
            a, o = anchor[i].tolist(), other[j].tolist()
            product = sum(x * y for x, y in zip(a, o, strict=True))
            lengths = math.hypot(*a) * math.hypot(*o)
            scores.append(math.exp(product / lengths / temperature))
        denominator = sum(score for j, score in enumerate(scores) if with_positive or j != i)
        total -= math.log(scores[i] / denominator)
    return total / size


def two(batch, d, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=torch.float64) for _ in range(2)]


@given(st.integers(2, 7), st.integers(1, 5), st.floats(0.05, 2), st.booleans(), st.integers(0, 1000))
def test_it_is_the_mean_over_rows(batch, d, temperature, with_positive, seed):
    a, o = two(batch, d, seed)
    found = nt_xent(a, o, temperature=temperature, positive_in_denominator=with_positive)
    assert found.item() == pytest.approx(by_loop(a, o, temperature, with_positive), abs=1e-9)


def test_the_positive_is_out_of_the_denominator_by_default():
    a, o = two(5, 3)
    assert nt_xent(a, o).item() == pytest.approx(by_loop(a, o, 0.2))


@pytest.mark.parametrize("with_positive", [False, True])
def test_symmetric_is_the_mean_of_both_directions(with_positive):
    a, o = two(6, 4)
    found = nt_xent(a, o, symmetric=True, positive_in_denominator=with_positive)
    both = (by_loop(a, o, 0.2, with_positive) + by_loop(o, a, 0.2, with_positive)) / 2
    assert found.item() == pytest.approx(both)


@pytest.mark.parametrize("options", [{}, {"positive_in_denominator": True}, {"symmetric": True}])
def test_its_gradient_is_right(options):
    views = [v.requires_grad_() for v in two(5, 3)]
    assert gradcheck(lambda a, o: nt_xent(a, o, **options), views)


def corners(batch):
    """Unit vectors at the corners of a regular simplex."""
    points = torch.eye(batch, dtype=torch.float64) - 1 / batch
    return points / points.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("batch", [2, 3, 8])
def test_corners_of_a_simplex_reach_the_floor(batch):
    points = corners(batch)
    assert nt_xent(points, points).item() == pytest.approx(nt_xent_floor(batch))


@given(st.integers(2, 6), st.integers(1, 8), st.floats(0.05, 2), st.integers(0, 10**6))
def test_nothing_is_below_the_floor(batch, d, temperature, seed):
    a, o = two(batch, d, seed)
    floor = nt_xent_floor(batch, temperature=temperature)
    assert nt_xent(a, a, temperature=temperature).item() >= floor - 1e-9
    assert nt_xent(a, o, temperature=temperature).item() >= floor - 1e-9


def test_floor_by_hand():
    # Two graphs, opposite: the positive has cosine 1, the negative -1.
    assert nt_xent_floor(2, temperature=0.5) == pytest.approx(-2 / 0.5)


def test_drawn_negatives_are_distinct_and_never_the_positive():
    """Between equal scores each of a row's K negatives pushes with 1/K, its positive pulls with 1."""
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(100):
        anchor = torch.ones(5, 5, dtype=torch.float64, requires_grad=True)
        nt_xent(anchor, torch.eye(5, dtype=torch.float64), negatives=2, generator=generator).backward()
        # The factors of the mean over 5 rows, of the temperature and of the length are taken out again.
        for i, row in enumerate((anchor.grad * 5 * 0.2 * 5**0.5).tolist()):
            assert sorted(row) == pytest.approx([-1, 0, 0, 0.5, 0.5])
            assert row[i] == pytest.approx(-1)
            seen.add((i, tuple(j for j, push in enumerate(row) if push > 0.1)))
    assert len(seen) == 5 * 6  # every pair of the four others


@pytest.mark.parametrize("with_positive", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_equal_scores_count_the_negatives(count, with_positive):
    a = torch.ones(6, 3)
    found = nt_xent(a, a, negatives=count, positive_in_denominator=with_positive)
    assert found.item() == pytest.approx(math.log(count + with_positive), abs=1e-5)


@pytest.mark.parametrize("count", [5, 6, 100])
def test_as_many_negatives_as_there_are_means_all(count):
    a, o = two(6, 4)
    generator = torch.Generator().manual_seed(0)
    assert nt_xent(a, o, negatives=count, generator=generator) == nt_xent(a, o)


def test_the_generator_decides_the_negatives():
    a, o = two(30, 4)
    first, again, another = (
        nt_xent(a, o, negatives=3, generator=torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)
    )
    assert first == again
    assert first != another


@pytest.mark.parametrize(
    "options", [{}, {"positive_in_denominator": True}, {"symmetric": True}, {"negatives": 2}]
)
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_equal_and_zero_rows_give_finite_loss_and_gradients(batch, value, options):
    views = [torch.full((batch, 4), value, requires_grad=True) for _ in range(2)]
    loss = nt_xent(*views, **options)
    loss.backward()
    assert torch.isfinite(loss)
    for v in views:
        assert torch.isfinite(v.grad).all()


@pytest.mark.parametrize("with_positive", [False, True])
def test_a_batch_of_one_costs_nothing_and_moves_nothing(with_positive):
    views = [v.requires_grad_() for v in two(1, 4)]
    loss = nt_xent(*views, positive_in_denominator=with_positive)
    loss.backward()
    assert loss == 0
    assert not any(v.grad.any() for v in views)


def test_one_zero_row_leaves_the_others_as_they_are():
    a, o = two(4, 3)
    a[2] = 0
    scores = [
        [0.0 if i == 2 else float(torch.cosine_similarity(a[i], o[j], 0)) for j in range(4)] for i in range(4)
    ]
    total = sum(
        math.log(sum(math.exp(scores[i][j] / 0.2) for j in range(4) if j != i)) - scores[i][i] / 0.2
        for i in range(4)
    )
    assert nt_xent(a, o).item() == pytest.approx(total / 4)


def test_a_low_temperature_does_not_overflow():
    a = torch.randn(6, 4, requires_grad=True)
    loss = nt_xent(a, -a, temperature=1e-3)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(a.grad).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above zero"),
        ({"negatives": 0}, "negatives must be at least 1"),
    ],
)
def test_impossible_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        nt_xent(*two(3, 2), **options)


def test_views_of_different_graphs_are_refused():
    with pytest.raises(ValueError, match="have 3 and 2"):
        nt_xent(torch.ones(3, 2), torch.ones(2, 2))
