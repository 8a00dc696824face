"""The first linear map of an encoder, on features that are mostly integers.

One-hot times a weight matrix is a row look-up; floats and rows replaced by noise are multiplied.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx, once_differentiable

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.sparse import Adjacency, aggregate, row_sums


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
