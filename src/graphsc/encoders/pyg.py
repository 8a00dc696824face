"""PyTorch Geometric modules as encoders: dense features in, one row per graph out."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.batch_norm import BatchNorm
from graphsc.encoders.readout import Readout, pool


class PygEncoder(nn.Module):
    """Calls `module(x, edge_index)`, with `edge_attr`, `edge_weight`, `pos` and `batch` if it takes them.

    A result with one row per node is pooled; one with one row per graph is returned unchanged.
    """

    def __init__(self, module: nn.Module, dimensions: int, *, readout: Readout = "sum") -> None:
        super().__init__()
        BatchNorm.convert(module)
        self.module = module
        self.dimensions = dimensions
        self.readout: Readout = readout
        parameters = inspect.signature(module.forward).parameters
        self._extra = [name for name in ("edge_attr", "edge_weight", "pos", "batch") if name in parameters]
        self.inputs = frozenset(self._extra)
        self.reads_edges = "edge_attr" in parameters

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


def as_encoder(module: nn.Module, features: FeatureScheme) -> nn.Module:
    """An encoder from a module: itself if it has `dimensions`, else a PyG module in a `PygEncoder`.

    Args:
        module: From a `GraphBatch` to one row per graph, with an attribute `dimensions`; or a PyG module that
            takes `x` and `edge_index`, whose input channels may be -1.
        features: The scheme of the graphs. A PyG module is run on an edge, to see how wide its output is.
    """
    if hasattr(module, "dimensions"):
        return module
    parameters = inspect.signature(module.forward).parameters
    if not {"x", "edge_index"} <= parameters.keys():
        raise ConfigError(
            f"{type(module).__name__} is no encoder: it has no attribute `dimensions`, and its forward takes "
            "no `x` and `edge_index`",
            hint="give it `dimensions`, or wrap it in PygEncoder",
        )
    wrapped = PygEncoder(module, 0)
    was_training = module.training
    module.eval()
    with torch.no_grad():
        rows = wrapped.nodes(_edge(features))
    module.train(was_training)
    wrapped.dimensions = rows.shape[1]
    return wrapped


def _edge(features: FeatureScheme) -> GraphBatch:
    """A graph of two nodes and one edge, with zeros for all features."""
    return GraphBatch(
        codes=torch.zeros(2, len(features.columns), dtype=torch.int64),
        floats=torch.zeros(2, len(features.float_names)),
        rowptr=torch.tensor([0, 1, 2], dtype=torch.int32),
        source=torch.tensor([1, 0], dtype=torch.int32),
        ptr=torch.tensor([0, 2]),
        features=features,
        undirected=True,
        edge_codes=torch.zeros(2, len(features.edge_columns), dtype=torch.int64)
        if features.edge_columns
        else None,
        edge_floats=torch.zeros(2, len(features.edge_float_names)) if features.edge_float_names else None,
    )
