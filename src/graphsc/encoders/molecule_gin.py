"""The molecule encoder of Hu et al. (ICLR 2020): what every system for transfer on molecules encodes with.

Atoms and bonds are embedded. A layer is Linear - ReLU - Linear on the sum, over a node's neighbours and the
node itself, of the neighbour's vector and of its bond's type and direction; then BatchNorm, ReLU on all but
the last layer, and dropout. The graph's vector is the mean of its nodes' in the last layer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.aligned import aligned_linear
from graphsc.encoders.alike import Rows, rows_of_layers, to_nodes
from graphsc.encoders.counted_norm import CountedBatchNorm
from graphsc.encoders.dropout import drop
from graphsc.encoders.molecule_input import BONDS, DIRECTIONS, AtomEmbedding, bond_counts, embedding
from graphsc.encoders.readout import Readout, pool
from graphsc.encoders.registry import ENCODERS
from graphsc.encoders.sparse import aggregate

Layers = Literal["last", "concat", "max", "sum"]


class MoleculeLayer(nn.Module):
    """`MLP(sum of x_j + bond_ij)` over neighbours j and the node itself, then BatchNorm, then ReLU."""

    def __init__(self, width: int, activate: bool) -> None:
        super().__init__()
        self.bond = embedding(BONDS, width)
        self.direction = embedding(DIRECTIONS, width)
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)
        self.norm = CountedBatchNorm(width)
        self.activate = activate

    def forward(self, x: Tensor, rows: Rows) -> Tensor:
        """R x width. How often each bond occurs times what it is: never a vector an edge."""
        total = aggregate(rows.adjacency, x, rows.weight)
        bonds = torch.cat([self.bond.weight, self.direction.weight]).to(total.dtype)
        total = total.addmm_(rows.edges.to(total.dtype), bonds)
        hidden = aligned_linear(total, self.first.weight, self.first.bias).relu_()
        hidden = aligned_linear(hidden, self.second.weight, self.second.bias)
        normed: Tensor = self.norm(hidden, rows.counts, rows.parts)
        return normed.relu_() if self.activate else normed


@ENCODERS.register("molecule-gin")
class MoleculeGin(nn.Module):
    """GIN on atoms and bonds: `forward(batch)` gives one row a molecule, `nodes(batch)` one row an atom.

    Takes node columns atom and chirality, and edge columns bond and direction. Atoms whose surroundings are
    alike are computed once, as long as no edge weights and no dropout make them different.
    """

    def __init__(
        self,
        features: FeatureScheme,
        *,
        depth: int = 5,
        width: int = 300,
        dropout: float = 0.0,  # 0.5 when fine-tuning
        layers: Layers = "last",  # the others join all layers and the input
        readout: Readout = "mean",
    ) -> None:
        super().__init__()
        if depth < 1 or width < 1:
            raise ConfigError(f"an encoder needs depth and width of at least 1, not {depth} x {width}")
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {dropout}")
        self.features = features
        self._again = partial(
            type(self), features, depth=depth, width=width, dropout=dropout, layers=layers, readout=readout
        )
        self.depth = depth
        self.width = width
        self.dropout = dropout
        self.layers: Layers = layers
        self.readout: Readout = readout
        self.atoms = AtomEmbedding(features, width)
        self.blocks = nn.ModuleList(MoleculeLayer(width, layer < depth - 1) for layer in range(depth))
        self.dimensions = width * (depth + 1) if layers == "concat" else width

    def fresh(self, *, depth: int | None = None) -> MoleculeGin:
        """Another encoder made like this one, with weights drawn anew; for methods that need two.

        With `depth`, it has so many layers instead.
        """
        return self._again() if depth is None else self._again(depth=depth)

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]:
        """The node vectors before the first layer and after each, N x width each."""
        return [to_nodes(rows, of_node) for rows, of_node in self._layers(batch, parts)]

    def nodes(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> Tensor:
        """N x dimensions: the layers joined. `parts` are numbers of nodes that BatchNorm takes together."""
        if self.layers != "last":
            return self.join_layers(self.node_layers(batch, parts))
        *_, (rows, of_node) = self._layers(batch, parts)
        return to_nodes(rows, of_node)

    def each(self, batches: Sequence[GraphBatch]) -> list[Tensor]:
        """`[self(batch) for batch in batches]`: these passes are long, and joining them gains nothing."""
        return [self(batch) for batch in batches]

    def forward(
        self, batch: GraphBatch, parts: Sequence[int] | None = None, importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions. `importance` (N) weighs the nodes when they are pooled, and nowhere else."""
        return self._pool(batch, self.nodes(batch, parts), importance)

    def read(self, batch: GraphBatch, found: list[Tensor], importance: Tensor | None = None) -> Tensor:
        """G x dimensions from what `node_layers` gave."""
        return self._pool(batch, self.join_layers(found), importance)

    def join_layers(self, found: list[Tensor]) -> Tensor:
        """Rows x dimensions from rows x width after each layer."""
        if self.layers == "last":
            return found[-1]
        if self.layers == "concat":
            return torch.cat(found, dim=1)
        stacked = torch.stack(found)
        return stacked.sum(0) if self.layers == "sum" else stacked.amax(0)

    def _pool(self, batch: GraphBatch, nodes: Tensor, importance: Tensor | None) -> Tensor:
        return pool(batch, nodes if importance is None else nodes * importance[:, None], self.readout)

    def _layers(
        self, batch: GraphBatch, parts: Sequence[int] | None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The rows of the input and of each layer, and which of them each node has."""
        self.atoms.check(batch)
        dropping = self.training and self.dropout > 0
        # Nodes that were alike are so no longer once entries of theirs are dropped at random.
        start, layers = rows_of_layers(
            batch,
            bond_counts(batch),
            len(self.blocks),
            [batch.num_nodes] if parts is None else parts,
            shared=1 if dropping else len(self.blocks),
        )
        x: Tensor = self.atoms(batch) if start is None else self.atoms(batch, start.first, start.of_node)
        yield x, None if start is None else start.of_node
        for block, rows in zip(self.blocks, layers, strict=True):
            x, of_node = block(x, rows), rows.of_node
            if dropping:
                x, of_node = drop(to_nodes(x, of_node), self.dropout), None
            yield x, of_node
