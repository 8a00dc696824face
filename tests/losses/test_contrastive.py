"""Contrastive losses against plain loops over rows, graphs, prototypes and nodes."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.autograd import gradcheck

from graphsc.losses import (
    counterfactual_contrast,
    curriculum_contrast,
    graphcl_nt_xent,
    graphcl_nt_xent_floor,
    independence,
    joint_rationale_loss,
    masked_node_contrast,
    ordered_contrast,
    path_contrast,
    queue_contrast,
    search_path,
)


def nt_xent_by_loop(anchor, other, temperature, with_positive=False):
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


def random_views(count, batch, d=4, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(batch, d, generator=generator, dtype=torch.float64) for _ in range(count)]


@given(st.integers(2, 7), st.integers(1, 5), st.floats(0.05, 2), st.booleans(), st.integers(0, 1000))
def test_nt_xent_equals_the_loop(batch, d, temperature, with_positive, seed):
    a, o = random_views(2, batch, d, seed)
    loss = graphcl_nt_xent(a, o, temperature=temperature, positive_in_denominator=with_positive)
    assert loss.item() == pytest.approx(nt_xent_by_loop(a, o, temperature, with_positive), abs=1e-9)


def test_the_positive_is_out_of_the_denominator_by_default():
    a, o = random_views(2, 5, 3)
    assert graphcl_nt_xent(a, o).item() == pytest.approx(nt_xent_by_loop(a, o, 0.2))


@pytest.mark.parametrize("with_positive", [False, True])
def test_symmetric_nt_xent_is_the_mean_of_both_directions(with_positive):
    a, o = random_views(2, 6, 4)
    loss = graphcl_nt_xent(a, o, symmetric=True, positive_in_denominator=with_positive)
    both = (nt_xent_by_loop(a, o, 0.2, with_positive) + nt_xent_by_loop(o, a, 0.2, with_positive)) / 2
    assert loss.item() == pytest.approx(both)


@pytest.mark.parametrize("options", [{}, {"positive_in_denominator": True}, {"symmetric": True}])
def test_nt_xent_gradient(options):
    views = [v.requires_grad_() for v in random_views(2, 5, 3)]
    assert gradcheck(lambda a, o: graphcl_nt_xent(a, o, **options), views)


def corners(batch):
    """Unit vectors at the corners of a regular simplex."""
    points = torch.eye(batch, dtype=torch.float64) - 1 / batch
    return points / points.norm(dim=1, keepdim=True)


@pytest.mark.parametrize("batch", [2, 3, 8])
def test_nt_xent_of_simplex_corners_is_the_floor(batch):
    points = corners(batch)
    assert graphcl_nt_xent(points, points).item() == pytest.approx(graphcl_nt_xent_floor(batch))


@given(st.integers(2, 6), st.integers(1, 8), st.floats(0.05, 2), st.integers(0, 10**6))
def test_nt_xent_is_never_below_the_floor(batch, d, temperature, seed):
    a, o = random_views(2, batch, d, seed)
    floor = graphcl_nt_xent_floor(batch, temperature=temperature)
    assert graphcl_nt_xent(a, a, temperature=temperature).item() >= floor - 1e-9
    assert graphcl_nt_xent(a, o, temperature=temperature).item() >= floor - 1e-9


def test_nt_xent_floor_by_hand():
    # Two graphs, opposite: the positive has cosine 1, the negative -1.
    assert graphcl_nt_xent_floor(2, temperature=0.5) == pytest.approx(-2 / 0.5)


def test_sampled_negatives_are_distinct_and_never_the_positive():
    """With equal scores each of a row's K negatives has gradient 1/K, and its positive -1."""
    generator = torch.Generator().manual_seed(0)
    seen = set()
    for _ in range(100):
        anchor = torch.ones(5, 5, dtype=torch.float64, requires_grad=True)
        graphcl_nt_xent(
            anchor, torch.eye(5, dtype=torch.float64), negatives=2, generator=generator
        ).backward()
        # The factors of the mean over 5 rows, of the temperature and of the length are taken out again.
        for i, row in enumerate((anchor.grad * 5 * 0.2 * 5**0.5).tolist()):
            assert sorted(row) == pytest.approx([-1, 0, 0, 0.5, 0.5])
            assert row[i] == pytest.approx(-1)
            seen.add((i, tuple(j for j, value in enumerate(row) if value > 0.1)))
    assert len(seen) == 5 * 6  # every pair of the four others


@pytest.mark.parametrize("with_positive", [False, True])
@pytest.mark.parametrize("count", [1, 3])
def test_equal_scores_count_the_negatives(count, with_positive):
    a = torch.ones(6, 3)
    loss = graphcl_nt_xent(a, a, negatives=count, positive_in_denominator=with_positive)
    assert loss.item() == pytest.approx(math.log(count + with_positive), abs=1e-5)


@pytest.mark.parametrize("count", [5, 6, 100])
def test_at_least_as_many_negatives_as_graphs_means_all(count):
    a, o = random_views(2, 6, 4)
    generator = torch.Generator().manual_seed(0)
    assert graphcl_nt_xent(a, o, negatives=count, generator=generator) == graphcl_nt_xent(a, o)


def test_negatives_are_drawn_from_the_generator():
    a, o = random_views(2, 30, 4)
    first, again, another = (
        graphcl_nt_xent(a, o, negatives=3, generator=torch.Generator().manual_seed(seed))
        for seed in (0, 0, 1)
    )
    assert first == again
    assert first != another


@pytest.mark.parametrize(
    "options", [{}, {"positive_in_denominator": True}, {"symmetric": True}, {"negatives": 2}]
)
@pytest.mark.parametrize("batch", [1, 2, 5])
@pytest.mark.parametrize("value", [0.0, 3.0])
def test_nt_xent_of_equal_and_zero_rows_is_finite(batch, value, options):
    views = [torch.full((batch, 4), value, requires_grad=True) for _ in range(2)]
    loss = graphcl_nt_xent(*views, **options)
    loss.backward()
    assert torch.isfinite(loss)
    for v in views:
        assert torch.isfinite(v.grad).all()


@pytest.mark.parametrize("with_positive", [False, True])
def test_nt_xent_of_one_graph_is_zero_with_zero_gradient(with_positive):
    views = [v.requires_grad_() for v in random_views(2, 1, 4)]
    loss = graphcl_nt_xent(*views, positive_in_denominator=with_positive)
    loss.backward()
    assert loss == 0
    assert not any(v.grad.any() for v in views)


def test_a_zero_row_has_cosine_zero():
    a, o = random_views(2, 4, 3)
    a[2] = 0
    scores = [
        [0.0 if i == 2 else float(torch.cosine_similarity(a[i], o[j], 0)) for j in range(4)] for i in range(4)
    ]
    total = sum(
        math.log(sum(math.exp(scores[i][j] / 0.2) for j in range(4) if j != i)) - scores[i][i] / 0.2
        for i in range(4)
    )
    assert graphcl_nt_xent(a, o).item() == pytest.approx(total / 4)


def test_a_low_temperature_does_not_overflow():
    a = torch.randn(6, 4, requires_grad=True)
    loss = graphcl_nt_xent(a, -a, temperature=1e-3)
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
def test_invalid_nt_xent_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        graphcl_nt_xent(*random_views(2, 3, 2), **options)


def test_views_of_different_graphs_are_refused():
    with pytest.raises(ValueError, match="have 3 and 2"):
        graphcl_nt_xent(torch.ones(3, 2), torch.ones(2, 2))


def ordered_by_loop(anchor, weak, strong, temperature):
    """The definition, one graph at a time."""

    def cosine(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True)) / math.hypot(*a) / math.hypot(*b)

    total = 0.0
    for i, a in enumerate(anchor):
        to_weak = [math.exp(cosine(a, w) / temperature) for w in weak]
        to_own = math.exp(cosine(a, strong[i]) / temperature)
        total -= math.log(to_weak[i] / (sum(to_weak) + to_own))
    return total / len(anchor)


@pytest.mark.parametrize("rows", [1, 2, 6])
def test_ordered_contrast_equals_the_loop(rows):
    views = torch.randn(3, rows, 4, generator=torch.Generator().manual_seed(rows), dtype=torch.float64)
    expected = ordered_by_loop(*views.tolist(), 0.3)
    assert float(ordered_contrast(*views, temperature=0.3)) == pytest.approx(expected)


def test_ordered_contrast_gradient():
    views = torch.randn(3, 4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    assert gradcheck(ordered_contrast, [view.clone().requires_grad_() for view in views])


def test_a_strong_view_as_close_as_the_weak_one_increases_the_loss():
    anchor = torch.eye(3)
    far = -anchor
    assert ordered_contrast(anchor, anchor, anchor) > ordered_contrast(anchor, anchor, far) + 0.5


@pytest.mark.parametrize("rows", [torch.zeros(3, 2), torch.ones(3, 2)])
def test_ordered_contrast_of_equal_or_zero_rows_is_finite(rows):
    rows = rows.clone().requires_grad_()
    loss = ordered_contrast(rows, rows, rows)
    loss.backward()
    assert float(loss) == pytest.approx(math.log(4))
    assert torch.isfinite(rows.grad).all()


def similarity(a, b, temperature):
    a, b = a.tolist(), b.tolist()
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return math.exp(product / math.hypot(*a) / math.hypot(*b) / temperature)


@pytest.mark.parametrize("batch", [1, 2, 6])
def test_independence_equals_the_loop(batch):
    anchor, positive, complement = random_views(3, batch)
    expected = 0.0
    for i in range(batch):
        own = similarity(anchor[i], positive[i], 0.3)
        others = sum(similarity(anchor[i], complement[j], 0.3) for j in range(batch))
        expected -= math.log(own / (own + others)) / batch
    result = independence(anchor, positive, complement, temperature=0.3)
    assert result.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("batch", [1, 2, 6])
@pytest.mark.parametrize("weight", [0.0, 0.1, 2.0])
def test_joint_rationale_loss_equals_the_loop(batch, weight):
    anchor, positive, complement = random_views(3, batch, seed=1)
    expected = 0.0
    for i in range(batch):
        own = similarity(anchor[i], positive[i], 0.2)
        rationales = sum(similarity(anchor[i], positive[j], 0.2) for j in range(batch))
        others = sum(similarity(anchor[i], complement[j], 0.2) for j in range(batch))
        expected -= math.log(own / rationales + weight * own / (others + own)) / batch
    result = joint_rationale_loss(anchor, positive, complement, weight=weight)
    assert result.item() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("loss", [independence, joint_rationale_loss])
def test_rationale_gradients(loss):
    views = [view.requires_grad_() for view in random_views(3, 5, seed=2)]
    assert gradcheck(loss, views)


@pytest.mark.parametrize("loss", [independence, joint_rationale_loss])
@pytest.mark.parametrize("batch", [1, 4])
def test_rationale_losses_of_zero_and_equal_rows_are_finite(loss, batch):
    for rows in (torch.zeros(batch, 3), torch.ones(batch, 3)):
        views = [rows.clone().requires_grad_() for _ in range(3)]
        result = loss(*views)
        result.backward()
        assert torch.isfinite(result)
        assert all(torch.isfinite(view.grad).all() for view in views)


@pytest.mark.parametrize("loss", [independence, joint_rationale_loss])
def test_rationale_losses_refuse_a_temperature_of_zero(loss):
    with pytest.raises(ValueError, match="temperature"):
        loss(*random_views(3, 2), temperature=0.0)


# Two levels in the plane. Below: four prototypes, the last not alive. Above: two.
EAST, NORTH, WEST, SOUTH = (torch.tensor(v, dtype=torch.float64) for v in ([1, 0], [0, 1], [-1, 0], [0, -1]))
PROTOTYPES = torch.stack(
    [torch.stack([EAST, NORTH, WEST, SOUTH]), torch.stack([EAST + NORTH, WEST, 0 * EAST, 0 * EAST])]
)
ALIVE = torch.tensor([[True, True, True, False], [True, True, False, False]])
PARENT = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 0]])


def test_the_best_path_follows_parents():
    # The second is nearest to `west` at the top, and so it is below, though `north` would be nearer there.
    graphs = torch.stack([EAST + 0.1 * NORTH, 0.8 * WEST + NORTH, NORTH + 0.1 * EAST])
    path = search_path(graphs, PROTOTYPES, ALIVE, PARENT, search="best")
    assert path.tolist() == [[0, 0], [2, 1], [1, 0]]


def test_sampled_paths_follow_the_softmax_and_skip_dead_prototypes():
    torch.manual_seed(0)
    path = search_path(EAST.expand(4000, 2), PROTOTYPES, ALIVE, PARENT, temperature=1.0)
    up = math.exp(math.sqrt(0.5))
    share = up / (up + math.exp(-1))  # cosines 1 / sqrt 2 and -1
    assert (path[:, 1] == 0).double().mean().item() == pytest.approx(share, abs=0.03)
    below = path[path[:, 1] == 0, 0]
    assert set(below.tolist()) == {0, 1}
    assert (below == 0).double().mean().item() == pytest.approx(math.e / (math.e + 1), abs=0.04)
    assert set(path[path[:, 1] == 1, 0].tolist()) == {2}


def path_contrast_by_loop(graphs, path, negatives, temperature):
    def nll(row, level, chosen, allowed):
        scores = []
        for k in range(4):
            if ALIVE[level, k] and k in allowed:
                centre = PROTOTYPES[level, k]
                scores.append((k, math.exp(float(row @ centre / row.norm() / centre.norm()) / temperature)))
        return -math.log(dict(scores)[chosen] / sum(share for _, share in scores))

    total = 0.0
    for row, (low, high) in zip(graphs, path.tolist(), strict=True):
        siblings = [k for k in range(4) if PARENT[0, k] == high]
        total += nll(row, 0, low, siblings if negatives == "siblings" else range(4))
        total += nll(row, 1, high, range(4))
        total += nll(PROTOTYPES[0, low], 1, high, range(4))
    return total / len(graphs)


@pytest.mark.parametrize("negatives", ["level", "siblings"])
def test_path_contrast_equals_the_loop(negatives):
    graphs = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    path = torch.tensor([[0, 0], [1, 0], [2, 1], [0, 0], [2, 1]])
    loss = path_contrast(graphs, PROTOTYPES, ALIVE, PARENT, path, temperature=0.5, negatives=negatives)
    assert loss.item() == pytest.approx(path_contrast_by_loop(graphs, path, negatives, 0.5))


def test_path_contrast_gradient_reaches_graphs_and_live_prototypes():
    graphs = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    prototypes = PROTOTYPES.clone().requires_grad_()
    path = torch.tensor([[0, 0], [2, 1], [1, 0]])
    assert gradcheck(lambda g: path_contrast(g, PROTOTYPES, ALIVE, PARENT, path, temperature=0.5), (graphs,))
    path_contrast(graphs, prototypes, ALIVE, PARENT, path).backward()
    assert torch.isfinite(prototypes.grad).all()
    assert not prototypes.grad[~ALIVE].any()
    assert prototypes.grad[0, 0].any()


def node_rows(count, seed):
    return torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cosine_similarity(one, other):
    return float(one @ other / (one.norm() * other.norm()))


def masked_nodes_by_loop(nodes, hidden, which, sizes, temperature, positives):
    graph = [g for g, size in enumerate(sizes) for _ in range(size)]
    losses = []
    for row, j in zip(hidden, which, strict=True):
        below = above = 0.0
        for i in range(len(nodes)):
            if graph[i] != graph[j]:
                continue
            share = math.exp(cosine_similarity(nodes[i], row) / temperature)
            below += share
            if i == j or (positives == "hidden" and i in which):
                above += share
        losses.append(-math.log(above / below))
    return losses


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=6).filter(any),
    st.sampled_from(["own", "hidden"]),
    st.integers(0, 1000),
    st.data(),
)
def test_masked_node_contrast_equals_the_loop(sizes, positives, seed, data):
    """Graphs of several size groups, graphs without a masked node, and empty graphs."""
    total = sum(sizes)
    which = sorted(data.draw(st.sets(st.integers(0, total - 1), min_size=1)))
    nodes, hidden = node_rows(total, seed), node_rows(len(which), seed + 1)
    ptr = torch.tensor([0, *sizes]).cumsum(0)
    losses = masked_node_contrast(
        nodes, hidden, torch.tensor(which), ptr, temperature=0.5, positives=positives
    )
    assert losses.tolist() == pytest.approx(
        masked_nodes_by_loop(nodes, hidden, which, sizes, 0.5, positives), abs=1e-9
    )


@pytest.mark.parametrize("positives", ["own", "hidden"])
def test_masked_node_contrast_gradient(positives):
    which, ptr = torch.tensor([0, 2, 4]), torch.tensor([0, 3, 8])
    nodes, hidden = node_rows(8, 0).requires_grad_(), node_rows(3, 1).requires_grad_()
    assert gradcheck(
        lambda n, h: masked_node_contrast(n, h, which, ptr, temperature=0.3, positives=positives),
        (nodes, hidden),
    )


def test_masked_node_contrast_of_a_single_node_is_zero():
    losses = masked_node_contrast(node_rows(1, 0), node_rows(1, 1), torch.tensor([0]), torch.tensor([0, 1]))
    assert losses.tolist() == pytest.approx([0.0])


def test_no_masked_nodes_have_no_losses():
    none = torch.zeros(0, 3, requires_grad=True)
    losses = masked_node_contrast(
        node_rows(2, 0).float(), none, torch.zeros(0, dtype=torch.int64), torch.tensor([0, 2])
    )
    assert losses.shape == (0,)
    losses.sum().backward()


def test_masked_node_contrast_of_equal_rows_is_chance():
    equal = torch.ones(4, 2)
    losses = masked_node_contrast(equal, equal[:2], torch.tensor([0, 3]), torch.tensor([0, 4]))
    assert losses.tolist() == pytest.approx([math.log(4)] * 2)


def test_masked_node_contrast_refuses_a_temperature_of_zero():
    with pytest.raises(ValueError, match="temperature"):
        masked_node_contrast(
            node_rows(1, 0), node_rows(1, 1), torch.tensor([0]), torch.tensor([0, 1]), temperature=0.0
        )


def curriculum_by_loop(anchor, positive, memory, own, share, temperature):
    """The definition, one row at a time, with all negatives of the share."""
    losses = []
    for i in range(len(anchor)):

        def cosine(row, i=i):
            return float(anchor[i] @ row / (anchor[i].norm() * row.norm()))

        others = sorted(cosine(memory[j]) for j in range(len(memory)) if own is None or j != int(own[i]))
        count = max(1, math.ceil(share * (len(memory) - (own is not None))))
        agree = math.exp(cosine(positive[i]) / temperature)
        against = sum(math.exp(value / temperature) for value in others[:count])
        losses.append(-math.log(agree / (agree + against)))
    return sum(losses) / len(losses)


@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("own", [None, [0, 4, -1, 8]])
def test_curriculum_takes_the_easiest_share_of_the_memory(share, own):
    torch.manual_seed(3)
    anchor, positive, memory = torch.randn(4, 5), torch.randn(4, 5), torch.randn(9, 5)
    own = None if own is None else torch.tensor(own)
    found = curriculum_contrast(anchor, positive, memory, own, share=share, temperature=0.5)
    expected = curriculum_by_loop(anchor, positive, memory, own, share, 0.5)
    assert float(found) == pytest.approx(expected, rel=1e-5)


def test_curriculum_draws_uniformly_from_the_easiest_alone():
    anchor = torch.tensor([[1.0, 0.0]])
    angles = torch.linspace(0, math.pi, 10)
    memory = torch.stack([angles.cos(), angles.sin()], 1)  # the last is the easiest
    generator = torch.Generator().manual_seed(0)
    chosen = torch.zeros(10)
    for _ in range(3000):
        loss = curriculum_contrast(
            anchor, anchor, memory, share=0.4, count=1, temperature=1.0, generator=generator
        )
        cosine = math.log(math.exp(float(loss) + 1) - math.e)
        chosen[int((memory[:, 0] - cosine).abs().argmin())] += 1
    assert chosen[:6].sum() == 0
    assert (chosen[6:] / 3000 - 0.25).abs().max() < 0.03


def test_curriculum_has_at_least_its_count_and_at_most_all():
    torch.manual_seed(0)
    anchor, memory = torch.randn(3, 4), torch.randn(6, 4)
    all_six = curriculum_contrast(anchor, anchor, memory, share=1.0)
    assert float(curriculum_contrast(anchor, anchor, memory, share=0.0, count=6)) == pytest.approx(
        float(all_six)
    )
    assert float(curriculum_contrast(anchor, anchor, memory, share=1.0, count=99)) == pytest.approx(
        float(all_six)
    )


def test_curriculum_gives_the_memory_no_gradient():
    rows = [torch.randn(3, 4, requires_grad=True) for _ in range(3)]
    curriculum_contrast(*rows, share=0.5, count=1).backward()
    assert rows[0].grad.abs().sum() > 0
    assert rows[1].grad.abs().sum() > 0
    assert rows[2].grad is None


@pytest.mark.parametrize(("graphs", "memory", "own"), [(2, 0, None), (1, 1, [0]), (0, 3, None)])
def test_curriculum_without_negatives_is_zero(graphs, memory, own):
    rows = torch.randn(graphs, 3, requires_grad=True)
    own = None if own is None else torch.tensor(own)
    loss = curriculum_contrast(rows, rows, torch.randn(memory, 3), own, share=0.5)
    loss.backward()
    assert float(loss.detach()) == 0
    assert rows.grad.abs().sum() == 0


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"count": 0}, {"temperature": 0.0}])
def test_curriculum_refuses_values_out_of_range(wrong):
    rows = torch.randn(3, 4)
    with pytest.raises(ValueError, match="must"):
        curriculum_contrast(rows, rows, rows, **wrong)


def test_queue_contrast_sums_over_the_allowed_vectors_alone():
    torch.manual_seed(1)
    query, key, memory = torch.randn(3, 4), torch.randn(3, 4), torch.randn(6, 4)
    allowed = torch.rand(3, 6) < 0.5
    losses = []
    for i in range(3):

        def score(row, i=i):
            return math.exp(float(query[i] @ row / (query[i].norm() * row.norm())) / 0.3)

        against = sum(score(memory[j]) for j in range(6) if allowed[i, j])
        losses.append(-math.log(score(key[i]) / (score(key[i]) + against)))
    found = queue_contrast(query, key, memory, allowed, temperature=0.3)
    assert float(found) == pytest.approx(sum(losses) / 3, rel=1e-5)


@pytest.mark.parametrize(("graphs", "memory"), [(2, 0), (2, 3), (0, 3)])
def test_queue_contrast_without_negatives_is_zero(graphs, memory):
    query = torch.randn(graphs, 4, requires_grad=True)
    allowed = torch.zeros(graphs, memory, dtype=torch.bool)
    loss = queue_contrast(query, torch.randn(graphs, 4), torch.randn(memory, 4), allowed)
    loss.backward()
    assert float(loss.detach()) == pytest.approx(0, abs=1e-6)
    assert torch.isfinite(query.grad).all()


@pytest.mark.parametrize("others", [False, True])
def test_counterfactual_contrast_is_the_equation(others):
    torch.manual_seed(0)
    anchor, positive = torch.randn(2, 7, 4, dtype=torch.float64)
    made, valid = torch.randn(3, 7, 4, dtype=torch.float64), torch.rand(3, 7) < 0.5
    total = 0.0
    for i in range(7):
        top = math.exp(float(torch.cosine_similarity(anchor[i], positive[i], dim=0)) / 0.3)
        below = top
        for m in range(3):
            if valid[m, i]:
                below += math.exp(float(torch.cosine_similarity(anchor[i], made[m, i], dim=0)) / 0.3)
        for j in range(7):
            if others and j != i:
                below += math.exp(float(torch.cosine_similarity(anchor[i], positive[j], dim=0)) / 0.3)
        total -= math.log(top / below)
    found = counterfactual_contrast(anchor, positive, made, valid, temperature=0.3, others=others)
    assert found.item() == pytest.approx(total / 7, rel=1e-10)


def test_counterfactual_contrast_without_negatives_is_zero_with_a_finite_gradient():
    rows = torch.randn(3, 5, 4, requires_grad=True)
    loss = counterfactual_contrast(
        rows[0], rows[1], rows[2:], torch.zeros(1, 5, dtype=torch.bool), others=False
    )
    assert loss.item() == pytest.approx(0.0, abs=1e-6)
    loss.backward()
    assert torch.isfinite(rows.grad).all()
