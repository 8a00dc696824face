"""JOAO: GraphCL that chooses its augmentations itself, by how hard they are for the present encoder.

Each graph against one view of it by one of five operations, drawn with probabilities p; or, as published for
molecules, two views of it by one of the 25 pairs of operations. After an epoch p takes a step up the losses
of the choices and back towards uniform, and is brought onto the simplex again. JOAOv2 adds a projection head
for each operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from graphsc.core.errors import ConfigError
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.losses import nt_xent
from graphsc.methods.base import Encoded, Losses, Pretext, TrainedMethod, Views, encode_each
from graphsc.methods.contrastive import (
    Augmentations,
    SampledViews,
    make_operations,
    projection,
    through_own_head,
)
from graphsc.methods.graphcl import check_contrast, retrieval
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views import Choice
from graphsc.views.base import check_rate

# Points brought onto the simplex: numbers that may be probabilities.


def project(point: Tensor) -> Tensor:
    """The nearest probabilities: n numbers, none negative, that sum to one.

    point: n. All entries are lowered by one number and cut at zero; sorting finds that number exactly.
    """
    falling = point.sort(descending=True).values
    surplus = falling.cumsum(0) - 1.0
    counts = torch.arange(1, len(point) + 1, dtype=point.dtype, device=point.device)
    positive = int((falling * counts > surplus).sum())  # how many entries stay above zero
    return (point - surplus[positive - 1] / positive).clamp_(min=0.0)


def project_by_bisection(point: Tensor, tolerance: float = 1e-2) -> Tensor:
    """The same by halving an interval until the sum is one to the tolerance, then divided by the sum."""
    low, high = float(point.min()) - 1.0 / len(point), float(point.max()) - 1.0 / len(point)
    while True:
        middle = (low + high) / 2
        found = (point - middle).clamp(min=0.0)
        total = float(found.sum())
        if abs(total - 1.0) <= tolerance:
            return found / total
        low, high = (middle, high) if total > 1.0 else (low, middle)


OPERATIONS = ("drop-nodes", "perturb-edges", "subgraph", "mask-attributes", "identity")
IDENTITY = OPERATIONS.index("identity")
ESTIMATE_BATCH = 128  # graphs; another number would shift all five losses alike, which moves p nowhere

# What the repository's scripts for TU data run; gamma they search in 0.01, 0.1 and 1.
PUBLISHED: Mapping[str, object] = {
    "augmentations": "graphcl",
    "subgraph_keeps": 0.8,
    "simplex": "bisection",
    "bn": "running",
    "encoder.depth": 3,
    "encoder.width": 32,
    "training.learning_rate": 0.01,
    "training.epochs": 20,
    "training.batch_size": 128,
}
PUBLISHED_V2: Mapping[str, object] = {
    **PUBLISHED,
    "heads": "epoch",
    "training.learning_rate": 0.001,
    "training.epochs": 40,
}
# The repository's script for molecules.
MOLECULES: Mapping[str, object] = {
    **ON_MOLECULES,
    "pairs": True,
    "rate": 0.2,
    "gamma": 0.1,
    "temperature": 0.1,
    "estimate_share": 0.1,
    "training.epochs": 100,
}


class JOAO(TrainedMethod):
    """Joint augmentation optimisation, and its second version."""

    def __init__(
        self,
        encoder: nn.Module,
        *,
        rate: float = 0.2,
        gamma: float = 0.1,  # how strongly p is held at uniform
        # One head for all; one for each operation; or, as published, one for all views of an epoch.
        heads: Literal["shared", "operation", "epoch"] = "shared",
        temperature: float = 0.2,
        positive_in_denominator: bool = False,
        augmentations: Augmentations = "fixed",  # "graphcl": as the published code has them
        subgraph_keeps: float = 0.8,  # the share of nodes that the published sub-graph keeps at most
        simplex: Literal["exact", "bisection"] = "exact",
        estimate_share: float = 0.2,  # of the batches, for the losses of the choices
        pairs: bool = False,  # both sides are views, and each pair of operations has its probability
        bn: Literal["reestimate", "running"] = "reestimate",
    ) -> None:
        super().__init__()
        check_rate(rate)
        check_contrast(temperature)
        if gamma < 0:
            raise ConfigError(f"gamma must not be negative, not {gamma}")
        if pairs and heads == "epoch":
            raise ConfigError("one head an epoch knows no pairs", hint="use heads: operation or shared")
        if not 0 <= estimate_share <= 1:
            raise ConfigError(f"estimate_share must lie between 0 and 1, not {estimate_share}")
        self.encoder = encoder
        self.rate = rate
        self.gamma = gamma
        self.heads = heads
        self.contrast = partial(
            nt_xent, temperature=temperature, positive_in_denominator=positive_in_denominator
        )
        self.operations = make_operations(OPERATIONS, augmentations, subgraph_keeps)
        self.view = Choice(self.operations)
        firsts = range(len(OPERATIONS)) if pairs else [IDENTITY]
        self.choices = [(first, second) for first in firsts for second in range(len(OPERATIONS))]
        self.pairs = pairs
        self.project = project if simplex == "exact" else project_by_bisection
        self.estimate_share = estimate_share
        self.bn = bn
        width = int(encoder.dimensions)  # type: ignore[arg-type]
        self.projections = nn.ModuleList(
            projection(width) for _ in range(1 if heads == "shared" else len(OPERATIONS))
        )
        self.head_of_epoch = 0
        self.probabilities = self._uniform()

    def _uniform(self) -> Tensor:
        return torch.full((len(self.choices),), 1.0 / len(self.choices), dtype=torch.float64)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graph, or a view of it, and a view by an operation drawn for each graph.

        In evaluation mode all choices are drawn alike, so that a task before and after training is one task.
        """
        p = self.probabilities if self.training else self._uniform()
        shares = (p / p.sum()).to(generator.device, torch.float32)
        drawn = shares.multinomial(max(batch.num_graphs, 1), replacement=True, generator=generator)
        pair = torch.tensor(self.choices, device=drawn.device)[drawn[: batch.num_graphs]]
        first, second = pair.unbind(1)
        anchor = self.view(batch, self.rate, generator, first) if self.pairs else batch
        changed = self.view(batch, self.rate, generator, second)
        return SampledViews({"anchor": anchor, "positive": changed}, first=first, second=second)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of both, and the heads that they go through."""
        encoded = encode_each(self.encoder, views)
        if self.heads == "operation" and isinstance(views, SampledViews):
            encoded |= {"anchor_head": views.drawn["first"], "head": views.drawn["second"]}
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent of the projected vectors."""
        return {"contrast": self.contrast(*self._both(encoded))}

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph finds its own view, by any of the operations, among those of its batch."""
        return retrieval(*self._both(encoded))

    def _both(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        heads: tuple[Tensor | int, Tensor | int] = 0, self.head_of_epoch  # as published, the first for one
        if self.heads == "operation":
            heads = encoded["anchor_head"].long(), encoded["head"].long()
        return self._projected(encoded["anchor"], encoded["positive"], heads)

    def _projected(
        self, anchor: Tensor, positive: Tensor, heads: tuple[Tensor | int, Tensor | int]
    ) -> tuple[Tensor, Tensor]:
        """Each side through its heads: those of its operations, of which the identity is one."""
        which = torch.empty(2, len(anchor), dtype=torch.int64, device=anchor.device)
        which[0], which[1] = heads
        rows = through_own_head(self.projections, torch.cat([anchor, positive]), which.flatten())
        first, second = rows.chunk(2)
        return first, second

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        self._draw_head(generator)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """One step of the maximisation: p + (losses - gamma (p - uniform)), projected on the simplex."""
        losses = self.losses_of_operations(collection, generator)
        # Losses that are not finite say nothing of p; the next step of training will stop there.
        if bool(losses.isfinite().all()):
            p = self.probabilities
            self.probabilities = self.project(p + losses - self.gamma * (p - 1.0 / len(p)))
        self._draw_head(generator)

    def _draw_head(self, generator: torch.Generator) -> None:
        if self.heads == "epoch":
            p = self.probabilities.to(generator.device, torch.float32)
            self.head_of_epoch = int(p.multinomial(1, generator=generator))

    @torch.no_grad()
    def losses_of_operations(self, collection: GraphCollection, generator: torch.Generator) -> Tensor:
        """The mean loss of each choice, with that operation or pair alone, on the same random graphs.

        In training mode, as the loss is in training; BatchNorm's running statistics are put back.
        """
        buffers = {name: value.clone() for name, value in self.named_buffers()}
        was_training = self.training
        self.train()
        total = torch.zeros(len(self.choices), dtype=torch.float64)
        graphs = 0
        for batch in self._sample(collection, generator):
            # Every operation once a side: a pair's loss needs no views of its own.
            seconds = {f"to {k}": view(batch, self.rate, generator) for k, view in enumerate(self.operations)}
            firsts = {f"from {IDENTITY}": batch}
            if self.pairs:
                firsts = {
                    f"from {k}": view(batch, self.rate, generator) for k, view in enumerate(self.operations)
                }
            encoded = encode_each(self.encoder, firsts | seconds)
            for number, (k, j) in enumerate(self.choices):
                heads = (k, j) if self.heads == "operation" else (0, 0)
                sides = self._projected(encoded[f"from {k}"], encoded[f"to {j}"], heads)
                total[number] += batch.num_graphs * float(self.contrast(*sides))
            graphs += batch.num_graphs
        for name, value in self.named_buffers():
            value.copy_(buffers[name])
        self.train(was_training)
        return total / max(graphs, 1)

    def _sample(self, collection: GraphCollection, generator: torch.Generator) -> Iterator[GraphBatch]:
        """A share of the collection's batches, and at least one."""
        size, device = len(collection), generator.device
        count = 1 + int(self.estimate_share * -(-size // ESTIMATE_BATCH))
        order = torch.randperm(size, generator=generator, device=device).cpu().numpy()
        for start in range(0, min(count * ESTIMATE_BATCH, size), ESTIMATE_BATCH):
            rows = order[start : start + ESTIMATE_BATCH].astype(np.int64)
            yield GraphBatch.gather(collection, rows).to(device)

    def figures(self, encoded: Encoded) -> dict[str, float]:
        """The probabilities that the next epoch draws with."""
        names = [name.replace("-", "_") for name in OPERATIONS]
        return {
            f"probability_{f'{names[first]}_and_' if self.pairs else ''}{names[second]}": float(p)
            for (first, second), p in zip(self.choices, self.probabilities, strict=True)
        }

    def state(self) -> dict[str, Tensor]:
        return {"probabilities": self.probabilities, "head": torch.tensor(self.head_of_epoch)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.head_of_epoch = int(state["head"])
        self.probabilities = state["probabilities"].cpu().clone()


def _register(name: str, summary: str, published: Mapping[str, object], **changes: object) -> None:
    METHODS.register(name)(
        MethodEntry(
            JOAO, "Graph Contrastive Learning Automated", 2021, summary, settings=changes,
            later={"pairs": False},
            presets={"published": published, "molecules": MOLECULES},
        )
    )  # fmt: skip


_register("joao", "GraphCL with augmentations chosen by their losses", PUBLISHED)
_register(
    "joaov2", "JOAO with a projection head for each augmentation", PUBLISHED_V2,
    **{"heads": "operation", "training.learning_rate": 0.001},
)  # fmt: skip
