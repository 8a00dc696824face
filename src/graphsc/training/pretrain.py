"""Pre-training on a sample of a large source, with pretext scores on held-out graphs and a model card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch

from graphsc import __version__
from graphsc.core.config import build
from graphsc.core.errors import ConfigError
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.readers import describe_reading
from graphsc.data.sampling import HELD_OUT, Sample, open_sample
from graphsc.methods import METHODS, TrainedMethod, training_settings
from graphsc.methods.registry import declared_settings
from graphsc.training.callbacks import Callback, PretextScores, Reporter
from graphsc.training.distributed import Distributed, Precision, pick_device, pick_precision
from graphsc.training.model_io import Card, write_card
from graphsc.training.train import Run, train
from graphsc.training.trainer import TrainSettings, batches_of_epoch

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
) -> Pretraining:
    """Train a method on molecules of any source. With `out`, the same call again resumes the run.

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
    sample = open_sample(
        data, molecules, held_out=held_out, seed=training.seed, reader=reader, **(options or {})
    )
    reading = describe_reading(data, reader, options)
    if reading is not None:
        reading["sample"] = {"graphs": molecules, "held_out": held_out, "seed": training.seed}
    path = None if out is None else Path(out) / "pretext.json"
    pretext = PretextScores(path, sample.training, sample.held_out, training.seed)
    run = train(
        sample.training, method, settings=settings, preset=chosen, encoder=encoder, training=training,
        device=device, devices=devices, nodes=nodes, out=out,
        source=str(data) if isinstance(data, (str, Path)) else None, reading=reading,
        callbacks=[pretext, *callbacks], reporter=reporter, keep_embeddings=False,
    )  # fmt: skip
    epochs_done, is_main = len(run.metrics.rows), Distributed.current().is_main
    if is_main and epochs_done not in pretext.scores and isinstance(run.model.method, TrainedMethod):
        # This call asked for fewer epochs than the interrupted one before it.
        pretext.evaluate(epochs_done, run.model.method)
    name = name or f"{method}-{sample.training.name.lower()}"
    card = _card(name, sample, run, pretext, chosen, training, _licences(data, licence))
    if run.folder is not None and is_main:
        write_card(run.folder.path, card)
    return Pretraining(run, card, sample)


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


def _budget(graphs: int, training: TrainSettings, epochs: int | None = None) -> tuple[int, int]:
    """Graphs seen and steps made in `epochs`, by default those of the settings."""
    batches = batches_of_epoch(graphs, training.batch_size, training.seed, 0)
    count = training.epochs if epochs is None else epochs
    return count * sum(map(len, batches)), count * -(-len(batches) // training.accumulate)


def _licences(data: object, given: str | None) -> tuple[str, str]:
    """The licence of the model, and that of the graphs it was trained on."""
    named = NAMED.get(data.lower()) if isinstance(data, str) else None
    of_data = UNKNOWN if named is None or named.licence is None else named.licence
    return given or of_data.partition(",")[0], of_data


def _card(
    name: str,
    sample: Sample,
    run: Run,
    pretext: PretextScores,
    preset: str,
    training: TrainSettings,
    licences: tuple[str, str],
) -> Card:
    graphs, recipe, rows = sample.training, run.model.recipe, run.metrics.rows
    epochs = len(rows)
    seen, steps = _budget(len(graphs), training, epochs)
    method = run.model.method
    assert isinstance(method, TrainedMethod)  # noqa: S101 - others were refused
    before, after = pretext.before, pretext.after
    stored = recipe.to_json()
    return Card(
        name=name,
        method=recipe.method,
        preset=preset,
        settings=dict(stored["settings"]),  # type: ignore[call-overload]
        encoder=str(recipe.encoder),
        encoder_settings=dict(recipe.encoder_settings),
        training={key: value for key, value in training.to_json().items() if key != "epochs"},
        data=graphs.name,
        data_graphs=sample.total,
        data_hash=graphs.content_hash,
        data_licence=licences[1],
        graphs=len(graphs),
        held_out=len(sample.held_out),
        epochs=epochs,
        seen=seen,
        steps=steps,
        passes_per_step=pretext.passes,
        seconds=round(sum(row["seconds"] for row in rows), 3),
        dimensions=run.model.dimensions,
        parameters=sum(weight.numel() for weight in method.encoder.parameters()),
        licence=licences[0],
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
