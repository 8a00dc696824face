"""InfoGraph: mutual information between nodes and graphs (Sun et al., ICLR 2020).

There are no views. The Jensen-Shannon estimate of the mutual information between node vectors l and graph
vectors h is maximised over all pairs of a node and a graph of the batch:

    R_ib = FF1(l_i) FF2(h_b),  FF: three layers plus a linear shortcut,  g(i): the graph of node i
    E_pos = 1/N sum_i log 2 - softplus(-R_i,g(i))
    E_neg = 1/(N (B - 1)) sum_i sum_{b != g(i)} softplus(-R_ib) + R_ib - log 2
    L = E_neg - E_pos
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Literal

import torch
from torch import Tensor, nn
from torch.autograd.function import FunctionCtx
from torch.nn.functional import logsigmoid

from graphsc.core.errors import ConfigError
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.gin import linear
from graphsc.losses import jensen_shannon, roc_auc
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.registry import METHODS, MethodEntry

PAPER = (
    "InfoGraph: Unsupervised and Semi-supervised Graph-Level Representation Learning via Mutual Information "
    "Maximization"
)

# The published code. It does not say which of its 20 epochs and four classifiers the paper reports.
PUBLISHED: Mapping[str, object] = {
    "prior_form": "joint",
    "batch_norm_embedding": "running",
    "encoder.depth": 5,
    "training.learning_rate": 1e-3,
    "training.epochs": 20,
    "training.batch_size": 128,
}


class InfoGraph(TrainedMethod):
    """Node-to-graph mutual information, with optional matching of the graph vectors to a uniform prior."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        prior: float = 0.0,  # weight of the prior matching; 0.1 where the published code uses it
        prior_form: Literal["adversarial", "joint"] = "adversarial",  # joint: as published; see `_prior`
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        if prior < 0:
            raise ConfigError(f"prior is a weight and must not be negative, not {prior}")
        width = self.graph_width
        self.prior = prior
        self.prior_form = prior_form
        self.local_head = ResidualHead(width)
        self.global_head = ResidualHead(width)
        # No head for a term without weight: it would only add noise to checkpoints.
        self.discriminator = _mlp([width, width, width, 1]) if prior else None

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Node and graph vectors of one pass.

        Returns:
            "anchor" (B x D), the graphs; "size" (B), their numbers of nodes; "local" (N x D), the nodes in
            the order of their graphs. With prior matching, "noise" (B x D), uniform in [0, 1).
        """
        local, graphs = nodes_and_graphs(self.encoder, views["anchor"])
        encoded = {"anchor": graphs, "local": local, "size": views["anchor"].ptr.diff()}
        if self.discriminator is not None:
            encoded["noise"] = torch.rand_like(graphs)
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The negated estimate of the mutual information, and the weighted prior term."""
        graphs, local = encoded["anchor"], encoded["local"]
        graph = graph_of_node(encoded)
        losses = {"information": jensen_shannon(self.local_head(local), self.global_head(graphs), graph)}
        if self.discriminator is not None:
            losses["prior"] = self.prior * self._prior(graphs, encoded["noise"])
        return losses

    def _prior(self, graphs: Tensor, noise: Tensor) -> Tensor:
        """-log D(noise) - log(1 - D(graphs)), means over the batch.

        The discriminator D minimises it in both forms. In "adversarial", as described in Deep InfoMax, the
        encoder maximises it, so that its vectors become like the noise. In "joint", as in the published code,
        the encoder minimises it too and learns to be told apart from the noise.
        """
        assert self.discriminator is not None  # noqa: S101 - the caller has checked it
        if self.prior_form == "adversarial":
            graphs = _ReverseGradient.apply(graphs)  # type: ignore[no-untyped-call]
        of_noise, of_graphs = self.discriminator(torch.cat([noise, graphs])).chunk(2)
        return -(logsigmoid(of_noise).mean() + logsigmoid(-of_graphs).mean())

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph scores one of its own nodes above another graph's."""
        scores = self.local_head(encoded["local"]) @ self.global_head(encoded["anchor"]).mT
        own = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, graph_of_node(encoded)[:, None], True)
        return Pretext("own nodes above others'", roc_auc(scores[own], scores[~own]), 0.5)


class ResidualHead(nn.Module):
    """Three times Linear - ReLU plus a linear shortcut, of one width or from `inputs` to `width`."""

    def __init__(self, width: int, inputs: int | None = None) -> None:
        super().__init__()
        inputs = inputs or width
        self.width = width
        self.block = nn.Sequential(_mlp([inputs, width, width, width]), nn.ReLU(inplace=True))
        self.shortcut = linear(inputs, width)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows x width."""
        # In place, because this head takes most of the time of a step.
        result: Tensor = self.shortcut(rows)
        return result.add_(self.block(rows))


def graph_of_node(encoded: Encoded) -> Tensor:
    """N, int64: the row of each node's graph, from the "anchor", "local" and "size" of `encode`."""
    graphs, local = encoded["anchor"], encoded["local"]
    rows = torch.arange(len(graphs), device=graphs.device)
    return rows.repeat_interleave(encoded["size"].long(), output_size=len(local))


def _mlp(widths: list[int]) -> nn.Sequential:
    """Linear layers with ReLU between them, Xavier-uniform weights and zero biases."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layer = linear(inputs, outputs)
        parts += [nn.ReLU(inplace=True), layer] if parts else [layer]
    return nn.Sequential(*parts)


class _ReverseGradient(torch.autograd.Function):
    """Identity forward, negated gradient backward."""

    @staticmethod
    def forward(ctx: FunctionCtx, rows: Tensor) -> Tensor:
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        return -gradient


METHODS.register("infograph")(
    MethodEntry(
        InfoGraph,
        PAPER,
        2020,
        "mutual information of nodes and graphs",
        contrast="nodes with their graph",
        negatives="other graphs of the batch",
        passes=1,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
