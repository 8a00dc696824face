"""What a person sees of a training: a bar on a terminal, a line an epoch otherwise."""

from __future__ import annotations

import csv
import io
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import nn

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import write_atomic
from graphsc.core.random import derive_seed, torch_generator
from graphsc.core.registry import require
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection, subset
from graphsc.encoders.inference import reestimate_batchnorm
from graphsc.losses import alignment, effective_rank, mean_cosine, uniformity
from graphsc.methods.base import Pretext, TrainedMethod

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID


# The health of a representation, epoch by epoch, on a sample of graphs.


SAMPLE = 256  # graphs; enough to see a collapse, few enough to cost nothing
FEW = 20  # graphs; fewer have no rank to speak of
COLLAPSED = 0.05  # share of the dimensions in use below which a warning is due


@torch.no_grad()
def health_of(
    method: TrainedMethod, collection: GraphCollection, seed: int, epoch: int, device: torch.device
) -> dict[str, float]:
    """Effective rank, uniformity and cosine of the vectors; alignment where there is a positive view.

    In training mode, as the loss sees them, with BatchNorm's running statistics put back afterwards.
    """
    rows = np.unique(np.linspace(0, len(collection) - 1, min(SAMPLE, len(collection))).astype(np.int64))
    batch = GraphBatch.gather(collection, rows).to(device)
    views = method.views(batch, torch_generator(seed, "health", epoch, device=device))
    buffers = {name: value.clone() for name, value in method.named_buffers()}
    encoded = method.encode(views)
    for name, value in method.named_buffers():
        value.copy_(buffers[name])
    if "anchor" not in encoded:
        return method.extra_metrics(encoded)
    anchor = encoded["anchor"].float()
    found = {
        "effective_rank": float(effective_rank(anchor)),
        "dimensions": float(anchor.shape[1]),
        "health_graphs": float(len(anchor)),
        "uniformity": float(uniformity(anchor)),
        "mean_cosine": float(mean_cosine(anchor)),
    }
    if "positive" in encoded:
        found["alignment"] = float(alignment(anchor, encoded["positive"].float()))
    return found | method.extra_metrics(encoded)


def warning_of(row: dict[str, float]) -> str | None:
    """In plain words, that the vectors have collapsed; None while they have not."""
    rank, dimensions = row.get("effective_rank"), row.get("dimensions")
    if rank is None or not dimensions or row["health_graphs"] < FEW:
        return None
    if rank >= max(2.5, COLLAPSED * dimensions):
        return None
    return (
        f"embeddings use {max(1, round(rank))} of {dimensions:.0f} dimensions: they are collapsing; "
        "lower the learning rate"
    )


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


# `metrics.csv`: one row an epoch, columns as they come, cut back to where a resumed run starts.


TIMES = ("seconds", "graphs_per_second")  # the only columns that differ between two equal runs


class Metrics:
    """Rows of numbers by name. The file is rewritten whole: it is small, and never partial."""

    def __init__(self, path: Path | None, keep: int = 0) -> None:
        """Start with the first `keep` epochs of what is already there."""
        self.path = path
        self.rows: list[dict[str, float]] = []
        if path is not None and path.exists() and keep:
            try:
                with open(path, newline="", encoding="utf-8") as file:
                    found = [
                        {name: float(text) for name, text in row.items() if name and text}
                        for row in csv.DictReader(file)
                    ]
            except (ValueError, TypeError, csv.Error) as error:
                raise DamagedFileError(
                    f"metrics are damaged: {error}", where=str(path),
                    hint="remove the file to go on without the epochs before",
                ) from error  # fmt: skip
            self.rows = [row for row in found if row.get("epoch", keep + 1) <= keep]

    def add(self, row: dict[str, float]) -> None:
        self.rows.append(row)
        if self.path is None:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows([{name: _plain(value) for name, value in row.items()} for row in self.rows])
        write_atomic(self.path, text.getvalue())


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# Metrics as TensorBoard events, for those who watch there.


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


# How often a step sends its graphs through an encoder: counted, because methods differ by it in price.


@torch.no_grad()
def passes_per_step(method: TrainedMethod, batch: GraphBatch, generator: torch.Generator) -> float:
    """Graphs encoded for each graph of the batch, over all players and all encoders of a method.

    Encoders are `method.encoder` and whatever else in the method is of its kind. The method and torch's own
    generator are left as they were.
    """
    was_training = method.training
    method.eval()  # BatchNorm over several ranks would wait for the others
    encoders = [part for part in method.modules() if type(part) is type(method.encoder)]
    try:
        with torch.random.fork_rng(devices=[]), ExitStack() as stack:
            counts = [stack.enter_context(counted_graphs(encoder)) for encoder in encoders]
            views = method.views(batch, generator)
            for player in method.players():
                method.encode(views, player.name)
    finally:
        method.train(was_training)
    return sum(max(found.values(), default=0) for found in counts) / max(batch.num_graphs, 1)


@contextmanager
def counted_graphs(encoder: nn.Module) -> Iterator[dict[nn.Module, int]]:
    """The number of graphs that each part of an encoder was given as a batch.

    A pass may enter by another door than `forward`, and then only inner parts are called; the part that saw
    most graphs has seen every pass.
    """
    counts: dict[nn.Module, int] = {}

    def count(part: nn.Module, inputs: tuple[object, ...]) -> None:
        if inputs and isinstance(inputs[0], GraphBatch):
            counts[part] = counts.get(part, 0) + inputs[0].num_graphs

    handles = [part.register_forward_pre_hook(count) for part in encoder.modules()]
    try:
        yield counts
    finally:
        for handle in handles:
            handle.remove()


# A method's own task on graphs that it never trains on, before and after it has learned.


BATCH = 256  # graphs among which one is to be found; the same for all methods, so that chance is too
CLEAN = 2_048  # graphs for BatchNorm's statistics


@torch.no_grad()
def pretext_of(method: TrainedMethod, graphs: GraphCollection, seed: int) -> Pretext | None:
    """The mean score over batches of 256; None for a method without a task.

    The same graphs, views and noise whenever it is called with the same seed. Fewer than 256 graphs are one
    batch, and what is left over of more is not looked at.
    """
    was_training = method.training
    device = next(method.parameters()).device
    size = min(BATCH, len(graphs))
    found: list[Pretext] = []
    method.eval()
    try:
        with torch.random.fork_rng(devices=[]):
            for step in range(len(graphs) // size if size else 0):
                rows = np.arange(step * size, (step + 1) * size, dtype=np.int64)
                batch = GraphBatch.gather(graphs, rows).to(device)
                torch.manual_seed(derive_seed(seed, "pretext", 0, step))
                views = method.views(batch, torch_generator(seed, "pretext", 0, step, device))
                encoded = {name: value.float() for name, value in method.encode(views).items()}
                one = method.pretext(encoded)
                if one is None:
                    return None
                found.append(one)
    finally:
        method.train(was_training)
    if not found:
        return None
    score, chance = (float(np.mean([getattr(one, key) for one in found])) for key in ("score", "chance"))
    return Pretext(found[0].name, score, chance)


class WatchPretext:
    """Epoch hook: the score before the first epoch and after the last, and the price of a step.

    Kept in a file of the run folder, so that a run that went on after a stop still knows where it began.
    """

    def __init__(
        self, path: Path | None, training: GraphCollection, held_out: GraphCollection, seed: int, last: int
    ) -> None:
        self.path = path
        self.training = training
        self.held_out = held_out
        self.seed = seed
        self.last = last
        self.scores: dict[int, Pretext] = {}
        self.passes = 0.0
        if path is not None and path.exists():
            self._read(path)

    def __call__(self, epochs: int, method: TrainedMethod) -> None:
        if epochs in (0, self.last):
            self.look(epochs, method)

    def look(self, epochs: int, method: TrainedMethod) -> None:
        """Score a method that has learned for so many epochs; it is left as it was."""
        sample = np.unique(np.linspace(0, len(self.training) - 1, CLEAN).astype(np.int64))
        was_training = method.training
        buffers = {name: value.clone() for name, value in method.named_buffers()}
        if epochs == 0:
            batch = GraphBatch.gather(self.training, sample[:BATCH]).to(next(method.parameters()).device)
            generator = torch_generator(self.seed, "passes", device=batch.device)
            self.passes = passes_per_step(method, batch, generator)
        if method.batch_norm_embedding == "reestimate" and len(self.held_out):
            reestimate_batchnorm(method, subset(self.training, sample))
        score = pretext_of(method, self.held_out, self.seed)
        for name, value in method.named_buffers():
            value.copy_(buffers[name])
        method.train(was_training)
        if score is not None:
            self.scores[epochs] = score
        self._write()

    @property
    def before(self) -> Pretext | None:
        return self.scores.get(0)

    @property
    def after(self) -> Pretext | None:
        return self.scores.get(max(self.scores, default=0))

    def _write(self) -> None:
        if self.path is None:
            return
        scores = {str(epoch): vars(score) for epoch, score in sorted(self.scores.items())}
        write_atomic(
            self.path, json.dumps({"passes_per_step": self.passes, "scores": scores}, indent=1) + "\n"
        )

    def _read(self, path: Path) -> None:
        try:
            found: Mapping[str, object] = json.loads(path.read_bytes())
            scores = found["scores"]
            if not isinstance(scores, Mapping):
                raise TypeError("no scores")
            self.scores = {
                int(epoch): Pretext(str(one["name"]), float(one["score"]), float(one["chance"]))
                for epoch, one in scores.items()
            }
            self.passes = float(str(found["passes_per_step"]))
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedFileError(
                "not a list of pretext scores", where=str(path), hint="remove the file to go on without it"
            ) from error
