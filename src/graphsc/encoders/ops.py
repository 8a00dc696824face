"""Sums over neighbours as a CSR product, forward and backward; no gather-and-scatter.

`embedding_bag` is torch's fastest row-sum on a CPU by an order of magnitude, and runs on GPUs too. Its own
backward pass is a scatter, so this file has one of its own: the sum over the transpose.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable
from torch.nn.functional import embedding_bag, linear, relu

from graphsc.data.batch import GraphBatch


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A sparse matrix of `rows` x `columns`: row i sums the columns `source[rowptr[i]:rowptr[i + 1]]`."""

    rowptr: Tensor  # rows + 1, int32
    source: Tensor  # entries, int32
    columns: int
    symmetric: bool = False  # equal to its transpose; true only where a reader has verified it

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


# The middle of a GIN layer as one step: what a layer costs besides its products is passes over N x width.


# What autograd itself calls for a ReLU; torch offers it nowhere else.
_relu_backward = torch.ops.aten.threshold_backward.default


def sum_and_activate(
    x: Tensor, adjacency: Adjacency, weight: Tensor | None, bias: Tensor, *, own: float = 1.0
) -> Tensor:
    """`relu(own x + A x + bias)`, N x width; the entries of A are all one or `weight`."""
    if weight is not None or x.dtype is not bias.dtype:  # mixed precision: autograd knows what goes where
        scaled = x if own == 1 else own * x
        return relu(scaled + aggregate(adjacency, x, weight) + bias)
    result: Tensor = _SumAndActivate.apply(x, bias, adjacency, own)  # type: ignore[no-untyped-call]
    return result


class _SumAndActivate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, bias: Tensor, adjacency: Adjacency, own: float) -> Tensor:
        hidden = row_sums(adjacency, x, None).add_(x, alpha=own).add_(bias).relu_()
        ctx.save_for_backward(hidden)
        ctx.adjacency, ctx.own = adjacency, own  # type: ignore[attr-defined]
        return hidden

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor | None, None, None]:
        (hidden,) = ctx.saved_tensors  # type: ignore[attr-defined]
        needs_x, needs_bias, *_ = ctx.needs_input_grad  # type: ignore[attr-defined]
        gradient = _relu_backward(gradient.contiguous(), hidden, 0)
        to_x = None
        if needs_x:
            adjacency, own = ctx.adjacency, ctx.own  # type: ignore[attr-defined]
            to_x = column_sums(adjacency, gradient).add_(gradient, alpha=own)
        return to_x, gradient.sum(0) if needs_bias else None, None, None


# A linear map whose result has rows that begin where a CPU likes them to.
#
# A matrix product into rows of 300 floats, which begin in the middle of what a CPU loads at once, takes
# half as long again as into rows of 304. So the rows are laid out 304 apart, and the last four places are
# never looked at. Values and gradients are those of `torch.nn.functional.linear`.


STEP = 16  # floats, 64 bytes
EASY = 8  # floats, 32 bytes: rows that are multiples of it are fast as they are
FEW = 64  # rows below which the price of a call is all that counts


def aligned_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`x @ weight.T + bias`: R x outputs from R x inputs, for 32-bit floats on a CPU; elsewhere plain."""
    plain = (
        x.device.type != "cpu"
        or x.dtype != torch.float32
        or len(x) < FEW
        or not (weight.shape[0] % EASY or weight.shape[1] % EASY)
        or torch.is_autocast_enabled("cpu")
    )
    if plain:
        return linear(x, weight, bias)
    result: Tensor = _Linear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _aligned(rows: int, width: int, like: Tensor) -> Tensor:
    """Room for rows x width, each row at a multiple of 64 bytes from the first, or of 32."""
    if width % EASY == 0:
        return like.new_empty(rows, width)
    # Strided from the start: a slice would be a view, which nobody could change in place.
    return like.new_empty_strided((rows, width), (-(-width // STEP) * STEP, 1))


class _Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.mT, out=_aligned(len(x), len(weight), x))

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        to_x = None
        if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
            to_x = torch.mm(gradient, weight, out=_aligned(len(x), weight.shape[1], x))
        # Whichever way round gives long rows.
        turned = bool(weight.shape[1] % EASY)
        to_weight = torch.mm(x.mT, gradient).mT if turned else torch.mm(gradient.mT, x)
        return to_x, to_weight, gradient.sum(0)


# Dropout for CPUs, where torch draws one entry at a time: here one draw of 64 bits decides four.


LEVELS = 1 << 16


def drop(x: Tensor, rate: float) -> Tensor:
    """Each entry set to zero with probability `rate`, to 1 in 65,536, the others scaled up to make up for it.

    Draws from torch's own generator. 0 gives x itself.
    """
    dropped = round(rate * LEVELS)
    if dropped == 0:
        return x
    if x.device.type != "cpu":
        return torch.nn.functional.dropout(x, rate)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    kept = draws.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - LEVELS // 2
    return x * kept.to(x.dtype).mul_(LEVELS / (LEVELS - dropped))


# A two-layer network on the two ends of every edge, without a wide row for each edge in memory.
#
# Dense graphs have so many edges that such rows would leave every cache, twice: forward and backward. Here
# they are made a chunk at a time and once more when the gradient needs them.


CHUNK = 2**18  # numbers; a megabyte


def edge_mlp(start: Tensor, end: Tensor, weight: Tensor, source: Tensor, destination: Tensor) -> Tensor:
    """`weight . relu(start[source] + end[destination])` for each of P edges; differentiable in the floats.

    start, end: N x d, a linear layer on each end of an edge, applied once a node; weight: d; source and
    destination: P. Returns P, in full precision.
    """
    exact = torch.promote_types(start.dtype, torch.float32)
    parts = (part.to(exact) for part in (start, end, weight))
    with torch.autocast(start.device.type, enabled=False):
        result: Tensor = _EdgeMlp.apply(*parts, source, destination)  # type: ignore[no-untyped-call]
    return result


class _EdgeMlp(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, start: Tensor, end: Tensor, weight: Tensor, source: Tensor, destination: Tensor
    ) -> Tensor:
        ctx.save_for_backward(start, end, weight, source, destination)
        result = start.new_empty(len(source))
        for part in _chunks(len(source), len(weight)):
            torch.mv(_hidden(start, end, source[part], destination[part]), weight, out=result[part])
        return result

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        start, end, weight, source, destination = ctx.saved_tensors  # type: ignore[attr-defined]
        to_start, to_end, to_weight = map(torch.zeros_like, (start, end, weight))
        for part in _chunks(len(source), len(weight)):
            hidden = _hidden(start, end, source[part], destination[part])
            to_weight.addmv_(hidden.mT, gradient[part])
            # One where the ReLU let through, which is all of its derivative; the weights come last.
            hidden.sign_().mul_(gradient[part, None])
            to_start.index_add_(0, source[part], hidden)
            to_end.index_add_(0, destination[part], hidden)
        return to_start.mul_(weight), to_end.mul_(weight), to_weight, None, None


def _chunks(edges: int, width: int) -> Iterator[slice]:
    size = max(1, CHUNK // max(width, 1))
    return (slice(first, first + size) for first in range(0, edges, size))


def _hidden(start: Tensor, end: Tensor, source: Tensor, destination: Tensor) -> Tensor:
    return start.index_select(0, source).add_(end.index_select(0, destination)).relu_()
