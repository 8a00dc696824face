"""Metrics as TensorBoard events, for those who watch there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from graphsc.core.extras import require
from graphsc.training.reporter import Reporter


class TensorBoardReporter(Reporter):
    """Passes everything on to another reporter and writes every epoch's row beside."""

    def __init__(self, folder: Path, inner: Reporter) -> None:
        require("tensorboard")
        from torch.utils.tensorboard import SummaryWriter

        self._make: Callable[..., Any] = partial(SummaryWriter, str(folder))
        self._inner = inner

    def say(self, sentence: str) -> None:
        self._inner.say(sentence)

    @contextmanager
    def training(self, epochs: int, done: int) -> Iterator[None]:
        # A run killed between an epoch's row and its checkpoint makes that epoch again.
        with self._make(purge_step=done + 1) as self._writer, self._inner.training(epochs, done):
            yield

    def step(self, epoch: int, step: int, steps: int, sums: dict[str, float]) -> None:
        self._inner.step(epoch, step, steps, sums)

    def epoch(self, row: dict[str, float]) -> None:
        for name, value in row.items():
            if name != "epoch":
                self._writer.add_scalar(name, value, int(row["epoch"]))
        self._inner.epoch(row)
