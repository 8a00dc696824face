"""The graph isomorphism network (GIN) of GraphCL and its successors.

L layers, each Linear - ReLU - Linear on the sum of a node and its neighbours, then ReLU, then BatchNorm.
Every layer is sum-pooled, and the pooled layers are concatenated. Linear weights are Xavier-uniform, biases
zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import accumulate
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from graphsc.core.compiled import use_compiled
from graphsc.data.batch import GraphBatch, join
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import (
    ENCODERS,
    JoinedLayers,
    Layers,
    check_batch,
    check_features,
    undo_centring,
)
from graphsc.encoders.batch_norm import BatchNorm
from graphsc.encoders.fused_gin import MAX_WIDTH, FusedLayers, LayerWeights, fused_gin
from graphsc.encoders.ops import Adjacency, embedding_sum, fused_sum_relu
from graphsc.encoders.readout import Readout

MAX_JOINT_SIZE = 100_000  # nodes and edges; larger arrays exceed the cache, and joining gains nothing
NormPlacement = Literal["after", "before", "none"]


class FeatureLinear(nn.Module):
    """`dense_x() @ weight` without building `dense_x()`: an encoder's first linear layer.

    Categorical features are looked up; floats and replaced rows are multiplied. There is no bias, because
    neighbours are summed afterwards.
    """

    def __init__(self, features: FeatureScheme, width: int) -> None:
        super().__init__()
        self.features = features
        # Stored as input x output for look-ups by row; Xavier's bound is symmetric.
        self.weight = nn.Parameter(torch.empty(features.width, width))
        nn.init.xavier_uniform_(self.weight)
        starts = [0, *accumulate(features.cardinalities)][:-1]
        self.register_buffer("starts", torch.tensor(starts, dtype=torch.int64), persistent=False)
        self.categories = sum(features.cardinalities)

    def forward(self, batch: GraphBatch) -> Tensor:
        """N x width."""
        check_features(self.features, batch)
        assert isinstance(self.starts, Tensor)  # noqa: S101 - narrows the type of a buffer
        codes = batch.codes + self.starts if self.starts.numel() > 1 else batch.codes
        nodes = embedding_sum(codes, self.weight)
        if batch.floats.shape[1]:
            nodes = nodes + batch.floats.to(self.weight.dtype) @ self.weight[self.categories :]
        if batch.replaced is not None and batch.replacement is not None:
            dense = batch.replacement.to(self.weight.dtype)
            nodes = nodes.index_copy(0, batch.replaced, dense @ self.weight)
        return nodes


class GinLayer(nn.Module):
    """`MLP((1 + eps) x_i + sum of neighbours)`, then ReLU and BatchNorm in the given order."""

    def __init__(
        self,
        first: nn.Module,
        width: int,
        norm: NormPlacement,
        activate: bool,
        eps: float,
        outputs: int | None = None,  # the MLP's width by default
    ) -> None:
        super().__init__()
        outputs = outputs or width
        self.first = first  # the MLP's first linear map, without bias
        self.bias = nn.Parameter(torch.zeros(width))
        self.second = linear(width, outputs)
        self.norm = None if norm == "none" else BatchNorm(outputs)
        self.norm_first = norm == "before"
        self.activate = activate
        self.eps = eps

    def forward(
        self,
        x: Tensor | GraphBatch,
        adjacency: Adjacency,
        weight: Tensor | None,
        parts: Sequence[int] | None = None,
    ) -> Tensor:
        """N x outputs; `parts` are numbers of rows that BatchNorm normalises together, None for all."""
        # The first linear map comes before the sum over neighbours, which is then never wider.
        projected: Tensor = self.first(x)
        hidden = fused_sum_relu(projected, adjacency, weight, self.bias, own=1 + self.eps)
        hidden = self.second(hidden)
        if self.norm is not None and self.norm_first:
            hidden = self._normalise(hidden, parts)
        if self.activate:
            hidden = hidden.relu_()  # in place: no backward pass needs its input
        if self.norm is not None and not self.norm_first:
            hidden = self._normalise(hidden, parts)
        return hidden

    @property
    def can_fuse(self) -> bool:
        """Whether `fused_gin` can run this layer; it would not call hooks."""
        plain = type(self.norm) is BatchNorm and self.norm.affine
        return plain and not any(m._forward_hooks or m._forward_pre_hooks for m in self.modules())

    def uncentred(self, nodes: Tensor) -> Tensor:
        """Undo BatchNorm's centring in the layer's output in evaluation mode, if BatchNorm comes last."""
        return nodes if self.norm_first and self.activate else undo_centring(self.norm, nodes)

    def _normalise(self, hidden: Tensor, parts: Sequence[int] | None) -> Tensor:
        assert self.norm is not None  # noqa: S101 - checked by the caller
        if parts is None or not self.training:
            rows: Tensor = self.norm(hidden)
            return rows
        return torch.cat([self.norm(part) for part in torch.split(hidden, list(parts))])


@ENCODERS.register("gin")
class Gin(JoinedLayers):
    """GIN with a readout: `forward(batch)` gives one row per graph, `nodes(batch)` one row per node.

    Edge weights weigh the neighbours. Edge attributes and positions are not used.
    """

    inputs: ClassVar[frozenset[str]] = frozenset({"edge_weight"})

    def __init__(
        self,
        features: FeatureScheme,
        *,
        depth: int = 3,
        width: int = 32,
        norm: NormPlacement = "after",  # before or after the ReLU
        readout: Readout = "sum",
        layers: Layers = "concat",
        activate_last: bool = True,
        eps: float = 0.0,  # the weight of a node itself is 1 + eps
    ) -> None:
        super().__init__(features, depth, width, readout, layers)
        self._constructor = partial(
            type(self), features, depth=depth, width=width, norm=norm, readout=readout, layers=layers,
            activate_last=activate_last, eps=eps,
        )  # fmt: skip
        self.blocks = nn.ModuleList(
            GinLayer(
                FeatureLinear(features, width) if layer == 0 else linear(width, width, bias=False),
                width,
                norm,
                activate_last or layer < depth - 1,
                eps,
            )
            for layer in range(depth)
        )

    def reinitialised(self, *, depth: int | None = None, features: FeatureScheme | None = None) -> Gin:
        """A new encoder of the same architecture (or another depth or input) with new random weights."""
        settings = {**self._constructor.keywords, **({} if depth is None else {"depth": depth})}
        return type(self)(self.features if features is None else features, **settings)

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]:
        """The node embeddings after each layer, N x width each."""
        if self._can_fuse(batch, parts):
            return self._fused(batch, parts, pool=False)
        adjacency = Adjacency.of(batch)
        x: Tensor | GraphBatch = batch
        outputs: list[Tensor] = []
        for block in self.blocks:
            nodes: Tensor = block(x, adjacency, batch.edge_weight, parts)
            outputs.append(nodes)
            x = nodes
        return outputs

    def encode_batches(self, batches: Sequence[GraphBatch]) -> list[Tensor]:
        """`[self(batch) for batch in batches]`, in one pass if the batches are small.

        For small batches the overhead per operation dominates. BatchNorm still normalises each separately.
        """
        if sum(batch.num_nodes + batch.num_edges for batch in batches) > MAX_JOINT_SIZE:
            return [self(batch) for batch in batches]
        rows = self(join(batches), [batch.num_nodes for batch in batches])
        return list(rows.split([batch.num_graphs for batch in batches]))

    def forward(
        self, batch: GraphBatch, parts: Sequence[int] | None = None, importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions; `importance` (N) weights the nodes in the readout only."""
        check_batch(batch)
        if self.readout == "sum" and importance is None and self._can_fuse(batch, parts):
            return self.join_layers(self._fused(batch, parts, pool=True))
        return self.pool_layers(batch, self.node_layers(batch, parts), importance)

    def uncentred(self, outputs: list[Tensor]) -> list[Tensor]:
        blocks: list[GinLayer] = list(self.blocks)  # type: ignore[arg-type]
        return [block.uncentred(nodes) for block, nodes in zip(blocks, outputs, strict=True)]

    def _can_fuse(self, batch: GraphBatch, parts: Sequence[int] | None) -> bool:
        """Whether `fused_gin` computes the layers: for training on a CPU in full precision."""
        weight = next(self.parameters())
        return (
            self.training
            and weight.is_cpu
            and weight.dtype == torch.float32
            and self.width <= MAX_WIDTH
            and batch.edge_weight is None
            and min(parts or [batch.num_nodes]) > 1
            and not torch.is_autocast_enabled("cpu")
            and not torch.compiler.is_compiling()
            and all(isinstance(block, GinLayer) and block.can_fuse for block in self.blocks)
            and use_compiled()
        )

    def _fused(self, batch: GraphBatch, parts: Sequence[int] | None, pool: bool) -> list[Tensor]:
        blocks: list[GinLayer] = list(self.blocks)  # type: ignore[arg-type]
        layers = FusedLayers(
            batch,
            [batch.num_nodes] if parts is None else list(parts),
            [block.norm for block in blocks if block.norm is not None],
            [block.activate for block in blocks],
            blocks[0].norm_first,
            1 + blocks[0].eps,
            pool,
        )
        weights = [
            LayerWeights(
                block.first.weight if isinstance(block.first, nn.Linear) else None,
                block.bias, block.second.weight, block.second.bias, norm.weight, norm.bias,
            )
            for block, norm in zip(blocks, layers.norms, strict=True)
        ]  # fmt: skip
        return list(fused_gin(blocks[0].first(batch), layers, weights))


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear layer with Xavier-uniform weights and a bias of zero."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
