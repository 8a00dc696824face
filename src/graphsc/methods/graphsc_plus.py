"""GraphSC-plus: this project's own extension of GraphSC, under its own name.

It makes two changes, each chosen on development seeds by inner folds alone (`results/search`). First,
distances are ordered: the weak view is nearer than the strong view, and the strong view is nearer than any
other graph. GraphSC contrasts a graph with itself only; here the strong view is one more negative among the
graphs of the batch, and the hardest. Second, embeddings weight all layers equally (`MultiScaleReadout`).

    L = GraphSC's terms + lambda_contrast * L_o + lambda_environments * L_e + lambda_descriptors * L_d
    L_o = -1/B sum_i log(exp(s_ii) / (sum_j exp(s_ij) + exp(t_i)))
    s_ij = cos(z_i, z+_j) / tau,  t_i = cos(z_i, z-_i) / tau,  z = g4(h)

On molecules (preset `molecules`) there are two more. The readout is part of the encoder, which has its layers
`balanced`, so that fine-tuning has it too; as its vectors are long, the heads see them through one linear
layer. And a linear layer, dropped after training, reads off h which environments of atoms a molecule has, as
a Morgan fingerprint lists them (`environment_counts`): L_e is the binary cross-entropy of its bits. Another
one reads off RDKit's descriptors, standardised, where the batch has them (preset `descriptors`): L_d is the
mean squared error.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, mse_loss

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.batch import GraphBatch, first_graphs
from graphsc.data.environments import environment_counts
from graphsc.data.molecules.descriptors import DESCRIPTORS
from graphsc.encoders import MoleculeGin, MultiScaleReadout
from graphsc.encoders.batch_norm import BatchNorm
from graphsc.losses import ordered_contrast, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, Views
from graphsc.methods.baselines import MULTI_SCALE_ENCODER, MultiScale
from graphsc.methods.contrastive import projection, resolve_operations
from graphsc.methods.graphsc import GraphSC
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry

LARGEST = 5.0  # standard deviations of a descriptor
RARE = -3.5  # log-odds of a bit: a molecule has some 60 of 2,048

# Chosen on validation parts of MoleculeNet sets; docs/methods/graphsc-plus.md has what each part adds.
MOLECULES = {
    **ON_MOLECULES,
    "encoder.depth": 5,
    "encoder.width": 128,
    "encoder.layers": "balanced",
    "encoder.charges": True,
    "operations": ["drop-nodes", "subgraph"],
    "contrast_share": 0.25,
    "neck": 256,
    "lambda_environments": 10.0,
    "training.epochs": 20,
}
# For sources of SMILES with weights, whose molecules have descriptors.
DESCRIBED = {**MOLECULES, "lambda_descriptors": 10.0}


class GraphSCPlus(MultiScale, GraphSC):
    """GraphSC with a contrast against other graphs and a multi-scale readout."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        weak_rate: float = 0.1,
        strong_rate: float = 0.25,
        operations: tuple[str, ...] = ("auto",),
        coupling: Literal["same", "independent", "nested"] = "same",
        margin: float = 0.2,
        factors: int = 4,
        lambda_masked: float = 0.0,  # the masked contrast takes a quarter of the time and did not help
        lambda_factor: float = 0.0,
        lambda_absolute: float = 0.01,
        lambda_contrast: float = 1.0,
        temperature: float = 0.2,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
        lambda_self: float = 1.0,
        contrast_share: float = 1.0,  # of the graphs of a batch have views; each costs two more passes
        neck: int | None = None,  # a linear layer to this width before the heads
        lambda_environments: float = 0.0,
        environment_bits: int = 2048,
        environment_radius: int = 2,
        environment_target: Literal["presence", "counts"] = "presence",
        lambda_descriptors: float = 0.0,
    ) -> None:
        self._neck_width = neck
        super().__init__(
            encoder, weak_rate=weak_rate, strong_rate=strong_rate, operations=operations, coupling=coupling,
            margin=margin, factors=factors, lambda_masked=lambda_masked, lambda_factor=lambda_factor,
            lambda_absolute=lambda_absolute, batch_norm_embedding=batch_norm_embedding,
        )  # fmt: skip
        weights = (lambda_self, lambda_contrast, lambda_environments, lambda_descriptors)
        if min(weights) < 0 or temperature <= 0:
            raise ConfigError("a lambda must not be negative, and temperature must be positive")
        if environment_bits < 1 or environment_radius < 0:
            raise ConfigError("environments need at least one bit and a radius that is not negative")
        if not 0 < contrast_share <= 1:
            raise ConfigError(f"contrast_share must be above 0 and at most 1, not {contrast_share}")
        self.lambda_self = lambda_self
        self.contrast_share = contrast_share
        self.lambda_contrast = lambda_contrast
        self.temperature = temperature
        self.lambda_environments = lambda_environments
        self.environment_bits = environment_bits
        self.environment_radius = environment_radius
        self.environment_target = environment_target
        # Columns of a vector differ in variance; standardised ones are learned from at equal rates.
        needed = neck is not None or lambda_environments or lambda_descriptors
        self.standardised = BatchNorm(self.graph_width) if needed else None
        self.neck = None if neck is None else nn.Linear(self.graph_width, neck)
        self.fourth_head = projection(self.head_width) if lambda_contrast else None
        self.environments = nn.Linear(self.graph_width, environment_bits) if lambda_environments else None
        if self.environments is not None and environment_target == "presence":
            nn.init.constant_(self.environments.bias, RARE)
        self.lambda_descriptors = lambda_descriptors
        self.descriptors = nn.Linear(self.graph_width, len(DESCRIPTORS)) if lambda_descriptors else None
        self.target_scale = TargetScale(len(DESCRIPTORS)) if lambda_descriptors else None
        # An encoder with balanced layers has its readout itself.
        balanced = isinstance(encoder, MoleculeGin) and encoder.balanced is not None
        self.readout = None if balanced else MultiScaleReadout(encoder)

    @property
    def head_width(self) -> int:
        """The length of the vectors that the heads see."""
        return self.graph_width if self._neck_width is None else self._neck_width

    @property
    def contrasts(self) -> bool:
        """Whether any term compares views; the environments need the clean graphs only."""
        terms = (self.lambda_self, self.lambda_masked, self.lambda_factor, self.lambda_absolute)
        return any(terms) or bool(self.lambda_contrast)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Anchor, positive and negative (Eq. 7); the anchor alone if no term compares views.

        With a `contrast_share`, only the first graphs have views. Batches are in random order.
        """
        if not self.contrasts:
            return {"anchor": batch}
        if self.contrast_share == 1:
            return super().views(batch, generator)
        count = max(1, round(self.contrast_share * batch.num_graphs))
        return {**super().views(first_graphs(batch, count), generator), "anchor": batch}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """What the heads see of the views; the graphs' own vectors and environments, where they are used.

        The anchors are those of the graphs with views; "vectors" has all graphs.
        """
        encoded = super().encode(views, player)
        if self.standardised is not None:
            encoded = {name: self.standardised(rows) for name, rows in encoded.items()}
        others: Encoded = {}
        if self.environments is not None or self.descriptors is not None:
            others["vectors"] = encoded["anchor"]
        if self.environments is not None:
            counts = environment_counts(views["anchor"], self.environment_radius, self.environment_bits)
            others["environments"] = counts
        if self.target_scale is not None:
            others["descriptors"] = self.target_scale(_descriptors_of(views["anchor"]))
        if self.contrasts:
            encoded["anchor"] = encoded["anchor"][: len(encoded["positive"])]
        if self.neck is not None:
            joined = torch.split(self.neck(torch.cat(list(encoded.values()))), len(encoded["anchor"]))
            encoded = dict(zip(encoded, joined, strict=True))
        return encoded | others

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """GraphSC's terms, the contrast and the environments, each with its weight."""
        losses: Losses = {}
        if self.contrasts:
            losses = super().objective(encoded, player)
            losses["self"] = self.lambda_self * losses["self"]
        if self.fourth_head is not None:
            views = torch.cat([encoded[name] for name in ("anchor", "positive", "negative")])
            projected: tuple[Tensor, ...] = self.fourth_head(views).chunk(3)
            contrast = ordered_contrast(*projected, temperature=self.temperature)
            losses["contrast"] = self.lambda_contrast * contrast
        if self.environments is not None:
            read = self.environments(encoded["vectors"])
            losses["environments"] = self.lambda_environments * self._read_error(
                read, encoded["environments"]
            )
        if self.descriptors is not None:
            error = self.descriptors(encoded["vectors"]) - encoded["descriptors"]
            losses["descriptors"] = self.lambda_descriptors * error.nan_to_num().square().mean()
        return losses

    def _read_error(self, read: Tensor, counts: Tensor) -> Tensor:
        """The error per graph of what was read off, in nats or in squared log counts, per hundred bits."""
        if self.environment_target == "presence":
            error = binary_cross_entropy_with_logits(read, (counts > 0).float(), reduction="sum")
        else:
            error = mse_loss(read, counts.log1p(), reduction="sum")
        return error / (100 * len(counts))

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """GraphSC's, where there are views."""
        return super().extra_metrics(encoded) if self.contrasts else {}

    def pretext(self, encoded: Encoded) -> Pretext | None:
        """GraphSC's, where there are views; else how well the environments are read off unseen graphs."""
        if self.contrasts or self.environments is None:
            return super().pretext(encoded) if self.contrasts else None
        read, present = self.environments(encoded["vectors"]), encoded["environments"] > 0
        return Pretext("environments read off, ROC-AUC", roc_auc(read[present], read[~present]), 0.5)


class TargetScale(nn.Module):
    """Standardises columns by the mean and variance of all rows seen in training; missing values stay NaN.

    A collection need not be read through before training. Values beyond `LARGEST` deviations are cut off.
    """

    count: Tensor
    mean: Tensor
    squares: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        for name in ("count", "mean", "squares"):  # rows, their mean, and the sum of squared deviations
            self.register_buffer(name, torch.zeros(width, dtype=torch.float64))

    @torch.no_grad()
    def forward(self, rows: Tensor) -> Tensor:
        """Rows x width; evaluation mode before any training uses the statistics of the rows."""
        values = rows.double()
        known = ~values.isnan()
        count, mean, squares = self.count, self.mean, self.squares
        if self.training or not count.any():
            own = known.sum(0).double()
            centre = values.nan_to_num().sum(0) / own.clamp(min=1)
            gap, total = centre - mean, count + own
            spread = ((values - centre).nan_to_num() ** 2).sum(0)
            share = own / total.clamp(min=1)
            squares = squares + spread + gap**2 * count * share
            mean, count = mean + gap * share, total
            if self.training:
                self.count, self.mean, self.squares = count, mean, squares
        deviation = (squares / count.clamp(min=1)).sqrt()
        # A column that never varies says nothing: it is zero throughout.
        constant = deviation <= 1e-6 * mean.abs().clamp(min=1)
        scaled = (values - mean) / deviation.masked_fill(constant, torch.inf)
        return scaled.clamp(-LARGEST, LARGEST).float()


def _descriptors_of(batch: GraphBatch) -> Tensor:
    if batch.descriptors is None or batch.descriptors.shape[1] != len(DESCRIPTORS):
        raise DataError(
            "lambda_descriptors needs the descriptors of the molecules, and these graphs have none",
            hint="pre-train on sources of SMILES with weights, such as zinc250k:1, or set it to 0",
        )
    return batch.descriptors


METHODS.register("graphsc-plus")(
    MethodEntry(
        GraphSCPlus, "-", 2026, "GraphSC with other graphs as further negatives and a multi-scale readout",
        contrast="a graph with its weak and its strong view",
        negatives="its own strong view, and other graphs of the batch",
        augmentation="random perturbations, weak and strong", passes=3,
        settings={**MULTI_SCALE_ENCODER, "training.learning_rate": 1e-3},
        presets={"molecules": MOLECULES, "descriptors": DESCRIBED}, resolve=resolve_operations,
    )
)  # fmt: skip
