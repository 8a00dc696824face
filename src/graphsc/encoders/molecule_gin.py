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
from graphsc.encoders.base import ENCODERS, check_size
from graphsc.encoders.batch_norm import WeightedBatchNorm
from graphsc.encoders.deduplication import Rows, rows_of_layers, to_nodes
from graphsc.encoders.gin import look_up
from graphsc.encoders.ops import aggregate, aligned_linear, drop
from graphsc.encoders.readout import Readout, pool

# What a molecule encoder takes in: embedded atoms, and how often each kind of bond ends at them.


# Rows of the embeddings. Atoms: 118 elements, one to spare, one for a hidden atom. The published code has
# three tags of chirality, though RDKit knows four; the fourth gets a row of its own instead of a crash.
ATOMS, TAGS = 120, 4
# Single, double, triple, aromatic, a node's bond with itself, hidden; and none, up, down.
BONDS, DIRECTIONS = 6, 3
SELF = (4, BONDS)  # the type of a node's bond with itself, and direction 0, in their common table
HIDDEN_BOND = 5


class AtomEmbedding(nn.Module):
    """The embedding of an atom's type plus that of its chirality."""

    def __init__(self, features: FeatureScheme, width: int) -> None:
        super().__init__()
        _check_atoms(features)
        self.features = features
        self.atom = embedding(ATOMS, width)
        self.chirality = embedding(TAGS, width)

    def check(self, batch: GraphBatch) -> None:
        """Refuse graphs whose codes mean something else."""
        if batch.features is not self.features and batch.features != self.features:
            differences = "; ".join(self.features.differences(batch.features))
            raise ConfigError(
                f"the encoder was made for other features: {differences}",
                hint="open the molecules with the features the encoder was trained on",
            )

    def forward(self, batch: GraphBatch, nodes: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        """N x width; or R x width, of these nodes (R), where `rows` (N) is the row of each node."""
        codes = batch.codes if nodes is None else batch.codes.index_select(0, nodes)
        tables = torch.cat([self.atom.weight, self.chirality.weight])
        found = look_up(codes + codes.new_tensor([0, ATOMS]), tables)
        if batch.replaced is None or batch.replacement is None:
            return found
        # Dense rows are one-hot codes gone soft, and as wide as the codes that were possible.
        atoms, tags = self.features.cardinalities
        known = torch.cat([self.atom.weight[:atoms], self.chirality.weight[:tags]])
        places = batch.replaced if rows is None else rows[batch.replaced]
        return found.index_copy(0, places, batch.replacement.to(known.dtype) @ known)


def bond_counts(batch: GraphBatch) -> Tensor:
    """N x 9: how often each bond type, and then each direction, ends at a node, its bond with itself too.

    With edge weights, their sums instead; differentiable in them.
    """
    width = BONDS + DIRECTIONS
    weight = (
        torch.ones(batch.num_edges, device=batch.device) if batch.edge_weight is None else batch.edge_weight
    )
    counts = weight.new_zeros(batch.num_nodes, width)
    counts[:, SELF] = 1
    if not batch.num_edges:
        return counts
    codes = _checked_bonds(batch.edge_codes)
    place = (codes + codes.new_tensor([0, BONDS])).add_(batch.destination[:, None], alpha=width)
    flat = counts.view(-1).index_add(0, place.T.reshape(-1), weight.repeat(2))
    return flat.view(-1, width)


def _checked_bonds(codes: Tensor | None) -> Tensor:
    if codes is None or codes.shape[1] != 2:
        found = "none" if codes is None else f"{codes.shape[1]}"
        raise ConfigError(
            f"molecule-gin needs two categorical columns of edges, bond and direction; these have {found}",
            hint="open molecules from SMILES, or use the encoder gin",
        )
    bond, direction = codes.amax(0).tolist()
    if bond >= BONDS or direction >= DIRECTIONS:
        raise ConfigError(
            f"molecule-gin knows {BONDS} types of bonds and {DIRECTIONS} directions, from 0; "
            f"these edges have type {bond} or direction {direction}"
        )
    return codes


def _check_atoms(features: FeatureScheme) -> None:
    names = tuple(column.name for column in features.columns)
    if names != ("atom", "chirality") or features.float_names:
        given = ", ".join((*names, *features.float_names)) or "nothing"
        raise ConfigError(
            f"molecule-gin needs the node columns atom and chirality, not {given}",
            hint="open molecules from SMILES with features 'labels', or use the encoder gin",
        )
    atoms, tags = features.cardinalities
    if atoms > ATOMS or tags > TAGS:
        raise ConfigError(
            f"molecule-gin knows {ATOMS} kinds of atoms and {TAGS} of chirality, not {atoms} and {tags}"
        )


def embedding(rows: int, width: int) -> nn.Embedding:
    """A table of `rows` vectors, Xavier-uniform."""
    table = nn.Embedding(rows, width)
    nn.init.xavier_uniform_(table.weight)
    return table


Layers = Literal["last", "concat", "max", "sum"]


class MoleculeLayer(nn.Module):
    """`MLP(sum of x_j + bond_ij)` over neighbours j and the node itself, then BatchNorm, then ReLU."""

    def __init__(self, width: int, activate: bool) -> None:
        super().__init__()
        self.bond = embedding(BONDS, width)
        self.direction = embedding(DIRECTIONS, width)
        self.first = nn.Linear(width, 2 * width)
        self.second = nn.Linear(2 * width, width)
        self.norm = WeightedBatchNorm(width)
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
        check_size(depth, width)
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
