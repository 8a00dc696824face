"""Standard contrastive losses: against pytorch-metric-learning, and against plain loops over pairs."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from pytorch_metric_learning.losses import NTXentLoss, SelfSupervisedLoss, SupConLoss
from torch.autograd import gradcheck

from graphsc.losses import (
    Pairs,
    contrast,
    debiased_info_nce,
    graph_graph,
    graphcl_nt_xent,
    hard_negative_info_nce,
    info_nce,
    node_contrast,
    node_graph,
    node_node,
    nt_xent,
    pair_bce,
    supervised_contrastive,
)

TWO_VIEWS = [info_nce, nt_xent, debiased_info_nce, hard_negative_info_nce]


def random_views(count, batch, d=4, seed=0, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=dtype) for _ in range(count)]


@pytest.mark.parametrize("temperature", [0.07, 0.2, 1.0])
@pytest.mark.parametrize("batch", [2, 3, 9])
def test_nt_xent_is_that_of_pytorch_metric_learning(batch, temperature):
    first, second = random_views(2, batch)
    expected = SelfSupervisedLoss(NTXentLoss(temperature))(first, second)
    assert nt_xent(first, second, temperature=temperature).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("temperature", [0.07, 0.2, 1.0])
@pytest.mark.parametrize("batch", [2, 3, 9])
def test_info_nce_is_that_of_pytorch_metric_learning(batch, temperature):
    """With reference embeddings, its NTXentLoss contrasts with the other view alone."""
    first, second = random_views(2, batch)
    expected = SelfSupervisedLoss(NTXentLoss(temperature), symmetric=False)(first, second)
    assert info_nce(first, second, temperature=temperature).item() == pytest.approx(expected.item())


@pytest.mark.parametrize("labels", [[0, 0, 1, 1, 2, 2], [0, 0, 0, 0, 1, 1], [3, 3, 7, 7, 7, 9]])
def test_supervised_contrastive_is_that_of_pytorch_metric_learning(labels):
    """The last row of the last case is alone in its class."""
    (rows,) = random_views(1, 6)
    labels = torch.tensor(labels)
    expected = SupConLoss(temperature=0.3)(rows, labels)
    assert supervised_contrastive(rows, labels, temperature=0.3).item() == pytest.approx(expected.item())


def similarity(a, b, temperature):
    return math.exp(float(a @ b / a.norm() / b.norm()) / temperature)


def nt_xent_by_loop(first, second, temperature, share=0.0, concentration=0.0):
    """One anchor at a time, with the sum over negatives of Robinson et al. and Chuang et al."""
    rows, batch, total = torch.cat([first, second]), len(first), 0.0
    for i in range(2 * batch):
        own = (i + batch) % (2 * batch)
        positive = similarity(rows[i], rows[own], temperature)
        negatives = [similarity(rows[i], rows[j], temperature) for j in range(2 * batch) if j not in (i, own)]
        n = len(negatives)
        weights = [s**concentration for s in negatives]
        hard = sum(w * s for w, s in zip(weights, negatives, strict=True)) / (sum(weights) / n)
        rest = max((hard - share * n * positive) / (1 - share), n * math.exp(-1 / temperature))
        total -= math.log(positive / (positive + rest))
    return total / (2 * batch)


@given(st.integers(2, 6), st.integers(1, 4), st.floats(0.1, 2), st.integers(0, 1000))
def test_nt_xent_equals_the_loop(batch, d, temperature, seed):
    first, second = random_views(2, batch, d, seed)
    loss = nt_xent(first, second, temperature=temperature).item()
    assert loss == pytest.approx(nt_xent_by_loop(first, second, temperature), abs=1e-9)


@given(st.integers(2, 6), st.floats(0.2, 2), st.floats(0, 0.9), st.integers(0, 1000))
def test_debiased_info_nce_equals_the_loop(batch, temperature, share, seed):
    first, second = random_views(2, batch, seed=seed)
    loss = debiased_info_nce(first, second, positive_share=share, temperature=temperature).item()
    assert loss == pytest.approx(nt_xent_by_loop(first, second, temperature, share), abs=1e-9)


@given(st.integers(2, 6), st.floats(0.3, 2), st.floats(0, 0.9), st.floats(0, 3), st.integers(0, 1000))
def test_hard_negative_info_nce_equals_the_loop(batch, temperature, share, concentration, seed):
    first, second = random_views(2, batch, seed=seed)
    loss = hard_negative_info_nce(
        first, second, concentration=concentration, positive_share=share, temperature=temperature
    ).item()
    expected = nt_xent_by_loop(first, second, temperature, share, concentration)
    assert loss == pytest.approx(expected, abs=1e-9)


def test_hard_negatives_raise_the_loss():
    first, second = random_views(2, 8)
    losses = [hard_negative_info_nce(first, second, concentration=c).item() for c in (0, 0.5, 2)]
    assert losses == sorted(losses)
    assert losses[0] < losses[2]


def test_symmetric_info_nce_is_the_mean_of_both_directions():
    first, second = random_views(2, 6)
    both = (info_nce(first, second) + info_nce(second, first)) / 2
    assert info_nce(first, second, symmetric=True).item() == pytest.approx(both.item())


def test_graphcl_with_the_positive_in_the_denominator_is_info_nce_to_the_bit():
    first, second = random_views(2, 7, dtype=torch.float32)
    assert graphcl_nt_xent(first, second, positive_in_denominator=True) == info_nce(first, second)


@pytest.mark.parametrize("loss", TWO_VIEWS)
def test_gradient(loss):
    assert gradcheck(loss, [view.requires_grad_() for view in random_views(2, 5, 3)])


def test_supervised_contrastive_gradient():
    labels = torch.tensor([0, 1, 0, 1, 2])
    rows = random_views(1, 5, 3)[0].requires_grad_()
    assert gradcheck(lambda x: supervised_contrastive(x, labels), rows)


@pytest.mark.parametrize("loss", TWO_VIEWS)
@pytest.mark.parametrize("value", [0.0, 3.0])
@pytest.mark.parametrize("batch", [0, 1, 2, 5])
def test_equal_zero_and_no_rows_are_finite(loss, value, batch):
    views = [torch.full((batch, 4), value, requires_grad=True) for _ in range(2)]
    result = loss(*views)
    result.backward()
    assert torch.isfinite(result)
    assert all(torch.isfinite(view.grad).all() for view in views)


@pytest.mark.parametrize("loss", TWO_VIEWS)
def test_one_row_has_nothing_to_be_contrasted_with(loss):
    views = [view.requires_grad_() for view in random_views(2, 1)]
    result = loss(*views)
    result.backward()
    assert result.item() == pytest.approx(0, abs=1e-12)
    assert all(view.grad.abs().max() < 1e-12 for view in views)


@pytest.mark.parametrize("loss", TWO_VIEWS)
def test_a_low_temperature_does_not_overflow(loss):
    rows = random_views(1, 6, dtype=torch.float32)[0].requires_grad_()
    result = loss(rows, -rows, temperature=1e-3)
    result.backward()
    assert torch.isfinite(result)
    assert torch.isfinite(rows.grad).all()


def test_rows_that_are_alone_in_their_class_have_no_loss():
    rows = random_views(1, 3)[0].requires_grad_()
    loss = supervised_contrastive(rows, torch.arange(3))
    loss.backward()
    assert loss == 0
    assert not rows.grad.any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"temperature": 0.0}, "temperature must be above zero"),
        ({"positive_share": 1.0}, "positive_share must be from 0 to below 1"),
        ({"concentration": -1.0}, "concentration must not be negative"),
    ],
)
def test_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        hard_negative_info_nce(*random_views(2, 3), **options)


@pytest.mark.parametrize("loss", TWO_VIEWS)
def test_views_of_different_length_are_refused(loss):
    with pytest.raises(ValueError, match="have 3 and 2"):
        loss(torch.ones(3, 2), torch.ones(2, 2))


def test_labels_of_another_shape_are_refused():
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        supervised_contrastive(torch.ones(3, 2), torch.zeros(2))


# Contrast modes

BATCH = torch.tensor([0, 0, 1, 1, 1])


def entries(mask):
    return [tuple(pair) for pair in mask.nonzero().tolist()]


def test_graph_graph_pairs():
    pairs = graph_graph(*random_views(2, 3))
    assert entries(pairs.positive) == [(0, 0), (1, 1), (2, 2)]
    assert entries(pairs.negative) == [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)]


def test_graph_graph_pairs_within_a_view():
    """Rows 0 and 1 are the first view, 2 and 3 the second."""
    first, second = random_views(2, 2)
    pairs = graph_graph(first, second, within_view=True)
    assert torch.equal(pairs.anchor, torch.cat([first, second]))
    assert entries(pairs.positive) == [(0, 2), (1, 3), (2, 0), (3, 1)]
    assert entries(pairs.negative) == [(0, 1), (0, 3), (1, 0), (1, 2), (2, 1), (2, 3), (3, 0), (3, 2)]


def test_node_graph_pairs():
    nodes, graphs = random_views(1, 5)[0], random_views(1, 2)[0]
    pairs = node_graph(nodes, graphs, BATCH)
    assert entries(pairs.positive) == [(0, 0), (1, 0), (2, 1), (3, 1), (4, 1)]
    assert entries(pairs.negative) == [(0, 1), (1, 1), (2, 0), (3, 0), (4, 0)]


def test_node_node_pairs_of_the_same_graph():
    pairs = node_node(*random_views(2, 5), batch=BATCH)
    assert entries(pairs.positive) == [(i, i) for i in range(5)]
    assert entries(pairs.negative) == [(0, 1), (1, 0), (2, 3), (2, 4), (3, 2), (3, 4), (4, 2), (4, 3)]


def test_node_node_pairs_of_the_same_graph_within_a_view():
    pairs = node_node(*random_views(2, 3), batch=torch.tensor([0, 0, 1]), within_view=True)
    assert entries(pairs.negative) == [(0, 1), (0, 4), (1, 0), (1, 3), (3, 1), (3, 4), (4, 0), (4, 3)]
    assert entries(pairs.positive) == [(0, 3), (1, 4), (2, 5), (3, 0), (4, 1), (5, 2)]


def test_contrast_of_nodes_and_graphs_equals_the_loop():
    nodes, graphs = random_views(1, 5)[0], random_views(1, 3, seed=1)[0]
    expected = 0.0
    for row, graph in zip(nodes, BATCH.tolist(), strict=True):
        scores = [similarity(row, other, 0.5) for other in graphs]
        expected -= math.log(scores[graph] / sum(scores)) / 5
    loss = contrast(node_graph(nodes, graphs, BATCH), temperature=0.5)
    assert loss.item() == pytest.approx(expected)


def test_contrast_of_graphs_is_info_nce():
    first, second = random_views(2, 6)
    loss = contrast(graph_graph(first, second), temperature=0.3)
    assert loss.item() == pytest.approx(info_nce(first, second, temperature=0.3).item())


def test_node_contrast_in_chunks_is_nt_xent():
    first, second = random_views(2, 9)
    assert node_contrast(first, second, temperature=0.4).item() == pytest.approx(
        nt_xent(first, second, temperature=0.4).item()
    )


def test_node_contrast_of_groups_is_contrast_within_graphs():
    first, second = random_views(2, 5)
    pairs = node_node(first, second, batch=BATCH, within_view=True)
    loss = node_contrast(first, second, temperature=0.4, ptr=torch.tensor([0, 2, 5]))
    assert loss.item() == pytest.approx(contrast(pairs, temperature=0.4).item())


@pytest.mark.parametrize("options", [{}, {"positive_share": 0.2}, {"concentration": 1.0}])
def test_contrast_within_graphs_with_a_single_node_is_finite(options):
    """Node 2 is alone in its graph: it has a positive and no negatives."""
    views = [view.requires_grad_() for view in random_views(2, 3)]
    loss = contrast(node_node(*views, batch=torch.tensor([0, 0, 1])), **options)
    loss.backward()
    assert torch.isfinite(loss)
    assert all(torch.isfinite(view.grad).all() for view in views)
    assert views[0].grad[2].abs().max() < 1e-12


def test_contrast_averages_over_several_positives():
    anchor, sample = torch.eye(2, dtype=torch.float64), torch.eye(2, dtype=torch.float64).repeat(2, 1)
    positive = torch.tensor([[True, True, False, False], [False, False, False, False]])
    loss = contrast(Pairs(anchor, sample, positive, ~positive), temperature=1.0)
    # Cosines 1, 0, 1, 0; positives are the first two.
    assert loss.item() == pytest.approx(math.log(2 * math.e + 2) - 0.5)


def test_scores_of_pairs_are_the_inner_products_that_pair_bce_takes():
    nodes = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
    graphs = torch.tensor([[2.0, 1.0], [0.5, 1.0]])
    positive, negative = node_graph(nodes, graphs, torch.tensor([0, 1])).scores()
    assert positive.tolist() == [4.0, 0.5]
    assert negative.tolist() == [2.5, 5.0]
    expected = sum(math.log1p(math.exp(x)) / 2 for x in (-4, -0.5, 2.5, 5))
    assert pair_bce(positive, negative).item() == pytest.approx(expected)
