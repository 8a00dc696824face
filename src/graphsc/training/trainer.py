"""The training loop of every method, with exact resume.

Each step gathers a batch, makes its views, encodes them, computes the losses and updates the weights. Order,
views, dropout and learning rate depend on (seed, epoch, step) alone. A checkpoint therefore needs no
generator state, and a run that was interrupted anywhere ends with the same weights as one that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, nullcontext
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch.optim import SGD, Adam, AdamW, Optimizer

from graphsc.core.config import plain
from graphsc.core.errors import ConfigError, DivergedError
from graphsc.core.files import StoppedError, StopRequest, stop_requests
from graphsc.core.random import derive_seed, numpy_generator, torch_generator
from graphsc.core.registry import nearest
from graphsc.data.batch import GraphBatch
from graphsc.data.collection import GraphCollection
from graphsc.methods.base import Encoded, Losses, Player, TrainedMethod, Views
from graphsc.training.callbacks import Callback, EarlyStopping, Metrics, Reporter
from graphsc.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from graphsc.training.distributed import Distributed, Precision, convert_sync_batchnorm
from graphsc.training.model_io import check_finite

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class TrainSettings:
    """Settings of the training loop: the keywords in Python, in a config file and on the command line.

    The defaults are those of GraphCL and the methods derived from it.
    """

    epochs: int = 20
    batch_size: int = 128
    learning_rate: float = 0.01
    weight_decay: float = 0.0
    schedule: Literal["constant", "cosine", "linear"] = "constant"
    warmup_epochs: float = 0.0
    clip: float | None = None  # largest gradient norm
    optimiser: Literal["adam", "adamw", "sgd"] = "adam"
    momentum: float = 0.9  # of sgd
    accumulate: int = 1  # batches whose gradients are averaged for one step
    patience: int | None = None  # end after so many epochs without a better `monitor`
    monitor: str = "loss"  # a column of the metrics
    monitor_mode: Literal["min", "max"] = "min"  # whether a smaller or a larger value is better
    precision: Precision = "full"  # auto: bf16 where the device has 16-bit products
    compile: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, plain(getattr(self, item.name)))  # NumPy's numbers too
        if self.epochs < 0 or self.batch_size < 1:
            raise ConfigError("epochs must not be negative and batch_size must be at least 1")
        if not (math.isfinite(self.learning_rate) and self.learning_rate > 0):
            raise ConfigError(f"learning_rate must be positive, not {self.learning_rate}")
        if self.weight_decay < 0 or self.warmup_epochs < 0 or (self.clip is not None and self.clip <= 0):
            raise ConfigError("weight_decay and warmup_epochs must not be negative, clip must be positive")
        if not 0 <= self.momentum < 1:
            raise ConfigError(f"momentum must be at least 0 and below 1, not {self.momentum}")
        if self.accumulate < 1 or (self.patience is not None and self.patience < 1):
            raise ConfigError("accumulate and patience must be at least 1")

    def learning_rate_at(self, epoch: int, step: int, steps: int) -> float:
        """The learning rate of a step, a function of its position, so that no state needs to be saved."""
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
        """All settings; later ones only where they are not at their defaults.

        The keys of stored results are hashes of this, and older results do not have the later settings.
        """
        values, defaults = asdict(self), {item.name: item.default for item in fields(self)}
        return {name: value for name, value in values.items() if name not in LATER or value != defaults[name]}


LATER = ("optimiser", "momentum", "accumulate", "patience", "monitor", "monitor_mode")

SAVE_EVERY = 10.0  # seconds of training between checkpoints within an epoch


@dataclass(eq=False, repr=False)
class Trainer:
    """Trains one method on one collection, in place.

    Callbacks are called in their order. The reporter is a callback too, called after the others; it has its
    own place because its messages (`log`) also come from outside the loop.
    """

    method: TrainedMethod
    collection: GraphCollection
    settings: TrainSettings
    fabric: Fabric
    name: str = "method"  # in error messages
    folder: Path | None = None  # of the checkpoints; without it nothing is saved or resumed
    metrics_file: Path | None = None
    reporter: Reporter = field(default_factory=Reporter)
    callbacks: Sequence[Callback] = ()
    weights: NDArray[np.float64] | None = None  # how often an epoch has each graph; once by default

    # State that `run` sets up, for callbacks to read.
    distributed: Distributed = field(init=False)
    progress: Progress = field(init=False)
    metrics: Metrics = field(init=False)
    epochs: int = field(init=False)  # how many to train; 0 for a method that has nothing to learn
    steps_per_epoch: int = field(init=False)
    step_losses: dict[str, float] = field(init=False)  # of the last step, by the names of the metrics
    resumed: bool = field(init=False)  # whether a checkpoint was loaded

    @property
    def epoch(self) -> int:
        """The number of finished epochs."""
        return self.progress.epoch

    def run(self) -> Metrics:
        """Train to the last epoch, resuming from the newest checkpoint if there is one.

        Raises:
            StoppedError: SIGINT or SIGTERM arrived; a checkpoint has been saved.
            DivergedError: A loss, a gradient or a weight is not finite.
        """
        # Training seeds torch's global generator before every step; the caller's stays as it was.
        devices = [self._device] if self._device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):
            return self._run()

    def _run(self) -> Metrics:
        self.method.to(self._device)
        self.distributed = Distributed.current(self._device)
        if self.distributed.world_size > 1:
            convert_sync_batchnorm(self.method)
        self._players = self.method.players()
        self._optimisers = {player.name: self._make_optimiser(player) for player in self._players}
        self._encode = torch.compile(self.method.encode) if self.settings.compile else self.method.encode
        self.epochs = self.settings.epochs if self.method.trains else 0
        self._restore()
        own: list[Callback] = []
        if self.settings.patience is not None:
            settings = self.settings
            own.append(EarlyStopping(settings.patience, settings.monitor, settings.monitor_mode))
        self._callbacks = (*self.callbacks, *own, self.reporter)
        self._callbacks_here = self._callbacks if self.distributed.is_main else ()
        with ExitStack() as stack:
            for callback in self._callbacks_here:
                callback.on_train_start(self)
                stack.callback(callback.on_train_end, self)
            self.distributed.barrier()
            # Without a folder there is nothing to save, and Ctrl-C keeps its usual effect.
            listening = stop_requests() if self.folder is not None else nullcontext(StopRequest())
            request = stack.enter_context(listening)
            while self.epoch < self.epochs and not self._should_stop():
                self._train_epoch(request)
        if self.epoch < self.epochs:
            self.reporter.log(f"ended early, after epoch {self.epoch} of {self.epochs}")
        return self.metrics

    def is_last_epoch(self) -> bool:
        """Whether training ends with the epoch whose metrics were added last; only on the main process."""
        return self.epoch >= self.epochs or any(
            callback.should_stop(self) for callback in self._callbacks_here
        )

    def _restore(self) -> None:
        """Load the newest checkpoint, or begin a new run."""
        progress = None
        if self.folder is not None:
            progress = load_checkpoint(
                self.folder, self.method, self._optimisers, self._identity, self.reporter.log
            )
        self.resumed = progress is not None
        self.progress = progress or Progress()
        self.metrics = Metrics(self.metrics_file if self.distributed.is_main else None, keep=self.epoch)
        if not self.resumed:
            generator = torch_generator(self.settings.seed, "begin", device=self._device)
            self.method.begin(self.collection, generator)
        elif self.epoch >= self.epochs:
            self.reporter.log(f"this run is finished: {self.epoch} epochs; ask for more to extend it")
        else:
            self.reporter.log(f"resuming at epoch {self.epoch + 1}, step {self.progress.step + 1}")

    def _should_stop(self) -> bool:
        stop = any(callback.should_stop(self) for callback in self._callbacks_here)
        return self.distributed.max_over_ranks(1 if stop else None) is not None

    def _make_optimiser(self, player: Player) -> Optimizer:
        learning_rate = self.settings.learning_rate * player.learning_rate_scale
        parameters = [parameter for parameter in player.parameters if parameter.requires_grad]
        if not parameters:
            parameters = [torch.nn.Parameter(torch.zeros(1))]  # a method without weights never steps
        # Fused is one pass over all weights instead of a dozen; MPS has it only in newer versions of torch.
        fused, decay = self._device.type in ("cpu", "cuda"), self.settings.weight_decay
        if self.settings.optimiser == "sgd":
            momentum = self.settings.momentum
            return SGD(parameters, learning_rate, momentum=momentum, weight_decay=decay, fused=fused)
        make = AdamW if self.settings.optimiser == "adamw" else Adam
        return make(parameters, lr=learning_rate, weight_decay=decay, fused=fused)

    def _train_epoch(self, request: StopRequest) -> None:
        progress, seed, epoch = self.progress, self.settings.seed, self.epoch
        batches = batches_of_epoch(len(self.collection), self.settings.batch_size, seed, epoch, self.weights)
        together = self.settings.accumulate
        self.steps_per_epoch = -(-len(batches) // together)
        saved = started = time.monotonic()
        before = progress.seconds
        self.method.train()
        views_of_steps = prefetch(
            lambda step: [
                self._views(batches[number], epoch, number)
                for number in range(step * together, min((step + 1) * together, len(batches)))
            ],
            progress.step,
            self.steps_per_epoch,
            thread=prefetch_pays(self.collection, self.settings.batch_size),
        )
        for views in views_of_steps:
            losses, gradient_norms = self._step(views, epoch, progress.step)
            for name, value in losses.items():
                progress.sums[name] = progress.sums.get(name, 0.0) + value
            progress.sums |= gradient_norms
            self.step_losses = losses
            progress.step += 1
            progress.total_steps += 1
            progress.seconds = before + time.monotonic() - started
            for callback in self._callbacks_here:
                callback.on_step_end(self)
            self._stop_if_requested(request, f"epoch {epoch + 1}, step {progress.step}", save=True)
            if time.monotonic() - saved >= SAVE_EVERY:
                self._save()
                saved = time.monotonic()
        # As before a step: draws from torch's global generator between epochs are resumable too.
        torch.manual_seed(derive_seed(seed, "after-epoch", epoch))
        self.method.after_epoch(
            self.collection, torch_generator(seed, "after-epoch", epoch, device=self._device)
        )
        self._finish_epoch(graphs=sum(map(len, batches)))
        self._stop_if_requested(request, f"after epoch {epoch + 1}")

    def _finish_epoch(self, graphs: int) -> None:
        """Add the epoch's metrics, tell the callbacks and save."""
        check_finite(self.method, self.name)  # before anything is computed from them
        progress, steps = self.progress, self.steps_per_epoch
        row: dict[str, float] = {"epoch": progress.epoch + 1}
        for name, value in progress.sums.items():
            row[name] = value if "gradient_" in name else value / steps
        last = {
            "learning_rate": self.settings.learning_rate_at(progress.epoch, steps - 1, steps),
            "seconds": round(progress.seconds, 3),
            "graphs_per_second": round(graphs / max(progress.seconds, 1e-9), 1),
        }
        progress.epoch, progress.step, progress.sums, progress.seconds = progress.epoch + 1, 0, {}, 0.0
        for callback in self._callbacks:
            row |= callback.epoch_metrics(self)
        self.metrics.add(row | last)
        if self.settings.patience is not None and self.settings.monitor not in row:
            raise ConfigError(
                f"the metrics have no column {self.settings.monitor!r} to end training by",
                hint=nearest(self.settings.monitor, row),
            )
        # Before the checkpoint: a run killed between the two writes the same files again.
        for callback in self._callbacks_here:
            callback.on_epoch_end(self)
        self.distributed.barrier()
        self._save()

    def _stop_if_requested(self, request: StopRequest, where: str, *, save: bool = False) -> None:
        """End training if a signal has reached any process."""
        number = self.distributed.max_over_ranks(request.number)
        if number is not None:
            if save:
                self._save()
            raise StoppedError(number, where)

    def _views(self, rows: NDArray[np.int64], epoch: int, step: int) -> Views:
        batch = GraphBatch.gather(self.collection, self.distributed.shard(rows)).to(self._device)
        purpose = self.distributed.seed_purpose("views")
        generator = torch_generator(self.settings.seed, purpose, epoch, step, self._device)
        return self.method.views(batch, generator)

    def _step(
        self, batches: Sequence[Views], epoch: int, step: int
    ) -> tuple[dict[str, float], dict[str, float]]:
        """One update per player, by the mean gradient of several batches if gradients are accumulated.

        Returns:
            The losses by column name and, in the first step of a run, the gradient norms of the loss terms.
        """
        first, share = step * self.settings.accumulate, 1 / len(batches)
        # Dropout and the like draw from torch's global generator; seeding it makes them resumable too.
        torch.manual_seed(derive_seed(self.settings.seed, "step", epoch, first))
        rate = self.settings.learning_rate_at(epoch, step, self.steps_per_epoch)
        values: dict[str, float] = {}
        norms: dict[str, float] = {}
        for player in self._players:
            optimiser = self._optimisers[player.name]
            for group in optimiser.param_groups:
                group["lr"] = rate * player.learning_rate_scale
            optimiser.zero_grad(set_to_none=True)
            prefix = "" if player.name == "model" else f"{player.name}_"
            seen: list[Encoded] = []
            for number, views in enumerate(batches, first):
                if number > first:
                    torch.manual_seed(
                        derive_seed(self.settings.seed, f"step of {player.name}", epoch, number)
                    )
                gathered, losses = self._losses(views, player, epoch, number)
                seen.append(gathered)
                terms = torch.stack(list(losses.values()))
                total = terms.sum()
                # One transfer for all numbers: on a GPU each would wait for the device.
                loss, *term_values = torch.cat([total.detach()[None], terms.detach()]).tolist()
                self._check_finite("loss", loss, epoch, step, rate)
                if epoch == 0 and number == 0:
                    by_term = self._gradient_norms(losses)
                    norms |= {f"{prefix}gradient_{name}": norm for name, norm in by_term.items()}
                (total if share == 1 else total * share).backward()  # type: ignore[no-untyped-call]
                columns = {"loss": loss} | {
                    f"loss_{name}": value for name, value in zip(losses, term_values, strict=True)
                }
                for name, value in columns.items():
                    values[f"{prefix}{name}"] = values.get(f"{prefix}{name}", 0.0) + value * share
            self.distributed.average_gradients(player.parameters)
            norm = torch.nn.utils.clip_grad_norm_(
                player.parameters, self.settings.clip if self.settings.clip is not None else float("inf")
            )
            self._check_finite("gradient", float(norm), epoch, step, rate)
            optimiser.step()
        progress = (epoch + (step + 1) / self.steps_per_epoch) / max(self.settings.epochs, 1)
        with torch.no_grad():
            whole = {name: value.detach() for name, value in seen[0].items()}
            if len(seen) > 1:
                whole = {name: torch.cat([each[name].detach() for each in seen]) for name in whole}
            self.method.after_step(whole, progress)
        return values, norms

    def _losses(self, views: Views, player: Player, epoch: int, number: int) -> tuple[Encoded, Losses]:
        """Encode one batch and compute the losses of the whole batch, of all ranks."""
        with self.fabric.autocast():
            encoded = self._encode(views, player.name)
        # Losses in full precision: distances and correlations are differences of similar numbers.
        gathered = self.distributed.gather({name: value.float() for name, value in encoded.items()})
        # Encoding may have drawn more on one rank than on another; the objective draws the same on all.
        torch.manual_seed(derive_seed(self.settings.seed, f"objective of {player.name}", epoch, number))
        return gathered, self.method.objective(gathered, player.name)

    def _gradient_norms(self, losses: Losses) -> dict[str, float]:
        """The gradient norm of each loss term with respect to the encoder; zero means no effect."""
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

    def _save(self) -> None:
        if self.folder is not None and self.distributed.is_main:
            check_finite(self.method, self.name)
            save_checkpoint(self.folder, self.method, self._optimisers, self.progress, self._identity)

    @property
    def _identity(self) -> dict[str, object]:
        """What a checkpoint must agree with."""
        return {"method": self.name, "seed": self.settings.seed}

    @property
    def _device(self) -> torch.device:
        return self.fabric.device


SMALLEST_BATCH = 8  # a smaller last batch is dropped: HSIC and Barlow Twins are noise on so few graphs


def batches_of_epoch(
    graphs: int, batch_size: int, seed: int, epoch: int, weights: NDArray[np.float64] | None = None
) -> list[NDArray[np.int64]]:
    """Shuffle the positions of all graphs and cut them into batches; the only batch is never dropped.

    A graph with weight 2.5 is in every epoch twice, and in half of the epochs, drawn at random, three times.
    """
    order = numpy_generator(seed, "order", epoch).permutation(graphs).astype(np.int64)
    if weights is not None:
        times = np.floor(weights + numpy_generator(seed, "weights", epoch).random(graphs)).astype(np.int64)
        positions = np.repeat(np.arange(graphs), times)
        order = numpy_generator(seed, "order", epoch).permutation(positions).astype(np.int64)
    batches = [order[start : start + batch_size] for start in range(0, len(order), batch_size)]
    if len(batches) > 1 and len(batches[-1]) < SMALLEST_BATCH:
        batches.pop()
    return batches


T = TypeVar("T")

# Nodes and edges per batch. Small batches are mostly Python code, which two threads cannot run at once.
PREFETCH_SIZE = 100_000


def prefetch_pays(collection: GraphCollection, batch_size: int) -> bool:
    """Whether batches of this collection are large enough for a prefetching thread to save time."""
    share = min(1.0, batch_size / max(len(collection), 1))
    return (collection.num_nodes + collection.num_edges) * share > PREFETCH_SIZE


def prefetch(make: Callable[[int], T], start: int, stop: int, *, thread: bool = True) -> Iterator[T]:
    """Yield `make(start)`, ..., `make(stop - 1)`, with `thread` each started before the one before is used.

    A thread suffices: gathering and perturbing are array operations that release the interpreter lock.
    """
    if start >= stop or not thread:
        yield from map(make, range(start, stop))
        return
    pool = ThreadPoolExecutor(1, thread_name_prefix="graphsc-prefetch")
    try:
        pending = pool.submit(make, start)
        for step in range(start, stop):
            item = pending.result()
            if step + 1 < stop:
                pending = pool.submit(make, step + 1)
            yield item
    finally:
        # After an error or a stop, do not wait for an item that will not be used.
        pool.shutdown(wait=False, cancel_futures=True)
