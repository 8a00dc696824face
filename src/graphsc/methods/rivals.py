"""Rival-penalised competitive learning: as many clusters as points need, from more than they need.

Each point draws the centre that wins it nearer, and pushes the second best away. Centres that only ever come
second are driven off, and who wins no point in the end is dropped (Xu, Krzyzak and Oja, 1993).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from graphsc.losses.space import unit

AT_ONCE = 256  # points that move the centres together
PUSH = 0.05  # how much less a rival is pushed than a winner is drawn


@dataclass(frozen=True, eq=False)
class Centres:
    """K places for centres, some of them empty."""

    rows: Tensor  # K x d, of length one; zeros where there is none
    alive: Tensor  # K, bool


@torch.no_grad()
def place_centres(
    points: Tensor, start: int, places: int, *, passes: int, rate: float, generator: torch.Generator
) -> Centres:
    """Centres for points (n x d) by cosine: `start` of them at first, at random points, in `places` rows.

    Who wins is decided by distance times the share of points won so far, so that no centre takes all. A
    centre moves by `rate` of the way to the mean of what it won.
    """
    points = unit(points)
    device = points.device
    start = min(start, places, len(points))
    chosen = torch.randperm(len(points), generator=generator, device=generator.device)[:start].to(device)
    centres = points[chosen].clone()
    wins = torch.ones(start, dtype=points.dtype, device=device)
    for _ in range(passes if start > 1 else 0):
        order = torch.randperm(len(points), generator=generator, device=generator.device).to(device)
        for some in torch.split(order, AT_ONCE):
            rows = points[some]
            far = (1.0 - rows @ centres.mT) * (wins / wins.sum())
            first, second = far.topk(2, largest=False).indices.unbind(1)
            won, towards = _means(rows, first, start)
            lost, from_ = _means(rows, second, start)
            moved = centres + rate * (won > 0)[:, None] * (towards - centres)
            moved -= rate * PUSH * (lost > 0)[:, None] * (from_ - centres)
            centres, wins = unit(moved), wins + won
    alive = torch.zeros(places, dtype=torch.bool, device=device)
    alive[nearest(points, centres)] = True
    rows = points.new_zeros(places, points.shape[1])
    rows[:start] = centres
    return Centres(rows * alive[:, None], alive)


def nearest(points: Tensor, centres: Tensor, alive: Tensor | None = None) -> Tensor:
    """n: of each point (n x d) the centre (K x d) of the largest cosine, among those alive."""
    cosines = unit(points) @ unit(centres).mT
    return (cosines if alive is None else cosines.masked_fill(~alive, -torch.inf)).argmax(1)


def _means(rows: Tensor, which: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """How many rows each centre has, and their means."""
    member = torch.nn.functional.one_hot(which, count).to(rows.dtype)
    number = member.sum(0)
    return number, member.mT @ rows / number.clamp(min=1)[:, None]
