"""One whole repetition of fine-tuning: the one loop of all methods, then both choices of a model.

The literature has two rules for which model is judged: the last epoch's, and the one validation likes best.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

from graphsc.core.errors import DataError
from graphsc.core.random import derive_seed
from graphsc.core.run_folder import RunFolder
from graphsc.training.device import make_fabric
from graphsc.training.loop import Loop
from graphsc.training.metrics import Metrics
from graphsc.training.reporter import Reporter
from graphsc.training.run import environment
from graphsc.transfer.few import rows_to_train
from graphsc.transfer.finetuned import FineTuned
from graphsc.transfer.held import held_out, judge
from graphsc.transfer.labelled import Labelled
from graphsc.transfer.predictor import FILES, Predictor, load_predictor
from graphsc.transfer.result import TransferResult, load_transfer
from graphsc.transfer.settings import FineTuneSettings
from graphsc.transfer.split import TRAIN, WORDS, Parts
from graphsc.transfer.start import Start
from graphsc.transfer.watch import SCORE, Watch, stale


@dataclass(frozen=True)
class SeedJob:
    """What all seeds of a run share."""

    molecules: Labelled
    parts: Parts
    start: Start
    settings: FineTuneSettings
    fraction: float
    device: str
    reporter: Reporter
    config: Mapping[str, object]
    folder: Path

    @property
    def predictions(self) -> Path:
        """Of all seeds together, for the molecules that were held out."""
        return self.folder / "predictions.csv"

    def place(self, seed: int) -> Path:
        return self.folder / f"seed-{seed}"

    def seed(self, seed: int) -> TransferResult:
        """One whole repetition: every learning rate trained, one model chosen by each rule."""
        place = self.place(seed)
        stored = place / "result.json"
        if stored.exists():
            found = load_transfer(stored)
            if int(str(found.config["epochs"])) >= self.settings.epochs:
                self.reporter.say(f"seed {seed} is finished")
                return found
        began = time.monotonic()
        rates = self.settings.learning_rates
        places = {rate: place if len(rates) == 1 else place / f"lr-{rate:g}" for rate in rates}
        trained = {rate: self._train(seed, rate, where) for rate, where in places.items()}
        held, parts = held_out(self.molecules, self.parts)
        rules = {}
        for rule, file in FILES.items():
            scores = {rate: found[rule] for rate, found in trained.items() if rule in found}
            if not scores:
                continue
            rate = max(scores, key=lambda rate: (scores[rate], -rates.index(rate)))
            predictor = load_predictor(places[rate] / file)
            if len(rates) > 1:
                predictor.save(place / file)
            epoch = int(str(predictor.facts["epoch"]))
            rules[rule] = judge(predictor.scores(held), held, parts, self.molecules.kind, epoch, rate)
        result = TransferResult(
            trial={
                "data": self.molecules.name,
                "method": self.start.method,
                "way": "fine-tuned",
                "seed": seed,
            },
            config={**self.config, "seed": seed},
            tasks=self.molecules.tasks,
            kind=self.molecules.kind,
            parts=self.parts,
            rules=rules,
            words=self.words(),
            seconds={"total": round(time.monotonic() - began, 1)},
            environment=environment(self.device),
        )
        # From here on they would be those of other models; they are written when all seeds are done.
        self.predictions.unlink(missing_ok=True)
        result.save(stored)
        return result

    def words(self) -> str:
        """The protocol in words."""
        settings = self.settings
        how = str(self.config["transfer"]["split"])  # type: ignore[index]
        rates = ", ".join(f"{rate:g}" for rate in settings.learning_rates)
        words = (
            f"Fine-tuned by Adam, learning rate {rates}"
            f"{' (chosen on validation)' if len(settings.learning_rates) > 1 else ''}, batch "
            f"{settings.batch_size}, dropout {settings.dropout:g}, {settings.epochs} epochs. "
            f"Split {how}, 80/10/10: {WORDS[how]}."
        )
        return words if self.fraction == 1 else f"{words} {self.fraction:.0%} of the training labels."

    def _train(self, seed: int, rate: float, where: Path) -> dict[str, float]:
        """Train one model; the score on validation of each rule's choice."""
        folder = RunFolder(where)
        rows = np.flatnonzero(self.parts == TRAIN)
        rows = rows_to_train(self.molecules.labels, rows, self.molecules.kind, self.fraction, seed)
        if len(rows) < 2:
            raise DataError(
                f"{len(rows)} of the molecules to train on has a label", where=self.molecules.name,
                hint="label more of them, or raise --label-fraction",
            )  # fmt: skip
        training = self.molecules.collection.take(rows)
        method = self._method(seed)
        if self.molecules.kind == "regression":
            method.standardise(torch.from_numpy(self.molecules.labels[rows]))
        held, parts = held_out(self.molecules, self.parts)
        settings = self.settings.loop(rate, seed)
        with folder.owned():
            folder.settle({**self.config, "seed": seed, "learning_rate": rate})
            watch = Watch(
                held,
                parts,
                where / FILES["best"],
                self._save,
                every=self.settings.every,
                last=settings.epochs,
            )
            fabric = make_fabric(self.device, settings.precision)
            self.reporter.say(
                f"seed {seed}, learning rate {rate:g}: {len(training)} molecules to learn from, "
                f"device {self.device}"
            )
            metrics = Loop(
                method, training, settings, fabric, f"fine-tuning of {self.start.method}",
                folder.checkpoints, folder.metrics, self.reporter, (watch.keep,), (watch.measure,),
                lambda rows: stale(rows, self.settings.patience),
            ).run()  # fmt: skip
            facts = {"rule": "last", "epoch": int(metrics.rows[-1]["epoch"]), "seed": seed}
            self._save(method.eval(), where / FILES["last"], facts)
        return _scores(metrics, watch)

    def _method(self, seed: int) -> FineTuned:
        encoder = self.start.build(seed, self.settings.dropout)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(derive_seed(seed, "head"))
            return FineTuned(encoder, tasks=len(self.molecules.tasks), kind=self.molecules.kind)

    def _save(self, method: FineTuned, path: Path, facts: Mapping[str, object]) -> None:
        start, dropout = replace(self.start, weights=None), self.settings.dropout
        Predictor(method, start, dropout, self.molecules.tasks, self.molecules.classes, facts).save(path)


def _scores(metrics: Metrics, watch: Watch) -> dict[str, float]:
    """By rule: how validation likes the model it chose. Without validation there is only the last."""
    last = metrics.rows[-1].get(SCORE)
    found = {"last": float("-inf") if last is None else last}
    return found if watch.best is None else {**found, "best": watch.best[0]}
