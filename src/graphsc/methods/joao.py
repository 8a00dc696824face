"""JOAO and JOAOv2: graph contrastive learning automated (You et al., ICML 2021).

GraphCL that chooses its augmentations by their losses. Each graph is contrasted with one view of it, by one
of five operations drawn with probabilities p; as published for molecules, two views are contrasted, by one of
the 25 pairs of operations. After each epoch p moves towards the choices with a high loss, is pulled back
towards uniform, and is projected onto the probability simplex. JOAOv2 adds a projection head per operation.

    l_a = mean NT-Xent with choice a alone
    p <- simplex(p + l - gamma (p - uniform))
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
from graphsc.losses import graphcl_nt_xent
from graphsc.methods.base import (
    BatchNormEmbedding,
    Encoded,
    Losses,
    Pretext,
    TrainedMethod,
    Views,
    encode_each,
    frozen,
)
from graphsc.methods.contrastive import (
    Augmentations,
    SampledViews,
    check_contrast,
    make_operations,
    projection,
    retrieval,
)
from graphsc.methods.registry import METHODS, ON_MOLECULES, MethodEntry
from graphsc.views import Choice
from graphsc.views.base import check_rate

OPERATIONS = ("drop-nodes", "perturb-edges", "subgraph", "mask-attributes", "identity")
IDENTITY = OPERATIONS.index("identity")
ESTIMATE_BATCH = 128  # graphs; another size would shift all losses alike, which does not change p

# The repository's scripts for TU data; they search gamma in 0.01, 0.1 and 1.
PUBLISHED: Mapping[str, object] = {
    "augmentations": "graphcl",
    "subgraph_keeps": 0.8,
    "simplex": "bisection",
    "batch_norm_embedding": "running",
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
        gamma: float = 0.1,  # how strongly p is pulled towards uniform
        # One head for all views, one per operation, or, as published, one per epoch drawn by p.
        heads: Literal["shared", "operation", "epoch"] = "shared",
        temperature: float = 0.2,
        positive_in_denominator: bool = False,
        augmentations: Augmentations = "fixed",
        subgraph_keeps: float = 0.8,  # the share of nodes that the published subgraph keeps at most
        simplex: Literal["exact", "bisection"] = "exact",
        estimate_share: float = 0.2,  # of the batches, to estimate the losses of the choices
        pairs: bool = False,  # both sides are views, and each pair of operations has its probability
        batch_norm_embedding: BatchNormEmbedding = "uncentred",
    ) -> None:
        super().__init__(encoder, batch_norm_embedding=batch_norm_embedding)
        check_rate(rate)
        check_contrast(temperature)
        if gamma < 0:
            raise ConfigError(f"gamma must not be negative, not {gamma}")
        if pairs and heads == "epoch":
            raise ConfigError(
                "heads 'epoch' cannot be combined with pairs", hint="use heads: operation or shared"
            )
        if not 0 <= estimate_share <= 1:
            raise ConfigError(f"estimate_share must lie between 0 and 1, not {estimate_share}")
        self.rate = rate
        self.gamma = gamma
        self.heads = heads
        self.contrast = partial(
            graphcl_nt_xent, temperature=temperature, positive_in_denominator=positive_in_denominator
        )
        self.operations = make_operations(OPERATIONS, augmentations, subgraph_keeps)
        self.view = Choice(self.operations)
        firsts = range(len(OPERATIONS)) if pairs else [IDENTITY]
        self.choices = [(first, second) for first in firsts for second in range(len(OPERATIONS))]
        self.pairs = pairs
        self.project = project_to_simplex if simplex == "exact" else project_by_bisection
        self.estimate_share = estimate_share
        width = self.graph_width
        self.projections = nn.ModuleList(
            projection(width) for _ in range(1 if heads == "shared" else len(OPERATIONS))
        )
        self.head_of_epoch = 0
        self.probabilities = self._uniform()

    def _uniform(self) -> Tensor:
        return torch.full((len(self.choices),), 1.0 / len(self.choices), dtype=torch.float64)

    def views(self, batch: GraphBatch, generator: torch.Generator) -> Views:
        """The graph, or a view of it, and a view by an operation drawn per graph.

        In evaluation mode all choices are equally likely, so that the pretext task is the same before and
        after training.
        """
        p = self.probabilities if self.training else self._uniform()
        shares = (p / p.sum()).to(generator.device, torch.float32)
        chosen = shares.multinomial(max(batch.num_graphs, 1), replacement=True, generator=generator)
        pair = torch.tensor(self.choices, device=chosen.device)[chosen[: batch.num_graphs]]
        first, second = pair.unbind(1)
        anchor = self.view(batch, self.rate, generator, first) if self.pairs else batch
        positive = self.view(batch, self.rate, generator, second)
        return SampledViews({"anchor": anchor, "positive": positive}, first=first, second=second)

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Graph vectors of both views (B x D), and with `heads="operation"` the head of each row (B)."""
        encoded = encode_each(self.encoder, views)
        if self.heads == "operation" and isinstance(views, SampledViews):
            encoded |= {"anchor_head": views.sampled["first"], "head": views.sampled["second"]}
        return encoded

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """NT-Xent of the projected vectors."""
        return {"contrast": self.contrast(*self._project_encoded(encoded))}

    def extra_metrics(self, encoded: Encoded) -> dict[str, float]:
        """The probabilities of the choices in the next epoch."""
        names = [name.replace("-", "_") for name in OPERATIONS]
        return {
            f"probability_{f'{names[first]}_and_' if self.pairs else ''}{names[second]}": float(p)
            for (first, second), p in zip(self.choices, self.probabilities, strict=True)
        }

    def pretext(self, encoded: Encoded) -> Pretext:
        """How often a graph is nearest to its own view, by any of the operations."""
        return retrieval(*self._project_encoded(encoded))

    def _project_encoded(self, encoded: Encoded) -> tuple[Tensor, Tensor]:
        # As published, the anchor always takes the first head.
        heads: tuple[Tensor | int, Tensor | int] = 0, self.head_of_epoch
        if self.heads == "operation":
            heads = encoded["anchor_head"].long(), encoded["head"].long()
        return self._project(encoded["anchor"], encoded["positive"], heads)

    def _project(
        self, anchor: Tensor, positive: Tensor, heads: tuple[Tensor | int, Tensor | int]
    ) -> tuple[Tensor, Tensor]:
        """Project both sides by the given heads, one per row or one for all rows of a side."""
        head = torch.empty(2, len(anchor), dtype=torch.int64, device=anchor.device)
        head[0], head[1] = heads
        rows = apply_heads(self.projections, torch.cat([anchor, positive]), head.flatten())
        first, second = rows.chunk(2)
        return first, second

    def begin(self, collection: GraphCollection, generator: torch.Generator) -> None:
        self._draw_head(generator)

    def after_epoch(self, collection: GraphCollection, generator: torch.Generator) -> None:
        """One step of the maximisation: p + (losses - gamma (p - uniform)), projected onto the simplex."""
        losses = self.losses_of_operations(collection, generator)
        # Losses that are not finite say nothing about p; the next training step will report them.
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
        """The mean loss of each choice alone, all on the same random graphs.

        In training mode, as the loss is in training; BatchNorm's running statistics are put back.

        Returns:
            One loss per choice, float64.
        """
        total = torch.zeros(len(self.choices), dtype=torch.float64)
        graphs = 0
        with frozen(self, training=True, restore_buffers=True):
            for batch in self._sample(collection, generator):
                # Every operation once per side: the loss of a pair needs no views of its own.
                seconds = self._view_by_each("to", batch, generator)
                firsts = {f"from {IDENTITY}": batch}
                if self.pairs:
                    firsts = self._view_by_each("from", batch, generator)
                encoded = encode_each(self.encoder, firsts | seconds)
                for number, (first, second) in enumerate(self.choices):
                    heads = (first, second) if self.heads == "operation" else (0, 0)
                    sides = self._project(encoded[f"from {first}"], encoded[f"to {second}"], heads)
                    total[number] += batch.num_graphs * float(self.contrast(*sides))
                graphs += batch.num_graphs
        return total / max(graphs, 1)

    def _view_by_each(
        self, side: str, batch: GraphBatch, generator: torch.Generator
    ) -> dict[str, GraphBatch]:
        return {f"{side} {k}": view(batch, self.rate, generator) for k, view in enumerate(self.operations)}

    def _sample(self, collection: GraphCollection, generator: torch.Generator) -> Iterator[GraphBatch]:
        """A share of the collection's batches, and at least one."""
        size, device = len(collection), generator.device
        count = 1 + int(self.estimate_share * -(-size // ESTIMATE_BATCH))
        order = torch.randperm(size, generator=generator, device=device).cpu().numpy()
        for start in range(0, min(count * ESTIMATE_BATCH, size), ESTIMATE_BATCH):
            rows = order[start : start + ESTIMATE_BATCH].astype(np.int64)
            yield GraphBatch.gather(collection, rows).to(device)

    def state(self) -> dict[str, Tensor]:
        return {"probabilities": self.probabilities, "head": torch.tensor(self.head_of_epoch)}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        self.head_of_epoch = int(state["head"])
        self.probabilities = state["probabilities"].cpu().clone()


def apply_heads(heads: nn.ModuleList, rows: Tensor, head: Tensor) -> Tensor:
    """Each row (B x d) through the head with its index (B).

    Rows are grouped by head, so the cost is that of one head. A head without rows gets a zero gradient.
    """
    if len(heads) == 1:
        result: Tensor = heads[0](rows)
        return result
    order = head.argsort(stable=True)
    counts = torch.bincount(head, minlength=len(heads)).tolist()
    parts = torch.split(rows[order], counts)
    projected = torch.cat([module(part) for module, part in zip(heads, parts, strict=True)])
    return projected[order.argsort()]


def project_to_simplex(point: Tensor) -> Tensor:
    """The nearest probabilities to a point (n): none negative, sum one.

    All entries are lowered by the same number and clipped at zero; sorting finds that number exactly.
    """
    descending = point.sort(descending=True).values
    surplus = descending.cumsum(0) - 1.0
    counts = torch.arange(1, len(point) + 1, dtype=point.dtype, device=point.device)
    positive = int((descending * counts > surplus).sum())  # how many entries stay above zero
    return (point - surplus[positive - 1] / positive).clamp_(min=0.0)


def project_by_bisection(point: Tensor, tolerance: float = 1e-2) -> Tensor:
    """The same, approximately: bisection until the sum is one up to the tolerance, then division by it."""
    low, high = float(point.min()) - 1.0 / len(point), float(point.max()) - 1.0 / len(point)
    while True:
        middle = (low + high) / 2
        clipped = (point - middle).clamp(min=0.0)
        total = float(clipped.sum())
        if abs(total - 1.0) <= tolerance:
            return clipped / total
        low, high = (middle, high) if total > 1.0 else (low, middle)


def _register(name: str, summary: str, published: Mapping[str, object], **changes: object) -> None:
    METHODS.register(name)(
        MethodEntry(
            JOAO, "Graph Contrastive Learning Automated", 2021, summary, contrast="two views of a graph",
            negatives="other graphs of the batch", augmentation="perturbations chosen by their losses",
            passes=2, settings=changes,
            presets={"published": published, "molecules": MOLECULES},
        )
    )  # fmt: skip


_register("joao", "GraphCL with augmentations chosen by their losses", PUBLISHED)
_register(
    "joaov2", "JOAO with a projection head for each augmentation", PUBLISHED_V2,
    **{"heads": "operation", "training.learning_rate": 0.001},
)  # fmt: skip
