"""What a molecule encoder takes in: embedded atoms, and how often each kind of bond ends at them."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.input import look_up

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
