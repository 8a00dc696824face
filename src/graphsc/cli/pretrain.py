"""`graphsc pretrain`, `pack` and `models`: pre-train on unlabelled molecules, and share the model."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.checks import check_encoder, check_method, check_model, check_settings, check_source
from graphsc.cli.data import READ_AS_USUAL, JsonOption, ReaderOptions
from graphsc.cli.train import (
    DeviceOption,
    DevicesOption,
    EpochsOption,
    LogOption,
    MetricsOption,
    NodesOption,
    SetOption,
    collection_rows,
    default_folder,
    split_settings,
)

SourcesArgument = Annotated[
    str,
    Parameter(
        help="The molecules: a file, the name of a data set (moses), or several with the weight by which "
        "each is sampled (moses:1,zinc250k:3). Several are joined without duplicates and without molecules "
        "of the test parts of MoleculeNet."
    ),
]


def pretrain(
    source: SourcesArgument,
    /,
    *,
    method: Annotated[str, Parameter(help="A method of kind 'trained' in 'graphsc methods'.")] = "graphsc",
    molecules: Annotated[
        int | None, Parameter(help="Number to train on, spread over the source; by default all.")
    ] = None,
    held_out: Annotated[
        int, Parameter(help="Number of other molecules to validate on; at most a tenth of the source.")
    ] = 2048,
    epochs: EpochsOption = None,
    encoder: Annotated[str, Parameter(help="The encoder's name.")] = "molecule-gin",
    preset: Annotated[
        str | None, Parameter(help="A preset of the method; by default 'molecules' if it has one.")
    ] = None,
    set_: SetOption = None,
    seed: Annotated[int, Parameter(help="Seed of the sample, initialisation, order and views.")] = 0,
    device: DeviceOption = "auto",
    devices: DevicesOption = 1,
    nodes: NodesOption = 1,
    out: Annotated[
        Path | None,
        Parameter(help="The run folder; by default runs/pretrain-DATA-METHOD-SEED-HASH."),
    ] = None,
    start: Annotated[
        Path | None,
        Parameter(
            help="A run folder or model file, such as a snapshot, whose weights are the initial ones; "
            "by default random ones."
        ),
    ] = None,
    snapshots: Annotated[
        int | None,
        Parameter(
            help="Write a model file to RUN/snapshots whenever so many more molecules were seen; "
            "by default none."
        ),
    ] = None,
    name: Annotated[str | None, Parameter(help="Name of the model; by default METHOD-DATA.")] = None,
    licence: Annotated[str | None, Parameter(help="Licence of the model; by default the data set's.")] = None,
    log: LogOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: MetricsOption = False,
) -> None:
    """Pre-train an encoder on molecules, without labels; the same command resumes after an interruption.

    Example: graphsc pretrain molecules.csv --molecules 100000 --epochs 20 --out runs/pretrained
    """
    check_method(method)
    check_encoder(encoder)
    check_settings([method], encoder, set_)
    from graphsc.data.datasets.sources import is_union, parse_sources

    if start is not None:
        check_model(start)
    union = reading.reader is None and is_union(source)
    for part, _ in parse_sources(source) if union else [(source, 1.0)]:
        check_source(part, reading)
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.config import parse_assignments
    from graphsc.methods import METHODS, training_settings
    from graphsc.methods.registry import declared_settings
    from graphsc.training.callbacks import reporter_for_terminal
    from graphsc.training.distributed import Distributed
    from graphsc.training.loggers import make_loggers
    from graphsc.training.pretrain import preset_for
    from graphsc.training.pretrain import pretrain as run_pretraining

    preset = preset_for(method) if preset is None else preset
    names = inspect.signature(METHODS.get(method).make).parameters
    settings, training = split_settings(
        parse_assignments(set_ or []), epochs, seed, names, training_settings(method, preset, source)
    )
    parts = [part for part, _ in parse_sources(source)] if union else [source]
    stem = "-".join(Path(part).name.partition(".")[0].lower() for part in parts)
    identity = {
        "reading": source if union else reading.describe(source),
        "molecules": molecules, "held_out": held_out,
        "settings": declared_settings(method, source, settings, preset=preset, encoder=encoder),
        "encoder": encoder, **({} if start is None else {"start": str(start)}),
    }  # fmt: skip
    folder = out or default_folder(f"pretrain-{stem}", method, training, identity)
    done = run_pretraining(
        source, method, molecules=molecules, held_out=held_out, settings=settings, preset=preset,
        encoder=encoder, training=training, device=device, devices=devices, nodes=nodes, out=folder,
        name=name, licence=licence, callbacks=make_loggers(log or [], folder),
        reporter=reporter_for_terminal(), reader=reading.reader, options=reading.options(),
        snapshots=snapshots, start=start,
    )  # fmt: skip
    if not Distributed.current().is_main:
        return  # only the main process prints
    if json:
        metrics = done.run.metrics.rows if full else done.run.metrics.rows[-1:]
        print_json({"run": str(folder), **dataclasses.asdict(done.card), "metrics": metrics})
        return
    rows = collection_rows(done.sample.training, folder, len(done.sample.held_out))
    print_facts(done.card.name, [("run", folder), *rows, *done.card.facts()])


def pack(
    run: Annotated[Path, Parameter(help="A run folder or a model file.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The file to write: NAME.safetensors.")],
    half: Annotated[bool, Parameter(help="16-bit weights: half the size, embeddings equal to 1e-3.")] = True,
    name: Annotated[str | None, Parameter(help="Name of the model; by default the file's name.")] = None,
    licence: Annotated[
        str | None, Parameter(help="Licence of the model; by default that of the run.")
    ] = None,
    scores: Annotated[
        Path | None,
        Parameter(
            help="A file of 'graphsc frozen' whose scores of this model go on the card; none by default."
        ),
    ] = None,
    results: Annotated[
        Path | None,
        Parameter(
            help="A folder of stored results; what fine-tuning delivers from this model goes on the card; "
            "none by default."
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Write the encoder of a trained model, with its model card, as one small file.

    Example: graphsc pack runs/pretrained --out mine.safetensors
    """
    from graphsc.core.errors import ConfigError
    from graphsc.training.model_files import ENDING

    check_model(run)
    if out.suffix != ENDING:
        raise ConfigError("a model file must end in .safetensors", where=str(out), hint=f"use {out}{ENDING}")
    from graphsc.cli.output import print_facts, print_json
    from graphsc.training.model_io import pack as write_packed
    from graphsc.training.model_io import size_of

    notes: list[str] = []
    if scores is not None or results is not None:
        from graphsc.experiments.card_notes import delivered_notes, frozen_notes
        from graphsc.experiments.frozen import read_scores
        from graphsc.experiments.result import ResultStore
        from graphsc.training.model_files import find_model

        file = find_model(run)
        for place, own in (
            (scores, [] if scores is None else frozen_notes(read_scores(scores), file)),
            (results, [] if results is None else delivered_notes(ResultStore(results), file)),
        ):
            if place is not None and not own:
                raise ConfigError("this has no scores of this model", where=str(place))
            notes += own
    name = name or out.name.removesuffix(ENDING)
    card = write_packed(run, out, half=half, name=name, licence=licence, notes=notes)
    if json:
        print_json({"path": str(out), "bytes": out.stat().st_size, "card": card and card.to_json()})
        return
    print_facts(out.name, [("written to", out), ("size", size_of(out)), *(card.facts() if card else [])])


def frozen(
    model: Annotated[
        str,
        Parameter(help="A run folder, of which all snapshots are scored, a model file or a model's name."),
    ],
    /,
    *,
    sets: Annotated[
        str, Parameter(help="Sets of MoleculeNet, separated by commas; all is the eight.")
    ] = "BBBP,BACE,SIDER,ClinTox",
    part: Annotated[
        Literal["valid", "test"],
        Parameter(help="The part of the scaffold split to score; models are chosen on valid."),
    ] = "valid",
    fingerprints: Annotated[bool, Parameter(help="Score ECFP fingerprints beside it.")] = True,
    last: Annotated[bool, Parameter(negative=(), help="Only the last snapshot of a run.")] = False,
    out: Annotated[
        Path | None,
        Parameter(help="A file to keep the scores in; those it has are not computed again; none by default."),
    ] = None,
    figure: Annotated[
        Path | None,
        Parameter(help="Draw the curve against molecules seen into this .svg or .png file; none by default."),
    ] = None,
    json: JsonOption = False,
) -> None:
    """Fit linear models on frozen vectors of MoleculeNet sets, for a model or along a pre-training run.

    Example: graphsc frozen runs/pretrained --out curve.jsonl --figure curve.svg
    """
    from graphsc.core.errors import ConfigError

    check_model(model)
    if figure is not None and figure.suffix not in (".svg", ".png"):
        raise ConfigError("a figure must end in .svg or .png", where=str(figure))
    from graphsc.cli.output import print_json, print_table
    from graphsc.core.progress import counting_bar
    from graphsc.experiments.frozen import (
        SETS,
        check_sets,
        curve_figure,
        frozen_scores,
        models_of,
        score_table,
    )  # fmt: skip

    names = list(SETS) if sets.strip() == "all" else check_sets([name.strip() for name in sets.split(",")])
    files = models_of(model)
    with counting_bar("linear models", "tasks") as bar:
        scores = frozen_scores(
            files[-1:] if last else files, names, part=part, fingerprints=fingerprints, store=out,
            progress=lambda what, done, total: bar(done, total),
        )  # fmt: skip
    if figure is not None:
        from graphsc.report.figure import save_figure

        save_figure(curve_figure(scores), figure)
    if json:
        print_json([dataclasses.asdict(score) for score in scores])
        return
    table = score_table(scores)
    words = "validation" if part == "valid" else "test"
    print_table(f"ROC-AUC of linear models on the {words} part", table.columns, table.rows)


def models(*, json: JsonOption = False) -> None:
    """List the pre-trained models known by name.

    Example: graphsc models
    """
    from graphsc.cli.output import print_json, print_table
    from graphsc.training.model_io import available_models, card_of, size_of

    rows = []
    for name, path in available_models().items():
        card = card_of(path)
        facts = (card.method, card.data, card.seen, card.dimensions) if card else ("-", "-", "-", "-")
        rows.append((name, *facts, size_of(path), str(path)))
    headers = ("name", "method", "data", "graphs seen", "dimensions", "size", "path")
    if json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table("Models", headers, rows)
