"""Mutual information between parts and wholes, estimated from who belongs to whom."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import softplus

AT_ONCE = 2**19  # scores; 2 MB, about what a cache holds


def jensen_shannon(local: Tensor, global_: Tensor, graph: Tensor) -> Tensor:
    """Tell the graph a node belongs to from all others: the Jensen-Shannon estimate, negated.

    local: N x d, global_: B x d, graph: N, the row of `global_` that each node belongs to. With scores
    R = local global_^T, the result is the scalar E_neg - E_pos, where

        E_pos = 1/N sum over own pairs of log 2 - softplus(-R)
        E_neg = 1/(N (B - 1)) sum over other pairs of softplus(-R) + R - log 2

    between -2 log 2 (all told apart) and infinity; 0 where all scores are 0. A batch of one graph has no
    other pairs, and E_neg is then 0; without nodes the result is 0.
    """
    n, graphs = len(local), len(global_)
    if n == 0:
        return (local.sum() + global_.sum()) * 0.0
    result: Tensor = _Pairs.apply(local, global_, graph)  # type: ignore[no-untyped-call]
    return result - (2 if graphs > 1 else 1) * math.log(2)


class _Pairs(torch.autograd.Function):
    """mean over other pairs of softplus(R) + mean over own pairs of softplus(-R).

    Written out because N x B is more than anything else in a step. Scores are made for some nodes at a time
    and turned into their gradient where they lie, in the cache, so that memory does not grow with N x B. No
    mask: a node has one own pair, found by its index.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, local: Tensor, global_: Tensor, graph: Tensor) -> Tensor:
        n, graphs = len(local), len(global_)
        pairs = n * (graphs - 1)
        learns = any(ctx.needs_input_grad[:2])  # type: ignore[attr-defined]
        to_local = torch.empty_like(local) if learns else local
        to_global = torch.zeros_like(global_)
        total = local.new_zeros(())
        rows = max(1, AT_ONCE // graphs)
        for start in range(0, n, rows):
            part, own_at = local[start : start + rows], graph[start : start + rows, None]
            scores = part @ global_.mT
            own = scores.gather(1, own_at)
            total += softplus(-own).sum() / n
            # What is left out has a softplus of 0 and a sigmoid of 0. To subtract it from the sum over all
            # pairs instead would lose digits where own scores are large.
            scores.scatter_(1, own_at, -math.inf)
            if pairs:
                total += softplus(scores).sum() / pairs
            if learns:
                gradient = scores.sigmoid_().div_(max(pairs, 1))
                gradient.scatter_(1, own_at, own.neg_().sigmoid_().div_(-n))
                torch.mm(gradient, global_, out=to_local[start : start + rows])
                to_global.addmm_(gradient.mT, part)
        ctx.save_for_backward(to_local, to_global)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        to_local, to_global = ctx.saved_tensors  # type: ignore[attr-defined]
        return to_local * gradient, to_global * gradient, None


# Pairs that belong together told from pairs that do not: by a score each, and how well the scores do it.


def tell_apart(positive: Tensor, negative: Tensor, *, weight: float = 1.0) -> Tensor:
    """The mean of -log sigmoid(positive), and, weighted, that of -log sigmoid(-negative).

    positive: P, negative: Q, any shape. Returns a scalar, 2 log 2 at scores of 0 and a weight of 1. A mean
    over nothing is 0, so that a batch without a negative still has a loss.
    """
    return _mean(softplus(-positive)) + weight * _mean(softplus(negative))


def area_under_curve(positive: Tensor, negative: Tensor) -> float:
    """The chance that a positive scores above a negative, one of each drawn at random; a tie counts half.

    positive: P, negative: Q. 0.5 where either is empty: nothing was told from nothing.
    """
    count = len(positive) * len(negative)
    if count == 0:
        return 0.5
    ordered = negative.sort().values
    below = torch.searchsorted(ordered, positive.contiguous())
    not_above = torch.searchsorted(ordered, positive.contiguous(), right=True)
    return float((below + not_above).double().sum()) / (2 * count)


def _mean(values: Tensor) -> Tensor:
    return values.sum() / max(values.numel(), 1)
