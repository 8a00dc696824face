"""The encoder registry, checks shared by encoders, and access to node and graph embeddings in one pass."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.core.registry import Registry
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.data.pyg_batch import is_pyg
from graphsc.encoders.readout import Readout, pool

# An entry takes a feature scheme and keywords, and returns a module from batch to G x dimensions.
ENCODERS: Registry[Callable[..., nn.Module]] = Registry("encoder")

MAX_LAYERS = 100  # a damaged or malicious file might ask for a billion layers, each a module of its own
NodeLayers = Literal["joined", "last"]
Layers = Literal["concat", "last", "sum"]


def check_size(depth: int, width: int) -> None:
    """Raise `ConfigError` for an encoder of no size or of too many layers, before any is allocated."""
    if depth < 1 or width < 1:
        raise ConfigError(f"an encoder needs depth and width of at least 1, not {depth} x {width}")
    if depth > MAX_LAYERS:
        raise ConfigError(f"an encoder of {depth} layers is too deep", hint=f"use up to {MAX_LAYERS}")


def check_batch(batch: object) -> None:
    """Raise `TypeError` for graphs that an encoder does not take, such as a batch of PyG."""
    if isinstance(batch, GraphBatch):
        return
    kind = type(batch).__name__
    hint = "GraphBatch.from_pyg(batch, encoder.features)" if is_pyg(batch) else "GraphBatch.of(collection)"
    raise TypeError(f"an encoder takes a GraphBatch, not {kind}; use {hint}")


def check_features(features: FeatureScheme, batch: GraphBatch) -> None:
    """Raise `ConfigError` if the batch has other node features than the encoder was built for."""
    if batch.features is not features and batch.features != features:
        differences = "; ".join(features.differences(batch.features))
        raise ConfigError(
            f"the encoder was built for other features: {differences}",
            hint="open the graphs with the features the encoder was trained on",
        )


def reads_edges(encoder: str | nn.Module) -> bool:
    """Whether an encoder is made for the edge columns of a feature scheme.

    A registered encoder says so by an attribute `reads_edges`, a module by the scheme it was made with or, as
    PyG modules do, by an argument `edge_attr`.
    """
    target = ENCODERS.get(encoder) if isinstance(encoder, str) else encoder
    scheme = getattr(target, "features", None)
    if isinstance(scheme, FeatureScheme):
        return scheme.has_edges
    declared = getattr(target, "reads_edges", None)
    if declared is None and isinstance(target, nn.Module):
        return "edge_attr" in inspect.signature(target.forward).parameters
    return bool(declared)


def ignored_inputs(encoder: nn.Module, collection: GraphCollection) -> list[str]:
    """What these graphs have and an encoder does not use, in words.

    An encoder has an attribute `inputs` that names what it uses of `edge_attr`, `edge_weight` and `pos`. Of
    one without, nothing is known and nothing is said.
    """
    inputs = getattr(encoder, "inputs", None)
    if inputs is None:
        return []
    columns = [column.name for column in collection.edges.columns] + list(collection.edges.float_names)
    present = {
        "edge_attr": f"edge attributes ({', '.join(columns)})" if columns else "",
        "edge_weight": "" if collection.edge_weight is None else "edge weights",
        "pos": "" if collection.pos is None else "positions",
    }
    return [words for name, words in present.items() if words and name not in inputs]


@runtime_checkable
class LayeredEncoder(Protocol):
    """An encoder that exposes the output of each layer, such as `Gin`."""

    width: int

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]: ...

    def join_layers(self, outputs: list[Tensor]) -> Tensor: ...

    def pool_layers(self, batch: GraphBatch, outputs: list[Tensor]) -> Tensor: ...


class JoinedLayers(nn.Module):
    """Base of encoders whose layers of equal width are pooled and joined.

    A subclass has `node_layers(batch, parts)`, and its layers as `blocks`.
    """

    blocks: nn.ModuleList

    def __init__(
        self, features: FeatureScheme, depth: int, width: int, readout: Readout, layers: Layers
    ) -> None:
        super().__init__()
        check_size(depth, width)
        self.features = features
        self.depth = depth
        self.width = width
        self.readout: Readout = readout
        self.layers: Layers = layers
        self.dimensions = width * depth if layers == "concat" else width

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]:
        """The node embeddings after each layer, N x width each.

        Args:
            batch: N nodes.
            parts: Numbers of nodes that BatchNorm normalises together; None for all.
        """
        raise NotImplementedError

    def uncentred(self, outputs: list[Tensor]) -> list[Tensor]:
        """Undo BatchNorm's centring in the result of `node_layers` in evaluation mode.

        A column that is centred over the nodes of a collection has mean zero, and its sum over the nodes of a
        graph hardly depends on their number: the readout would lose the size of graphs. Where BatchNorm is
        not the last operation of a layer there is nothing to undo.
        """
        raise NotImplementedError

    def nodes(self, batch: GraphBatch) -> Tensor:
        """N x dimensions: the layers combined as in the readout."""
        return self.join_layers(self.node_layers(batch))

    def forward(
        self, batch: GraphBatch, parts: Sequence[int] | None = None, importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions; `importance` (N) weights the nodes in the readout only."""
        check_batch(batch)
        return self.pool_layers(batch, self.node_layers(batch, parts), importance)

    def pool_layers(
        self, batch: GraphBatch, outputs: list[Tensor], importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions from the result of `node_layers`."""
        if self.layers == "last":
            outputs = outputs[-1:]
        if importance is not None:
            outputs = [nodes * importance[:, None] for nodes in outputs]
        return self.join_layers([pool(batch, nodes, self.readout) for nodes in outputs])

    def join_layers(self, outputs: list[Tensor]) -> Tensor:
        """Rows x dimensions from rows x width per layer."""
        if self.layers == "concat":
            return torch.cat(outputs, dim=1)
        return outputs[-1] if self.layers == "last" else torch.stack(outputs).sum(0)


def undo_centring(norm: nn.Module | None, nodes: Tensor) -> Tensor:
    """The output of BatchNorm in evaluation mode without its centring; `nodes` themselves without a norm."""
    if not isinstance(norm, nn.BatchNorm1d) or norm.running_mean is None or norm.running_var is None:
        return nodes
    return nodes + norm.weight * norm.running_mean / (norm.running_var + norm.eps).sqrt()


@runtime_checkable
class NodeEncoder(Protocol):
    """An encoder whose graph embeddings are its pooled node embeddings, such as `PygEncoder`."""

    readout: Readout

    def nodes(self, batch: GraphBatch) -> Tensor: ...


def nodes_and_graphs(
    encoder: nn.Module, batch: GraphBatch, layers: NodeLayers = "joined", rows: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Node embeddings (N x d) and graph embeddings (G x dimensions) from one forward pass.

    Args:
        encoder: A `LayeredEncoder` or `NodeEncoder`.
        batch: N nodes in G graphs.
        layers: "joined" combines the layers as the readout does (d = dimensions); "last" is the last layer
            alone (d = `node_width`). Without access to layers both give the same.
        rows: Nodes to return, by index; None for all.
    """

    def selected(nodes: Tensor) -> Tensor:
        return nodes if rows is None else nodes.index_select(0, rows)

    # If only the last layer is read, the others need not be expanded to one row per node.
    only_last = getattr(encoder, "layers", None) == "last" and isinstance(encoder, NodeEncoder)
    if isinstance(encoder, LayeredEncoder) and not only_last:
        outputs = encoder.node_layers(batch)
        wanted = [selected(nodes) for nodes in (outputs[-1:] if layers == "last" else outputs)]
        nodes = wanted[0] if layers == "last" else encoder.join_layers(wanted)
        return nodes, encoder.pool_layers(batch, outputs)
    check_node_level(encoder)
    assert isinstance(encoder, NodeEncoder)  # noqa: S101 - narrows the type
    nodes = encoder.nodes(batch)
    if len(nodes) != batch.num_nodes:
        raise ConfigError(f"the encoder gives {len(nodes)} rows for {batch.num_nodes} nodes, not one each")
    return selected(nodes), pool(batch, nodes, encoder.readout)


def node_width(encoder: nn.Module) -> int:
    """The width of a node embedding after the last layer."""
    return encoder.width if isinstance(encoder, LayeredEncoder) else int(encoder.dimensions)  # type: ignore[arg-type]


def check_node_level(encoder: nn.Module) -> None:
    """Raise `ConfigError` if the encoder has no node embeddings."""
    if not isinstance(encoder, LayeredEncoder | NodeEncoder):
        raise ConfigError(
            f"this method needs node embeddings, and the encoder {type(encoder).__name__} gives none",
            hint="give it a method `nodes(batch)` and an attribute `readout`",
        )
