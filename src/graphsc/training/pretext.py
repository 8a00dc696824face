"""A method's own task on graphs that it never trains on, before and after it has learned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import write_atomic
from graphsc.core.random import derive_seed, torch_generator
from graphsc.data.batch import GraphBatch
from graphsc.data.chosen import choose
from graphsc.data.collection import GraphCollection
from graphsc.encoders.embedding import reestimate_batchnorm
from graphsc.methods.base import Pretext, TrainedMethod
from graphsc.training.passes import passes_per_step

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
        if method.bn == "reestimate" and len(self.held_out):
            reestimate_batchnorm(method, choose(self.training, sample))
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
