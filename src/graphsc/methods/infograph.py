"""InfoGraph: a graph's vector must tell its own nodes from those of all other graphs (Sun et al., ICLR 2020).

No views: mutual information between node and graph vectors is raised, by the Jensen-Shannon estimate over
all pairs of a node and a graph of the batch.
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
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.registry import METHODS, MethodEntry

PAPER = (
    "InfoGraph: Unsupervised and Semi-supervised Graph-Level Representation Learning via Mutual Information "
    "Maximization"
)

# The published code. Which of its 20 epochs and four classifiers the paper's cells come from is not in it.
PUBLISHED: Mapping[str, object] = {
    "prior_form": "joint",
    "bn": "running",
    "encoder.depth": 5,
    "training.learning_rate": 1e-3,
    "training.epochs": 20,
    "training.batch_size": 128,
}


class InfoGraph(TrainedMethod):
    """Node-to-graph mutual information, with an optional match of the graph vectors to a uniform prior."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        prior: float = 0.0,  # weight of the prior matching; 0.1 where the published code uses it
        prior_form: Literal["adversarial", "joint"] = "adversarial",  # joint: the code's; see `_prior`
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_node_level(encoder)
        if prior < 0:
            raise ConfigError(f"prior is a weight and must not be negative, not {prior}")
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        self.encoder = encoder
        self.prior = prior
        self.prior_form = prior_form
        self.bn = bn
        self.local_head = ResidualHead(width)
        self.global_head = ResidualHead(width)
        # A head whose term has no weight would only be noise in a checkpoint.
        self.discriminator = _layers([width, width, width, 1]) if prior else None

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Node and graph vectors of one pass.

        "anchor" (B x D) are the graphs, "size" (B) their numbers of nodes, "local" (N x D) the nodes in the
        order of their graphs: one row a *node*, so `objective` counts them off by "size". With prior
        matching, "noise" (B x D) is uniform in [0, 1).
        """
        local, graphs = nodes_and_graphs(self.encoder, views["anchor"])
        encoded = {"anchor": graphs, "local": local, "size": views["anchor"].ptr.diff()}
        if self.discriminator is not None:
            encoded["noise"] = torch.rand_like(graphs)
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The negated estimate of the mutual information, and the prior's term with its weight."""
        graphs, local = encoded["anchor"], encoded["local"]
        graph = _graph_of_node(encoded)
        losses = {"information": jensen_shannon(self.local_head(local), self.global_head(graphs), graph)}
        if self.discriminator is not None:
            losses["prior"] = self.prior * self._prior(graphs, encoded["noise"])
        return losses

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph scores one of its own nodes above another's."""
        scores = self.local_head(encoded["local"]) @ self.global_head(encoded["anchor"]).mT
        own = torch.zeros_like(scores, dtype=torch.bool).scatter_(1, _graph_of_node(encoded)[:, None], True)
        return Pretext("own nodes above others'", roc_auc(scores[own], scores[~own]), 0.5)

    def _prior(self, graphs: Tensor, noise: Tensor) -> Tensor:
        """-log D(noise) - log(1 - D(graphs)), means over the batch.

        The discriminator D descends it in both forms. As described (Deep InfoMax, whose term this is), the
        encoder ascends it, so that its vectors become like the noise. In the published code both descend
        one loss, and the encoder learns to be told from the noise; that is "joint".
        """
        assert self.discriminator is not None  # noqa: S101 - the caller has looked
        if self.prior_form == "adversarial":
            graphs = _Reversed.apply(graphs)  # type: ignore[no-untyped-call]
        of_noise, of_graphs = self.discriminator(torch.cat([noise, graphs])).chunk(2)
        return -(logsigmoid(of_noise).mean() + logsigmoid(-of_graphs).mean())


def _graph_of_node(encoded: Encoded) -> Tensor:
    """N, int64: the row of each node's graph."""
    graphs, local = encoded["anchor"], encoded["local"]
    rows = torch.arange(len(graphs), device=graphs.device)
    return rows.repeat_interleave(encoded["size"].long(), output_size=len(local))


class ResidualHead(nn.Module):
    """Three times Linear - ReLU, plus a linear shortcut, all of one width."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.block = nn.Sequential(_layers([width, width, width, width]), nn.ReLU(inplace=True))
        self.shortcut = linear(width, width)

    def forward(self, rows: Tensor) -> Tensor:
        """Rows x width."""
        # In place where nobody looks again: this head is most of a step.
        result: Tensor = self.shortcut(rows)
        return result.add_(self.block(rows))


def _layers(widths: list[int]) -> nn.Sequential:
    """Linear maps with a ReLU between, Xavier-uniform weights and zero biases."""
    parts: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layer = linear(inputs, outputs)
        parts += [nn.ReLU(inplace=True), layer] if parts else [layer]
    return nn.Sequential(*parts)


class _Reversed(torch.autograd.Function):
    """The same values with the opposite gradient: what comes before climbs where what follows descends."""

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
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
