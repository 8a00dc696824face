"""The molecule encoder of Hu et al. (ICLR 2020), used by all compared transfer methods on molecules.

Atoms and bonds are embedded. A layer is Linear - ReLU - Linear on the sum, over a node's neighbours and the
node itself, of the node embedding and of the bond's type and direction embeddings; then BatchNorm, ReLU on
all but the last layer, and dropout. The graph embedding is the mean over the nodes in the last layer, or a
`BalancedReadout` of the atoms and bonds and of all layers, if `wide` with the hidden units of all layers.

The published encoder sees an atom's element and chirality, but not its charge and hydrogens: acetic acid and
acetate are the same to it. With `charges` these are embedded too.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import ClassVar, Literal, cast

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch, is_exporting
from graphsc.data.features import FeatureScheme
from graphsc.data.molecules.featurize import ATOM_COLUMNS, PUBLISHED_ATOM_COLUMNS
from graphsc.encoders.base import ENCODERS, check_batch, check_features, check_size
from graphsc.encoders.batch_norm import WeightedBatchNorm
from graphsc.encoders.deduplication import LayerRows, deduplicate_layers, expand_rows, with_self_loops
from graphsc.encoders.ops import Adjacency, aggregate, csr_matmul, dropout, embedding_sum, padded_linear
from graphsc.encoders.readout import BalancedReadout, Readout, pool

# Sizes of the embedding tables. Atoms: 118 elements, one spare, one for a hidden atom. The published code has
# three chirality tags and fails on RDKit's fourth, which has a row of its own here.
ATOMS, CHIRALITIES, CHARGES, HYDROGENS = 120, 4, 6, 5
PUBLISHED_COLUMNS = tuple(column.name for column in PUBLISHED_ATOM_COLUMNS)
COLUMNS = tuple(column.name for column in ATOM_COLUMNS)
ROWS = (ATOMS, CHIRALITIES, CHARGES, HYDROGENS)
# Single, double, triple, aromatic, self-loop, hidden; and none, up, down.
BONDS, DIRECTIONS = 6, 3
SELF_LOOP = (4, BONDS)  # columns of a self-loop's type and of direction 0 in the joint table
HIDDEN_BOND = 5
_CHUNK = 2048  # rows at once in inference, so that they stay in the cache
Layers = Literal["last", "concat", "max", "sum", "balanced", "wide"]


class AtomEmbedding(nn.Module):
    """The sum of the embeddings of an atom's columns: two of them, or four with `charges`."""

    def __init__(self, features: FeatureScheme, width: int, *, charges: bool = False) -> None:
        super().__init__()
        _check_atoms(features, charges)
        self.features = features
        self.atom = embedding(ATOMS, width)
        self.chirality = embedding(CHIRALITIES, width)
        self.charge = embedding(CHARGES, width) if charges else None
        self.hydrogens = embedding(HYDROGENS, width) if charges else None

    @property
    def tables(self) -> list[Tensor]:
        """One per column that is seen, rows x width."""
        columns = (self.atom, self.chirality, self.charge, self.hydrogens)
        return [table.weight for table in columns if table is not None]

    def see(self, batch: GraphBatch) -> GraphBatch:
        """The batch with the columns that are seen, which come first."""
        seen = len(self.tables)
        if batch.codes.shape[1] == seen:
            return batch
        columns = batch.features.columns[:seen]
        replacement = batch.replacement
        if replacement is not None:  # dense rows are as wide as the one-hot codes they replace
            replacement = replacement[:, : sum(column.cardinality for column in columns)]
        return replace(
            batch, codes=batch.codes[:, :seen], replacement=replacement,
            features=replace(batch.features, columns=columns),
        )  # fmt: skip

    def forward(self, batch: GraphBatch, nodes: Tensor | None = None, rows: Tensor | None = None) -> Tensor:
        """N x width; or R x width for the given nodes (R), with `rows` (N) the row of each node."""
        batch, tables = self.see(batch), self.tables
        codes = batch.codes if nodes is None else batch.codes.index_select(0, nodes)
        starts = [0, *accumulate(len(table) for table in tables)][:-1]
        embedded = embedding_sum(codes + codes.new_tensor(starts), torch.cat(tables))
        if batch.replaced is None or batch.replacement is None:
            return embedded
        used = zip(tables, batch.features.cardinalities, strict=True)
        dense = torch.cat([table[:categories] for table, categories in used])
        places = batch.replaced if rows is None else rows[batch.replaced]
        return embedded.index_copy(0, places, batch.replacement.to(dense.dtype) @ dense)


def bond_counts(batch: GraphBatch) -> Tensor:
    """N x 9: the number of bonds of each type, then of each direction, at a node, self-loop included.

    With edge weights, their sums instead, differentiable in the weights.
    """
    width = BONDS + DIRECTIONS
    weight = (
        torch.ones(batch.num_edges, device=batch.device) if batch.edge_weight is None else batch.edge_weight
    )
    counts = weight.new_zeros(batch.num_nodes, width)
    counts[:, SELF_LOOP] = 1
    if not batch.num_edges:
        return counts
    codes = _check_bonds(batch.edge_codes)
    place = (codes + codes.new_tensor([0, BONDS])).add_(batch.destination[:, None], alpha=width)
    flat = counts.view(-1).index_add(0, place.T.reshape(-1), weight.repeat(2))
    return flat.view(-1, width)


def _check_bonds(codes: Tensor | None) -> Tensor:
    if codes is None or codes.shape[1] != 2:
        columns = "none" if codes is None else f"{codes.shape[1]}"
        raise ConfigError(
            f"molecule-gin needs two categorical edge columns, bond and direction; these have {columns}",
            hint="open molecules from SMILES, or use the encoder gin",
        )
    if is_exporting():
        return codes
    bond, direction = codes.amax(0).tolist()
    if bond >= BONDS or direction >= DIRECTIONS:
        raise ConfigError(
            f"molecule-gin has {BONDS} bond types and {DIRECTIONS} directions, numbered from 0; "
            f"these edges go up to type {bond} and direction {direction}"
        )
    return codes


def _check_atoms(features: FeatureScheme, charges: bool) -> None:
    names = tuple(column.name for column in features.columns)
    if names not in (PUBLISHED_COLUMNS, COLUMNS) or features.float_names:
        present = ", ".join((*names, *features.float_names)) or "nothing"
        raise ConfigError(
            f"molecule-gin needs the node columns {' and '.join(PUBLISHED_COLUMNS)}, not {present}",
            hint="open molecules from SMILES with features 'labels', or use the encoder gin",
        )
    if charges and names != COLUMNS:
        raise ConfigError(
            "these molecules have neither charges nor hydrogens, which molecule-gin needs with charges",
            hint="convert them again from SMILES, or set charges to false",
        )
    for name, rows, categories in zip(names, ROWS, features.cardinalities, strict=False):
        if categories > rows:
            raise ConfigError(f"molecule-gin has {rows} codes of the column {name}, not {categories}")


def embedding(rows: int, width: int) -> nn.Embedding:
    """A table of `rows` vectors, Xavier-uniform."""
    table = nn.Embedding(rows, width)
    nn.init.xavier_uniform_(table.weight)
    return table


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

    def forward(self, x: Tensor, rows: LayerRows) -> Tensor:
        """R x width."""
        return self.output(self.hidden(x, rows), rows)

    def hidden(self, x: Tensor, rows: LayerRows) -> Tensor:
        """R x 2 width between the linear layers. Bond counts times embeddings avoid a vector per edge."""
        total = aggregate(rows.adjacency, x, rows.weight)
        bonds = torch.cat([self.bond.weight, self.direction.weight]).to(total.dtype)
        total = total.addmm_(rows.edges.to(total.dtype), bonds)
        return padded_linear(total, self.first.weight, self.first.bias).relu_()

    def output(self, hidden: Tensor, rows: LayerRows) -> Tensor:
        """R x width from the hidden units, R x 2 width."""
        mapped = padded_linear(hidden, self.second.weight, self.second.bias)
        normed: Tensor = self.norm(mapped, rows.counts, rows.parts)
        return normed.relu_() if self.activate else normed

    def infer(self, x: Tensor, adjacency: Adjacency, bonds: Tensor) -> Tensor:
        """`forward` in evaluation mode: R x width, from the previous layer's rows.

        Args:
            x: Rows of the previous layer x width.
            adjacency: R x rows of the previous layer.
            bonds: R x 10, the counts of bonds, then a column of ones for the bias.
        """
        width = x.shape[1]
        # Rows that start at multiples of 64 bytes, as in `padded_linear`.
        result = x.new_empty(adjacency.rows, -(-width // 16) * 16)[:, :width]
        weight, bias = self.second_with_norm()
        mapped = self.map_first(x)
        for start in range(0, adjacency.rows, _CHUNK):
            rows = slice(start, min(start + _CHUNK, adjacency.rows))
            hidden = hidden_rows(mapped, adjacency, bonds, rows)
            torch.addmm(bias, hidden, weight.mT, out=result[rows])
        return result.relu_() if self.activate else result

    def map_first(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """The first linear layer of nodes, without bias (R x 2 width); and of bonds and bias (10 x 2 width).

        It is linear, so it can be applied before the sum over neighbours, to the fewer rows of the previous
        layer.
        """
        bonds = torch.cat([self.bond.weight, self.direction.weight]) @ self.first.weight.mT
        return x @ self.first.weight.mT, torch.cat([bonds, self.first.bias[None]])

    def second_with_norm(self) -> tuple[Tensor, Tensor]:
        """Weight and bias of the second linear layer and BatchNorm together, in evaluation mode."""
        norm = self.norm
        assert norm.running_mean is not None  # noqa: S101 - tracked by default
        assert norm.running_var is not None  # noqa: S101
        scale = norm.weight * (norm.running_var + norm.eps).rsqrt()
        bias = (self.second.bias - norm.running_mean) * scale + norm.bias
        return self.second.weight * scale[:, None], bias


def hidden_rows(mapped: tuple[Tensor, Tensor], adjacency: Adjacency, bonds: Tensor, rows: slice) -> Tensor:
    """Some rows of a layer between its linear layers, from the result of `map_first`: rows x 2 width."""
    nodes, table = mapped
    rowptr = adjacency.rowptr[rows.start : rows.stop + 1]
    first, last = rowptr[[0, -1]].tolist()
    part = Adjacency(rowptr - first, adjacency.source[first:last], adjacency.columns)
    return csr_matmul(part, nodes, None).addmm_(bonds[rows], table).relu_()


@ENCODERS.register("molecule-gin")
class MoleculeGin(nn.Module):
    """GIN on atoms and bonds: `forward(batch)` gives one row per molecule, `nodes(batch)` one per atom.

    Needs the node columns atom and chirality, with `charges` also charge and hydrogens, and the edge columns
    bond and direction. Atoms with equal surroundings are computed once, unless edge weights or dropout make
    them different. The more molecules there are in a batch, the more atoms have equal surroundings.
    """

    inputs: ClassVar[frozenset[str]] = frozenset({"edge_attr", "edge_weight"})
    inference_entries: ClassVar[int] = 2**19  # nodes and edges per batch: about 8,000 molecules, 400 MB

    def __init__(
        self,
        features: FeatureScheme,
        *,
        depth: int = 5,
        width: int = 300,
        dropout: float = 0.0,  # 0.5 when fine-tuning
        layers: Layers = "last",  # the others combine all layers and the input; see `BalancedReadout`
        readout: Readout = "mean",  # has no effect on balanced layers, which have sums and means
        charges: bool = False,  # the published encoder does not see them
    ) -> None:
        super().__init__()
        check_size(depth, width)
        if not 0 <= dropout < 1:
            raise ConfigError(f"dropout must be at least 0 and below 1, not {dropout}")
        self.features = features
        self._constructor = partial(
            type(self), features, depth=depth, width=width, dropout=dropout, layers=layers, readout=readout,
            charges=charges,
        )  # fmt: skip
        self.depth = depth
        self.width = width
        self.dropout = dropout
        self.layers: Layers = layers
        self.readout: Readout = readout
        self.charges = charges
        self.atoms = AtomEmbedding(features, width, charges=charges)
        self.blocks = nn.ModuleList(MoleculeLayer(width, layer < depth - 1) for layer in range(depth))
        self.dimensions = width * (depth + 1) if layers == "concat" else width
        self.balanced: BalancedReadout | None = None
        if layers in ("balanced", "wide"):
            hidden = [2 * width] * depth if layers == "wide" else []
            seen = sum(features.cardinalities[: len(self.atoms.tables)])
            self.balanced = BalancedReadout([seen + BONDS + DIRECTIONS, *[width] * depth], hidden)
            self.dimensions = self.balanced.dimensions

    def reinitialised(self, *, depth: int | None = None) -> MoleculeGin:
        """A new encoder of the same architecture (or another depth) with new random weights."""
        return self._constructor() if depth is None else self._constructor(depth=depth)

    def node_layers(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> list[Tensor]:
        """The node embeddings before the first layer and after each layer, N x width each.

        Where layers are `wide`, those after a layer are followed by its hidden units: N x 3 width.
        """
        return [expand_rows(rows, of_node) for rows, of_node in self._layers(batch, parts)]

    def nodes(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> Tensor:
        """N x dimensions: the layers combined; `parts` are node counts that BatchNorm normalises together.

        N x width where layers are balanced, which is done for graphs only: the last layer.
        """
        if self.layers not in ("last", "balanced", "wide"):
            return self.join_layers(self.node_layers(batch, parts))
        *_, (rows, of_node) = self._layers(batch, parts)
        return expand_rows(rows[:, : self.width], of_node)

    def encode_batches(self, batches: Sequence[GraphBatch]) -> list[Tensor]:
        """`[self(batch) for batch in batches]`: for an encoder of this size joining them gains nothing."""
        return [self(batch) for batch in batches]

    def forward(
        self, batch: GraphBatch, parts: Sequence[int] | None = None, importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions; `importance` (N) weights the nodes in the readout only."""
        check_batch(batch)
        if torch.is_inference_mode_enabled() and importance is None and self._can_infer(batch):
            return self._infer(batch)
        if self.balanced is not None:
            return self.pool_layers(batch, self.node_layers(batch, parts), importance)
        return self._pool(batch, self.nodes(batch, parts), importance)

    def pool_layers(
        self, batch: GraphBatch, outputs: list[Tensor], importance: Tensor | None = None
    ) -> Tensor:
        """G x dimensions from the result of `node_layers`."""
        if self.balanced is not None:
            with torch.no_grad():  # there are no parameters before it
                counts = torch.cat([self.atoms.see(batch).dense_x(), bond_counts(batch)], dim=1)
            blocks = [counts, *outputs[1:]]  # the embedded input is linear in the counts
            if importance is not None:
                blocks = [nodes * importance[:, None] for nodes in blocks]
            layers, hidden = blocks, []
            if self.layers == "wide":
                layers = [blocks[0], *(nodes[:, : self.width] for nodes in blocks[1:])]
                hidden = [nodes[:, self.width :] for nodes in blocks[1:]]
            return cast(Tensor, self.balanced(batch, layers, hidden))
        return self._pool(batch, self.join_layers(outputs), importance)

    def join_layers(self, outputs: list[Tensor]) -> Tensor:
        """Rows x dimensions from rows x width per layer."""
        if self.layers in ("last", "balanced", "wide"):
            return outputs[-1][:, : self.width]
        if self.layers == "concat":
            return torch.cat(outputs, dim=1)
        stacked = torch.stack(outputs)
        return stacked.sum(0) if self.layers == "sum" else stacked.amax(0)

    def _pool(self, batch: GraphBatch, nodes: Tensor, importance: Tensor | None) -> Tensor:
        return pool(batch, nodes if importance is None else nodes * importance[:, None], self.readout)

    def _layers(
        self, batch: GraphBatch, parts: Sequence[int] | None
    ) -> Iterator[tuple[Tensor, Tensor | None]]:
        """The distinct rows of the input and of each layer, and the row of each node."""
        check_features(self.features, batch)
        batch = self.atoms.see(batch)
        dropping = self.training and self.dropout > 0
        shared = 0 if is_exporting() else len(self.blocks)  # their number depends on values
        # Dropout makes equal nodes different after the first layer.
        start, layers = deduplicate_layers(
            batch,
            bond_counts(batch),
            len(self.blocks),
            [batch.num_nodes] if parts is None else parts,
            shared_layers=1 if dropping and shared else shared,
        )
        x: Tensor = self.atoms(batch) if start is None else self.atoms(batch, start.first, start.of_node)
        yield x, None if start is None else start.of_node
        for block, rows in zip(self.blocks, layers, strict=True):
            assert isinstance(block, MoleculeLayer)  # noqa: S101 - as built
            hidden, of_node = block.hidden(x, rows), rows.of_node
            x = block.output(hidden, rows)
            if dropping:
                hidden = expand_rows(hidden, of_node)
                x, of_node = dropout(expand_rows(x, of_node), self.dropout), None
            yield torch.cat([x, hidden], dim=1) if self.layers == "wide" else x, of_node

    def _can_infer(self, batch: GraphBatch) -> bool:
        """Whether `_infer` applies: its last layer must be linear in what is pooled."""
        return (
            not self.training
            and self.layers == "last"
            and self.readout != "max"
            and batch.edge_weight is None
            and self.atoms.atom.weight.dtype == torch.float32
            and not torch.is_autocast_enabled(batch.device.type)
        )

    def _infer(self, batch: GraphBatch) -> Tensor:
        """`forward` in evaluation mode, with half of the arithmetic.

        Linear layers are applied where there are fewer rows: the first one of a layer before the sum over
        neighbours, the second one of the last layer after the readout. BatchNorm is part of the second one.
        """
        check_features(self.features, batch)
        batch = self.atoms.see(batch)
        counts = torch.nn.functional.pad(
            bond_counts(batch), (0, 1), value=1.0
        )  # the last column is the bias's
        *blocks, last = (block for block in self.blocks if isinstance(block, MoleculeLayer))
        start, layers = deduplicate_layers(
            batch, counts, len(blocks), [batch.num_nodes], shared_layers=max(len(blocks), 1)
        )
        assert start is not None  # noqa: S101 - there are no edge weights
        x, of_node = self.atoms(batch, start.first, start.of_node), start.of_node
        for block, rows in zip(blocks, layers, strict=True):
            assert rows.of_node is not None  # noqa: S101 - all layers are shared
            x, of_node = block.infer(x, rows.adjacency, rows.edges), rows.of_node
        pooled = self._pool_last(batch, last.map_first(x), of_node, counts)
        # The bias counts once per node, so not at all for a graph without nodes.
        nodes = batch.ptr.diff().to(pooled.dtype)
        weight, bias = last.second_with_norm()
        share = nodes.clamp(max=1) if self.readout == "mean" else nodes
        return torch.addmm(share[:, None] * bias, pooled, weight.mT)

    def _pool_last(
        self, batch: GraphBatch, mapped: tuple[Tensor, Tensor], of_node: Tensor, bonds: Tensor
    ) -> Tensor:
        """G x 2 width: the last layer between its linear layers, pooled a chunk of graphs at a time."""
        loops = with_self_loops(batch)
        adjacency = Adjacency(loops.rowptr, of_node.int().index_select(0, loops.source), len(mapped[0]))
        pooled = mapped[0].new_empty(batch.num_graphs, 2 * self.width)
        ptr = batch.ptr.tolist()
        begin = 0
        while begin < batch.num_graphs:
            end = max(begin + 1, bisect_right(ptr, ptr[begin] + _CHUNK) - 1)
            hidden = hidden_rows(mapped, adjacency, bonds, slice(ptr[begin], ptr[end]))
            graphs = replace(batch, ptr=batch.ptr[begin : end + 1] - ptr[begin])
            pooled[begin:end] = pool(graphs, hidden, self.readout)
            begin = end
        return pooled
