"""GraphLoG: local and global structure of graph representations (Xu et al., ICML 2021).

Locally, masked nodes are found again within their graph and masked graphs within the batch. Globally, after
the local epochs, graphs are attracted to prototypes and these to prototypes one level up, in a tree.

    S(x, y) = exp(cos(x, y) / tau);  h, g: projected nodes and graphs;  h', g': those of the masked copy
    intra       1/M sum over masked j of -log(S(h_j, h'_j) / sum over nodes i of its graph S(h_i, h'_j))
    inter       1/B sum_b -log(S(g_b, g'_b) / sum_a S(g_a, g'_b))
    prototypes  NT-Xent of each graph with its path of prototypes, and of each prototype with its parent
    L = intra + inter + 0.1 prototypes

Prototypes are initialised by rival-penalised competitive learning (Xu, Krzyzak and Oja, 1993), which finds
the number of clusters by itself: each point attracts its nearest centre and repels the second nearest, and
centres that win no point are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.encoders.base import check_node_level, nodes_and_graphs
from graphsc.encoders.inference import BATCH_SIZE, batches_of
from graphsc.losses import (
    Negatives,
    Positives,
    Search,
    info_nce,
    masked_node_contrast,
    path_contrast,
    search_path,
)
from graphsc.losses.triplet import l2_normalise
from graphsc.methods.base import BatchNormEmbedding, Encoded, Losses, Pretext, TrainedMethod, Views, frozen
from graphsc.methods.contrastive import projection
from graphsc.methods.pretraining import check_mask_rate, mask_nodes, masked_nodes
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry

LOWEST_PASSES, UPPER_PASSES = 5, 20  # over the graphs, and over the prototypes one level down
MIN_LAST_BATCH = 8  # graphs; a smaller last batch is left out: its moments would be poor
CENTRE_RATE = 0.05  # step of a centre towards its points; a moving average that keeps 0.95
POINTS_PER_STEP = 256  # points that move the centres together
RIVAL_PENALTY = 0.05  # the step away from the points a centre lost, relative to that towards those it won

# One local epoch and ten of both. In the published objective any masked node counts as found.
PUBLISHED: Mapping[str, object] = {
    "intra": "hidden",
    "search": "best",
    "rivals": "siblings",
    "batch_norm_embedding": "running",
    "training.learning_rate": 1e-3,
    "training.batch_size": 512,
    "training.epochs": 11,
}

# Its training, with the losses that the paper describes.
MOLECULES: Mapping[str, object] = {**ON_MOLECULES, "training.batch_size": 512, "training.epochs": 11}


class GraphLoG(TrainedMethod):
    """Local structure by masked copies, global structure by a tree of prototypes."""

    epochs_done: Tensor
    alive: Tensor
    parent: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        *,
        rate: float = 0.3,  # int(rate n + 1) nodes of each graph are masked in its copy
        temperature: float = 0.04,
        levels: int = 3,
        prototypes: int = 50,  # at most, on each level
        local_epochs: int = 1,  # before there are prototypes
        prototype_weight: float = 0.1,
        intra: Positives = "own",  # "hidden", as published: any masked node of the graph is a positive
        search: Search = "sample",  # "best", as published: the path takes the most similar child
        rivals: Negatives = "level",  # "siblings", as published: negatives are children of the same parent
        placing_graphs: int = 50_000,  # at most so many random graphs initialise the prototypes
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_node_level(encoder)
        check_mask_rate(rate)
        if temperature <= 0 or prototype_weight < 0 or local_epochs < 0:
            raise ConfigError(
                "temperature must be positive, prototype_weight and local_epochs must not be negative"
            )
        if levels < 1 or prototypes < 1 or placing_graphs < 1:
            raise ConfigError("levels, prototypes and placing_graphs must be at least 1")
        self.rate = rate
        self.temperature = temperature
        self.local_epochs = local_epochs
        self.prototype_weight = prototype_weight
        self.intra: Positives = intra
        self.search: Search = search
        self.rivals: Negatives = rivals
        self.placing_graphs = placing_graphs
        width = self.graph_width
        self.head = projection(width)  # for nodes and graphs
        self.prototypes = nn.Parameter(torch.zeros(levels, prototypes, width))
        # Lowest level first: which prototypes exist, and the parent of each one level up.
        self.register_buffer("alive", torch.zeros(levels, prototypes, dtype=torch.bool))
        self.register_buffer("parent", torch.zeros(levels, prototypes, dtype=torch.int64))
        self.register_buffer("epochs_done", torch.zeros((), dtype=torch.int64))

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and their copies with nodes masked."""
        return {"anchor": batch, "masked": mask_nodes(batch, self.rate, generator)}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of both, and the intra loss of each masked node.

        The loss is computed here, in full precision, because it never looks beyond a graph.

        Returns:
            "anchor" and "masked" (B x D), and "intra" (M).
        """
        clean, masked = views["anchor"], views["masked"]
        nodes, graphs = nodes_and_graphs(self.encoder, clean)
        masked_copies, masked_graphs = nodes_and_graphs(self.encoder, masked)
        where = masked_nodes(masked)
        copies = masked_copies.index_select(0, where)
        with torch.autocast(nodes.device.type, enabled=False):
            dtype = self.prototypes.dtype
            intra = masked_node_contrast(
                self.head(nodes.to(dtype)), self.head(copies.to(dtype)), where, clean.ptr,
                temperature=self.temperature, positives=self.intra,
            )  # fmt: skip
        return {"anchor": graphs, "masked": masked_graphs, "intra": intra}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Masked nodes within graphs, masked graphs within the batch, and graphs among prototypes."""
        intra, (graphs, masked) = encoded["intra"], self._projected(encoded)
        inter = info_nce(masked, graphs, temperature=self.temperature)
        return {
            "intra": intra.sum() / max(len(intra), 1),
            "inter": inter,
            "prototypes": self.prototype_weight * self._prototype_loss(graphs),
        }

    def _projected(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        graphs, masked = self.head(torch.cat([encoded["anchor"], encoded["masked"]])).chunk(2)
        return graphs, masked

    def _prototype_loss(self, graphs: Tensor) -> Tensor:
        if not bool(self.alive.any()):
            return self.prototypes.sum() * 0.0  # zero, but with a gradient for the prototypes
        tree = (self.prototypes, self.alive, self.parent)
        path = search_path(graphs, *tree, temperature=self.temperature, search=self.search)
        return path_contrast(graphs, *tree, path, temperature=self.temperature, negatives=self.rivals)

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """The number of prototypes."""
        return {"prototypes": float(self.alive.sum())}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a masked copy is nearest to its own original."""
        graphs, masked = self._projected(encoded)
        own = torch.arange(len(graphs), device=graphs.device)
        predicted = (l2_normalise(masked) @ l2_normalise(graphs).mT).argmax(1)
        total = max(len(graphs), 1)
        return Pretext(
            "masked copies nearest to their own original", int((predicted == own).sum()) / total, 1 / total
        )

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        if self.local_epochs == 0:
            self._initialise_prototypes(collection, generator)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Initialise the prototypes after the local epochs; from then on they learn by gradient descent."""
        self.epochs_done += 1
        if int(self.epochs_done) == self.local_epochs:
            self._initialise_prototypes(collection, generator)

    @torch.no_grad()
    def _initialise_prototypes(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Cluster the graphs, then the prototypes, level by level.

        An upper level starts with half as many as the level below; with all, each would be its own parent.
        """
        points = self._graph_vectors(collection, generator)
        levels, capacity, _ = self.prototypes.shape
        start = capacity
        for level in range(levels):
            centres = cluster(
                points, start, capacity, passes=UPPER_PASSES if level else LOWEST_PASSES, rate=CENTRE_RATE,
                generator=generator,
            )  # fmt: skip
            self.prototypes[level] = centres.rows
            self.alive[level] = centres.alive
            if level:
                below = self.alive[level - 1]
                self.parent[level - 1][below] = nearest_centre(points, centres.rows, centres.alive)
            points = centres.rows[centres.alive]
            start = -(-len(points) // 2)

    def _graph_vectors(self, collection: GraphCollection, generator: torch.Generator) -> Tensor:
        """Projected vectors of the collection's graphs, or of a random part of them.

        In training mode, as the loss sees them; BatchNorm's running statistics are put back.
        """
        size, device = len(collection), self.prototypes.device
        count = min(size, self.placing_graphs)
        if count > BATCH_SIZE and count % BATCH_SIZE < MIN_LAST_BATCH:
            count -= count % BATCH_SIZE
        order = torch.randperm(size, generator=generator, device=generator.device)[:count]
        sample = collection.take(order.cpu().numpy().astype(np.int64))
        with frozen(self, training=True, restore_buffers=True):
            rows = [self.head(self.encoder(batch)) for batch in batches_of(sample, device=device)]
        return torch.cat(rows)


@dataclass(frozen=True, eq=False)
class Centres:
    """Cluster centres in K rows, some of them unused."""

    rows: Tensor  # K x d, l2_normalise vectors; zeros where unused
    alive: Tensor  # K, bool


@torch.no_grad()
def cluster(
    points: Tensor, start: int, capacity: int, *, passes: int, rate: float, generator: torch.Generator
) -> Centres:
    """Rival-penalised competitive learning by cosine.

    The winner of a point is decided by distance times the share of points won so far, so that no centre takes
    all. It moves towards the mean of its points; the second nearest moves away.

    Args:
        points: n x d.
        start: the initial number of centres, at random points.
        capacity: K, the number of rows of the result.
        passes: passes over all points.
        rate: the step of a centre, as a share of the way to the mean.
        generator: of the random order of the points.
    """
    points = l2_normalise(points)
    device = points.device
    start = min(start, capacity, len(points))
    chosen = torch.randperm(len(points), generator=generator, device=generator.device)[:start].to(device)
    centres = points[chosen].clone()
    wins = torch.ones(start, dtype=points.dtype, device=device)
    for _ in range(passes if start > 1 else 0):
        order = torch.randperm(len(points), generator=generator, device=generator.device).to(device)
        for some in torch.split(order, POINTS_PER_STEP):
            rows = points[some]
            distance = (1.0 - rows @ centres.mT) * (wins / wins.sum())
            first, second = distance.topk(2, largest=False).indices.unbind(1)
            won, won_mean = _counts_and_means(rows, first, start)
            lost, lost_mean = _counts_and_means(rows, second, start)
            moved = centres + rate * (won > 0)[:, None] * (won_mean - centres)
            moved -= rate * RIVAL_PENALTY * (lost > 0)[:, None] * (lost_mean - centres)
            centres, wins = l2_normalise(moved), wins + won
    alive = torch.zeros(capacity, dtype=torch.bool, device=device)
    alive[nearest_centre(points, centres)] = True
    rows = points.new_zeros(capacity, points.shape[1])
    rows[:start] = centres
    return Centres(rows * alive[:, None], alive)


def nearest_centre(points: Tensor, centres: Tensor, alive: Tensor | None = None) -> Tensor:
    """n: for each point (n x d) the centre (K x d) of the largest cosine, among those alive."""
    cosines = l2_normalise(points) @ l2_normalise(centres).mT
    return (cosines if alive is None else cosines.masked_fill(~alive, -torch.inf)).argmax(1)


def _counts_and_means(rows: Tensor, centre: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The number of rows of each centre, and their means."""
    member = torch.nn.functional.one_hot(centre, count).to(rows.dtype)
    number = member.sum(0)
    return number, member.mT @ rows / number.clamp(min=1)[:, None]


METHODS.register("graphlog")(
    MethodEntry(
        GraphLoG,
        "Self-supervised Graph-level Representation Learning with Local and Global Structure",
        2021,
        "transfer: recognise masked copies, and a tree of prototypes",
        contrast="a graph with its masked copy and with prototypes",
        negatives="other nodes, graphs and prototypes",
        augmentation="masked nodes",
        passes=2,
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED, "molecules": MOLECULES},
    )
)
