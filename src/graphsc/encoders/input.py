"""The first linear map of an encoder, on features that are mostly integers.

One-hot times a weight matrix is a row look-up; floats and rows replaced by noise are multiplied.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.sparse import Adjacency, aggregate


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
        self.categories = int(starts[-1])

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
        nodes = aggregate(Adjacency.of_codes(codes, self.features.width), self.weight)
        if batch.floats.shape[1]:
            nodes = nodes + batch.floats @ self.weight[self.categories :]
        if batch.replaced is not None and batch.replacement is not None:
            nodes = nodes.index_copy(0, batch.replaced, batch.replacement @ self.weight)
        return nodes
