"""Encoders by name: ours, another package's, and any PyG module as a drop-in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol, runtime_checkable

from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.core.registry import Registry
from graphsc.data.batch import GraphBatch
from graphsc.encoders.readout import Readout, pool

# An entry takes a feature scheme and keywords, and gives a module that maps a batch to G x dimensions.
ENCODERS: Registry[Callable[..., nn.Module]] = Registry("encoder")


# How deep and wide an encoder may be.


MOST_LAYERS = 100  # each is a module of its own: a file that asks for a billion would never be read


def check_size(depth: int, width: int) -> None:
    """Refuse an encoder of no size, or of more layers than anybody needs, before any is made."""
    if depth < 1 or width < 1:
        raise ConfigError(f"an encoder needs depth and width of at least 1, not {depth} x {width}")
    if depth > MOST_LAYERS:
        raise ConfigError(f"an encoder of {depth} layers is too deep", hint=f"use up to {MOST_LAYERS}")


# Node vectors and graph vectors from one pass, for methods that look at both.


NodeLayers = Literal["joined", "last"]


@runtime_checkable
class LayeredEncoder(Protocol):
    """An encoder that can be asked for its layers, such as `Gin`."""

    width: int

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]: ...

    def join_layers(self, found: list[Tensor]) -> Tensor: ...

    def read(self, batch: GraphBatch, found: list[Tensor]) -> Tensor: ...


@runtime_checkable
class NodeEncoder(Protocol):
    """An encoder whose graph vectors are its pooled node vectors, such as `PygEncoder`."""

    readout: Readout

    def nodes(self, batch: GraphBatch) -> Tensor: ...


def nodes_and_graphs(
    encoder: nn.Module, batch: GraphBatch, layers: NodeLayers = "joined"
) -> tuple[Tensor, Tensor]:
    """N x d and G x dimensions, for the price of either.

    "joined" are the layers side by side as the readout has them (d = dimensions), "last" is the last layer
    alone (d = `node_width`). An encoder that does not show its layers gives the same for both.
    """
    # Where nothing but the last layer is read, the others need not be brought to a row a node.
    only_last = getattr(encoder, "layers", None) == "last" and isinstance(encoder, NodeEncoder)
    if isinstance(encoder, LayeredEncoder) and not only_last:
        found = encoder.node_layers(batch)
        return (found[-1] if layers == "last" else encoder.join_layers(found)), encoder.read(batch, found)
    check_node_level(encoder)
    assert isinstance(encoder, NodeEncoder)  # noqa: S101 - narrows the type
    nodes = encoder.nodes(batch)
    if len(nodes) != batch.num_nodes:
        raise ConfigError(f"the encoder gives {len(nodes)} rows for {batch.num_nodes} nodes, not one each")
    return nodes, pool(batch, nodes, encoder.readout)


def node_width(encoder: nn.Module) -> int:
    """The length of a node's vector after the last layer."""
    return encoder.width if isinstance(encoder, LayeredEncoder) else int(encoder.dimensions)  # type: ignore[arg-type]


def check_node_level(encoder: nn.Module) -> None:
    """Refuse an encoder that has no vectors for nodes."""
    if not isinstance(encoder, LayeredEncoder | NodeEncoder):
        raise ConfigError(
            f"this method needs vectors of nodes, and the encoder {type(encoder).__name__} gives none",
            hint="give it a method `nodes(batch)` and an attribute `readout`",
        )
