"""Sums over neighbours as a CSR product, forward and backward; no gather-and-scatter.

`embedding_bag` is torch's fastest row-sum on a CPU by an order of magnitude, and runs on GPUs too. Its own
backward pass is a scatter, so this file has one of its own: the sum over the transpose.
"""

from __future__ import annotations

import warnings
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
        pointer = torch.arange(rows + 1, dtype=torch.int32, device=codes.device) * width
        return cls(pointer, codes.reshape(-1).int(), columns)

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
    if weight is not None:
        weight = weight.to(x.dtype)  # under autocast the two may differ
    result: Tensor = _Aggregate.apply(x, weight, adjacency)  # type: ignore[no-untyped-call]
    return result


def row_sums(adjacency: Adjacency, x: Tensor, weight: Tensor | None) -> Tensor:
    """`A @ x`, not differentiable."""
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


def column_sums(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`A.T @ x` where the entries of A are all one, not differentiable."""
    return row_sums(adjacency if adjacency.symmetric else adjacency.transpose[0], x, None)


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor | None, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency  # type: ignore[attr-defined]
        # x is needed again only for the gradient of the weights.
        ctx.save_for_backward(*(() if weight is None else (x, weight)))
        return row_sums(adjacency, x, weight)

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
            if weight is None:
                to_x = column_sums(adjacency, gradient)
            else:
                # Weights need not be symmetric even where the graph is.
                transpose, order = adjacency.transpose
                to_x = row_sums(transpose, gradient, weight[order])
        if needs_weight and x is not None:
            to_weight = _entry_products(adjacency, gradient, x)
        return to_x, to_weight, None


def _entry_products(adjacency: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    """`left[i] . right[j]` for every entry (i, j): many times faster than from gathered rows."""
    if left.device.type not in ("cpu", "cuda") or not len(adjacency.source):
        row = torch.repeat_interleave(adjacency.rowptr.diff().long(), output_size=len(adjacency.source))
        return (left[row] * right[adjacency.source]).sum(1)
    exact = torch.promote_types(left.dtype, torch.float32)  # what the product is there for
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        entries = torch.sparse_csr_tensor(
            adjacency.rowptr,
            adjacency.source,
            torch.zeros(len(adjacency.source), dtype=exact, device=left.device),
            (adjacency.rows, adjacency.columns),
            check_invariants=False,
        )
    found: Tensor = torch.sparse.sampled_addmm(entries, left.to(exact), right.to(exact).mT, beta=0.0)
    return found.values()
