"""Callbacks of the trainer: progress reports, health metrics and pretext scores.

A callback adds columns to the metrics of an epoch, reacts to steps and epochs, and may end training early.
"""

from __future__ import annotations

import html
import math
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import nn

from graphsc.core.errors import DamagedFileError, DivergedError
from graphsc.core.files import read_json, read_rows, write_json, write_rows
from graphsc.core.progress import counting_bar
from graphsc.core.random import derive_seed, torch_generator
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection, subset
from graphsc.encoders.inference import reestimate_batchnorm
from graphsc.losses import alignment, effective_rank, mean_cosine, uniformity
from graphsc.methods.base import Pretext, TrainedMethod, preserved

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from graphsc.training.trainer import Trainer

TIMES = ("seconds", "graphs_per_second")  # the only metrics that differ between two equal runs


class Callback:
    """Base class of callbacks; every method does nothing.

    A callback reads the state of the trainer: `method`, `collection`, `settings`, `epoch` (finished epochs),
    `epochs` (to train), `progress`, `steps_per_epoch`, `step_losses` (of the last step), `metrics.rows` and
    `resumed`. It must leave the method and torch's global generator unchanged. Only the main process of
    several calls it, except `epoch_metrics`.
    """

    def on_train_start(self, trainer: Trainer) -> None:
        """Called once before the first step, also of a resumed run; `trainer.resumed` tells which."""

    def on_step_end(self, trainer: Trainer) -> None:
        """Called after every optimisation step."""

    def epoch_metrics(self, trainer: Trainer) -> Mapping[str, float]:
        """Columns to add to the metrics of the epoch that has just ended; called on every process."""
        return {}

    def on_epoch_end(self, trainer: Trainer) -> None:
        """Called after every epoch, with its metrics in `trainer.metrics.rows[-1]`.

        The checkpoint is written afterwards: a run killed in between repeats the epoch and this call.
        """

    def should_stop(self, trainer: Trainer) -> bool:
        """Whether to end training; asked before every epoch.

        Depend on `trainer.metrics.rows` alone, so that a resumed run decides as an uninterrupted one.
        """
        return False

    def on_train_end(self, trainer: Trainer) -> None:
        """Called once when training ends, also by an error or a stop."""


class EarlyStopping(Callback):
    """Ends training when a metric has not improved for `patience` epochs.

    Args:
        patience: Epochs without a better value; None never ends.
        monitor: A column of the metrics.
        mode: Whether a smaller (`min`) or a larger (`max`) value is better; of equal ones the first is best.
    """

    def __init__(
        self, patience: int | None, monitor: str = "loss", mode: Literal["min", "max"] = "min"
    ) -> None:
        self.patience = patience
        self.monitor = monitor
        self.mode = mode

    def should_stop(self, trainer: Trainer) -> bool:
        values = [row[self.monitor] for row in trainer.metrics.rows if self.monitor in row]
        if self.patience is None or not values:
            return False
        best = int(np.argmin(values) if self.mode == "min" else np.argmax(values))
        return len(values) - 1 - best >= self.patience


class Metrics:
    """The metrics of a run: one row of named numbers per epoch, stored as `metrics.csv`.

    The file is small and is rewritten as a whole, so that it is never partial.
    """

    def __init__(self, path: Path | None, keep: int = 0) -> None:
        """Read the first `keep` epochs of an existing file; without a path nothing is stored."""
        self.path = path
        self.rows: list[dict[str, float]] = []
        if path is not None and path.exists() and keep:
            hint = "remove the file to resume without the metrics of earlier epochs"
            table = read_rows(path, "metrics", hint=hint)
            try:
                stored = [{name: float(text) for name, text in row.items() if text} for row in table]
            except ValueError as error:
                raise DamagedFileError(f"metrics are damaged: {error}", where=str(path), hint=hint) from error
            self.rows = [row for row in stored if row.get("epoch", keep + 1) <= keep]

    def add(self, row: dict[str, float]) -> None:
        """Append the metrics of one epoch and write the file."""
        self.rows.append(row)
        if self.path is None:
            return
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        rows = [[_plain(row[name]) if name in row else "" for name in names] for row in self.rows]
        write_rows(self.path, names, rows)


def _plain(value: float) -> str:
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else repr(float(value))


# Reporters

LINE_INTERVAL = 60.0  # seconds between lines within an epoch, where there is no progress bar
VALIDATION_COLUMNS = ("valid_roc_auc", "valid_rmse")  # shown where fine-tuning provides them


@dataclass(frozen=True)
class RunOf:
    """The place of a training among several of the same length, such as seeds."""

    number: int = 1
    total: int = 1
    unit: str = "seed"
    stops_early: bool = False  # so that an estimated time is an upper limit

    @property
    def title(self) -> str:
        return f"{self.unit} {self.number} of {self.total}, " if self.total > 1 else ""


class Reporter(Callback):
    """Prints nothing; the base class of reporters and the default of library calls.

    `run_of` says which of several trainings comes next; the time left is that of all of them.
    """

    run_of = RunOf()

    def log(self, message: str) -> None:
        """Report a message, also outside the training loop."""

    @contextmanager
    def counting(self, title: str, unit: str, *, lines: bool = True) -> Iterator[Callable[[int, int], None]]:
        """Show how many of many things, such as trials, are done, and the time left.

        Without `lines`, only on a terminal, as a bar: the caller logs the same in lines of its own.
        """
        yield lambda done, total: None


class PlainReporter(Reporter):
    """Prints one line per epoch to stderr, and one per minute within a long epoch."""

    def __init__(self) -> None:
        self._warned = False
        self._started = self._last_line = 0.0
        self._first_step: float | None = None  # position of the first step of this call, in epochs

    def log(self, message: str) -> None:
        sys.stderr.write(message + "\n")

    @contextmanager
    def counting(self, title: str, unit: str, *, lines: bool = True) -> Iterator[Callable[[int, int], None]]:
        if not lines and not sys.stderr.isatty():
            yield lambda done, total: None
            return
        with counting_bar(title, unit) as progress:
            yield progress

    def on_train_start(self, trainer: Trainer) -> None:
        self._started = self._last_line = time.monotonic()
        self._first_step = None

    def on_step_end(self, trainer: Trainer) -> None:
        epoch, step, steps = trainer.progress.epoch, trainer.progress.step, trainer.steps_per_epoch
        now = time.monotonic()
        if self._first_step is None:
            self._first_step = epoch + (step - 1) / steps
        if now - self._last_line < LINE_INTERVAL:
            return
        self._last_line = now
        done = epoch + step / steps
        sums = trainer.progress.sums
        loss = f"  loss {sums['loss'] / step:.4f}" if "loss" in sums else ""
        self.log(
            f"{self.run_of.title}epoch {epoch + 1}/{trainer.epochs}, step {step} of {steps}{loss}  "
            f"{self._time_left(now, done, trainer.epochs)}"
        )

    def _time_left(self, now: float, done: float, epochs: int) -> str:
        """In words, for this training and all that come after it."""
        if self._first_step is None or done <= self._first_step:
            return ""
        coming = (self.run_of.total - self.run_of.number) * epochs
        left = (now - self._started) / (done - self._first_step) * (epochs - done + coming)
        return f"{'at most ' if self.run_of.stops_early else ''}{duration(left)} left"

    def on_epoch_end(self, trainer: Trainer) -> None:
        self._last_line = time.monotonic()
        row = trainer.metrics.rows[-1]
        left = ""
        if self.run_of.total > 1:
            left = f"  {self._time_left(self._last_line, row['epoch'], trainer.epochs)}"
        self.log(f"{self.run_of.title}epoch {row['epoch']:.0f}/{trainer.epochs}  {epoch_summary(row)}{left}")
        self._warn_of_collapse(row)

    def _warn_of_collapse(self, row: dict[str, float]) -> None:
        warning = collapse_warning(row)
        if warning and not self._warned:
            self._warned = True
            self.log(f"warning: {warning}")


BAR_WIDTH = 20  # characters
TIME_WIDTH = 8  # characters of 0:00:00 and a space


class BarReporter(PlainReporter):
    """Shows a progress bar: epoch, bar, time left, and after them as much of the metrics as fits the line."""

    def __init__(self) -> None:
        super().__init__()
        self._bar: Bar | None = None
        self._task: TaskID | None = None
        self._before = 0  # epochs of earlier trainings, of all that the bar counts

    def log(self, message: str) -> None:
        if self._bar is not None:
            self._bar.console.print(message, markup=False, highlight=False)
        else:
            super().log(message)

    def on_train_start(self, trainer: Trainer) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            TextColumn("{task.fields[title]}epoch {task.fields[epoch]}/{task.fields[epochs]}", markup=False),
            BarColumn(bar_width=BAR_WIDTH), TimeRemainingColumn(),
            TextColumn("{task.description}", markup=False), console=Console(stderr=True),
        )  # fmt: skip
        # One bar for all trainings, so that the time left is that of all.
        self._before = (self.run_of.number - 1) * trainer.epochs
        self._task = self._bar.add_task(
            "", total=self.run_of.total * trainer.epochs, completed=self._before + trainer.epoch,
            title=self.run_of.title, epoch=trainer.epoch, epochs=trainer.epochs,
        )  # fmt: skip
        self._bar.start()

    def on_step_end(self, trainer: Trainer) -> None:
        if self._bar is not None and self._task is not None:
            done = trainer.progress.epoch + trainer.progress.step / trainer.steps_per_epoch
            self._bar.update(self._task, completed=self._before + done)

    def on_epoch_end(self, trainer: Trainer) -> None:
        row = trainer.metrics.rows[-1]
        if self._bar is not None and self._task is not None:
            epoch = f"{self.run_of.title}epoch {row['epoch']:.0f}/{trainer.epochs}"
            room = self._bar.console.width - len(epoch) - BAR_WIDTH - TIME_WIDTH - 3  # spaces between columns
            self._bar.update(
                self._task, completed=self._before + row["epoch"], epoch=int(row["epoch"]),
                description=epoch_summary(row, room),
            )  # fmt: skip
        self._warn_of_collapse(row)

    def on_train_end(self, trainer: Trainer) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


class NotebookReporter(PlainReporter):
    """Shows a progress bar in a notebook, by IPython's display alone."""

    INTERVAL = 0.5  # seconds between updates

    def __init__(self) -> None:
        super().__init__()
        self._display: Any = None
        self._text = ""

    def on_train_start(self, trainer: Trainer) -> None:
        super().on_train_start(trainer)
        self._text = ""
        show = sys.modules["IPython"].display.display
        self._display = show(self._page(trainer, trainer.epoch), raw=True, display_id=True)

    def on_step_end(self, trainer: Trainer) -> None:
        now = time.monotonic()
        done = trainer.progress.epoch + trainer.progress.step / trainer.steps_per_epoch
        if self._first_step is None:
            self._first_step = trainer.progress.epoch + (trainer.progress.step - 1) / trainer.steps_per_epoch
        if now - self._last_line >= self.INTERVAL:
            self._update(trainer, done)

    def on_epoch_end(self, trainer: Trainer) -> None:
        row = trainer.metrics.rows[-1]
        self._text = epoch_summary(row, 60)
        self._update(trainer, row["epoch"])
        self._warn_of_collapse(row)

    def _update(self, trainer: Trainer, done: float) -> None:
        self._last_line = time.monotonic()
        if self._display is not None:
            self._display.update(self._page(trainer, done), raw=True)

    def _page(self, trainer: Trainer, done: float) -> dict[str, str]:
        parts = (
            f"{self.run_of.title}epoch {int(done)}/{trainer.epochs}",
            self._time_left(time.monotonic(), done, trainer.epochs),
            self._text,
        )
        text = "  ".join(part for part in parts if part)
        bar = f'<progress value="{done:.3f}" max="{trainer.epochs}"></progress>'
        return {"text/plain": text, "text/html": f"{bar} {html.escape(text)}"}


def in_notebook() -> bool:
    """Whether this runs in a notebook, of Jupyter for example."""
    ipython = sys.modules.get("IPython")
    return ipython is not None and hasattr(ipython.get_ipython(), "kernel")


def reporter_for_terminal() -> Reporter:
    """A progress bar on a terminal or in a notebook, plain lines otherwise."""
    if in_notebook():
        return NotebookReporter()
    return BarReporter() if sys.stderr.isatty() else PlainReporter()


def duration(seconds: float) -> str:
    """A number of seconds in words, such as `10 minutes`."""
    if seconds < 120:
        return f"{seconds:.0f} seconds"
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def epoch_summary(row: dict[str, float], width: int | None = None) -> str:
    """Loss, loss terms, effective rank, validation score and speed of an epoch in one line.

    With `width`, only what fits: the loss first, then the validation score, rank, speed and loss terms.
    """
    loss = f"loss {row['loss']:.4f}" if "loss" in row else "no loss"
    named = {name.removeprefix("loss_"): row[name] for name in row if name.startswith("loss_")}
    terms = (
        f" ({', '.join(f'{name} {value:.4g}' for name, value in named.items())})" if len(named) > 1 else ""
    )
    rank = f"  rank {row['effective_rank']:.1f}/{row['dimensions']:.0f}" if "effective_rank" in row else ""
    shown = [name for name in VALIDATION_COLUMNS if name in row]
    valid = "".join(f"  {name.replace('_', ' ')} {row[name]:.4f}" for name in shown)
    speed = f"  {row['graphs_per_second']:,.0f} graphs/s"
    if width is None:
        return loss + terms + rank + valid + speed
    text = loss[: max(0, width)]
    for part in (valid, rank, speed, f" {terms}" if terms else ""):
        if len(text) + len(part) <= width:
            text += part
    return text


# Metrics of the representation

HEALTH_GRAPHS = 256  # enough to see a collapse, few enough to cost next to nothing
FEWEST_GRAPHS = 20  # with fewer, the effective rank says nothing
COLLAPSED = 0.05  # share of the dimensions in use below which to warn


class HealthMetrics(Callback):
    """Measures the representation of up to 256 graphs in training mode, as the loss sees it.

    The columns are effective rank, uniformity and mean cosine of the anchor embeddings, their alignment with
    the positive view if there is one, and the method's own columns.
    """

    @torch.no_grad()
    def epoch_metrics(self, trainer: Trainer) -> Mapping[str, float]:
        method, collection, device = trainer.method, trainer.collection, trainer.fabric.device
        count = min(HEALTH_GRAPHS, len(collection))
        rows = np.unique(np.linspace(0, len(collection) - 1, count).astype(np.int64))
        batch = GraphBatch.gather(collection, rows).to(device)
        generator = torch_generator(trainer.settings.seed, "health", trainer.epoch - 1, device=device)
        views = method.views(batch, generator)
        with preserved(method):
            encoded = method.encode(views)
        if "anchor" not in encoded:
            return method.extra_metrics(encoded)
        anchor = encoded["anchor"].float()
        metrics = {
            "effective_rank": float(effective_rank(anchor)),
            "dimensions": float(anchor.shape[1]),
            "health_graphs": float(len(anchor)),
            "uniformity": float(uniformity(anchor)),
            "mean_cosine": float(mean_cosine(anchor)),
        }
        if "positive" in encoded:
            metrics["alignment"] = float(alignment(anchor, encoded["positive"].float()))
        return metrics | method.extra_metrics(encoded)


def collapse_warning(row: dict[str, float]) -> str | None:
    """A warning that the embeddings collapse; None as long as they do not.

    Raises:
        DivergedError: They are not finite, which finite weights can cause too.
    """
    rank, dimensions = row.get("effective_rank"), row.get("dimensions")
    if rank is None or not dimensions:
        return None
    if not math.isfinite(rank):
        raise DivergedError("the embeddings are not finite", hint="lower the learning rate or set clip")
    if row["health_graphs"] < FEWEST_GRAPHS:
        return None
    if rank >= max(2.5, COLLAPSED * dimensions):
        return None
    return (
        f"embeddings use {max(1, round(rank))} of {dimensions:.0f} dimensions: they are collapsing; "
        "lower the learning rate"
    )


# Pretext scores and the cost of a step

PRETEXT_BATCH = 256  # graphs to choose among; the same for all methods, so that chance level is too
CLEAN_GRAPHS = 2_048  # graphs for BatchNorm's statistics


@torch.no_grad()
def passes_per_step(method: TrainedMethod, batch: GraphBatch, generator: torch.Generator) -> float:
    """Count how many graphs are encoded per graph of the batch, over all players and encoders of a method.

    Methods differ in cost by this number. Encoders are `method.encoder` and all other modules of its type.
    The method and torch's global generator are left unchanged.
    """
    counts: list[Counter[nn.Module]] = []
    # Evaluation mode: synchronised BatchNorm would wait for the other processes.
    with preserved(method, training=False), torch.random.fork_rng(devices=[]), ExitStack() as stack:
        for encoder in method.modules():
            if type(encoder) is type(method.encoder):
                counts.append(Counter())
                for part in encoder.modules():
                    handle = part.register_forward_pre_hook(partial(_count_graphs, counts[-1]))
                    stack.callback(handle.remove)
        views = method.views(batch, generator)
        for player in method.players():
            method.encode(views, player.name)
    # A pass may call submodules only, not `encoder.forward`; the largest count is that of all passes.
    return sum(max(count.values(), default=0) for count in counts) / max(batch.num_graphs, 1)


def _count_graphs(counts: Counter[nn.Module], part: nn.Module, inputs: tuple[object, ...]) -> None:
    if inputs and isinstance(inputs[0], GraphBatch):
        counts[part] += inputs[0].num_graphs


@torch.no_grad()
def evaluate_pretext(method: TrainedMethod, graphs: GraphCollection, seed: int) -> Pretext | None:
    """The mean score of a method on its pretext task over batches of 256 graphs; None if it has no task.

    The same seed gives the same views. Fewer than 256 graphs make one batch; an incomplete last batch is
    ignored.
    """
    device = next(method.parameters()).device
    size = min(PRETEXT_BATCH, len(graphs))
    scores: list[Pretext] = []
    with preserved(method, training=False), torch.random.fork_rng(devices=[]):
        for step in range(len(graphs) // size if size else 0):
            rows = np.arange(step * size, (step + 1) * size, dtype=np.int64)
            batch = GraphBatch.gather(graphs, rows).to(device)
            torch.manual_seed(derive_seed(seed, "pretext", 0, step))
            views = method.views(batch, torch_generator(seed, "pretext", 0, step, device))
            encoded = {name: value.float() for name, value in method.encode(views).items()}
            score = method.pretext(encoded)
            if score is None:
                return None
            scores.append(score)
    if not scores:
        return None
    mean, chance = (float(np.mean([getattr(score, key) for score in scores])) for key in ("score", "chance"))
    return Pretext(scores[0].name, mean, chance)


class PretextScores(Callback):
    """Scores the pretext task on held-out graphs before the first epoch and after the last.

    Also counts the encoder passes of a step. Both are kept in a file of the run folder, so that a resumed
    run still has the score before training.
    """

    def __init__(
        self, path: Path | None, training: GraphCollection, held_out: GraphCollection, seed: int
    ) -> None:
        self.path = path
        self.training = training
        self.held_out = held_out
        self.seed = seed
        self.scores: dict[int, Pretext] = {}  # by the number of finished epochs
        self.passes = 0.0
        if path is not None and path.exists():
            self._read(path)

    def on_train_start(self, trainer: Trainer) -> None:
        if not trainer.resumed:
            self.evaluate(0, trainer.method)

    def on_epoch_end(self, trainer: Trainer) -> None:
        if trainer.is_last_epoch():
            self.evaluate(trainer.epoch, trainer.method)

    def evaluate(self, epoch: int, method: TrainedMethod) -> None:
        """Score a method that has been trained for `epoch` epochs; it is left unchanged."""
        sample = np.unique(np.linspace(0, len(self.training) - 1, CLEAN_GRAPHS).astype(np.int64))
        with preserved(method):
            if epoch == 0:
                batch = GraphBatch.gather(self.training, sample[:PRETEXT_BATCH])
                batch = batch.to(next(method.parameters()).device)
                generator = torch_generator(self.seed, "passes", device=batch.device)
                self.passes = passes_per_step(method, batch, generator)
            if method.batch_norm_embedding != "running" and len(self.held_out):
                reestimate_batchnorm(method, subset(self.training, sample))
            score = evaluate_pretext(method, self.held_out, self.seed)
        if score is not None:
            self.scores[epoch] = score
        if self.path is not None:
            scores = {str(epoch): vars(score) for epoch, score in sorted(self.scores.items())}
            stored = {"passes_per_step": self.passes, "scores": scores}
            write_json(self.path, stored, indent=1)

    @property
    def before(self) -> Pretext | None:
        return self.scores.get(0)

    @property
    def after(self) -> Pretext | None:
        return self.scores.get(max(self.scores, default=0))

    def _read(self, path: Path) -> None:
        hint = "remove the file to resume without it"
        stored = read_json(path, "pretext scores", hint=hint)
        try:
            scores = stored["scores"]
            if not isinstance(scores, Mapping):
                raise TypeError("no scores")
            self.scores = {
                int(epoch): Pretext(str(score["name"]), float(score["score"]), float(score["chance"]))
                for epoch, score in scores.items()
            }
            self.passes = float(str(stored["passes_per_step"]))
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedFileError("not a file of pretext scores", where=str(path), hint=hint) from error
