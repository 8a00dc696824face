"""Differentiable operations for encoders: CSR products and fast CPU versions of common layers.

Sums over neighbours are CSR products, forward and backward, without gather and scatter. `embedding_bag` is
the fastest row sum in torch on a CPU by an order of magnitude, and runs on GPUs too. Its own backward pass is
a scatter; here it is the product with the transpose.
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

from graphsc.core.compiled import use_compiled
from graphsc.data.batch import GraphBatch, is_exporting


@dataclass(frozen=True, eq=False)
class Adjacency:
    """A sparse matrix of `rows` x `columns`: row i sums the columns `source[rowptr[i]:rowptr[i + 1]]`."""

    rowptr: Tensor  # rows + 1, int32
    source: Tensor  # entries, int32
    columns: int
    symmetric: bool = False  # equal to its transpose; set only if this has been verified

    @classmethod
    def of(cls, batch: GraphBatch) -> Adjacency:
        """The adjacency of a batch: row i lists the sources of the edges that end at node i."""
        return cls(batch.rowptr, batch.source, batch.num_nodes, batch.undirected)

    @classmethod
    def of_codes(cls, codes: Tensor, columns: int) -> Adjacency:
        """The one-hot matrix of integer codes (N x K); a product with it is a sum of table rows."""
        rows, width = codes.shape
        pointer = torch.arange(rows + 1, dtype=torch.int32, device=codes.device) * width
        return cls(pointer, codes.reshape(-1).int(), columns)

    @property
    def rows(self) -> int:
        return self.rowptr.shape[0] - 1

    @cached_property
    def transpose(self) -> tuple[Adjacency, Tensor]:
        """The transpose, and the position in this matrix of each of its entries."""
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
    """`A @ x` (rows x width), with entries of A all one or `weight`; differentiable in x and weight."""
    if weight is not None:
        weight = weight.to(x.dtype)  # under autocast the two may differ
    result: Tensor = _Aggregate.apply(x, weight, adjacency)  # type: ignore[no-untyped-call]
    return result


def csr_matmul(adjacency: Adjacency, x: Tensor, weight: Tensor | None) -> Tensor:
    """`A @ x`, not differentiable."""
    if not adjacency.source.shape[0] or not x.shape[1]:
        return x.new_zeros(adjacency.rows, x.shape[1])
    return embedding_bag(
        adjacency.source,
        x,
        adjacency.rowptr,
        mode="sum",
        include_last_offset=True,
        per_sample_weights=weight,
    )


def csr_matmul_transposed(adjacency: Adjacency, x: Tensor) -> Tensor:
    """`A.T @ x` with entries of one, not differentiable."""
    return csr_matmul(adjacency if adjacency.symmetric else adjacency.transpose[0], x, None)


class _Aggregate(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor | None, adjacency: Adjacency) -> Tensor:
        ctx.adjacency = adjacency  # type: ignore[attr-defined]
        # x is needed only for the gradient of the weights.
        ctx.save_for_backward(*(() if weight is None else (x, weight)))
        return csr_matmul(adjacency, x, weight)

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
                to_x = csr_matmul_transposed(adjacency, gradient)
            else:
                # Weights may be asymmetric even if the graph is symmetric.
                transpose, order = adjacency.transpose
                to_x = csr_matmul(transpose, gradient, weight[order])
        if needs_weight and x is not None:
            to_weight = _entry_products(adjacency, gradient, x)
        return to_x, to_weight, None


def _entry_products(adjacency: Adjacency, left: Tensor, right: Tensor) -> Tensor:
    """`left[i] . right[j]` for every entry (i, j), much faster than from gathered rows."""
    if left.device.type not in ("cpu", "cuda") or not len(adjacency.source):
        row = torch.repeat_interleave(adjacency.rowptr.diff().long(), output_size=len(adjacency.source))
        return (left[row] * right[adjacency.source]).sum(1)
    exact = torch.promote_types(left.dtype, torch.float32)  # the product does not support lower precision
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta state")
        entries = torch.sparse_csr_tensor(
            adjacency.rowptr,
            adjacency.source,
            torch.zeros(len(adjacency.source), dtype=exact, device=left.device),
            (adjacency.rows, adjacency.columns),
            check_invariants=False,
        )
    products: Tensor = torch.sparse.sampled_addmm(entries, left.to(exact), right.to(exact).mT, beta=0.0)
    return products.values()


def embedding_sum(codes: Tensor, weight: Tensor) -> Tensor:
    """Sum the rows of `weight` (C x width) named by each row of `codes` (N x K): N x width.

    Equal to the product of the one-hot codes with `weight`.
    """
    if not codes.is_cpu:  # index_add_ is not deterministic there
        return aggregate(Adjacency.of_codes(codes, len(weight)), weight)
    result: Tensor = _EmbeddingSum.apply(codes, weight)  # type: ignore[no-untyped-call]
    return result


class _EmbeddingSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, codes: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(codes)
        ctx.rows = len(weight)  # type: ignore[attr-defined]
        return csr_matmul(Adjacency.of_codes(codes, len(weight)), weight, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[None, Tensor]:
        (codes,) = ctx.saved_tensors  # type: ignore[attr-defined]
        to_weight = gradient.new_zeros(ctx.rows, gradient.shape[1])  # type: ignore[attr-defined]
        if gradient.dtype is torch.float32 and use_compiled():
            from graphsc.encoders.compiled import sum_by_code

            sum_by_code(codes.numpy(), gradient.contiguous().numpy(), to_weight.numpy())
            return None, to_weight
        for column in codes.unbind(1):  # a few columns; several times faster than sorting all codes
            to_weight.index_add_(0, column, gradient)
        return None, to_weight


# The backward pass of ReLU, which torch does not expose otherwise.
_relu_backward = torch.ops.aten.threshold_backward.default


def fused_sum_relu(
    x: Tensor, adjacency: Adjacency, weight: Tensor | None, bias: Tensor, *, own: float = 1.0
) -> Tensor:
    """`relu(own x + A x + bias)`, the middle of a GIN layer, with fewer passes over N x width.

    The entries of A are all one or `weight`.
    """
    if weight is not None or x.dtype is not bias.dtype:  # autograd handles mixed precision
        scaled = x if own == 1 else own * x
        return relu(scaled + aggregate(adjacency, x, weight) + bias)
    result: Tensor = _FusedSumRelu.apply(x, bias, adjacency, own)  # type: ignore[no-untyped-call]
    return result


class _FusedSumRelu(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, bias: Tensor, adjacency: Adjacency, own: float) -> Tensor:
        hidden = csr_matmul(adjacency, x, None).add_(x, alpha=own).add_(bias).relu_()
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
            to_x = csr_matmul_transposed(adjacency, gradient).add_(gradient, alpha=own)
        return to_x, gradient.sum(0) if needs_bias else None, None, None


_ALIGNMENT = 16  # floats, 64 bytes
_FAST_MULTIPLE = 8  # floats, 32 bytes: rows of such a width need no padding
PADDING_MIN_ROWS = 64  # with fewer rows the overhead of the call dominates


def padded_linear(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """`linear(x, weight, bias)` with memory-aligned output rows, for float32 on a CPU; plain otherwise.

    A matrix product into rows of 300 floats, which are not aligned, takes 1.5 times as long as into rows of
    304. So rows are stored 304 apart, and the last four entries are never read. Values and gradients are
    those of `torch.nn.functional.linear`.
    """
    plain = (
        is_exporting()
        or x.device.type != "cpu"
        or x.dtype != torch.float32
        or len(x) < PADDING_MIN_ROWS
        or not (weight.shape[0] % _FAST_MULTIPLE or weight.shape[1] % _FAST_MULTIPLE)
        or torch.is_autocast_enabled("cpu")
    )
    if plain:
        return linear(x, weight, bias)
    result: Tensor = _PaddedLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
    return result


def _padded_empty(rows: int, width: int, like: Tensor) -> Tensor:
    """An uninitialised rows x width tensor whose rows start at multiples of 64 (or 32) bytes."""
    if width % _FAST_MULTIPLE == 0:
        return like.new_empty(rows, width)
    # Strided, not a slice: autograd forbids in-place changes of a view returned by a function.
    return like.new_empty_strided((rows, width), (-(-width // _ALIGNMENT) * _ALIGNMENT, 1))


class _PaddedLinear(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight)
        return torch.addmm(bias, x, weight.mT, out=_padded_empty(len(x), len(weight), x))

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[Tensor | None, Tensor, Tensor]:
        x, weight = ctx.saved_tensors  # type: ignore[attr-defined]
        to_x = None
        if ctx.needs_input_grad[0]:  # type: ignore[attr-defined]
            to_x = torch.mm(gradient, weight, out=_padded_empty(len(x), weight.shape[1], x))
        # Choose the order of the product that gives aligned rows.
        transposed = bool(weight.shape[1] % _FAST_MULTIPLE)
        to_weight = torch.mm(x.mT, gradient).mT if transposed else torch.mm(gradient.mT, x)
        return to_x, to_weight, gradient.sum(0)


_DROPOUT_LEVELS = 1 << 16


def dropout(x: Tensor, rate: float) -> Tensor:
    """Dropout with fewer random draws on a CPU: one draw of 64 bits decides four entries.

    The rate is rounded to a multiple of 1 / 65,536; a rate of 0 returns x itself. Draws come from torch's
    default generator.
    """
    dropped = round(rate * _DROPOUT_LEVELS)
    if dropped == 0:
        return x
    if x.device.type != "cpu":
        return torch.nn.functional.dropout(x, rate)
    draws = torch.empty(-(-x.numel() // 4), dtype=torch.int64).random_(-(1 << 63), None)
    keep = draws.view(torch.int16)[: x.numel()].view(x.shape) >= dropped - _DROPOUT_LEVELS // 2
    return x * keep.to(x.dtype).mul_(_DROPOUT_LEVELS / (_DROPOUT_LEVELS - dropped))


EDGE_CHUNK = 2**18  # numbers, one megabyte


def edge_mlp(start: Tensor, end: Tensor, weight: Tensor, source: Tensor, destination: Tensor) -> Tensor:
    """`weight . relu(start[source] + end[destination])` per edge: a two-layer MLP on the ends of each edge.

    Dense graphs have so many edges that the hidden layer would not fit into any cache. It is computed in
    chunks, and again in the backward pass.

    Args:
        start: N x d, the first layer applied to source nodes.
        end: N x d, the first layer applied to destination nodes.
        weight: d, the second layer.
        source: P, the source of each edge.
        destination: P, the destination of each edge.

    Returns:
        P, in full precision; differentiable in start, end and weight.
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
            # The derivative of ReLU is the sign of its output; the weights are multiplied at the end.
            hidden.sign_().mul_(gradient[part, None])
            to_start.index_add_(0, source[part], hidden)
            to_end.index_add_(0, destination[part], hidden)
        return to_start.mul_(weight), to_end.mul_(weight), to_weight, None, None


def _chunks(edges: int, width: int) -> Iterator[slice]:
    size = max(1, EDGE_CHUNK // max(width, 1))
    return (slice(first, first + size) for first in range(0, edges, size))


def _hidden(start: Tensor, end: Tensor, source: Tensor, destination: Tensor) -> Tensor:
    return start.index_select(0, source).add_(end.index_select(0, destination)).relu_()
