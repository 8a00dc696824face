"""Losses of methods that compare nodes.

`node_contrast` is InfoNCE between two views of the same nodes (GRACE, GCA, ProGCL): the `contrast` of
`node_node` pairs within views, with weights, and in chunks. N nodes have (2 N)^2 similarities, which never
exist all at once. `margin_ranking` is SUBG-CON's loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.losses.triplet import l2_normalise

CHUNK_SCORES = 2**19  # 2 MB, about the size of a cache
MIN_ROWS = 64  # of a chunk; with fewer, products are slow
SAFE_SCORE = 60.0  # sums of exponentials up to this are far from the largest float
GROUP_ROWS = 128  # of small groups that share a chunk; their scores with each other are computed in vain

# Maps cosines (any shape) to weights that are not negative.
Weigh = Callable[[Tensor], Tensor]


def node_contrast(
    one: Tensor,
    other: Tensor,
    *,
    temperature: float = 0.4,
    ptr: Tensor | None = None,
    weigh: Weigh | None = None,
) -> Tensor:
    """Contrast each node with its copy in the other view, against all other nodes of both views.

    The mean over both directions and all i of

        -log( S(u_i, v_i) / (S(u_i, v_i) + sum_{k != i} w_ik (S(u_i, v_k) + S(u_i, u_k))) )

    with S(a, b) = exp(cos(a, b) / temperature) and w = 1 (GRACE, Eq. 1-2). A zero row has cosine 0 with all
    others and no gradient.

    Args:
        one: N x d, rows u.
        other: N x d, rows v; row i of both is node i.
        temperature: Of the softmax.
        ptr: G + 1; only nodes of a group ptr[g]:ptr[g + 1] are compared. None for all with all.
        weigh: ProGCL's weights as a function of cos(u_i, v_k), without gradient. For each i they are divided
            by their mean over k != i; all are 1 where that is 0.

    Returns:
        A scalar, not negative without weights; zero if no node has another to compare with.
    """
    if temperature <= 0:
        raise ValueError(f"temperature must be above zero, not {temperature}")
    if one.shape != other.shape:
        raise ValueError(f"the views must have the same nodes: {tuple(one.shape)} and {tuple(other.shape)}")
    if not len(one):
        return (one.sum() + other.sum()) * 0.0  # can be differentiated
    rows = l2_normalise(one), l2_normalise(other)
    result: Tensor = _InfoNCE.apply(*rows, temperature, ptr, weigh)  # type: ignore[no-untyped-call]
    return result


class _InfoNCE(torch.autograd.Function):
    """The loss on unit rows, with its gradient, which is computed chunk by chunk along with it."""

    @staticmethod
    def forward(
        ctx: FunctionCtx,
        one: Tensor,
        other: Tensor,
        temperature: float,
        ptr: Tensor | None,
        weigh: Weigh | None,
    ) -> Tensor:
        group = None if ptr is None else torch.repeat_interleave(ptr.diff(), output_size=len(one))
        # The positive pairs; what is below the fraction line follows.
        total = (one * other).sum() * (-2 / temperature)
        to_one, to_other = other * -2.0, one * -2.0
        keys: tuple[Tensor, ...] = ()
        of_keys = slice(0, 0)
        for rows, columns in _chunks(len(one), ptr):
            if columns != of_keys:
                parts = one[columns], other[columns]
                keys, of_keys = (torch.cat(parts[::-1]), torch.cat(parts)), columns
            among = None if group is None else group[rows, None] == group[columns]
            weights: Tensor | None = None
            for view, both, to_view, to_counterpart in (
                (one, keys[0], to_one, to_other),
                (other, keys[1], to_other, to_one),
            ):
                own = view[rows]
                scores = (own / temperature) @ both.mT
                if weigh is not None:
                    # cos(v_i, u_k) is cos(u_k, v_i): of a square chunk one direction serves both.
                    if weights is not None and rows == columns:
                        weights = weights.mT
                    else:
                        weights = weigh(scores[:, : len(both) // 2] * temperature)
                largest = _exponentiate(scores, rows.start - columns.start, among, weights, temperature)
                sums = scores.sum(1, keepdim=True)
                total += (sums.log() + largest).sum()
                to_view[rows] += (scores @ both).div_(sums)
                between, within = ((own / sums).mT @ scores).mT.chunk(2)  # faster than scores.mT @ own
                to_counterpart[columns] += between
                to_view[columns] += within
        scale = 1 / (2 * len(one))
        ctx.save_for_backward(to_one.mul_(scale / temperature), to_other.mul_(scale / temperature))
        return total * scale

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
        to_one, to_other = ctx.saved_tensors  # type: ignore[attr-defined]
        return to_one * gradient, to_other * gradient, None, None, None


def _exponentiate(
    scores: Tensor, first: int, among: Tensor | None, weights: Tensor | None, temperature: float
) -> Tensor:
    """Replace scores by w exp(score - largest), in place; 0 for a node itself and nodes not compared.

    Args:
        scores: R x 2 C, divided by the temperature: C nodes of the other view, then the same of the own.
        first: Which of the C nodes the first row is; the next rows are the next nodes.
        among: R x C, which nodes are compared; None for all.
        weights: R x C, before they are divided by their mean; None for 1.
        temperature: As in `node_contrast`.

    Returns:
        R x 1: `largest`; 0 where no exponential can overflow.
    """
    rows, count = len(scores), scores.shape[1] // 2
    both, itself = scores.view(rows, 2, count), scores.diagonal(first + count)
    if weights is not None:
        weights = weights.clone() if among is None else weights * among
        weights.diagonal(first).zero_()
        number = count - 1 if among is None else among.sum(1, keepdim=True) - 1
        total = weights.sum(1, keepdim=True)
        weights = (weights.mul_(number) / total).masked_fill_(total <= 0, 1.0)
        weights.diagonal(first).fill_(1.0)
    itself.fill_(-torch.inf)
    largest = scores.new_zeros(rows, 1)
    if 1 / temperature > SAFE_SCORE:
        if among is not None:
            both.masked_fill_(~among[:, None], -torch.inf)
        largest = scores.amax(1, keepdim=True)
        scores.sub_(largest)
    scores.exp_()
    if among is not None:
        both.mul_(among[:, None])
    if weights is not None:
        both.mul_(weights[:, None])
    return largest


def _chunks(count: int, ptr: Tensor | None) -> Iterator[tuple[slice, slice]]:
    """Rows, and the columns that they are compared with; all columns without groups."""
    if ptr is None:
        rows = max(MIN_ROWS, CHUNK_SCORES // (2 * count))
        for start in range(0, count, rows):
            yield slice(start, min(start + rows, count)), slice(0, count)
        return
    ends = ptr.cpu().numpy()
    start = 0
    while start < count:
        # Whole groups, or a part of a group that is too large.
        group = int(np.searchsorted(ends, start, side="right"))
        columns = max(int(ends[group]), int(ends[np.searchsorted(ends, start + GROUP_ROWS, "right") - 1]))
        first = int(ends[group - 1])
        rows = min(columns - start, max(MIN_ROWS, CHUNK_SCORES // (2 * (columns - first))))
        yield slice(start, start + rows), slice(first, columns)
        start += rows


def margin_ranking(positive: Tensor, negative: Tensor, *, margin: float) -> Tensor:
    """The mean of max(0, margin - positive + negative) over pairs of scores (N each); 0 for no pairs."""
    return (margin - positive + negative).clamp(min=0).sum() / max(len(positive), 1)
