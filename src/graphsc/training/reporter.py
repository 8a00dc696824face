"""What a person sees of a training: a bar on a terminal, a line an epoch otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from graphsc.training.health import warning_of

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

SAY_EVERY = 60.0  # seconds between lines within an epoch, where there is no bar
JUDGED = ("valid_roc_auc", "valid_rmse")  # where labels say how well it goes


class Reporter:
    """Silent; the base of the ones that speak, and what a library call gets."""

    def say(self, sentence: str) -> None:
        """Something worth knowing, once."""

    @contextmanager
    def training(self, epochs: int, done: int) -> Iterator[None]:
        """Around the whole training."""
        yield

    def step(self, epoch: int, step: int, steps: int, sums: dict[str, float]) -> None:
        """After every step."""

    def epoch(self, row: dict[str, float]) -> None:
        """After every epoch, with its row of the metrics."""


class PlainReporter(Reporter):
    """One line an epoch on stderr, and one a minute within a long epoch."""

    def __init__(self) -> None:
        self._epochs = 0
        self._warned = False
        self._begun = self._said = 0.0
        self._start: float | None = None  # where the first step of this call began, in epochs

    def say(self, sentence: str) -> None:
        sys.stderr.write(sentence + "\n")

    @contextmanager
    def training(self, epochs: int, done: int) -> Iterator[None]:
        self._epochs = epochs
        self._begun = self._said = time.monotonic()
        self._start = None
        yield

    def step(self, epoch: int, step: int, steps: int, sums: dict[str, float]) -> None:
        now = time.monotonic()
        if self._start is None:
            self._start = epoch + (step - 1) / steps
        if now - self._said < SAY_EVERY:
            return
        self._said = now
        done = epoch + step / steps
        left = (now - self._begun) / (done - self._start) * (self._epochs - done)
        loss = f"  loss {sums['loss'] / step:.4f}" if "loss" in sums else ""
        self.say(f"epoch {epoch + 1}/{self._epochs}, step {step} of {steps}{loss}  {duration(left)} left")

    def epoch(self, row: dict[str, float]) -> None:
        self._said = time.monotonic()
        self.say(f"epoch {row['epoch']:.0f}/{self._epochs}  {summary_of(row)}")
        self._warn(row)

    def _warn(self, row: dict[str, float]) -> None:
        warning = warning_of(row)
        if warning and not self._warned:
            self._warned = True
            self.say(f"warning: {warning}")


class BarReporter(PlainReporter):
    """A progress bar with loss, its parts, speed and the time left."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def say(self, sentence: str) -> None:
        if self._bar is not None:
            self._bar.console.print(sentence, markup=False, highlight=False)
        else:
            super().say(sentence)

    @contextmanager
    def training(self, epochs: int, done: int) -> Iterator[None]:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("epoch"), MofNCompleteColumn(), BarColumn(), TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False),
        )  # fmt: skip
        with Bar(*columns, console=Console(stderr=True)) as bar:
            self._bar, self._task = bar, bar.add_task("", total=epochs, completed=done)
            try:
                yield
            finally:
                self._bar = None

    def step(self, epoch: int, step: int, steps: int, sums: dict[str, float]) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=epoch + step / steps)

    def epoch(self, row: dict[str, float]) -> None:
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=row["epoch"], description=summary_of(row))
        self._warn(row)


def reporter_for_terminal() -> Reporter:
    """The bar where a person watches, lines where a file does."""
    return BarReporter() if sys.stderr.isatty() else PlainReporter()


def duration(seconds: float) -> str:
    """So many seconds as people say it."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def summary_of(row: dict[str, float]) -> str:
    """Loss, its parts, rank, the score on validation and speed in one line."""
    parts = [
        f"{name.removeprefix('loss_')} {value:.4g}" for name, value in row.items() if name.startswith("loss_")
    ]
    text = f"loss {row['loss']:.4f}" if "loss" in row else "no loss"
    if len(parts) > 1:
        text += f" ({', '.join(parts)})"
    if "effective_rank" in row:
        text += f"  rank {row['effective_rank']:.1f}/{row['dimensions']:.0f}"
    text += "".join(f"  {name.replace('_', ' ')} {row[name]:.4f}" for name in JUDGED if name in row)
    return text + f"  {row['graphs_per_second']:,.0f} graphs/s"
