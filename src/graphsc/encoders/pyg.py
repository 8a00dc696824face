"""PyTorch Geometric modules as encoders: dense features in, one row per graph out."""

from __future__ import annotations

import inspect

from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.batch_norm import BatchNorm
from graphsc.encoders.readout import Readout, pool


class PygEncoder(nn.Module):
    """Calls `module(x, edge_index)`, with `edge_attr`, `edge_weight` and `batch` if it takes them.

    A result with one row per node is pooled; one with one row per graph is returned unchanged.
    """

    def __init__(self, module: nn.Module, dimensions: int, *, readout: Readout = "sum") -> None:
        super().__init__()
        BatchNorm.convert(module)
        self.module = module
        self.dimensions = dimensions
        self.readout: Readout = readout
        parameters = inspect.signature(module.forward).parameters
        self._extra = [name for name in ("edge_attr", "edge_weight", "batch") if name in parameters]

    def nodes(self, batch: GraphBatch) -> Tensor:
        """The output of the module, one row per node or per graph."""
        extra = {name: value for name in self._extra if (value := getattr(batch, name)) is not None}
        rows: Tensor = self.module(batch.dense_x(), batch.edge_index, **extra)
        return rows

    def forward(self, batch: GraphBatch) -> Tensor:
        """G x dimensions."""
        rows = self.nodes(batch)
        # If every graph has one node, the shape does not decide; a module that pools takes `batch`.
        one_per_node = rows.shape[0] == batch.num_nodes
        if one_per_node and (batch.num_nodes != batch.num_graphs or "batch" not in self._extra):
            rows = pool(batch, rows, self.readout)
        if rows.shape != (batch.num_graphs, self.dimensions):
            raise ConfigError(
                f"the encoder gives {tuple(rows.shape)} for {batch.num_graphs} graphs and "
                f"{self.dimensions} dimensions"
            )
        return rows
