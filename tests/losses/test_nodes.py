"""Losses on nodes: against their equations in plain loops, whatever the size of the chunks."""

import itertools
import math

import pytest
import torch

from graphsc.losses import contrast, margin_ranking, node_contrast, node_node


def cosine(a, b):
    lengths = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / lengths if lengths else 0.0


def reference(one, other, temperature, ptr=None, weight=lambda cosine: 1.0):
    """The equation, node by node."""
    views = one.tolist(), other.tolist()
    size = len(views[0])
    ptr = [0, size] if ptr is None else ptr
    total = 0.0
    for u, v in (views, views[::-1]):
        for first, last in itertools.pairwise(ptr):
            for i in range(first, last):
                others = [k for k in range(first, last) if k != i]
                weights = [weight(cosine(u[i], v[k])) for k in others]
                mean = sum(weights) / len(others) if others else 0.0
                own = math.exp(cosine(u[i], v[i]) / temperature)
                below = own
                for k, w in zip(others, weights, strict=True):
                    w = w / mean if mean else 1.0
                    below += w * math.exp(cosine(u[i], v[k]) / temperature)
                    below += w * math.exp(cosine(u[i], u[k]) / temperature)
                total -= math.log(own / below)
    return total / (2 * size)


@pytest.fixture
def views():
    torch.manual_seed(0)
    return torch.randn(2, 23, 5, dtype=torch.float64).unbind()


def weigh(cosines):
    return (1 - cosines).clamp(min=0)


GROUPS = [None, [0, 23], [0, 1, 9, 9, 20, 23]]
CASES = [(groups, w) for groups in GROUPS for w in (None, weigh)]


def found(one, other, groups, w, **keywords):
    ptr = None if groups is None else torch.tensor(groups)
    return node_contrast(one, other, ptr=ptr, weigh=w, **keywords)


@pytest.mark.parametrize(("groups", "w"), CASES)
def test_the_loss_is_the_equation(views, groups, w):
    plain = (lambda cosine: 1.0) if w is None else (lambda cosine: max(1 - cosine, 0.0))
    expected = reference(*views, 0.3, groups, plain)
    assert found(*views, groups, w, temperature=0.3).item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("groups", [None, [0, 1, 9, 9, 20, 23]])
def test_the_loss_is_that_of_all_pairs_at_once(views, groups):
    batch = None if groups is None else torch.repeat_interleave(torch.tensor(groups).diff())
    expected = contrast(node_node(*views, batch=batch, within_view=True), temperature=0.4)
    torch.testing.assert_close(found(*views, groups, None, temperature=0.4), expected)


@pytest.mark.parametrize(("groups", "w"), CASES)
def test_chunks_do_not_change_loss_or_gradient(views, monkeypatch, groups, w):
    def outcome():
        leaves = [view.clone().requires_grad_() for view in views]
        loss = found(*leaves, groups, w)
        return [loss.detach(), *torch.autograd.grad(loss, leaves)]

    whole = outcome()
    for name, value in (("CHUNK_SCORES", 1), ("MIN_ROWS", 3), ("GROUP_ROWS", 2)):
        monkeypatch.setattr(f"graphsc.losses.nodes.{name}", value)
    for one, two in zip(whole, outcome(), strict=True):
        torch.testing.assert_close(one, two)


@pytest.mark.parametrize("groups", GROUPS)
def test_the_gradient_is_that_of_differences(views, groups):
    leaves = [view.clone().requires_grad_() for view in views]
    assert torch.autograd.gradcheck(lambda *rows: found(*rows, groups, None), leaves)


def test_weights_have_no_gradient(views):
    """The gradient is that of the loss with the weights of these rows as constants."""
    leaves = [view.clone().requires_grad_() for view in views]
    gradient = torch.autograd.grad(found(*leaves, None, weigh), leaves)
    cosines = torch.nn.functional.normalize(views[0]) @ torch.nn.functional.normalize(views[1]).T

    def constant(given):
        # Called for one view and for the other; all rows fit into one chunk.
        return weigh(cosines if torch.allclose(given, cosines, atol=1e-3) else cosines.T)

    moved = [view.clone() for view in views]
    moved[0][4, 2] += 1e-6
    change = (found(*moved, None, constant) - found(*views, None, constant)) / 1e-6
    assert gradient[0][4, 2].item() == pytest.approx(change.item(), rel=1e-3)


@pytest.mark.parametrize("count", [0, 1])
def test_nodes_without_another_have_no_loss(count):
    rows = torch.randn(2, count, 3, requires_grad=True)
    loss = node_contrast(*rows)
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    loss.backward()
    assert rows.grad.abs().sum() < 1e-6


def test_equal_nodes_give_the_logarithm_of_their_number():
    assert node_contrast(*torch.ones(2, 6, 3)).item() == pytest.approx(math.log(11))


def test_a_low_temperature_stays_finite(views):
    one, other = (view.float().requires_grad_() for view in views)
    loss = node_contrast(one, other, temperature=1e-3)
    loss.backward()
    assert torch.isfinite(loss)
    assert torch.isfinite(one.grad).all()


def test_weights_of_zero_count_as_equal(views):
    expected = node_contrast(*views)
    torch.testing.assert_close(node_contrast(*views, weigh=torch.zeros_like), expected)


def test_memory_does_not_grow_with_the_square_of_the_nodes():
    import resource

    rows = torch.randn(2, 6_000, 8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    node_contrast(*rows)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert grown < 4 * (2 * 6_000) ** 2 / 10


def test_arguments_out_of_range_are_refused(views):
    with pytest.raises(ValueError, match="temperature"):
        node_contrast(*views, temperature=0.0)
    with pytest.raises(ValueError, match="same nodes"):
        node_contrast(views[0], views[1][:3])


def test_margin_ranking_is_that_of_torch():
    positive, negative = torch.rand(2, 30).unbind()
    expected = torch.nn.functional.margin_ranking_loss(positive, negative, torch.ones(30), margin=0.4)
    torch.testing.assert_close(margin_ranking(positive, negative, margin=0.4), expected)
    assert margin_ranking(positive[:0], negative[:0], margin=0.4).item() == 0
