"""ProGCL: negatives weighted by the probability that they are true ones (Xia et al., ICML 2022).

A node very similar to the anchor is often of its own kind: a false negative. The similarities s of negative
pairs, scaled to [0, 1], are a mixture of two Beta distributions; the one of the lower mean stands for true
negatives (t). GRACE's loss has weights in front of its negatives, the same for both views of a node:

    p(t | s) = pi_t Beta(s; a_t, b_t) / sum_c pi_c Beta(s; a_c, b_c)
    w_ik = p(t | s_ik) s_ik / mean over k != i of the same,  s_ik = (cos(g(u_i), g(v_k)) + 1) / 2

The mixture is fitted once, after some epochs without weights, by expectation-maximisation.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.losses.nodes import Weigh
from graphsc.losses.triplet import l2_normalise
from graphsc.methods.base import BatchNormEmbedding, Encoded, preserved
from graphsc.methods.grace import GRACE, NodeNegatives
from graphsc.methods.registry import METHODS, MethodEntry

FIT_GRAPHS = 128  # drawn from the collection to fit the mixture
FIT_NODES = 500  # at most, of these; so there are up to 250,000 similarities
EDGE = 1e-6  # similarities stay so far from 0 and 1, where densities are zero or infinite

# The defaults of the authors' script, for networks of one graph each.
PUBLISHED: Mapping[str, object] = {
    "fit_after": 400,
    "edge_rates": [0.3, 0.4],
    "feature_rates": [0.1, 0.0],
    "max_nodes": None,
    "projection_width": 256,
    "encoder.depth": 2,
    "encoder.width": 256,
    "encoder.layers": "last",
    "training.learning_rate": 0.01,
    "training.weight_decay": 1e-5,
    "training.epochs": 3000,
}


class ProGCL(GRACE):
    """GRACE with weighted negatives."""

    mixture: Tensor
    epochs_done: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        *,
        fit_after: int = 3,  # epochs without weights, after which the mixture is fitted
        false_share: float = 0.05,  # pi of false negatives that the fit starts with
        fit_steps: int = 10,  # of expectation-maximisation
        edge_rates: tuple[float, float] = (0.2, 0.4),  # share of edges that the two views lose
        feature_rates: tuple[float, float] = (0.3, 0.4),  # the same of feature columns
        temperature: float = 0.4,
        negatives: NodeNegatives = "batch",  # "graph": nodes of the same graph only
        max_nodes: int | None = 384,  # of a batch that are contrasted, drawn per step; None: all
        projection_width: int = 32,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(
            encoder, edge_rates=edge_rates, feature_rates=feature_rates, temperature=temperature,
            negatives=negatives, max_nodes=max_nodes, projection_width=projection_width,
            batch_norm_embedding=batch_norm_embedding,
        )  # fmt: skip
        if fit_after < 0 or fit_steps < 1 or not 0 < false_share < 1:
            raise ConfigError(
                "fit_after must not be negative, fit_steps at least 1 and false_share between 0 and 1"
            )
        self.fit_after = fit_after
        self.false_share = false_share
        self.fit_steps = fit_steps
        # pi, a and b of true and of false negatives; zeros before the fit.
        self.register_buffer("mixture", torch.zeros(3, 2))
        self.register_buffer("epochs_done", torch.zeros((), dtype=torch.int64))

    def _weigh(self) -> Weigh | None:
        if not bool(self.mixture.any()):
            return None
        mixture = self.mixture.clone()

        def weights(cosines: Tensor) -> Tensor:
            similarity = cosines.add(1).div_(2).clamp_(EDGE, 1 - EDGE)
            return probability_of_first(similarity, mixture.to(similarity.dtype)).mul_(similarity)

        return weights

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """The share of false negatives by the mixture; 0 before the fit."""
        return {"false_negatives": float(self.mixture[0, 1])}

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        if self.fit_after == 0:
            self._fit(collection, generator)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Fit the mixture after the epochs without weights; it stays the same from then on."""
        self.epochs_done += 1
        if int(self.epochs_done) == self.fit_after:
            self._fit(collection, generator)

    @torch.no_grad()
    def _fit(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Fit the mixture to the similarities of different nodes of some graphs, as a step sees them."""
        order = torch.randperm(len(collection), generator=generator, device=generator.device)
        rows = order[:FIT_GRAPHS].sort().values.cpu().numpy().astype(np.int64)
        batch = GraphBatch.gather(collection, rows).to(self.mixture.device)
        with preserved(self, training=True):
            encoded = self.encode(self.views(batch, generator))
            step = max(1, -(-len(encoded["nodes"]) // FIT_NODES))
            nodes, copies = (l2_normalise(self.head(encoded[name][::step])) for name in ("nodes", "copies"))
        graph = torch.repeat_interleave(encoded["size"].long())[::step]
        others = ~torch.eye(len(nodes), dtype=torch.bool, device=nodes.device)
        if self.negatives == "graph":
            others &= graph[:, None] == graph
        similarity = (nodes @ copies.mT)[others].add_(1).div_(2)
        if len(similarity):
            self.mixture.copy_(fit_beta_mixture(similarity, self.false_share, self.fit_steps))


def fit_beta_mixture(values: Tensor, second: float, steps: int) -> Tensor:
    """Two Beta distributions by expectation-maximisation, with weighted moments as maximum.

    It starts with Beta(1, 2) and Beta(2, 1).

    Args:
        values: M, in [0, 1].
        second: The share of the second distribution to start with.
        steps: How often the two steps are repeated.

    Returns:
        3 x 2, float64: shares, a and b; the distribution of the lower mean comes first.
    """
    values = values.double().clamp(EDGE, 1 - EDGE)
    mixture = values.new_tensor([[1 - second, second], [1.0, 2.0], [2.0, 1.0]])
    for _ in range(steps):
        first = probability_of_first(values, mixture)
        member = torch.stack([first, 1 - first])
        total = member.sum(1).clamp(min=1e-12)
        mean = ((member @ values) / total).clamp(EDGE, 1 - EDGE)
        variance = (member * (values - mean[:, None]).square()).sum(1) / total
        # Moments of a Beta distribution; a narrow one has a large a + b.
        size = (mean * (1 - mean) / variance.clamp(min=1e-8) - 1).clamp(min=1e-2)
        mixture = torch.stack([total / len(values), mean * size, (1 - mean) * size])
    means = mixture[1] / (mixture[1] + mixture[2])
    return mixture[:, means.argsort(stable=True)]


def probability_of_first(values: Tensor, mixture: Tensor) -> Tensor:
    """The probability that values (any shape, in (0, 1)) come from the first of two Beta distributions.

    Args:
        values: Similarities.
        mixture: 3 x 2: shares, a and b.
    """
    share, a, b = mixture
    # log(pi_0 Beta_0 / pi_1 Beta_1) is linear in log s and log(1 - s).
    normaliser = torch.lgamma(a + b) - torch.lgamma(a) - torch.lgamma(b)
    constant = share.clamp(min=1e-12).log() + normaliser
    power, other_power = float(a[0] - a[1]), float(b[0] - b[1])
    odds = values.log().mul_(power).add_(values.neg().log1p_(), alpha=other_power)
    return odds.add_(constant[0] - constant[1]).sigmoid_()


METHODS.register("progcl")(
    MethodEntry(
        ProGCL,
        "ProGCL: Rethinking Hard Negative Mining in Graph Contrastive Learning",
        2022,
        "GRACE with negatives weighted by the probability that they are true",
        contrast="two views of a node",
        negatives="other nodes of both views, weighted",
        augmentation="edges and features dropped",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
