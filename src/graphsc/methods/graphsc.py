"""GraphSC: graph self-contrast representation learning (Chen et al., 2023).

The graph is the anchor, a weakly perturbed view of it the positive and a strongly perturbed view of it the
negative; no other graph serves as a negative. Numbers are those of the paper:

    (7)       weak and strong view of each graph, r_a < r_b
    (8)       encoder: h, h+, h-
    (9)       first head: y = g1(h)
    (10, 11)  second head on y with one of n factors masked at a time: q_m = g2(y_m)
    (12)      third head: z = g3(h)
    (13)      L_se: triplet loss on y
    (14)      L_fa: HSIC between the factors of y
    (15-17)   L_ma: triplet loss on the masked q, weighted per factor
    (18, 19)  L_ab: Barlow Twins on z; (20) GraphSC-MSE: mean square on y
    (21)      L = L_se + lambda_1 L_ma + lambda_2 L_fa + lambda_3 L_ab

Where the paper leaves a choice open, it is a keyword. The default is the reading under which every term has
an effect; the preset `paper_literal` is the text as printed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch, join
from graphsc.losses import (
    active_triplet_fraction,
    barlow_twins,
    factor_dependence,
    masked_first_layer,
    masked_triplet,
    mean_squared_distance,
    normalise_embeddings,
    triplet,
    triplet_accuracy,
)
from graphsc.methods.base import (
    BatchNormEmbedding,
    Encoded,
    Losses,
    Pretext,
    TrainedMethod,
    Views,
    encode_each,
)
from graphsc.methods.contrastive import choice_of, make_operations, projection, resolve_operations
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views import weak_and_strong
from graphsc.views.composition import check_strengths

PAPER = "Graph Self-Contrast Representation Learning"

# The paper as printed, where the default departs from it.
PAPER_LITERAL: Mapping[str, object] = {
    "hsic_samples": "coordinates",
    "hsic_kernel": "rbf",
    "distance_space": "raw",
    "weight_temperature": 1.0,
    "weight_gradient": "kept",
    "bt_form": "paper",
    "batch_norm_embedding": "running",
}

# Pre-training for transfer, as the paper gives it; the batch size is not in the paper.
MOLECULES: Mapping[str, object] = {
    **ON_MOLECULES,
    "operations": ["drop-nodes", "subgraph"],
    "weak_rate": 0.1,
    "strong_rate": 0.25,
    "lambda_masked": 1.0,
    "lambda_factor": 0.01,
    "lambda_absolute": 0.01,
    "training.epochs": 80,
}


class GraphSC(TrainedMethod):
    """The method of the paper, its variants and its ablations."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        weak_rate: float = 0.1,  # r_a
        strong_rate: float = 0.25,  # r_b
        rates: Literal["perturb", "keep"] = "perturb",  # shares that are changed, or kept: weak above strong
        operations: tuple[str, ...] = ("auto",),  # one is drawn per graph; auto: see `resolve_operations`
        coupling: Literal["same", "independent", "nested"] = "same",
        negative: Literal["self", "other"] = "self",  # "other": the strong view of another graph
        margin: float = 0.2,  # epsilon in Eq. 13 and 15
        distance_space: Literal["unit", "raw", "bn"] = "unit",
        factors: int = 4,  # n; y has the encoder's dimensions rounded down to a multiple of it
        weight_temperature: float = 0.1,
        weight_gradient: Literal["detached", "kept"] = "detached",
        hsic_kernel: Literal["rbf-median", "rbf", "linear"] = "rbf-median",
        hsic_sigma: float = 1.0,
        hsic_samples: Literal["batch", "coordinates"] = "batch",
        hsic_reduction: Literal["sum", "mean"] = "sum",
        absolute: Literal["barlow", "mse"] = "barlow",
        bt_form: Literal["original", "paper"] = "original",
        beta: float = 0.013,
        lambda_masked: float = 1.0,  # lambda_1
        lambda_factor: float = 0.01,  # lambda_2
        lambda_absolute: float = 0.01,  # lambda_3
        # BatchNorm's statistics in training: of each view, or of all three views together.
        batch_norm_views: Literal["separate", "joint"] = "separate",
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        if rates == "keep":
            if weak_rate <= strong_rate:
                raise ConfigError(f"the weak view must keep more than the strong one's {strong_rate}")
            weak_rate, strong_rate = 1 - weak_rate, 1 - strong_rate
        check_strengths(weak_rate, strong_rate)
        width = self.head_width
        if not 2 <= factors <= width:
            raise ConfigError(
                f"factors must be at least 2 and at most the encoder's {width} dimensions, not {factors}"
            )
        if margin < 0 or min(lambda_masked, lambda_factor, lambda_absolute, beta) < 0:
            raise ConfigError("margin, beta and the three lambdas must not be negative")
        if weight_temperature <= 0 or hsic_sigma <= 0:
            raise ConfigError("weight_temperature and hsic_sigma must be positive")
        self.weak_rate, self.strong_rate = weak_rate, strong_rate
        self.view = choice_of(make_operations(operations, keep_rates=rates == "keep"))
        self.coupling = coupling
        self.negative = negative
        self.margin = margin
        self.distance_space = distance_space
        self.factors = factors
        self.weight_temperature = weight_temperature
        self.weight_gradient = weight_gradient
        self.dependence = partial(
            factor_dependence,
            factors=factors,
            kernel=hsic_kernel,
            sigma=hsic_sigma,
            samples=hsic_samples,
            reduction=hsic_reduction,
        )
        self.absolute = absolute
        self.bt_form = bt_form
        self.beta = beta
        self.lambda_masked = lambda_masked
        self.lambda_factor = lambda_factor
        self.lambda_absolute = lambda_absolute
        self.batch_norm_views = batch_norm_views
        shared = width - width % factors  # d: all factors have the same width
        self.first_head = projection(width, shared)
        # No head for a term without weight: it would only add noise to checkpoints.
        self.second_head = projection(shared) if lambda_masked else None
        self.third_head = projection(width) if lambda_absolute and absolute == "barlow" else None

    @property
    def head_width(self) -> int:
        """The length of the vectors that the heads see."""
        return self.graph_width

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """Anchor, positive and negative (Eq. 7)."""
        weak, strong = weak_and_strong(
            self.view, batch, self.weak_rate, self.strong_rate, generator, self.coupling
        )
        return {"anchor": batch, "positive": weak, "negative": strong}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors h of the three views (Eq. 8), each B x D."""
        if self.batch_norm_views == "joint":
            names = list(views)
            rows = self.encoder(join([views[name] for name in names]))
            encoded = dict(zip(names, rows.split([views[name].num_graphs for name in names]), strict=True))
        else:
            encoded = encode_each(self.encoder, views)
        if self.negative == "other":
            # Batches are drawn in random order, so the next graph is a random other one.
            encoded["negative"] = encoded["negative"].roll(1, 0)
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The terms of Eq. 21, each with its weight."""
        anchor, positive, negative = (encoded[name] for name in ("anchor", "positive", "negative"))
        rows = len(anchor)
        # One product for the three views. HSIC takes y before it is normalised.
        raw = self.first_head(torch.cat([anchor, positive, negative]))
        y, y_positive, y_negative = self._to_distance_space(raw, 3).chunk(3)
        losses = {"self": triplet(y, y_positive, y_negative, margin=self.margin)}
        if self.second_head is not None:
            losses["masked"] = self.lambda_masked * self._masked(y, y_positive, y_negative)
        if self.lambda_factor:
            views = raw[rows:].view(2, rows, -1)
            losses["factor"] = self.lambda_factor * self.dependence(views)
        if self.lambda_absolute:
            losses["absolute"] = self.lambda_absolute * self._absolute(anchor, positive, y, y_positive)
        return losses

    def _masked(self, y: Tensor, y_positive: Tensor, y_negative: Tensor) -> Tensor:
        """Eq. 10, 11 and 15: the second head on the anchor, and on both views with each factor masked."""
        assert self.second_head is not None  # noqa: S101 - the caller has checked it
        first, last = self.second_head[0], self.second_head[2]
        assert isinstance(first, nn.Linear)  # noqa: S101 - narrows the type
        q = self._to_distance_space(self.second_head(y))
        both = masked_first_layer(torch.cat([y_positive, y_negative]), first.weight, first.bias, self.factors)
        # n x 2 B x d is the layout in memory.
        both = self._to_distance_space(last(relu(both.transpose(0, 1))), 2)
        q_positive, q_negative = both.transpose(0, 1).chunk(2)
        return masked_triplet(
            q,
            q_positive,
            q_negative,
            margin=self.margin,
            temperature=self.weight_temperature,
            keep_gradient=self.weight_gradient == "kept",
        )

    def _absolute(self, anchor: Tensor, positive: Tensor, y: Tensor, y_positive: Tensor) -> Tensor:
        """Eq. 18, or Eq. 20 where there is no third head."""
        if self.third_head is None:
            return mean_squared_distance(y, y_positive)
        z, z_positive = self.third_head(torch.cat([anchor, positive])).split(len(anchor))
        return barlow_twins(z, z_positive, beta=self.beta, form=self.bt_form)

    def _to_distance_space(self, y: Tensor, views: int = 1) -> Tensor:
        """Map rows to the distance space; where it has batch statistics, each view has its own."""
        if self.distance_space == "bn" and views > 1:
            return torch.cat([normalise_embeddings(part, "bn") for part in y.chunk(views, -2)], -2)
        return normalise_embeddings(y, self.distance_space)

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """Share of active triplets, and the mean squared distances to positive and negative."""
        y, y_positive, y_negative = self._projected(encoded)
        return {
            "active_triplets": float(active_triplet_fraction(y, y_positive, y_negative, margin=self.margin)),
            "distance_positive": float((y - y_positive).square().sum(1).mean()),
            "distance_negative": float((y - y_negative).square().sum(1).mean()),
        }

    def pretext(self, encoded: Encoded) -> Pretext | None:
        """How often the weak view is nearer to its graph than the strong one, in the space of Eq. 13."""
        return Pretext("weak view nearer than strong", triplet_accuracy(*self._projected(encoded)), 0.5)

    def _projected(self, encoded: Encoded) -> tuple[Tensor, Tensor, Tensor]:
        """y, y+ and y- in the distance space."""
        anchor, positive, negative = (
            self._to_distance_space(self.first_head(encoded[name]))
            for name in ("anchor", "positive", "negative")
        )
        return anchor, positive, negative


# The smallest of the paper's three learning rates. At the largest, 0.01, wide encoders lose what they have
# with random initialisation (docs/diagnosis.md); inner folds at width 32 do not tell the two apart.
LEARNING_RATE = 1e-3


def _register(name: str, summary: str, **changes: object) -> None:
    # A preset must not undo the change that makes a variant.
    molecules = {key: value for key, value in MOLECULES.items() if key not in changes}
    METHODS.register(name)(
        MethodEntry(
            GraphSC, PAPER, 2023, summary, contrast="a graph with its weak and its strong view",
            negatives="another graph" if changes.get("negative") == "other" else "its own strong view",
            augmentation="random perturbations, weak and strong", passes=3,
            settings={"training.learning_rate": LEARNING_RATE, **changes},
            presets={"paper_literal": PAPER_LITERAL, "molecules": molecules}, resolve=resolve_operations,
        )
    )  # fmt: skip


_register("graphsc", "self-contrast with masked factors and Barlow Twins")
# On unit vectors a mean square is small: with 0.01, as for Barlow Twins, the term would have 1.5 % of the
# gradient of L_se at the encoder.
_register("graphsc-mse", "with a mean square instead of Barlow Twins", absolute="mse", lambda_absolute=1.0)
_register("graphsc-rd", "ablation: the negative is another graph", negative="other")
# The paper removes L_ma only; `lambda_factor=0.0` is the reading in which L_fa goes with it.
_register("graphsc-nm", "ablation: no masked contrast", lambda_masked=0.0)
_register("graphsc-nb", "ablation: no absolute term", lambda_absolute=0.0)
_register(
    "graphsc-rdt", "ablation: triplet loss on another graph, nothing else",
    negative="other", lambda_masked=0.0, lambda_factor=0.0, lambda_absolute=0.0,
)  # fmt: skip
