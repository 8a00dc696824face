"""Paths down a small tree and their contrast, written out by hand and by loops."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from graphsc.losses import path_contrast, search_path

# Two levels in the plane. Below: four prototypes, one of them not there. Above: two.
EAST, NORTH, WEST, SOUTH = (torch.tensor(v, dtype=torch.float64) for v in ([1, 0], [0, 1], [-1, 0], [0, -1]))
PROTOTYPES = torch.stack(
    [torch.stack([EAST, NORTH, WEST, SOUTH]), torch.stack([EAST + NORTH, WEST, 0 * EAST, 0 * EAST])]
)
ALIVE = torch.tensor([[True, True, True, False], [True, True, False, False]])
PARENT = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 0]])


def test_the_best_path_stays_under_its_parent():
    # The second is nearest to `west` at the top, and so it is below, though `north` would be nearer there.
    graphs = torch.stack([EAST + 0.1 * NORTH, 0.8 * WEST + NORTH, NORTH + 0.1 * EAST])
    path = search_path(graphs, PROTOTYPES, ALIVE, PARENT, search="best")
    assert path.tolist() == [[0, 0], [2, 1], [1, 0]]


def test_draws_follow_the_shares_and_never_reach_what_is_not_there():
    torch.manual_seed(0)
    path = search_path(EAST.expand(4000, 2), PROTOTYPES, ALIVE, PARENT, temperature=1.0)
    up = math.exp(math.sqrt(0.5))
    share = up / (up + math.exp(-1))  # cosines 1 / sqrt 2 and -1
    assert (path[:, 1] == 0).double().mean().item() == pytest.approx(share, abs=0.03)
    below = path[path[:, 1] == 0, 0]
    assert set(below.tolist()) == {0, 1}
    assert (below == 0).double().mean().item() == pytest.approx(math.e / (math.e + 1), abs=0.04)
    assert set(path[path[:, 1] == 1, 0].tolist()) == {2}


def by_loop(graphs, path, rivals, temperature):
    def surprise(row, level, chosen, allowed):
        shares = []
        for k in range(4):
            if ALIVE[level, k] and k in allowed:
                centre = PROTOTYPES[level, k]
                shares.append((k, math.exp(float(row @ centre / row.norm() / centre.norm()) / temperature)))
        return -math.log(dict(shares)[chosen] / sum(share for _, share in shares))

    total = 0.0
    for row, (low, high) in zip(graphs, path.tolist(), strict=True):
        siblings = [k for k in range(4) if PARENT[0, k] == high]
        total += surprise(row, 0, low, siblings if rivals == "siblings" else range(4))
        total += surprise(row, 1, high, range(4))
        total += surprise(PROTOTYPES[0, low], 1, high, range(4))
    return total / len(graphs)


@pytest.mark.parametrize("rivals", ["level", "siblings"])
def test_the_contrast_is_the_sum_over_the_path(rivals):
    graphs = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    path = torch.tensor([[0, 0], [1, 0], [2, 1], [0, 0], [2, 1]])
    found = path_contrast(graphs, PROTOTYPES, ALIVE, PARENT, path, temperature=0.5, rivals=rivals)
    assert found.item() == pytest.approx(by_loop(graphs, path, rivals, 0.5))


def test_the_gradient_reaches_graphs_and_prototypes_and_not_what_is_not_there():
    graphs = torch.randn(3, 2, dtype=torch.float64, requires_grad=True)
    prototypes = PROTOTYPES.clone().requires_grad_()
    path = torch.tensor([[0, 0], [2, 1], [1, 0]])
    assert gradcheck(lambda g: path_contrast(g, PROTOTYPES, ALIVE, PARENT, path, temperature=0.5), (graphs,))
    path_contrast(graphs, prototypes, ALIVE, PARENT, path).backward()
    assert torch.isfinite(prototypes.grad).all()
    assert not prototypes.grad[~ALIVE].any()
    assert prototypes.grad[0, 0].any()
