"""Pre-training on a large source or a union of sources, with pretext scores, snapshots and a model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from graphsc import __version__
from graphsc.core.config import build
from graphsc.core.errors import ConfigError
from graphsc.data.collection import subset
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.datasets.sources import is_union, parse_sources
from graphsc.data.molecules.union import Progress, Union, open_union
from graphsc.data.readers import describe_reading
from graphsc.data.sampling import HELD_OUT, Sample, open_sample, split_positions
from graphsc.encoders import reads_edges
from graphsc.methods import METHODS, Recipe, TrainedMethod, make_recipe, training_settings
from graphsc.methods.base import preserved
from graphsc.methods.registry import declared_settings
from graphsc.training.callbacks import Callback, PretextScores, Reporter
from graphsc.training.distributed import Distributed, Precision, pick_device, pick_precision
from graphsc.training.model_io import Card, card_of, save_model, write_card
from graphsc.training.train import Run, finish, train
from graphsc.training.trainer import Trainer, TrainSettings, batches_of_epoch

PRESET = "molecules"
UNKNOWN = "not stated"


@dataclass(frozen=True)
class Pretraining:
    """A finished run and its card."""

    run: Run
    card: Card
    sample: Sample


def preset_for(method: str) -> str:
    """The preset `molecules` if the method has it, else `default`."""
    return PRESET if PRESET in METHODS.get(method).presets else "default"


def pretrain(
    data: object,
    method: str = "graphsc",
    *,
    molecules: int | None = None,
    held_out: int = HELD_OUT,
    settings: Mapping[str, object] | None = None,
    preset: str | None = None,
    encoder: str = "molecule-gin",
    training: TrainSettings | None = None,
    epochs: int | None = None,
    seed: int = 0,
    precision: Precision = "full",
    device: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    out: str | Path | None = None,
    name: str | None = None,
    licence: str | None = None,
    callbacks: Sequence[Callback] = (),
    reporter: Reporter | None = None,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
    snapshots: int | None = None,
    start: str | Path | None = None,
) -> Pretraining:
    """Train a method on molecules of any source. With `out`, the same call again resumes the run.

    `data` may be a union of sources with sampling weights, such as `"moses:1,zinc250k:3"`: duplicates and
    molecules of downstream test sets are left out (`open_union`), and an epoch has each molecule of a source
    as often as its weight says. With `snapshots`, a model file is written to the folder `snapshots` of the
    run whenever so many more molecules were seen, and when training ends or is stopped. `start` is a model,
    such as a snapshot, with the same settings, whose weights are the initial ones: a short run from it with a
    falling learning rate ends one that was stopped.

    `molecules` of them, by default all that are not held out, are spread evenly over the source; `held_out`
    others serve for the pretext score. Without `preset`, the method's preset `molecules` is used if it has
    one; without `training`, the settings of the loop are those of the preset, with `epochs`, `seed` and
    `precision`. `name` and `licence` are those on the model card, which is written to the folder `out`;
    `reader` and `options` are the reader of the source and its options. All else is as in `train`.
    """
    entry = METHODS.get(method)
    if entry.kind != "trained":
        raise ConfigError(f"{method} is not trained by steps, so there is nothing to pre-train")
    chosen = preset_for(method) if preset is None else preset
    if training is None:
        training = loop_settings(method, chosen, str(data), {"seed": seed, "precision": precision}, epochs)
    training = replace(training, precision=pick_precision(training.precision, pick_device(device)))
    if snapshots is not None and snapshots < 1:
        raise ConfigError(f"a snapshot needs at least one more molecule, not {snapshots}")
    union, weights, facts = None, None, None
    if reader is None and isinstance(data, str) and is_union(data):
        if options:
            raise ConfigError(f"a union of sources takes no option {next(iter(options))!r}")
        progress = _log_progress(reporter or Reporter())
        union = open_union(parse_sources(data), progress=progress)
        declared = declared_settings(method, data, settings, preset=chosen, encoder=encoder)
        needed = bool(declared.get("lambda_descriptors"))
        sample, weights = _sample_union(
            union, molecules, held_out, training.seed, progress if needed else None
        )
        reading: dict[str, object] | None = {
            "source": data,
            "reader": None,
            "path": str(union.path),
            "options": {},
        }
        facts = {"sources": union.facts()}
    else:
        sample = open_sample(
            data, molecules, held_out=held_out, seed=training.seed, reader=reader, **(options or {})
        )
        reading = describe_reading(data, reader, options)
    if reading is not None:
        reading["sample"] = {"graphs": molecules, "held_out": held_out, "seed": training.seed}
    path = None if out is None else Path(out) / "pretext.json"
    pretext = PretextScores(path, sample.training, sample.held_out, training.seed)
    name = name or f"{method}-{sample.training.name.lower()}"
    licences = _licences(data, licence)
    earlier = None if start is None else card_of(start)
    about = _About(name, sample, chosen, training, licences, pretext, earlier)
    if snapshots is not None and out is not None:
        recipe = make_recipe(
            method, sample.training.with_edge_features() if reads_edges(encoder) else sample.training,
            settings, preset=chosen, encoder=encoder,
        )  # fmt: skip
        callbacks = [*callbacks, Snapshots(Path(out) / "snapshots", snapshots, recipe, about)]
    run = train(
        sample.training, method, settings=settings, preset=chosen, encoder=encoder, training=training,
        device=device, devices=devices, nodes=nodes, out=out,
        source=str(data) if isinstance(data, (str, Path)) else None, reading=reading,
        callbacks=[pretext, *callbacks], reporter=reporter, keep_embeddings=False,
        weights=weights, facts=facts, start=start,
    )  # fmt: skip
    epochs_done, is_main = len(run.metrics.rows), Distributed.current().is_main
    if is_main and epochs_done not in pretext.scores and isinstance(run.model.method, TrainedMethod):
        # This call asked for fewer epochs than the interrupted one before it.
        pretext.evaluate(epochs_done, run.model.method)
    card = about.card(
        run.model.recipe, run.model.method, run.model.dimensions, run.metrics.rows,
        *_budget(len(sample.training), training, epochs_done, weights),
        sum(row["seconds"] for row in run.metrics.rows),
    )  # fmt: skip
    if run.folder is not None and is_main:
        write_card(run.folder.path, card)
    return Pretraining(run, card, sample)


def _log_progress(reporter: Reporter) -> Progress:
    """Progress of work on a union, as messages."""
    last = ""

    def progress(what: str, done: int, total: int) -> None:
        nonlocal last
        words = f"{what}: {10 * done // max(total, 1) * 10} %"
        if words != last:
            reporter.log(words)
        last = words

    return progress


def _sample_union(
    union: Union, molecules: int | None, held_out: int, seed: int, describe: Progress | None
) -> tuple[Sample, NDArray[np.float64] | None]:
    """Training and held-out molecules of a union, and the weights of the former unless all are one.

    With `describe`, the progress of that work, they have their descriptors.
    """
    rows = split_positions(len(union.collection), molecules, held_out, seed)
    collection = union.collection
    if describe is not None:
        collection = union.with_descriptors(np.sort(np.concatenate(rows)), describe)
    collection = replace(collection, notes=tuple(union.notes()))
    sample = Sample(subset(collection, rows.training), subset(collection, rows.held_out), len(collection))
    weights = union.weights_of(rows.training)
    return sample, None if (weights == 1).all() else weights


class Snapshots(Callback):
    """Writes a model file with its card whenever so many more graphs were seen, and at the end or a stop."""

    def __init__(self, folder: Path, every: int, recipe: Recipe, about: _About) -> None:
        self.folder = folder
        self.every = every
        self.recipe = recipe
        self.about = about

    def on_train_start(self, trainer: Trainer) -> None:
        if not trainer.resumed:
            self._write(trainer)

    def on_step_end(self, trainer: Trainer) -> None:
        step = trainer.settings.batch_size * trainer.settings.accumulate
        seen = trainer.progress.total_steps * step
        if seen // self.every > (seen - step) // self.every:
            self._write(trainer)

    def on_train_end(self, trainer: Trainer) -> None:
        self._write(trainer)

    def _write(self, trainer: Trainer) -> None:
        """Write the model as if training ended now, with BatchNorm re-estimated on the held-out graphs."""
        about, method, steps = self.about, trainer.method, trainer.progress.total_steps
        seen = steps * trainer.settings.batch_size * trainer.settings.accumulate
        path = self.folder / f"{seen:012d}.safetensors"
        if path.exists():
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        rows = list(trainer.metrics.rows)
        seconds = sum(row["seconds"] for row in rows) + trainer.progress.seconds
        graphs = about.sample.held_out if len(about.sample.held_out) else about.sample.training
        features = trainer.collection.features
        with preserved(method):
            finish(method, graphs.with_features(features))
            dimensions = method.dimensions(features)
            card = about.card(self.recipe, method, dimensions, rows, seen, steps, seconds)
            save_model(path, method, self.recipe, features, card=card)


@dataclass(frozen=True)
class _About:
    """What a model card says besides the outcome of training."""

    name: str
    sample: Sample
    preset: str
    training: TrainSettings
    licences: tuple[str, str]
    pretext: PretextScores
    earlier: Card | None  # of the model whose weights were the initial ones

    def card(
        self,
        recipe: Recipe,
        method: object,
        dimensions: int,
        rows: Sequence[Mapping[str, float]],
        seen: int,
        steps: int,
        seconds: float,
    ) -> Card:
        """The card after the epochs with these metrics, which counts earlier runs in."""
        assert isinstance(method, TrainedMethod)  # noqa: S101 - others were refused
        graphs, before, after = self.sample.training, self.pretext.before, self.pretext.after
        stored = recipe.to_json()
        card = Card(
            name=self.name,
            method=recipe.method,
            preset=self.preset,
            settings=dict(stored["settings"]),  # type: ignore[call-overload]
            encoder=str(recipe.encoder),
            encoder_settings=dict(recipe.encoder_settings),
            training={key: value for key, value in self.training.to_json().items() if key != "epochs"},
            data=graphs.name,
            data_graphs=self.sample.total,
            data_hash=graphs.content_hash,
            data_licence=self.licences[1],
            graphs=len(graphs),
            held_out=len(self.sample.held_out),
            epochs=len(rows),
            seen=seen,
            steps=steps,
            passes_per_step=self.pretext.passes,
            seconds=round(seconds, 3),
            dimensions=dimensions,
            parameters=sum(weight.numel() for weight in method.encoder.parameters()),
            licence=self.licences[0],
            version=__version__,
            torch=torch.__version__,
            first_loss=rows[0].get("loss") if rows else None,
            last_loss=rows[-1].get("loss") if rows else None,
            losses=[round(row["loss"], 5) for row in rows if "loss" in row],
            pretext=None if after is None else after.name,
            chance=None if after is None else after.chance,
            before=None if before is None else before.score,
            after=None if after is None else after.score,
            notes=list(graphs.notes),
        )
        return card if self.earlier is None else _continued(card, self.earlier)


def _continued(card: Card, earlier: Card) -> Card:
    """The card of a run that began with the weights of another one, with the molecules of both."""
    note = (
        f"began with the weights of {earlier.name} after {earlier.seen:,} molecules, which are counted in; "
        f"{card.seen:,} of its own"
    )
    return replace(
        card,
        epochs=earlier.epochs + card.epochs,
        seen=earlier.seen + card.seen,
        steps=earlier.steps + card.steps,
        seconds=round(earlier.seconds + card.seconds, 3),
        first_loss=card.first_loss if earlier.first_loss is None else earlier.first_loss,
        losses=[*earlier.losses, *card.losses],
        before=earlier.before if earlier.pretext == card.pretext else card.before,
        notes=[*card.notes, *(text for text in earlier.notes if text not in card.notes), note],
    )


def loop_settings(
    method: str, preset: str, data: str, given: Mapping[str, object], epochs: int | None = None
) -> TrainSettings:
    """Settings of the loop: those of the preset, overridden by `given`, overridden by `epochs`."""
    values = {**training_settings(method, preset, data), **given}
    return build(TrainSettings, values if epochs is None else {**values, "epochs": epochs}, "training")


def declared_pretraining(
    method: str,
    data: object = "moses",
    *,
    molecules: int | None = None,
    settings: Mapping[str, object] | None = None,
    preset: str | None = None,
    encoder: str = "molecule-gin",
    epochs: int | None = None,
    seed: int = 0,
    precision: Precision = "full",
) -> dict[str, object]:
    """All settings that `pretrain` would use, before it sees the data; and its budget, where it is known.

    The budget counts alike for all methods: graphs seen, and steps, of which a larger batch has fewer.
    """
    chosen = preset_for(method) if preset is None else preset
    loop = loop_settings(method, chosen, str(data), {"seed": seed, "precision": precision}, epochs)
    budget = {} if molecules is None else dict(zip(("seen", "steps"), _budget(molecules, loop), strict=True))
    return {
        "preset": chosen,
        "encoder": encoder,
        "settings": declared_settings(method, str(data), settings, preset=chosen, encoder=encoder),
        "training": loop.to_json(),
        **budget,
    }


def _budget(
    graphs: int,
    training: TrainSettings,
    epochs: int | None = None,
    weights: NDArray[np.float64] | None = None,
) -> tuple[int, int]:
    """Graphs seen and steps made in `epochs`, by default those of the settings."""
    count = training.epochs if epochs is None else epochs
    # Epochs of fractional weights differ in length.
    lengths = [
        [len(batch) for batch in batches_of_epoch(graphs, training.batch_size, training.seed, epoch, weights)]
        for epoch in range(1 if weights is None else count)
    ]
    times = count if weights is None else 1
    seen = times * sum(map(sum, lengths))
    return seen, times * sum(-(-len(batches) // training.accumulate) for batches in lengths)


def _licences(data: object, given: str | None) -> tuple[str, str]:
    """The licence of the model, and that of the graphs it was trained on."""
    if isinstance(data, str) and is_union(data):
        each = {name: _licences(name, given) for name, _ in parse_sources(data)}
        short = {short for short, _ in each.values()}
        return short.pop() if len(short) == 1 else UNKNOWN, "; ".join(
            f"{name}: {licence}" for name, (_, licence) in each.items()
        )
    named = NAMED.get(data.lower()) if isinstance(data, str) else None
    of_data = UNKNOWN if named is None or named.licence is None else named.licence
    return given or of_data.partition(",")[0], of_data
