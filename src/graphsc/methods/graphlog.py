"""GraphLoG: graphs like their masked copies, and grouped around prototypes (Xu et al., ICML 2021).

Locally, hidden nodes are found again within their graphs and masked graphs among others. Globally, once that
has had an epoch, graphs are drawn to prototypes, and these to prototypes of prototypes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

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
    masked_node_contrast,
    nt_xent,
    path_contrast,
    search_path,
)
from graphsc.losses.triplet import l2_normalise
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views
from graphsc.methods.contrastive import projection
from graphsc.methods.masking import check_hidden_rate, hidden_nodes, hide_nodes
from graphsc.methods.registry import METHODS, MethodEntry

# Rival-penalised competitive learning: as many clusters as points need, from more than they need.
#
# Each point draws the centre that wins it nearer, and pushes the second best away. Centres that only ever
# come second are driven off, and who wins no point in the end is dropped (Xu, Krzyzak and Oja, 1993).


AT_ONCE = 256  # points that move the centres together
PUSH = 0.05  # how much less a rival is pushed than a winner is drawn


@dataclass(frozen=True, eq=False)
class Centres:
    """K places for centres, some of them empty."""

    rows: Tensor  # K x d, of length one; zeros where there is none
    alive: Tensor  # K, bool


@torch.no_grad()
def place_centres(
    points: Tensor, start: int, places: int, *, passes: int, rate: float, generator: torch.Generator
) -> Centres:
    """Centres for points (n x d) by cosine: `start` of them at first, at random points, in `places` rows.

    Who wins is decided by distance times the share of points won so far, so that no centre takes all. A
    centre moves by `rate` of the way to the mean of what it won.
    """
    points = l2_normalise(points)
    device = points.device
    start = min(start, places, len(points))
    chosen = torch.randperm(len(points), generator=generator, device=generator.device)[:start].to(device)
    centres = points[chosen].clone()
    wins = torch.ones(start, dtype=points.dtype, device=device)
    for _ in range(passes if start > 1 else 0):
        order = torch.randperm(len(points), generator=generator, device=generator.device).to(device)
        for some in torch.split(order, AT_ONCE):
            rows = points[some]
            far = (1.0 - rows @ centres.mT) * (wins / wins.sum())
            first, second = far.topk(2, largest=False).indices.unbind(1)
            won, towards = _means(rows, first, start)
            lost, from_ = _means(rows, second, start)
            moved = centres + rate * (won > 0)[:, None] * (towards - centres)
            moved -= rate * PUSH * (lost > 0)[:, None] * (from_ - centres)
            centres, wins = l2_normalise(moved), wins + won
    alive = torch.zeros(places, dtype=torch.bool, device=device)
    alive[nearest(points, centres)] = True
    rows = points.new_zeros(places, points.shape[1])
    rows[:start] = centres
    return Centres(rows * alive[:, None], alive)


def nearest(points: Tensor, centres: Tensor, alive: Tensor | None = None) -> Tensor:
    """n: of each point (n x d) the centre (K x d) of the largest cosine, among those alive."""
    cosines = l2_normalise(points) @ l2_normalise(centres).mT
    return (cosines if alive is None else cosines.masked_fill(~alive, -torch.inf)).argmax(1)


def _means(rows: Tensor, which: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """How many rows each centre has, and their means."""
    member = torch.nn.functional.one_hot(which, count).to(rows.dtype)
    number = member.sum(0)
    return number, member.mT @ rows / number.clamp(min=1)[:, None]


LOWEST_PASSES, UPPER_PASSES = 5, 20  # over graphs, and over the prototypes one level down
FEW = 8  # graphs; a last batch of fewer is left out, for BatchNorm can do nothing with a lone node
DRAWN = 0.05  # how far a prototype moves when it is placed; a moving average that keeps 0.95

# One local epoch and ten of both. The published objective counts any hidden node as found.
PUBLISHED: Mapping[str, object] = {
    "intra": "hidden",
    "search": "best",
    "rivals": "siblings",
    "bn": "running",
    "training.learning_rate": 1e-3,
    "training.batch_size": 512,
    "training.epochs": 11,
}


class GraphLoG(TrainedMethod):
    """Local structure by masked copies, global structure by a tree of prototypes."""

    epochs_done: Tensor
    alive: Tensor
    parent: Tensor

    def __init__(
        self,
        encoder: nn.Module,
        *,
        rate: float = 0.3,  # int(rate n + 1) nodes of each graph are hidden in its copy
        temperature: float = 0.04,
        levels: int = 3,
        prototypes: int = 50,  # at most, on each level
        local_epochs: int = 1,  # before there are prototypes
        prototype_weight: float = 0.1,
        intra: Positives = "own",  # "hidden": any hidden node of the graph will do, as in the published code
        search: Search = "sample",  # "best": no draw on the way down, as in the published code
        rivals: Negatives = "level",  # "siblings": children of one parent only, as in the published code
        placing_graphs: int = 50_000,  # at most, drawn at random, to place the prototypes by
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_node_level(encoder)
        check_hidden_rate(rate)
        if temperature <= 0 or prototype_weight < 0 or local_epochs < 0:
            raise ConfigError(
                "temperature must be positive, prototype_weight and local_epochs must not be negative"
            )
        if levels < 1 or prototypes < 1 or placing_graphs < 1:
            raise ConfigError("levels, prototypes and placing_graphs must be at least 1")
        self.encoder = encoder
        self.rate = rate
        self.temperature = temperature
        self.local_epochs = local_epochs
        self.prototype_weight = prototype_weight
        self.intra: Positives = intra
        self.search: Search = search
        self.rivals: Negatives = rivals
        self.placing_graphs = placing_graphs
        self.bn = bn
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        self.head = projection(width)  # of nodes and graphs alike
        self.prototypes = nn.Parameter(torch.zeros(levels, prototypes, width))
        # Lowest level first. Which prototypes there are, and the parent of each one level up.
        self.register_buffer("alive", torch.zeros(levels, prototypes, dtype=torch.bool))
        self.register_buffer("parent", torch.zeros(levels, prototypes, dtype=torch.int64))
        self.register_buffer("epochs_done", torch.zeros((), dtype=torch.int64))

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graphs, and their copies with nodes hidden."""
        return {"anchor": batch, "masked": hide_nodes(batch, self.rate, generator)}

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of both ("anchor" and "masked", B x D), and a loss for each hidden node ("intra", M).

        The latter is worked out here, because it never looks beyond a graph, and in full precision.
        """
        clean, masked = views["anchor"], views["masked"]
        nodes, graphs = nodes_and_graphs(self.encoder, clean)
        masked_nodes, masked_graphs = nodes_and_graphs(self.encoder, masked)
        which = hidden_nodes(masked)
        hidden = masked_nodes.index_select(0, which)
        with torch.autocast(nodes.device.type, enabled=False):
            kind = self.prototypes.dtype
            intra = masked_node_contrast(
                self.head(nodes.to(kind)), self.head(hidden.to(kind)), which, clean.ptr,
                temperature=self.temperature, positives=self.intra,
            )  # fmt: skip
        return {"anchor": graphs, "masked": masked_graphs, "intra": intra}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """Hidden nodes within graphs, masked graphs among graphs, graphs among prototypes."""
        intra, (graphs, masked) = encoded["intra"], self._projected(encoded)
        inter = nt_xent(masked, graphs, temperature=self.temperature, positive_in_denominator=True)
        return {
            "intra": intra.sum() / max(len(intra), 1),
            "inter": inter,
            "prototypes": self.prototype_weight * self._global(graphs),
        }

    def _projected(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        graphs, masked = self.head(torch.cat([encoded["anchor"], encoded["masked"]])).chunk(2)
        return graphs, masked

    def _global(self, graphs: Tensor) -> Tensor:
        """Zero, hanging on the prototypes, while there are none."""
        if not bool(self.alive.any()):
            return self.prototypes.sum() * 0.0
        tree = (self.prototypes, self.alive, self.parent)
        path = search_path(graphs, *tree, temperature=self.temperature, search=self.search)
        return path_contrast(graphs, *tree, path, temperature=self.temperature, negatives=self.rivals)

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a masked copy is nearest to its own original."""
        graphs, masked = self._projected(encoded)
        own = torch.arange(len(graphs), device=graphs.device)
        found = (l2_normalise(masked) @ l2_normalise(graphs).mT).argmax(1)
        total = max(len(graphs), 1)
        return Pretext(
            "masked copies nearest to their own original", int((found == own).sum()) / total, 1 / total
        )

    def figures(self, encoded: Encoded) -> dict[str, float]:
        """How many prototypes there are."""
        return {"prototypes": float(self.alive.sum())}

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        if self.local_epochs == 0:
            self._place(collection, generator)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Once the local epochs are over, prototypes are placed; from then on they learn by the gradient."""
        self.epochs_done += 1
        if int(self.epochs_done) == self.local_epochs:
            self._place(collection, generator)

    @torch.no_grad()
    def _place(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """Prototypes of graphs, then prototypes of these, level by level.

        An upper level starts with half as many as there are below: with all, each would be its own parent.
        """
        points = self._vectors(collection, generator)
        levels, places, _ = self.prototypes.shape
        start = places
        for level in range(levels):
            passes = UPPER_PASSES if level else LOWEST_PASSES
            found = place_centres(points, start, places, passes=passes, rate=DRAWN, generator=generator)
            self.prototypes[level] = found.rows
            self.alive[level] = found.alive
            if level:
                self.parent[level - 1][self.alive[level - 1]] = nearest(points, found.rows, found.alive)
            points = found.rows[found.alive]
            start = -(-len(points) // 2)

    def _vectors(self, collection: GraphCollection, generator: torch.Generator) -> Tensor:
        """Projected vectors of the collection's graphs, or of a random part of it.

        In training mode, as the loss sees them; BatchNorm's running statistics are put back.
        """
        size, device = len(collection), self.prototypes.device
        count = min(size, self.placing_graphs)
        if count > BATCH_SIZE and count % BATCH_SIZE < FEW:
            count -= count % BATCH_SIZE
        order = torch.randperm(size, generator=generator, device=generator.device)[:count]
        sample = collection.take(order.cpu().numpy().astype(np.int64))
        buffers = {name: value.clone() for name, value in self.named_buffers()}
        was_training = self.training
        self.train()
        rows = [self.head(self.encoder(batch)) for batch in batches_of(sample, device=device)]
        for name, value in self.named_buffers():
            value.copy_(buffers[name])
        self.train(was_training)
        return torch.cat(rows)


METHODS.register("graphlog")(
    MethodEntry(
        GraphLoG,
        "Self-supervised Graph-level Representation Learning with Local and Global Structure",
        2021,
        "transfer: masked copies found again, and a tree of prototypes",
        settings={"training.learning_rate": 0.001},
        presets={"published": PUBLISHED},
    )
)
