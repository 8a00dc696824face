"""Fine-tuning as a method like others: an encoder, one linear layer on top, and labels to learn from."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from graphsc.data.batch import GraphBatch
from graphsc.evaluation.tasks import Kind
from graphsc.losses import masked_bce, masked_mse
from graphsc.methods.base import Encoded, Losses, TrainedMethod, Views


class FineTuned(TrainedMethod):
    """An encoder with a head of one output a task.

    A classification gives logits and is trained by binary cross-entropy, a regression gives numbers in the
    labels' own units and is trained on the squared error of standardised labels. What is missing counts
    nowhere. BatchNorm keeps its running statistics, as all of the literature on transfer does.
    """

    bn = "running"

    def __init__(self, encoder: nn.Module, *, tasks: int, kind: Kind = "classification") -> None:
        super().__init__()
        self.encoder = encoder
        self.kind = kind
        self.head = nn.Linear(int(encoder.dimensions), tasks)  # type: ignore[arg-type]
        self.register_buffer("mean", torch.zeros(tasks))
        self.register_buffer("deviation", torch.ones(tasks))
        self.mean: Tensor
        self.deviation: Tensor

    def standardise(self, labels: Tensor) -> None:
        """Take units and offset of a regression from the labels it trains on (graphs x tasks)."""
        there = ~labels.isnan()
        count = there.sum(0).clamp(min=1)
        mean = labels.nan_to_num(0.0).double().sum(0) / count
        squares = torch.where(there, (labels.double() - mean).square(), 0.0).sum(0) / count
        self.mean.copy_(mean)
        self.deviation.copy_(torch.where(squares > 0, squares.sqrt(), 1.0))

    def encode(self, views: Views, player: str = "model") -> Encoded:
        """Raw outputs of the head, and the labels they are for."""
        batch = views["anchor"]
        assert batch.y is not None  # noqa: S101 - only labelled molecules are trained on
        return {"output": self.head(self.encoder(batch)), "labels": batch.y}

    def objective(self, encoded: Encoded, player: str = "model") -> Losses:
        """The mean over all labels that are there."""
        if self.kind == "classification":
            return {"bce": masked_bce(encoded["output"], encoded["labels"])}
        return {"mse": masked_mse(encoded["output"], (encoded["labels"] - self.mean) / self.deviation)}

    def forward(self, batch: GraphBatch) -> Tensor:
        """Graphs x tasks: logits, or numbers in the labels' own units."""
        output: Tensor = self.head(self.encoder(batch))
        return output if self.kind == "classification" else output * self.deviation + self.mean
