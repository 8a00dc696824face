"""Encoders made of PyTorch Geometric's layers: GINE, GCN, GAT, GraphSAGE and GPS.

Node features are embedded by a linear map, in which categories are looked up. Each layer is followed by ReLU
and BatchNorm. Layers are pooled and joined as in `Gin`, so that an encoder can take the place of another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import ENCODERS, JoinedLayers, Layers, undo_centring
from graphsc.encoders.batch_norm import BatchNorm
from graphsc.encoders.gin import FeatureLinear, NormPlacement, linear
from graphsc.encoders.ops import embedding_sum
from graphsc.encoders.readout import Readout


class EdgeEmbedding(nn.Module):
    """E x width from the edge columns of a scheme: categories are looked up, floats are multiplied."""

    def __init__(self, features: FeatureScheme, width: int) -> None:
        super().__init__()
        cardinalities = [column.cardinality for column in features.edge_columns]
        self.categories = sum(cardinalities)
        self.floats = len(features.edge_float_names)
        self.weight = nn.Parameter(torch.empty(self.categories + self.floats, width))
        nn.init.xavier_uniform_(self.weight)
        starts = torch.tensor([0, *cardinalities]).cumsum(0)[:-1]
        self.register_buffer("starts", starts, persistent=False)

    def forward(self, batch: GraphBatch) -> Tensor:
        """E x width; zeros for a view whose edges have no attributes, such as a diffusion."""
        assert isinstance(self.starts, Tensor)  # noqa: S101 - narrows the type of a buffer
        edges = self.weight.new_zeros(batch.num_edges, self.weight.shape[1])
        if self.categories and batch.edge_codes is not None:
            edges = embedding_sum(batch.edge_codes + self.starts, self.weight[: self.categories])
        if self.floats and batch.edge_floats is not None:
            edges = edges + batch.edge_floats.to(self.weight.dtype) @ self.weight[self.categories :]
        return edges


class MessagePassing(JoinedLayers):
    """PyG layers on embedded features. A subclass says what a layer is and how it is called.

    Args:
        features: The feature scheme of the graphs.
        depth: Number of layers.
        width: Width of each layer.
        norm: BatchNorm after or before the ReLU, or none.
        readout: How nodes are pooled.
        layers: How the pooled layers are joined.
        activate_last: ReLU after the last layer, too.
        dropout: Of the input of each layer.
    """

    reads_edges: ClassVar[bool] = False

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
        dropout: float = 0.0,
    ) -> None:
        super().__init__(features, depth, width, readout, layers)
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {dropout}")
        self.settings: dict[str, object] = {
            "depth": depth, "width": width, "norm": norm, "readout": readout, "layers": layers,
            "activate_last": activate_last, "dropout": dropout,
        }  # fmt: skip
        self.dropout = dropout
        self.norm_first = norm == "before"
        self.activated = [activate_last or layer < depth - 1 for layer in range(depth)]
        self.embed_nodes = FeatureLinear(features, width)
        has_edges = self.reads_edges and features.has_edges
        self.embed_edges = EdgeEmbedding(features, width) if has_edges else None
        self.blocks = nn.ModuleList(self.make_layer() for _ in range(depth))
        self.norms = nn.ModuleList(BatchNorm(width) for _ in range(depth if norm != "none" else 0))

    def reinitialised(
        self, *, depth: int | None = None, features: FeatureScheme | None = None
    ) -> MessagePassing:
        """A new encoder of the same architecture (or another depth or input) with new random weights."""
        settings = self.settings if depth is None else {**self.settings, "depth": depth}
        return type(self)(self.features if features is None else features, **settings)  # type: ignore[arg-type]

    def make_layer(self) -> nn.Module:
        """One PyG layer from `width` to `width`."""
        raise NotImplementedError

    def call_layer(self, layer: nn.Module, x: Tensor, batch: GraphBatch, edges: Tensor | None) -> Tensor:
        """Apply a layer to N x width; `edges` are E x width if edge attributes are used."""
        raise NotImplementedError

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]:
        """The node embeddings after each layer, N x width each."""
        x: Tensor = self.embed_nodes(batch)
        edges = None if self.embed_edges is None else self.embed_edges(batch)
        outputs: list[Tensor] = []
        for number, layer in enumerate(self.blocks):
            x = torch.nn.functional.dropout(x, self.dropout, self.training)
            x = self.call_layer(layer, x, batch, edges)
            norm = self.norms[number] if len(self.norms) else None
            if norm is not None and self.norm_first:
                x = self._normalise(norm, x, parts)
            if self.activated[number]:
                x = x.relu()
            if norm is not None and not self.norm_first:
                x = self._normalise(norm, x, parts)
            outputs.append(x)
        return outputs

    def uncentred(self, outputs: list[Tensor]) -> list[Tensor]:
        if not len(self.norms):
            return outputs
        return [
            nodes if self.norm_first and activated else undo_centring(norm, nodes)
            for norm, nodes, activated in zip(self.norms, outputs, self.activated, strict=True)
        ]

    def _normalise(self, norm: nn.Module, x: Tensor, parts: Sequence[int] | None) -> Tensor:
        if parts is None or not self.training:
            rows: Tensor = norm(x)
            return rows
        return torch.cat([norm(part) for part in torch.split(x, list(parts))])


# PyG is imported where a layer is made: it takes seconds, which other encoders need not wait for.


def _gin(width: int, with_edges: bool) -> nn.Module:
    """GIN's layer, or GINE's."""
    from torch_geometric.nn import GINConv, GINEConv

    mlp = nn.Sequential(linear(width, width), nn.ReLU(), linear(width, width))
    layer: nn.Module = (GINEConv if with_edges else GINConv)(mlp)
    return layer


@ENCODERS.register("gine")
class Gine(MessagePassing):
    """GIN with edge attributes (Hu et al., ICLR 2020): a node plus the sum of ReLU(x_j + e_ij), in an MLP.

    On graphs without edge attributes it is GIN.
    """

    inputs: ClassVar[frozenset[str]] = frozenset({"edge_attr"})
    reads_edges: ClassVar[bool] = True

    def make_layer(self) -> nn.Module:
        return _gin(self.width, self.embed_edges is not None)

    def call_layer(self, layer: nn.Module, x: Tensor, batch: GraphBatch, edges: Tensor | None) -> Tensor:
        rows: Tensor = layer(x, batch.edge_index, *(() if edges is None else (edges,)))
        return rows


@ENCODERS.register("gcn")
class Gcn(MessagePassing):
    """Graph convolutional network (Kipf and Welling, ICLR 2017): normalised sums over neighbours and itself.

    Edge weights weigh the neighbours and count in the normalisation.
    """

    inputs: ClassVar[frozenset[str]] = frozenset({"edge_weight"})

    def make_layer(self) -> nn.Module:
        from torch_geometric.nn import GCNConv

        layer: nn.Module = GCNConv(self.width, self.width)
        return layer

    def call_layer(self, layer: nn.Module, x: Tensor, batch: GraphBatch, edges: Tensor | None) -> Tensor:
        rows: Tensor = layer(x, batch.edge_index, batch.edge_weight)
        return rows


@ENCODERS.register("graphsage")
class GraphSage(MessagePassing):
    """GraphSAGE (Hamilton et al., NeurIPS 2017): a map of the node plus one of the mean of its neighbours."""

    inputs: ClassVar[frozenset[str]] = frozenset()

    def make_layer(self) -> nn.Module:
        from torch_geometric.nn import SAGEConv

        layer: nn.Module = SAGEConv(self.width, self.width)
        return layer

    def call_layer(self, layer: nn.Module, x: Tensor, batch: GraphBatch, edges: Tensor | None) -> Tensor:
        rows: Tensor = layer(x, batch.edge_index)
        return rows


class Attention(MessagePassing):
    """Layers with several attention heads, which share the width."""

    inputs: ClassVar[frozenset[str]] = frozenset({"edge_attr"})
    reads_edges: ClassVar[bool] = True

    def __init__(
        self,
        features: FeatureScheme,
        *,
        depth: int = 3,
        width: int = 32,
        heads: int = 4,
        norm: NormPlacement = "after",
        readout: Readout = "sum",
        layers: Layers = "concat",
        activate_last: bool = True,
        dropout: float = 0.0,
    ) -> None:
        if heads < 1 or width % heads:
            raise ConfigError(f"the width {width} is not a multiple of {heads} heads")
        self.heads = heads
        super().__init__(
            features, depth=depth, width=width, norm=norm, readout=readout, layers=layers,
            activate_last=activate_last, dropout=dropout,
        )  # fmt: skip
        self.settings["heads"] = heads


@ENCODERS.register("gat")
class Gat(Attention):
    """Graph attention network (Velickovic et al., ICLR 2018); edge attributes are part of the attention."""

    def make_layer(self) -> nn.Module:
        from torch_geometric.nn import GATConv

        layer: nn.Module = GATConv(
            self.width,
            self.width // self.heads,
            self.heads,
            edge_dim=None if self.embed_edges is None else self.width,
        )
        return layer

    def call_layer(self, layer: nn.Module, x: Tensor, batch: GraphBatch, edges: Tensor | None) -> Tensor:
        rows: Tensor = layer(x, batch.edge_index, edges)
        return rows


@ENCODERS.register("gps")
class Gps(Attention):
    """GraphGPS (Rampasek et al., NeurIPS 2022): GIN, with edge attributes if there are any, beside attention.

    All nodes of a graph attend to each other, so that memory grows with the square of the largest graph in a
    batch. Layers have LayerNorm inside, which does not depend on the batch, and no positional encodings.
    """

    def make_layer(self) -> nn.Module:
        from torch_geometric.nn import GPSConv

        local = _gin(self.width, self.embed_edges is not None)
        layer: nn.Module = GPSConv(
            self.width, local, self.heads, dropout=self.dropout, norm="layer_norm",
            norm_kwargs={"mode": "node"},
        )  # fmt: skip
        return layer

    def call_layer(self, layer: nn.Module, x: Tensor, batch: GraphBatch, edges: Tensor | None) -> Tensor:
        # Attention over the nodes of a graph without any is not defined, so such graphs are not numbered.
        _, graph = torch.unique_consecutive(batch.batch, return_inverse=True)
        more = {} if edges is None else {"edge_attr": edges}
        rows: Tensor = layer(x, batch.edge_index, graph, **more)
        return rows
