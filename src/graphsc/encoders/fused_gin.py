"""All layers of a GIN in one autograd function, for training on a CPU (see `encoders.compiled`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.data.batch import GraphBatch
from graphsc.encoders.ops import Adjacency, csr_matmul, csr_matmul_transposed

MAX_WIDTH = 64  # wider layers are mostly matrix products, for which torch uses all its threads


class LayerWeights(NamedTuple):
    """The weights of a layer: `first`, sum over neighbours, ReLU, `second`, ReLU, BatchNorm."""

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
    own: float  # weight of a node itself in the sum over neighbours
    pool: bool  # whether to return sums per graph or node embeddings


def fused_gin(projected: Tensor, layers: FusedLayers, weights: Sequence[LayerWeights]) -> tuple[Tensor, ...]:
    """Run all layers in training mode, which updates BatchNorm's running statistics.

    Args:
        projected: N x d, float32 on a CPU: the features times the first matrix.
        layers: Batch and architecture.
        weights: One entry per layer.

    Returns:
        One tensor per layer: sums over the nodes of each graph (G x d), or node embeddings (N x d).
    """
    flat = [tensor for layer in weights for tensor in layer if tensor is not None]
    result: tuple[Tensor, ...] = _FusedGin.apply(projected, layers, *flat)  # type: ignore[no-untyped-call]
    return result


class _FusedGin(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: FunctionCtx, projected: Tensor, layers: FusedLayers, *flat: Tensor
    ) -> tuple[Tensor, ...]:
        from graphsc.encoders.compiled import activate_and_project, normalise_and_project

        batch, width, parts = layers.batch, projected.shape[1], len(layers.parts)
        weights = _unflatten(flat)
        adjacency, segments = Adjacency.of(batch), _segments(layers)
        none = np.empty((0, width), np.float32)
        rows = batch.num_graphs if layers.pool else batch.num_nodes
        outputs = tuple(projected.new_empty(rows, width) for _ in weights)
        saved: list[Tensor] = []
        product = projected.detach()
        for number, layer in enumerate(weights):
            hidden, z = csr_matmul(adjacency, product, None), torch.empty_like(product)
            moments = torch.empty(2, parts, width, dtype=torch.float64)
            affine = torch.empty(2, parts, width)
            activate_and_project(
                hidden.numpy(), product.numpy(), layers.own, layer.bias.numpy(), layer.second.numpy(),
                layer.second_bias.numpy(), layers.activate[number], layer.scale.numpy(), layer.shift.numpy(),
                layers.norms[number].eps, *_running_statistics(layers.norms[number], parts), *segments,
                z.numpy(), moments.numpy(), affine.numpy(),
            )  # fmt: skip
            following = weights[number + 1].first if number + 1 < len(weights) else None
            product = torch.empty_like(z if following is not None else z[:0])
            nodes, pooled = (
                (none, outputs[number].numpy()) if layers.pool else (outputs[number].numpy(), none)
            )
            normalise_and_project(
                z.numpy(), affine.numpy(), none if following is None else following.numpy(), *segments,
                nodes, pooled, product.numpy(),
            )  # fmt: skip
            saved += [hidden, z, moments, affine]
        ctx.save_for_backward(*flat, *saved)
        ctx.layers, ctx.segments = layers, segments  # type: ignore[attr-defined]
        ctx.set_materialize_grads(False)
        return outputs

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, *given: Tensor | None) -> tuple[Tensor | None, ...]:
        from graphsc.encoders.compiled import (
            activate_and_project_backward,
            add_gradients,
            normalise_and_project_backward,
        )

        layers: FusedLayers = ctx.layers  # type: ignore[attr-defined]
        segments: _Segments = ctx.segments  # type: ignore[attr-defined]
        tensors: tuple[Tensor, ...] = ctx.saved_tensors  # type: ignore[attr-defined]
        flat, saved = tensors[: 6 * len(given) - 1], tensors[6 * len(given) - 1 :]
        weights = _unflatten(flat)
        to_flat = [torch.empty_like(tensor) for tensor in flat]
        to_weights = _unflatten(to_flat)
        adjacency = Adjacency.of(layers.batch)
        none = np.empty((0, saved[0].shape[1]), np.float32)

        def readout_gradients(number: int) -> tuple[_Rows, _Rows]:
            """Those of a layer's nodes, and of its sums per graph."""
            gradient = given[number]
            if gradient is None:
                return none, none
            values = gradient.contiguous().numpy()
            return (none, values) if layers.pool else (values, none)

        _, z, moments, _ = saved[-4:]
        gradient, to_hidden = torch.zeros_like(z), torch.empty_like(z)
        sums = np.empty(moments.shape)
        add_gradients(gradient.numpy(), *readout_gradients(len(given) - 1), z.numpy(), *segments, sums)
        for number in reversed(range(len(given))):
            layer, to_layer = weights[number], to_weights[number]
            hidden, z, moments, _ = saved[4 * number : 4 * number + 4]
            activate_and_project_backward(
                gradient.numpy(), sums, z.numpy(), moments.numpy(), hidden.numpy(), layer.scale.numpy(),
                layers.activate[number], layer.second.numpy(), *segments, to_hidden.numpy(),
                *(tensor.numpy() for tensor in to_layer[1:] if tensor is not None),
            )  # fmt: skip
            to_product = csr_matmul_transposed(adjacency, to_hidden)
            if layer.first is not None and to_layer.first is not None:
                _, z, _, affine = saved[4 * number - 4 : 4 * number]
                normalise_and_project_backward(
                    to_product.numpy(), to_hidden.numpy(), layers.own, z.numpy(), affine.numpy(),
                    layer.first.numpy(), *segments, *readout_gradients(number - 1), gradient.numpy(),
                    to_layer.first.numpy(), sums,
                )  # fmt: skip
        return to_product.add_(to_hidden, alpha=layers.own), None, *to_flat


_Rows = NDArray[np.float32]


class _Segments(NamedTuple):
    """Where graphs and blocks begin, see `compiled.make_blocks`."""

    ptr: NDArray[np.int64]  # G + 1
    part_of: NDArray[np.int64]  # G
    blocks: NDArray[np.int64]  # B + 1


def _segments(layers: FusedLayers) -> _Segments:
    from graphsc.encoders.compiled import make_blocks

    ptr = layers.batch.ptr.numpy()
    part_of = np.searchsorted(np.cumsum(layers.parts), ptr[:-1], side="right")
    np.minimum(part_of, len(layers.parts) - 1, out=part_of)  # graphs without nodes may come last
    return _Segments(ptr, part_of, make_blocks(ptr, part_of))


def _unflatten(flat: Sequence[Tensor]) -> list[LayerWeights]:
    """Six tensors per layer, but five for the first."""
    tensors = iter([None, *(tensor.detach() for tensor in flat)])
    return [LayerWeights(*layer) for layer in zip(*[tensors] * 6, strict=True)]


def _running_statistics(norm: nn.BatchNorm1d, parts: int) -> tuple[NDArray[np.float64], tuple[_Rows, _Rows]]:
    """The share of each part in the running statistics, and these to update; counts the parts."""
    if norm.running_mean is None or norm.running_var is None or norm.num_batches_tracked is None:
        return np.zeros(parts), (np.zeros(norm.num_features, np.float32),) * 2
    norm.num_batches_tracked += parts
    if norm.momentum is not None:
        shares = np.full(parts, norm.momentum)
    else:
        shares = 1 / (float(norm.num_batches_tracked) - np.arange(parts)[::-1])
    return shares, (norm.running_mean.numpy(), norm.running_var.numpy())
