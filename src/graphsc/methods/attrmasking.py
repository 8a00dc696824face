"""AttrMasking: hidden atoms are to be known from what surrounds them (Hu et al., ICLR 2020)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.features import FeatureScheme
from graphsc.encoders.base import check_node_level, node_width, nodes_and_graphs
from graphsc.encoders.gin import linear
from graphsc.encoders.molecule_gin import HIDDEN_BOND, MoleculeGin
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.infomax import PUBLISHED as TRAINING
from graphsc.methods.masking import check_hidden_rate, hidden_nodes, hide_nodes
from graphsc.methods.registry import METHODS, MethodEntry
from graphsc.views.array_ops import flatnonzero
from graphsc.views.subgraph import node_mask

PUBLISHED: Mapping[str, object] = TRAINING
KINDS_OF_BONDS = 4  # single, double, triple, aromatic


class AttrMasking(TrainedMethod):
    """The first categorical column of hidden nodes predicted from their vectors."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        rate: float = 0.15,  # int(rate n + 1) nodes of each graph are hidden
        mask_bonds: bool = False,  # their bonds too, and predicted as well
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_node_level(encoder)
        check_hidden_rate(rate)
        if mask_bonds and not isinstance(encoder, MoleculeGin):
            raise ConfigError(
                f"mask_bonds needs an encoder that sees bonds, and {type(encoder).__name__} does not",
                hint="open molecules from SMILES and use the encoder molecule-gin, or leave it out",
            )
        self.encoder = encoder
        self.rate = rate
        self.mask_bonds = mask_bonds
        self.bn = bn
        width = node_width(encoder)
        self.kinds = linear(width, _kinds(getattr(encoder, "features", None)))
        self.bonds = linear(width, KINDS_OF_BONDS) if mask_bonds else None

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and the same with nodes hidden."""
        masked = hide_nodes(batch, self.rate, generator)
        return {"anchor": batch, "masked": _hide_bonds(masked) if self.mask_bonds else masked}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """What is to be predicted, and from what; the graphs are encoded once, with nodes hidden.

        "anchor" (B x D) are vectors of those graphs; "hidden" (M x d) the hidden nodes after the last layer,
        "kind" (M) what they are. With bonds, "ends" (P x d) are the sums of the two ends' vectors, and "bond"
        (P) what joins them.
        """
        clean, masked = views["anchor"], views["masked"]
        nodes, graphs = nodes_and_graphs(self.encoder, masked, "last")
        where = hidden_nodes(masked)
        encoded = {"anchor": graphs, "hidden": nodes.index_select(0, where), "kind": clean.codes[where, 0]}
        if self.mask_bonds and clean.edge_codes is not None and masked.edge_codes is not None:
            once = clean.source < clean.destination  # a bond is stored in both directions
            edges = flatnonzero(once & (masked.edge_codes[:, 0] == HIDDEN_BOND))
            one, other = (nodes.index_select(0, end[edges]) for end in (clean.source, clean.destination))
            encoded |= {"ends": one + other, "bond": clean.edge_codes[edges, 0]}
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Cross-entropy of the hidden nodes' kinds, and of the hidden bonds'."""
        losses = {"atoms": _surprise(self.kinds(encoded["hidden"]), encoded["kind"])}
        if self.bonds is not None:
            losses["bonds"] = _surprise(self.bonds(encoded["ends"]), encoded["bond"])
        return losses

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a hidden node is known, beside always saying the commonest kind."""
        kind = encoded["kind"].long()
        found = self.kinds(encoded["hidden"]).argmax(1)
        total = max(len(kind), 1)
        commonest = int(torch.bincount(kind).max()) if len(kind) else 0
        return Pretext("accuracy on hidden nodes", int((found == kind).sum()) / total, commonest / total)


def _kinds(features: object) -> int:
    """How many kinds a node can be of, the hidden one aside."""
    if not isinstance(features, FeatureScheme) or not features.columns or features.cardinalities[0] < 2:
        raise ConfigError(
            "attrmasking predicts a categorical column of the nodes, and these graphs have none that varies",
            hint="open the graphs with features 'labels' or 'degree'",
        )
    kinds = features.cardinalities[0]
    return kinds - 1 if features.hidden == kinds - 1 else kinds


def _hide_bonds(masked: GraphBatch) -> GraphBatch:
    """The same with every bond of a hidden atom hidden too, and without direction."""
    if masked.edge_codes is None:
        return masked  # the encoder says what is missing
    hidden = node_mask(masked, hidden_nodes(masked))
    touched = hidden[masked.source] | hidden[masked.destination]
    hidden_row = masked.edge_codes.new_tensor([HIDDEN_BOND, 0])
    return replace(masked, edge_codes=torch.where(touched[:, None], hidden_row, masked.edge_codes))


def _surprise(logits: Tensor, kind: Tensor) -> Tensor:
    """Mean cross-entropy; 0 where there is nothing to predict."""
    return cross_entropy(logits, kind.long(), reduction="sum") / max(len(logits), 1)


METHODS.register("attrmasking")(
    MethodEntry(
        AttrMasking,
        "Strategies for Pre-training Graph Neural Networks",
        2020,
        "transfer: hidden atoms known from their surroundings",
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
