"""All layers of a GIN in one autograd function, for training on a CPU (see `encoders.compiled`)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.data.batch import GraphBatch
from graphsc.encoders.ops import Adjacency, csr_matmul, csr_matmul_transposed

MAX_WIDTH = 64  # wider layers are mostly matrix products, for which torch uses all its threads


class LayerWeights(NamedTuple):
    """The weights of a layer: `first`, sum over neighbours, ReLU, `second`, then ReLU and BatchNorm."""

    first: Tensor | None  # d x d; None for the first layer, which starts from the product
    bias: Tensor  # d
    second: Tensor  # d x d
    second_bias: Tensor  # d
    scale: Tensor  # d
    shift: Tensor  # d


class FusedLayers(NamedTuple):
    """What `fused_gin` needs besides weights."""

    batch: GraphBatch
    parts: Sequence[int]  # numbers of nodes that are normalised together
    norms: Sequence[nn.BatchNorm1d]
    activate: Sequence[bool]  # whether a layer has its second ReLU
    norm_first: bool  # whether BatchNorm comes before the second ReLU
    own: float  # weight of a node itself in the sum over neighbours
    pool: bool  # whether to return sums per graph or node embeddings

    def rectify(self, number: int) -> bool:
        """Whether a ReLU follows the BatchNorm of a layer."""
        return self.norm_first and self.activate[number]


def fused_gin(projected: Tensor, layers: FusedLayers, weights: Sequence[LayerWeights]) -> tuple[Tensor, ...]:
    """Run all layers in training mode, which updates BatchNorm's running statistics.

    Args:
        projected: N x d, float32 on a CPU: the features times the first matrix.
        layers: Batch and architecture.
        weights: One entry per layer.

    Returns:
        One tensor per layer: sums over the nodes of each graph (G x d), or node embeddings (N x d).
    """
    result: tuple[Tensor, ...] = _FusedGin.apply(projected, layers, *_flatten(weights))  # type: ignore[no-untyped-call]
    return result


class _FusedGin(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, projected: Tensor, layers: FusedLayers, *flat: Tensor
    ) -> tuple[Tensor, ...]:
        from graphsc.encoders import compiled

        batch, width, parts = layers.batch, projected.shape[1], len(layers.parts)
        weights = _unflatten(flat)
        adjacency, blocks = Adjacency.of(batch), _Blocks.of(layers)
        none = np.empty((0, width), np.float32)
        rows = batch.num_graphs if layers.pool else batch.num_nodes
        outputs = tuple(projected.new_empty(rows, width) for _ in weights)
        saved: list[Tensor] = []
        product = projected.detach()
        for number, (layer, norm) in enumerate(zip(weights, layers.norms, strict=True)):
            hidden, z = csr_matmul(adjacency, product, None), torch.empty_like(product)
            (sums,) = blocks.run(
                compiled.activate_and_project, hidden.numpy(), product.numpy(), layers.own,
                layer.bias.numpy(), layer.second.numpy(), layer.second_bias.numpy(),
                layers.activate[number] and not layers.norm_first, z.numpy(),
                sums=[np.zeros((2, parts, width))],
            )  # fmt: skip
            moments = torch.empty(2, parts, width, dtype=torch.float64)
            affine = torch.empty(2, parts, width)
            compiled.batch_norm(
                sums, blocks.nodes_of_parts, layer.scale.numpy(), layer.shift.numpy(), norm.eps,
                *_running_statistics(norm, parts), moments.numpy(), affine.numpy(),
            )  # fmt: skip
            following = weights[number + 1].first if number + 1 < len(weights) else None
            product = torch.empty_like(z if following is not None else z[:0])
            output = outputs[number].numpy()
            blocks.run(
                compiled.normalise_and_project, z.numpy(), affine.numpy(), layers.rectify(number),
                none if following is None else following.numpy(),
                *((none, output) if layers.pool else (output, none)), product.numpy(),
            )  # fmt: skip
            saved += [hidden, z, moments, affine]
        ctx.save_for_backward(*flat, *saved)
        ctx.layers, ctx.blocks = layers, blocks  # type: ignore[attr-defined]
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        from graphsc.encoders import compiled

        layers: FusedLayers = ctx.layers  # type: ignore[attr-defined]
        blocks: _Blocks = ctx.blocks  # type: ignore[attr-defined]
        tensors: tuple[Tensor, ...] = ctx.saved_tensors  # type: ignore[attr-defined]
        flat, saved = tensors[: 6 * len(given) - 1], tensors[6 * len(given) - 1 :]
        weights = _unflatten(flat)
        adjacency = Adjacency.of(layers.batch)
        width = saved[0].shape[1]
        none = np.empty((0, width), np.float32)

        def readout_gradients(number: int) -> tuple[_Rows, _Rows]:
            """Those of a layer's nodes, and of its sums per graph."""
            gradient = given[number]
            if gradient is None:
                return none, none
            values = gradient.contiguous().numpy()
            return (none, values) if layers.pool else (values, none)

        _, z, moments, affine = saved[-4:]
        gradient, to_hidden = torch.zeros_like(z), torch.empty_like(z)
        (sums,) = blocks.run(
            compiled.add_gradients, gradient.numpy(), *readout_gradients(len(given) - 1), z.numpy(),
            affine.numpy(), layers.rectify(len(given) - 1), sums=[np.zeros(moments.shape)],
        )  # fmt: skip
        to_weights: list[LayerWeights] = []
        for number in reversed(range(len(given))):
            layer = weights[number]
            hidden, z, moments, affine = saved[4 * number : 4 * number + 4]
            to_scale, to_shift = torch.empty_like(layer.scale), torch.empty_like(layer.shift)
            coefficients = np.empty((3, *moments.shape[1:]), np.float32)
            compiled.batch_norm_backward(
                sums, blocks.nodes_of_parts, layer.scale.numpy(), moments.numpy(), coefficients,
                to_scale.numpy(), to_shift.numpy(),
            )  # fmt: skip
            to_second, to_biases = blocks.run(
                compiled.activate_and_project_backward, gradient.numpy(), coefficients, z.numpy(),
                hidden.numpy(), layer.second.numpy(), layers.activate[number] and not layers.norm_first,
                to_hidden.numpy(), sums=[np.zeros((width, width), np.float32), np.zeros((2, width))],
            )  # fmt: skip
            to_product = csr_matmul_transposed(adjacency, to_hidden)
            to_first = None
            if layer.first is not None:
                _, z, _, affine = saved[4 * number - 4 : 4 * number]
                to_first, sums = blocks.run(
                    compiled.normalise_and_project_backward, to_product.numpy(), to_hidden.numpy(),
                    layers.own, z.numpy(), affine.numpy(), layers.rectify(number - 1), layer.first.numpy(),
                    *readout_gradients(number - 1), gradient.numpy(),
                    sums=[np.zeros((width, width), np.float32), np.zeros(moments.shape)],
                )  # fmt: skip
            to_bias, to_second_bias = torch.from_numpy(to_biases).float()
            if (
                layers.norm_first
            ):  # BatchNorm cancels the bias; the sums hold rounding errors, which Adam scales up
                to_second_bias.zero_()
            to_weights.append(
                LayerWeights(
                    None if to_first is None else torch.from_numpy(to_first),
                    to_bias, torch.from_numpy(to_second), to_second_bias, to_scale, to_shift,
                )
            )  # fmt: skip
        to_product.add_(to_hidden, alpha=layers.own)
        return to_product, None, *_flatten(reversed(to_weights))


_Rows = NDArray[np.float32]
_Array = NDArray[Any]

MIN_NODES_PER_THREAD = 2048  # with fewer, starting a thread takes longer than it saves


class _Blocks(NamedTuple):
    """The blocks of a batch, divided among threads (see `compiled.make_blocks`)."""

    ptr: NDArray[np.int64]  # G + 1, where the nodes of each graph begin
    part_of: NDArray[np.int64]  # G
    nodes_of_parts: NDArray[np.float64]
    blocks_of_threads: list[NDArray[np.int64]]

    @classmethod
    def of(cls, layers: FusedLayers) -> _Blocks:
        from graphsc.encoders.compiled import make_blocks

        ptr = layers.batch.ptr.numpy()
        part_of = np.searchsorted(np.cumsum(layers.parts), ptr[:-1], side="right")
        np.minimum(part_of, len(layers.parts) - 1, out=part_of)  # graphs without nodes may come last
        blocks = make_blocks(ptr, part_of)
        threads = min(
            torch.get_num_threads(), layers.batch.num_nodes // MIN_NODES_PER_THREAD, len(blocks) - 1
        )
        of_threads = [blocks]
        if threads > 1:
            nodes = ptr[blocks]
            ends = np.searchsorted(nodes, np.linspace(0, nodes[-1], threads + 1))
            of_threads = [blocks[a : b + 1] for a, b in pairwise(ends) if a < b]
        return cls(ptr, part_of, np.array(layers.parts, dtype=np.float64), of_threads)

    def run(
        self, function: Callable[..., None], *arguments: object, sums: Sequence[_Array] = ()
    ) -> Sequence[_Array]:
        """Call a compiled function on all blocks; `sums` are zeros to which it adds."""
        if len(self.blocks_of_threads) == 1:
            function(*arguments, self.ptr, self.part_of, self.blocks_of_threads[0], *sums)
            return sums

        def call(blocks: NDArray[np.int64]) -> list[_Array]:
            own = [np.zeros_like(total) for total in sums]
            function(*arguments, self.ptr, self.part_of, blocks, *own)
            return own

        for own in _thread_pool(os.getpid()).map(call, self.blocks_of_threads):
            for total, part in zip(sums, own, strict=True):
                total += part
        return sums


@cache
def _thread_pool(process: int) -> ThreadPoolExecutor:
    """The threads of a process; a forked process has none of its parent's."""
    return ThreadPoolExecutor(os.cpu_count(), thread_name_prefix="graphsc-gin")


def _flatten(weights: Iterable[LayerWeights]) -> list[Tensor]:
    """Six tensors per layer, but five for the first."""
    return [tensor for layer in weights for tensor in layer if tensor is not None]


def _unflatten(flat: Sequence[Tensor]) -> list[LayerWeights]:
    tensors = iter([None, *(tensor.detach() for tensor in flat)])
    return [LayerWeights(*layer) for layer in zip(*[tensors] * 6, strict=True)]


def _running_statistics(norm: nn.BatchNorm1d, parts: int) -> tuple[NDArray[np.float64], _Rows, _Rows]:
    """The share of each part in the running statistics, and these, to update; counts the parts."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return (
            np.zeros(parts),
            np.zeros(norm.num_features, np.float32),
            np.zeros(norm.num_features, np.float32),
        )
    norm.num_batches_tracked += parts
    if norm.momentum is not None:
        shares = np.full(parts, norm.momentum)
    else:
        shares = 1 / (float(norm.num_batches_tracked) - np.arange(parts)[::-1])
    return shares, norm.running_mean.numpy(), norm.running_var.numpy()
