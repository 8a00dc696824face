"""Sums over neighbours as a CSR product, forward and backward; no gather-and-scatter.

`embedding_bag` is torch's fastest row-sum on a CPU by an order of magnitude, and runs on GPUs too. Its own
backward pass is a scatter, so this file has one of its own: the sum over the transpose.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding_bag

from graphsc.data.batch import GraphBatch


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A sparse matrix of `rows` x `columns`: row i sums the columns `source[rowptr[i]:rowptr[i + 1]]`."""

    rowptr: Tensor  # rows + 1, int32
    source: Tensor  # entries, int32
    columns: int
    symmetric: bool = False  # equal to its transpose; true only where a door has verified it

    @classmethod
    def of(cls, batch: GraphBatch) -> Adjacency:
        """Row i of a batch's adjacency holds the sources of the edges that end at node i."""
        return cls(batch.rowptr, batch.source, batch.num_nodes, batch.undirected)

    @classmethod
    def of_codes(cls, codes: Tensor, columns: int) -> Adjacency:
        """The one-hot matrix of integer codes (N x K), so that a product with it is a look-up."""
        rows, width = codes.shape
        pointer = torch.arange(0, rows * width + 1, width or 1, dtype=torch.int32, device=codes.device)
        return cls(pointer[: rows + 1], codes.reshape(-1).int(), columns)

    @property
    def rows(self) -> int:
        return len(self.rowptr) - 1

    @cached_property
    def transpose(self) -> tuple[Adjacency, Tensor]:
        """The transpose, and for each of its entries the position of that entry here."""
        order = torch.sort(self.source, stable=True).indices
        lengths = torch.bincount(self.source, minlength=self.columns)
        rowptr = torch.zeros(self.columns + 1, dtype=torch.int32, device=self.source.device)
        torch.cumsum(lengths, 0, out=rowptr[1:])
        row = torch.repeat_interleave(
            torch.arange(self.rows, dtype=torch.int32, device=self.source.device),
            self.rowptr.diff().long(),
            output_size=len(self.source),
        )
        return Adjacency(rowptr, row[order], self.rows), order


def aggregate(adjacency: Adjacency, x: Tensor, weight: Tensor | None = None) -> Tensor:
    """`A @ x`, with the entries of A all one or `weight` (differentiable in both)."""
    result: Tensor = _Aggregate.apply(x, weight, adjacency)  # type: ignore[no-untyped-call]
    return result


def _row_sums(adjacency: Adjacency, x: Tensor, weight: Tensor | None) -> Tensor:
    if not len(adjacency.source) or not x.shape[1]:
        return x.new_zeros(adjacency.rows, x.shape[1])
    return embedding_bag(
        adjacency.source,
        x,
        adjacency.rowptr,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weight,
    )


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor | None, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency  # type: ignore[attr-defined]
        # x is needed again only for the gradient of the weights.
        ctx.save_for_backward(*(() if weight is None else (x, weight)))
        return _row_sums(adjacency, x, weight)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None]:
        adjacency: Adjacency = ctx.adjacency  # type: ignore[attr-defined]
        x: Tensor | None
        weight: Tensor | None
        x, weight = ctx.saved_tensors or (None, None)  # type: ignore[attr-defined]
        needs_x, needs_weight, _ = ctx.needs_input_grad  # type: ignore[attr-defined]
        gradient = gradient.contiguous()
        to_x = to_weight = None
        if needs_x:
            if adjacency.symmetric and weight is None:
                to_x = _row_sums(adjacency, gradient, None)
            else:
                # Weights need not be symmetric even where the graph is.
                transpose, order = adjacency.transpose
                to_x = _row_sums(transpose, gradient, None if weight is None else weight[order])
        if needs_weight and x is not None:
            transpose, order = adjacency.transpose
            row = torch.empty_like(adjacency.source)
            row[order] = transpose.source
            to_weight = (gradient[row] * x[adjacency.source]).sum(1)
        return to_x, to_weight, None
