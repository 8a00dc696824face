"""RGCL: rationale-aware graph contrastive learning (Li et al., ICML 2022).

An explainer scores the nodes of every graph. The rationale view keeps nodes with probabilities that grow with
their scores, the complement view with probabilities that fall with them. The graph should match its own
rationale among those of other graphs, and match no complement. Sampling has no gradient; the explainer learns
because its scores also weight the nodes when they are pooled.

    s = softmax over a graph's nodes of (GIN(G) / 5)
    G' keeps n - int(0.1 n) nodes, drawn by s + 0.001;  G" as many, drawn by max(s) - s + 0.001
    h = sum over nodes of m_i x_i in each layer,  m_i = 0.9 + 0.1 s_i / max(s)
    L = -1/B sum_i log(S_ii / sum_{j != i} S_ij) - lambda/B sum_i log(S_ii / (S_ii + sum_j C_ij))
    S_ij = exp(cos(z_i, z'_j) / tau),  C_ij = exp(cos(z_i, z"_j) / tau)
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.batch import GraphBatch, join
from graphsc.data.collection import GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.encoders.gin import MAX_JOINT_SIZE, FeatureLinear, GinLayer, linear
from graphsc.encoders.inference import batches_of
from graphsc.encoders.ops import Adjacency
from graphsc.encoders.readout import pool
from graphsc.losses import graphcl_nt_xent, independence, joint_rationale_loss
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views, frozen
from graphsc.methods.contrastive import projection, retrieval
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views.array_ops import pointer, repeat
from graphsc.views.base import nodes_per_graph
from graphsc.views.sampling import sample_subgraphs

PUBLISHED: Mapping[str, object] = {
    "loss": "log-of-sum",
    "batch_norm_embedding": "running",
    "encoder.depth": 3,
    "encoder.width": 32,
    "training.epochs": 40,
    "training.batch_size": 128,
    "training.learning_rate": 0.01,
}

# The published code for molecules, except for its explainer of three GCN layers.
MOLECULES: Mapping[str, object] = {
    **ON_MOLECULES,
    "anchor": "rationale",
    "drop_rate": 0.2,
    "loss": "sum-of-logs",
    "positive_in_denominator": False,
    "complement_weight": 0.1,
    "temperature": 0.1,
    "training.epochs": 100,
}


class RGCL(TrainedMethod):
    """Rationale-aware contrast; embeddings are those of the plain encoder."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        drop_rate: float = 0.1,  # 1 - rho; int(drop_rate * n) nodes are dropped
        anchor: Literal["graph", "rationale"] = "graph",  # "rationale": a second sample of it
        floor: float = 0.001,  # added to each score, so that every node can be drawn
        loss: Literal["sum-of-logs", "log-of-sum"] = "sum-of-logs",
        positive_in_denominator: bool = False,  # of the first logarithm in sum-of-logs
        complement_weight: float = 0.1,  # lambda
        temperature: float = 0.2,
        explainer_depth: int = 3,
        explainer_width: int = 32,
        explainer_temperature: float = 5.0,
        least_importance: float = 0.9,
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        if not 0 <= drop_rate < 1:
            raise ConfigError(f"drop_rate must be at least 0 and below 1, not {drop_rate}")
        if floor <= 0 or temperature <= 0 or explainer_temperature <= 0:
            raise ConfigError("floor, temperature and explainer_temperature must be positive")
        if complement_weight < 0 or not 0 <= least_importance <= 1:
            raise ConfigError("complement_weight must not be negative, least_importance lie between 0 and 1")
        if explainer_depth < 1 or explainer_width < 1:
            raise ConfigError("explainer_depth and explainer_width must be at least 1")
        features = getattr(encoder, "features", None)
        accepted = inspect.signature(encoder.forward).parameters
        if not isinstance(features, FeatureScheme) or not {"importance", "parts"} <= set(accepted):
            raise ConfigError("rgcl needs an encoder that weights nodes when it pools them", hint="use gin")
        self.drop_rate = drop_rate
        self.anchor = anchor
        self.floor = floor
        self.loss = loss
        self.positive_in_denominator = positive_in_denominator
        self.complement_weight = complement_weight
        self.temperature = temperature
        self.head = projection(self.graph_width)
        self.explainer = Explainer(
            features,
            depth=explainer_depth,
            width=explainer_width,
            temperature=explainer_temperature,
            least=least_importance,
        )
        self.scores: NodeScores | None = None  # of the collection in training

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graph, its rationale and its complement, sampled by the scores of the epoch's start.

        Before the first scores, all nodes of a graph are equally likely. In evaluation mode the batch may
        hold any graphs, and they are scored by the explainer as it is.
        """
        if not self.training:
            with torch.no_grad():
                score = self.explainer.scores(batch)
        else:
            score = uniform_scores(batch) if self.scores is None else self.scores.of(batch)
        sizes = nodes_per_graph(batch)
        counts = sizes - (sizes.double() * self.drop_rate).long()
        largest = score.new_zeros(batch.num_graphs)
        largest = largest.scatter_reduce(0, batch.batch, score, "amax", include_self=False)
        rationale, complement = score + self.floor, largest[batch.batch] - score + self.floor
        anchor = batch
        if self.anchor == "rationale":
            anchor = sample_subgraphs(batch, rationale, counts, generator)
        return {
            "anchor": anchor,
            "positive": sample_subgraphs(batch, rationale, counts, generator),
            "complement": sample_subgraphs(batch, complement, counts, generator),
        }

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of each view (B x D), pooled with the explainer's current importances."""
        batches = list(views.values())
        if sum(batch.num_nodes + batch.num_edges for batch in batches) > MAX_JOINT_SIZE:
            rows = [self._encode(batch, None) for batch in batches]
        else:
            parts = [batch.num_nodes for batch in batches]
            rows = list(
                torch.split(self._encode(join(batches), parts), [batch.num_graphs for batch in batches])
            )
        return dict(zip(views, rows, strict=True))

    def _encode(self, batch: GraphBatch, parts: list[int] | None) -> Tensor:
        rows: Tensor = self.encoder(batch, parts, self.explainer.importance(batch, parts))
        return rows

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Agreement of graph and rationale, and independence of the complement."""
        names = ("anchor", "positive", "complement")
        anchor, positive, complement = self.head(torch.cat([encoded[name] for name in names])).chunk(3)
        weight, temperature = self.complement_weight, self.temperature
        if self.loss == "log-of-sum":
            joint = joint_rationale_loss(anchor, positive, complement, weight=weight, temperature=temperature)
            return {"rationale": joint}
        losses = {
            "rationale": graphcl_nt_xent(
                anchor,
                positive,
                temperature=temperature,
                positive_in_denominator=self.positive_in_denominator,
            )
        }
        if weight:
            losses["complement"] = weight * independence(
                anchor, positive, complement, temperature=temperature
            )
        return losses

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph is nearest to its own rationale in the batch."""
        return retrieval(self.head(encoded["anchor"]), self.head(encoded["positive"]))

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Score the nodes for the first epoch."""
        self._score(collection)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Score the nodes for the next epoch."""
        self._score(collection)

    @torch.no_grad()
    def _score(self, collection: GraphCollection) -> None:
        with frozen(self.explainer, training=False):
            batches = batches_of(collection, device=self._device)
            self.scores = NodeScores.collect((batch, self.explainer.scores(batch)) for batch in batches)

    def state(self) -> dict[str, Tensor]:
        """The scores of the epoch's start; the explainer has changed since and could not reproduce them."""
        return {} if self.scores is None else {"scores": self.scores.values, "scores_ptr": self.scores.ptr}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.scores = None
        if state:
            self.scores = NodeScores(state["scores"].to(self._device), state["scores_ptr"].to(self._device))

    @property
    def _device(self) -> torch.device:
        return next(self.explainer.parameters()).device


class Explainer(nn.Module):
    """Scores nodes: GIN layers down to one number per node, BatchNorm after each, a softmax per graph."""

    def __init__(
        self, features: FeatureScheme, *, depth: int, width: int, temperature: float, least: float
    ) -> None:
        super().__init__()
        self.temperature = temperature
        self.least = least
        self.blocks = nn.ModuleList(
            GinLayer(
                FeatureLinear(features, width) if layer == 0 else linear(width, width, bias=False),
                width,
                norm="before",
                activate=layer < depth - 1,
                eps=0.0,
                outputs=width if layer < depth - 1 else 1,
            )
            for layer in range(depth)
        )

    def scores(self, batch: GraphBatch) -> Tensor:
        """N: probabilities that sum to one over each graph."""
        relative = self._relative(batch, None)
        return (relative / pool(batch, relative, "sum")[batch.batch])[:, 0]

    def importance(self, batch: GraphBatch, parts: Sequence[int] | None = None) -> Tensor:
        """N: scores mapped to [`least`, 1], 1 for the highest of each graph. `parts` as for `GinLayer`."""
        return self.least + (1 - self.least) * self._relative(batch, parts)[:, 0]

    def _relative(self, batch: GraphBatch, parts: Sequence[int] | None) -> Tensor:
        """N x 1: softmax divided by its largest value in the graph, in (0, 1]; the denominator cancels."""
        adjacency = Adjacency.of(batch)
        x: Tensor | GraphBatch = batch
        for block in self.blocks:
            x = block(x, adjacency, batch.edge_weight, parts)
        assert isinstance(x, Tensor)  # noqa: S101 - there is at least one layer
        logits = x.float() / self.temperature
        return (logits - pool(batch, logits, "max")[batch.batch]).exp()


@dataclass(frozen=True, eq=False)
class NodeScores:
    """Scores of all nodes of a collection, graph by graph; half precision is enough for sampling."""

    values: Tensor  # nodes of the collection, float16
    ptr: Tensor  # graphs + 1, int64

    @classmethod
    def collect(cls, scored: Iterable[tuple[GraphBatch, Tensor]]) -> NodeScores:
        """From the batches of a collection in order, each with the scores of its nodes."""
        parts = [(scores.half(), nodes_per_graph(batch)) for batch, scores in scored]
        return cls(
            torch.cat([scores for scores, _ in parts]), pointer(torch.cat([sizes for _, sizes in parts]))
        )

    def of(self, batch: GraphBatch) -> Tensor:
        """N, float32: the scores of a batch's nodes, by the positions of its graphs in the collection."""
        index, sizes = batch.index, nodes_per_graph(batch)
        if index is None or not self._fits(index, sizes):
            raise DataError(
                "the scores are of other graphs than these",
                hint="draw views of the collection in training, or call begin() with another one first",
            )
        nodes = torch.arange(batch.num_nodes, device=batch.device)
        nodes += repeat(self.ptr[index] - batch.ptr[:-1], sizes, batch.num_nodes)
        return self.values[nodes].float()

    def _fits(self, index: Tensor, sizes: Tensor) -> bool:
        if bool((index >= len(self.ptr) - 1).any()):
            return False
        return torch.equal(self.ptr[index + 1] - self.ptr[index], sizes)


def uniform_scores(batch: GraphBatch) -> Tensor:
    """N: the same score for all nodes of a graph, 1 / n."""
    sizes = nodes_per_graph(batch)
    return repeat(1 / sizes.float(), sizes, batch.num_nodes)


METHODS.register("rgcl")(
    MethodEntry(
        RGCL,
        "Let Invariant Rationale Discovery Inspire Graph Contrastive Learning",
        2022,
        "views that keep the nodes an explainer scores high",
        contrast="two views that keep a graph's rationale",
        negatives="other graphs, and what the views leave out",
        augmentation="nodes kept by a learned score",
        passes=3,
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
