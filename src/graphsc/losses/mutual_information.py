"""Mutual information estimates and binary cross-entropy on scores of positive and negative pairs."""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import softplus

CHUNK_SCORES = 2**19  # 2 MB, about the size of a cache


def jensen_shannon(local: Tensor, global_: Tensor, graph: Tensor) -> Tensor:
    """Negated Jensen-Shannon estimate of the mutual information between nodes and their graphs.

    With scores R = local global_^T the loss is E_neg - E_pos, where

        E_pos = 1/N sum over positive pairs of log 2 - softplus(-R)
        E_neg = 1/(N (B - 1)) sum over negative pairs of softplus(-R) + R - log 2

    Args:
        local: N x d, node embeddings.
        global_: B x d, graph embeddings.
        graph: N, the graph of each node.

    Returns:
        A scalar from -2 log 2 (perfect separation); 0 if all scores are 0 or there are no nodes. With a
        single graph there are no negative pairs, and E_neg is 0.
    """
    n, graphs = len(local), len(global_)
    if n == 0:
        return (local.sum() + global_.sum()) * 0.0
    result: Tensor = _Pairs.apply(local, global_, graph)  # type: ignore[no-untyped-call]
    return result - (2 if graphs > 1 else 1) * math.log(2)


class _Pairs(torch.autograd.Function):
    """Mean of softplus(R) over negative pairs plus mean of softplus(-R) over positive pairs.

    Written by hand because N x B scores are the largest tensor of a training step. Scores are computed in
    chunks of nodes that fit into the cache and turned into their gradient in place, so memory does not grow
    with N x B.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, local: Tensor, global_: Tensor, graph: Tensor) -> Tensor:
        n, graphs = len(local), len(global_)
        pairs = n * (graphs - 1)
        needs_gradient = any(ctx.needs_input_grad[:2])  # type: ignore[attr-defined]
        to_local = torch.empty_like(local) if needs_gradient else local
        to_global = torch.zeros_like(global_)
        total = local.new_zeros(())
        rows = max(1, CHUNK_SCORES // graphs)
        for start in range(0, n, rows):
            part, own_graph = local[start : start + rows], graph[start : start + rows, None]
            scores = part @ global_.mT
            own = scores.gather(1, own_graph)
            total += softplus(-own).sum() / n
            # At -inf, softplus and sigmoid are 0. Subtracting the positive pairs from a sum over all pairs
            # would lose precision where their scores are large.
            scores.scatter_(1, own_graph, -math.inf)
            if pairs:
                total += softplus(scores).sum() / pairs
            if needs_gradient:
                gradient = scores.sigmoid_().div_(max(pairs, 1))
                gradient.scatter_(1, own_graph, own.neg_().sigmoid_().div_(-n))
                torch.mm(gradient, global_, out=to_local[start : start + rows])
                to_global.addmm_(gradient.mT, part)
        ctx.save_for_backward(to_local, to_global)
        return total

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
        to_local, to_global = ctx.saved_tensors  # type: ignore[attr-defined]
        return to_local * gradient, to_global * gradient, None


def pair_bce(positive: Tensor, negative: Tensor, *, weight: float = 1.0) -> Tensor:
    """Binary cross-entropy on scores of positive and negative pairs, of any shape.

    The mean of -log sigmoid(positive) plus `weight` times the mean of -log sigmoid(-negative). The mean over
    no pairs is 0, so a batch without negatives still has a loss.
    """
    return _mean(softplus(-positive)) + weight * _mean(softplus(negative))


def roc_auc(positive: Tensor, negative: Tensor) -> float:
    """Area under the ROC curve of the scores of positive and negative pairs; 0.5 if either is empty."""
    count = len(positive) * len(negative)
    if count == 0:
        return 0.5
    ordered = negative.sort().values
    below = torch.searchsorted(ordered, positive.contiguous())
    not_above = torch.searchsorted(ordered, positive.contiguous(), right=True)
    return float((below + not_above).double().sum()) / (2 * count)


def _mean(values: Tensor) -> Tensor:
    return values.sum() / max(values.numel(), 1)
