"""The graph isomorphism network of the GraphCL line: what almost every compared system encodes with.

L layers, each Linear - ReLU - Linear on a node's sum with its neighbours, then ReLU, then BatchNorm; every
layer sum-pooled; the pooled vectors side by side. Linear weights are Xavier-uniform, biases zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch, join
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import ENCODERS, check_size
from graphsc.encoders.ops import Adjacency, aggregate, row_sums, sum_and_activate
from graphsc.encoders.readout import Readout, pool

# The first linear map of an encoder, on features that are mostly integers.
#
# One-hot times a weight matrix is a row look-up; floats and rows replaced by noise are multiplied.


def look_up(codes: Tensor, weight: Tensor) -> Tensor:
    """The sum of the rows of `weight` (C x width) that each row of `codes` (N x K) names: N x width."""
    if not codes.is_cpu:  # adding up where codes meet has no fixed order there; sorting has
        return aggregate(Adjacency.of_codes(codes, len(weight)), weight)
    result: Tensor = _LookUp.apply(codes, weight)  # type: ignore[no-untyped-call]
    return result


class _LookUp(torch.autograd.Function):
    @staticmethod
    def forward(ctx: FunctionCtx, codes: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(codes)
        ctx.rows = len(weight)  # type: ignore[attr-defined]
        return row_sums(Adjacency.of_codes(codes, len(weight)), weight, None)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> tuple[None, Tensor]:
        (codes,) = ctx.saved_tensors  # type: ignore[attr-defined]
        to_weight = gradient.new_zeros(ctx.rows, gradient.shape[1])  # type: ignore[attr-defined]
        for column in codes.unbind(1):  # a few columns; several times faster than sorting all codes
            to_weight.index_add_(0, column, gradient)
        return None, to_weight


class FeatureLinear(nn.Module):
    """`dense_x() @ weight` without making `dense_x()`; no bias, because neighbours are summed after it."""

    def __init__(self, features: FeatureScheme, width: int) -> None:
        super().__init__()
        self.features = features
        # Stored as input x output, so that a row is a look-up; Xavier's bound is the same either way.
        self.weight = nn.Parameter(torch.empty(features.width, width))
        nn.init.xavier_uniform_(self.weight)
        starts = torch.tensor((0, *features.cardinalities)).cumsum(0)
        self.register_buffer("starts", starts[:-1], persistent=False)
        self.categories = sum(features.cardinalities)

    def forward(self, batch: GraphBatch) -> Tensor:
        """N x width."""
        if batch.features is not self.features and batch.features != self.features:
            differences = "; ".join(self.features.differences(batch.features))
            raise ConfigError(
                f"the encoder was made for other features: {differences}",
                hint="open the graphs with the features the encoder was trained on",
            )
        assert isinstance(self.starts, Tensor)  # noqa: S101 - narrows the type of a buffer
        codes = batch.codes + self.starts if self.starts.numel() > 1 else batch.codes
        nodes = look_up(codes, self.weight)
        if batch.floats.shape[1]:
            nodes = nodes + batch.floats @ self.weight[self.categories :]
        if batch.replaced is not None and batch.replacement is not None:
            dense = batch.replacement.to(self.weight.dtype)
            nodes = nodes.index_copy(0, batch.replaced, dense @ self.weight)
        return nodes


SMALL = 100_000  # nodes and edges; beyond this, arrays leave the cache and one pass is no faster
NormPlacement = Literal["after", "before", "none"]
Layers = Literal["concat", "last", "sum"]


class GinLayer(nn.Module):
    """`MLP((1 + eps) x_i + sum of neighbours)`, ReLU and BatchNorm in the order asked for."""

    def __init__(
        self,
        first: nn.Module,
        width: int,
        norm: NormPlacement,
        activate: bool,
        eps: float,
        outputs: int | None = None,  # where they are not as many as the MLP is wide
    ) -> None:
        super().__init__()
        outputs = outputs or width
        self.first = first  # the MLP's first linear map, without bias
        self.bias = nn.Parameter(torch.zeros(width))
        self.second = linear(width, outputs)
        self.norm = None if norm == "none" else nn.BatchNorm1d(outputs)
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
        """N x outputs. The linear map comes before the sum: both are linear, and it is never wider.

        `parts` are the numbers of rows that BatchNorm takes together; None for all.
        """
        projected: Tensor = self.first(x)
        hidden = sum_and_activate(projected, adjacency, weight, self.bias, own=1 + self.eps)
        hidden = self.second(hidden)
        if self.norm is not None and self.norm_first:
            hidden = self._normalise(hidden, parts)
        if self.activate:
            hidden = hidden.relu_()  # nothing before it needs its own result again
        if self.norm is not None and not self.norm_first:
            hidden = self._normalise(hidden, parts)
        return hidden

    def _normalise(self, hidden: Tensor, parts: Sequence[int] | None) -> Tensor:
        assert self.norm is not None  # noqa: S101 - the caller has looked
        if parts is None or not self.training:
            rows: Tensor = self.norm(hidden)
            return rows
        return torch.cat([self.norm(part) for part in torch.split(hidden, list(parts))])


@ENCODERS.register("gin")
class Gin(nn.Module):
    """GIN with a readout: `forward(batch)` gives one row a graph, `nodes(batch)` one row a node."""

    def __init__(
        self,
        features: FeatureScheme,
        *,
        depth: int = 3,
        width: int = 32,
        norm: NormPlacement = "after",
        readout: Readout = "sum",
        layers: Layers = "concat",
        activate_last: bool = True,
        eps: float = 0.0,
    ) -> None:
        super().__init__()
        check_size(depth, width)
        self.features = features
        self.depth = depth
        self.width = width
        self._again = partial(
            type(self), features, depth=depth, width=width, norm=norm, readout=readout, layers=layers,
            activate_last=activate_last, eps=eps,
        )  # fmt: skip
        self.readout: Readout = readout
        self.layers: Layers = layers
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
        self.dimensions = width * depth if layers == "concat" else width

    def fresh(self, *, depth: int | None = None) -> Gin:
        """Another encoder made like this one, with weights drawn anew; for methods that need two.

        With `depth`, it has so many layers instead.
        """
        return self._again() if depth is None else self._again(depth=depth)

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]:
        """The node vectors after each layer, N x width each."""
        adjacency = Adjacency.of(batch)
        x: Tensor | GraphBatch = batch
        found: list[Tensor] = []
        for block in self.blocks:
            nodes: Tensor = block(x, adjacency, batch.edge_weight, parts)
            found.append(nodes)
            x = nodes
        return found

    def nodes(self, batch: GraphBatch) -> Tensor:
        """N x dimensions: the layers joined as the readout joins them."""
        return self.join_layers(self.node_layers(batch))

    def each(self, batches: Sequence[GraphBatch]) -> list[Tensor]:
        """`[self(batch) for batch in batches]`, in one pass where the batches are small.

        A pass over a small batch is mostly the calling of operations; BatchNorm still sees each by itself.
        """
        if sum(batch.num_nodes + batch.num_edges for batch in batches) > SMALL:
            return [self(batch) for batch in batches]
        rows = self(join(batches), [batch.num_nodes for batch in batches])
        return list(rows.split([batch.num_graphs for batch in batches]))

    def forward(
        self, batch: GraphBatch, parts: Sequence[int] | None = None, importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions. `importance` (N) weighs the nodes when they are pooled, and nowhere else."""
        return self.read(batch, self.node_layers(batch, parts), importance)

    def read(self, batch: GraphBatch, found: list[Tensor], importance: Tensor | None = None) -> Tensor:
        """G x dimensions from what `node_layers` gave."""
        if self.layers == "last":
            found = found[-1:]
        if importance is not None:
            found = [nodes * importance[:, None] for nodes in found]
        return self.join_layers([pool(batch, nodes, self.readout) for nodes in found])

    def join_layers(self, found: list[Tensor]) -> Tensor:
        """Rows x dimensions from rows x width after each layer."""
        if self.layers == "concat":
            return torch.cat(found, dim=1)
        return found[-1] if self.layers == "last" else torch.stack(found).sum(0)


def linear(inputs: int, outputs: int, bias: bool = True) -> nn.Linear:
    """A linear map with Xavier-uniform weights and a bias of zero."""
    layer = nn.Linear(inputs, outputs, bias=bias)
    nn.init.xavier_uniform_(layer.weight)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer
