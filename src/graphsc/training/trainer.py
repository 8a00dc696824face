"""One loop for every method: draw, encode, descend, note, save; and go on exactly where it stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim import Adam, Optimizer

from graphsc.core.errors import ConfigError, DivergedError
from graphsc.core.files import StoppedError, StopRequest, stop_requests
from graphsc.core.random import derive_seed, numpy_generator, torch_generator
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.methods.base import Losses, Player, TrainedMethod, Views
from graphsc.training.callbacks import Metrics, Reporter, health_of
from graphsc.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from graphsc.training.distributed import Ranks, share_batchnorm

if TYPE_CHECKING:
    from lightning_fabric import Fabric


# The next step's graphs and views, made while this step learns.
#
# A thread and not processes: gathering and perturbing are array operations that let go of the interpreter,
# and nothing has to be copied. What is made depends on (seed, epoch, step) alone, so the result is the same
# as without it.


T = TypeVar("T")


# Nodes and edges in a batch. Small batches are mostly Python, and two threads of Python take turns.
WORTH = 100_000


def worth_a_thread(collection: GraphCollection, batch_size: int) -> bool:
    """Whether batches of this collection are large enough for making them ahead to save time."""
    share = min(1.0, batch_size / max(len(collection), 1))
    return (collection.num_nodes + collection.num_edges) * share > WORTH


def one_ahead(make: Callable[[int], T], start: int, stop: int, *, thread: bool = True) -> Iterator[T]:
    """`make(start)`, ..., `make(stop - 1)`, each begun before the one before it is used."""
    if start >= stop or not thread:
        yield from map(make, range(start, stop))
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="graphsc-ahead")
    try:
        coming = pool.submit(make, start)
        for step in range(start, stop):
            ready = coming.result()
            if step + 1 < stop:
                coming = pool.submit(make, step + 1)
            yield ready
    finally:
        # Left early (an error, a stop): do not wait for work that nobody will use.
        pool.shutdown(wait=False, cancel_futures=True)


# Which graphs share a batch, epoch by epoch.


SMALLEST = 8  # a last batch below this is dropped: HSIC and Barlow Twins are noise on so few


def batches_of_epoch(graphs: int, batch_size: int, seed: int, epoch: int) -> list[NDArray[np.int64]]:
    """All graphs in random order, cut into batches; the only batch is never dropped."""
    order = numpy_generator(seed, "order", epoch).permutation(graphs).astype(np.int64)
    batches = [order[start : start + batch_size] for start in range(0, graphs, batch_size)]
    if len(batches) > 1 and len(batches[-1]) < SMALLEST:
        batches.pop()
    return batches


# How a method is trained; the same keywords in Python, in a config file and on the command line.


@dataclass(frozen=True)
class TrainSettings:
    """Settings of the loop. Defaults are those of the GraphCL line."""

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup_epochs: float = 0.0
    clip: float | None = None  # largest norm of the gradient
    precision: Literal["full", "bf16"] = "full"
    compile: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 0 or self.batch_size < 1:
            raise ConfigError("epochs must not be negative and batch_size must be at least 1")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ConfigError(f"learning_rate must be positive, not {self.learning_rate}")
        if self.weight_decay < 0 or self.warmup_epochs < 0 or (self.clip is not None and self.clip <= 0):
            raise ConfigError("weight_decay and warmup_epochs must not be negative, clip must be positive")

    def rate_at(self, epoch: int, step: int, steps: int) -> float:
        """The learning rate of one step: a function of when it is, so that nothing needs to be saved."""
        done = epoch + step / steps  # in epochs
        if self.warmup_epochs and done < self.warmup_epochs:
            return self.learning_rate * (step + 1 + epoch * steps) / (self.warmup_epochs * steps + 1)
        if self.schedule == "constant" or self.epochs <= self.warmup_epochs:
            return self.learning_rate
        share = (done - self.warmup_epochs) / (self.epochs - self.warmup_epochs)
        if self.schedule == "linear":
            return self.learning_rate * (1 - share)
        return self.learning_rate * 0.5 * (1 + math.cos(math.pi * share))

    def to_json(self) -> dict[str, object]:
        return asdict(self)


SAVE_EVERY = 10.0  # seconds of training between checkpoints within an epoch

# Called with the number of finished epochs (0 before the first) and the method; must not change it.
EpochHook = Callable[[int, TrainedMethod], None]

# The same once an epoch, giving columns of its row of the metrics.
Measure = Callable[[int, TrainedMethod], Mapping[str, float]]

# Whether the rows of the metrics so far are reason to stop; of them alone, so that a resumed run agrees.
Enough = Callable[[Sequence[Mapping[str, float]]], bool]


@dataclass
class Trainer:
    """Trains one method on one collection. `folder` is where checkpoints go; None keeps nothing."""

    method: TrainedMethod
    collection: GraphCollection
    settings: TrainSettings
    fabric: Fabric
    name: str = "method"
    folder: Path | None = None
    metrics_file: Path | None = None
    reporter: Reporter = field(default_factory=Reporter)
    hooks: Sequence[EpochHook] = ()
    measures: Sequence[Measure] = ()
    enough: Enough = lambda _: False

    def run(self) -> Metrics:
        """Train to the last epoch, from the newest checkpoint where there is one."""
        self.method.to(self.fabric.device)
        self.ranks = Ranks.here()
        if self.ranks.size > 1:
            share_batchnorm(self.method)
        self.players = self.method.players()
        self.optimisers = {player.name: self._optimiser(player) for player in self.players}
        self.encode = torch.compile(self.method.encode) if self.settings.compile else self.method.encode
        progress = None
        if self.folder is not None:
            progress = load_checkpoint(self.folder, self.method, self.optimisers, self.reporter.say)
        resumed = progress is not None
        progress = progress or Progress()
        metrics = Metrics(self.metrics_file if self.ranks.first else None, keep=progress.epoch)
        epochs = self.settings.epochs if self.method.trains else 0
        if resumed and progress.epoch >= epochs:
            self.reporter.say(f"this run is finished: {progress.epoch} epochs; ask for more to extend it")
        elif resumed:
            self.reporter.say(f"going on at epoch {progress.epoch + 1}, step {progress.step + 1}")
        else:
            begun = torch_generator(self.settings.seed, "begin", device=self._device)
            self.method.begin(self.collection, begun)
            self._call_hooks(0)
        # Without a folder there is nothing to save, and Ctrl-C may do what it always does.
        listening = stop_requests() if self.folder is not None else nullcontext(StopRequest())
        with listening as request, self.reporter.training(epochs, progress.epoch):
            while progress.epoch < epochs and not self.enough(metrics.rows):
                self._epoch(progress, metrics, request)
        return metrics

    def _optimiser(self, player: Player) -> Optimizer:
        scale = self.settings.learning_rate * player.learning_rate_scale
        parameters = [parameter for parameter in player.parameters if parameter.requires_grad]
        if not parameters:
            parameters = [torch.nn.Parameter(torch.zeros(1))]  # a method without weights never steps
        # Fused: one pass over all weights instead of a dozen; MPS has it only in newer versions of torch.
        fused = self.fabric.device.type in ("cpu", "cuda")
        return Adam(parameters, lr=scale, weight_decay=self.settings.weight_decay, fused=fused)

    def _epoch(self, progress: Progress, metrics: Metrics, request: StopRequest) -> None:
        epoch, seed = progress.epoch, self.settings.seed
        batches = batches_of_epoch(len(self.collection), self.settings.batch_size, seed, epoch)
        saved = started = time.monotonic()
        before = progress.seconds
        self.method.train()
        ready = one_ahead(
            lambda step: self._views(batches[step], epoch, step),
            progress.step,
            len(batches),
            thread=worth_a_thread(self.collection, self.settings.batch_size),
        )
        for views in ready:
            losses, norms = self._step(views, epoch, progress.step, len(batches))
            for name, value in losses.items():
                progress.sums[name] = progress.sums.get(name, 0.0) + value
            if norms:
                progress.sums |= norms
            progress.step += 1
            progress.total_steps += 1
            progress.seconds = before + time.monotonic() - started
            self.reporter.step(epoch, progress.step, len(batches), progress.sums)
            asked = self.ranks.agree(request.number)
            if asked is not None:
                self._save(progress)
                raise StoppedError(asked, f"epoch {epoch + 1}, step {progress.step}")
            if time.monotonic() - saved >= SAVE_EVERY:
                self._save(progress)
                saved = time.monotonic()
        # As before a step: what is drawn from torch's own generator between epochs is resumable too.
        torch.manual_seed(derive_seed(seed, "after-epoch", epoch))
        self.method.after_epoch(
            self.collection, torch_generator(seed, "after-epoch", epoch, device=self._device)
        )
        row = self._row(progress, len(batches), sum(map(len, batches)))
        metrics.add(row)
        self.reporter.epoch(row)
        progress.epoch, progress.step, progress.sums, progress.seconds = epoch + 1, 0, {}, 0.0
        # Hooks before the checkpoint: a run killed between the two makes the same files again.
        self._call_hooks(epoch + 1)
        self._save(progress)
        asked = self.ranks.agree(request.number)
        if asked is not None:
            raise StoppedError(asked, f"after epoch {epoch + 1}")

    def _views(self, rows: NDArray[np.int64], epoch: int, step: int) -> Views:
        batch = GraphBatch.gather(self.collection, self.ranks.share(rows)).to(self._device)
        purpose = self.ranks.purpose("views")
        generator = torch_generator(self.settings.seed, purpose, epoch, step, self._device)
        return self.method.views(batch, generator)

    def _step(
        self, views: Views, epoch: int, step: int, steps: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        # Dropout and the like draw from torch's own generator; this makes them resumable too.
        torch.manual_seed(derive_seed(self.settings.seed, "step", epoch, step))
        rate = self.settings.rate_at(epoch, step, steps)
        found: dict[str, float] = {}
        norms: dict[str, float] = {}
        for player in self.players:
            optimiser = self.optimisers[player.name]
            for group in optimiser.param_groups:
                group["lr"] = rate * player.learning_rate_scale
            with self.fabric.autocast():
                encoded = self.encode(views, player.name)
            # Losses in full precision: distances and correlations are differences of like numbers.
            whole = self.ranks.gather({name: value.float() for name, value in encoded.items()})
            # Encoding may have drawn more on one rank than on another; the objective draws the same on all.
            torch.manual_seed(derive_seed(self.settings.seed, f"objective of {player.name}", epoch, step))
            losses = self.method.objective(whole, player.name)
            values = torch.stack(list(losses.values()))
            total = values.sum()
            # All numbers in one go: on a GPU each would wait for the device.
            loss, *terms = torch.cat([total.detach()[None], values.detach()]).tolist()
            self._check_finite("loss", loss, epoch, step, rate)
            prefix = "" if player.name == "model" else f"{player.name}_"
            if epoch == 0 and step == 0:
                norms |= {f"{prefix}gradient_{name}": value for name, value in self._norms(losses).items()}
            optimiser.zero_grad(set_to_none=True)
            total.backward()  # type: ignore[no-untyped-call]
            self.ranks.average_gradients(player.parameters)
            norm = torch.nn.utils.clip_grad_norm_(
                player.parameters, self.settings.clip if self.settings.clip is not None else float("inf")
            )
            self._check_finite("gradient", float(norm), epoch, step, rate)
            optimiser.step()
            found[f"{prefix}loss"] = loss
            found |= {f"{prefix}loss_{name}": value for name, value in zip(losses, terms, strict=True)}
        return found, norms

    def _norms(self, losses: Losses) -> dict[str, float]:
        """How hard each term pulls at the encoder: a dead term shows at once."""
        weights = [weight for weight in self.method.encoder.parameters() if weight.requires_grad]
        norms = {}
        for name, loss in losses.items():
            if not weights or not loss.requires_grad:
                continue
            gradients = torch.autograd.grad(loss, weights, retain_graph=True, allow_unused=True)
            squares = [gradient.square().sum() for gradient in gradients if gradient is not None]
            norms[name] = float(torch.stack(squares).sum().sqrt()) if squares else 0.0
        return norms

    def _check_finite(self, what: str, value: float, epoch: int, step: int, rate: float) -> None:
        if not math.isfinite(value):
            raise DivergedError(
                f"{what} of {self.name} is {value} at epoch {epoch + 1}, step {step + 1}, "
                f"learning rate {rate:g}",
                hint="lower the learning rate or set clip"
                + ("" if self.folder is None else ", in another folder; checkpoints here are finite"),
            )

    def _row(self, progress: Progress, steps: int, graphs: int) -> dict[str, float]:
        """The epoch's metrics: mean losses, figures of the representation, speed."""
        row: dict[str, float] = {"epoch": progress.epoch + 1}
        for name, value in progress.sums.items():
            row[name] = value if "gradient_" in name else value / steps
        row |= health_of(self.method, self.collection, self.settings.seed, progress.epoch, self._device)
        for measure in self.measures:
            row |= measure(progress.epoch + 1, self.method)
        row["learning_rate"] = self.settings.rate_at(progress.epoch, steps - 1, steps)
        row["seconds"] = round(progress.seconds, 3)
        row["graphs_per_second"] = round(graphs / max(progress.seconds, 1e-9), 1)
        return row

    def _save(self, progress: Progress) -> None:
        if self.folder is not None and self.ranks.first:
            save_checkpoint(self.folder, self.method, self.optimisers, progress)

    def _call_hooks(self, epochs: int) -> None:
        if self.ranks.first:
            for hook in self.hooks:
                hook(epochs, self.method)
        self.ranks.wait()

    @property
    def _device(self) -> torch.device:
        return self.fabric.device
