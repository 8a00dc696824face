"""Any PyG module as an encoder: dense features in, one row a graph out."""

from __future__ import annotations

import inspect

from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.encoders.readout import Readout, pool


class PygEncoder(nn.Module):
    """Calls `module(x, edge_index)`, with `edge_attr`, `edge_weight` and `batch` where it takes them.

    A result of one row a node is pooled; a result of one row a graph is returned as it is.
    """

    def __init__(self, module: nn.Module, dimensions: int, *, readout: Readout = "sum") -> None:
        super().__init__()
        self.module = module
        self.dimensions = dimensions
        self.readout: Readout = readout
        parameters = inspect.signature(module.forward).parameters
        self._extra = [name for name in ("edge_attr", "edge_weight", "batch") if name in parameters]

    def nodes(self, batch: GraphBatch) -> Tensor:
        """Whatever the module gives, a row a node or a graph."""
        extra = {name: value for name in self._extra if (value := getattr(batch, name)) is not None}
        found: Tensor = self.module(batch.dense_x(), batch.edge_index, **extra)
        return found

    def forward(self, batch: GraphBatch) -> Tensor:
        """G x dimensions."""
        found = self.nodes(batch)
        # With one node a graph the two cannot be told apart by shape; a module that pools takes `batch`.
        a_row_a_node = found.shape[0] == batch.num_nodes
        if a_row_a_node and (batch.num_nodes != batch.num_graphs or "batch" not in self._extra):
            found = pool(batch, found, self.readout)
        if found.shape != (batch.num_graphs, self.dimensions):
            raise ConfigError(
                f"the encoder gives {tuple(found.shape)} for {batch.num_graphs} graphs and "
                f"{self.dimensions} dimensions"
            )
        return found
