"""AttrMasking: predict masked atoms from their surroundings (Hu et al., ICLR 2020).

int(rate n + 1) nodes of each graph are masked in every step; M is their number in the batch:

    L = 1/M sum over masked i of -log softmax(W h_i)[category of i]

With `mask_bonds` the bonds of masked atoms are masked too, and predicted from h_u + h_v.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import check_node_level, node_width, nodes_and_graphs
from graphsc.encoders.gin import linear
from graphsc.encoders.molecule_gin import HIDDEN_BOND, MoleculeGin
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.pretraining import HU_MOLECULES, HU_TRAINING, check_mask_rate, mask_nodes, masked_nodes
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import flatnonzero
from graphsc.views.subgraph import node_mask

BOND_TYPES = 4  # single, double, triple, aromatic


class AttrMasking(TrainedMethod):
    """Predicts the first categorical column of masked nodes from their vectors."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        rate: float = 0.15,  # int(rate n + 1) nodes of each graph are masked
        mask_bonds: bool = False,  # mask and predict the bonds of masked atoms too
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        check_mask_rate(rate)
        if mask_bonds and not isinstance(encoder, MoleculeGin):
            raise ConfigError(
                f"mask_bonds needs an encoder that uses bonds, and {type(encoder).__name__} does not",
                hint="open molecules from SMILES and use the encoder molecule-gin, or leave it out",
            )
        self.rate = rate
        self.mask_bonds = mask_bonds
        width = node_width(encoder)
        self.kinds = linear(width, _categories(getattr(encoder, "features", None)))
        self.bonds = linear(width, BOND_TYPES) if mask_bonds else None

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and the same with nodes masked."""
        masked = mask_nodes(batch, self.rate, generator)
        return {"anchor": batch, "masked": _mask_bonds(masked) if self.mask_bonds else masked}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Targets, and the vectors to predict them from; only the masked graphs are encoded.

        Returns:
            "anchor" (B x D), the masked graphs; "hidden" (M x d), the masked nodes after the last layer;
            "kind" (M), their categories. With bonds, "ends" (P x d), the sums of the two ends' vectors, and
            "bond" (P), the bond types.
        """
        clean, masked = views["anchor"], views["masked"]
        nodes, graphs = nodes_and_graphs(self.encoder, masked, "last")
        where = masked_nodes(masked)
        encoded = {"anchor": graphs, "hidden": nodes.index_select(0, where), "kind": clean.codes[where, 0]}
        if self.mask_bonds and clean.edge_codes is not None and masked.edge_codes is not None:
            once = clean.source < clean.destination  # a bond is stored in both directions
            edges = flatnonzero(once & (masked.edge_codes[:, 0] == HIDDEN_BOND))
            source, destination = (
                nodes.index_select(0, end[edges]) for end in (clean.source, clean.destination)
            )
            encoded |= {"ends": source + destination, "bond": clean.edge_codes[edges, 0]}
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Cross-entropy of the masked nodes' categories, and of the masked bonds' types."""
        losses = {"atoms": _cross_entropy(self.kinds(encoded["hidden"]), encoded["kind"])}
        if self.bonds is not None:
            losses["bonds"] = _cross_entropy(self.bonds(encoded["ends"]), encoded["bond"])
        return losses

    def pretext(self, encoded: Encoded) -> Pretext:
        """Accuracy on masked nodes; chance is to predict the most common category always."""
        targets = encoded["kind"].long()
        predicted = self.kinds(encoded["hidden"]).argmax(1)
        total = max(len(targets), 1)
        most_common = int(torch.bincount(targets).max()) if len(targets) else 0
        return Pretext(
            "accuracy on hidden nodes", int((predicted == targets).sum()) / total, most_common / total
        )


def _categories(features: object) -> int:
    """The number of categories of a node, without the mask token."""
    if not isinstance(features, FeatureScheme) or not features.columns or features.cardinalities[0] < 2:
        raise ConfigError(
            "attrmasking predicts a categorical column of the nodes, and these graphs have none that varies",
            hint="open the graphs with features 'labels' or 'degree'",
        )
    count = features.cardinalities[0]
    return count - 1 if features.hidden == count - 1 else count


def _mask_bonds(masked: GraphBatch) -> GraphBatch:
    """Mask every bond of a masked atom too, without direction."""
    if masked.edge_codes is None:
        return masked  # the encoder reports what is missing
    atoms = node_mask(masked, masked_nodes(masked))
    touched = atoms[masked.source] | atoms[masked.destination]
    token = masked.edge_codes.new_tensor([HIDDEN_BOND, 0])
    return replace(masked, edge_codes=torch.where(touched[:, None], token, masked.edge_codes))


def _cross_entropy(logits: Tensor, targets: Tensor) -> Tensor:
    """Mean cross-entropy; 0 where there is nothing to predict."""
    return cross_entropy(logits, targets.long(), reduction="sum") / max(len(logits), 1)


METHODS.register("attrmasking")(
    MethodEntry(
        AttrMasking,
        "Strategies for Pre-training Graph Neural Networks",
        2020,
        "transfer: predict masked atoms from their surroundings",
        contrast="masked nodes with their categories",
        augmentation="masked nodes",
        passes=1,
        settings={"training.learning_rate": 0.001},
        presets={"published": HU_TRAINING, "molecules": HU_MOLECULES},
    )
)
