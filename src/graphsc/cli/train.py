"""`graphsc train` and `graphsc embed`: train a model on graphs, and embed graphs with it."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.checks import (
    check_encoder,
    check_ending,
    check_method,
    check_model,
    check_settings,
    check_source,
)
from graphsc.cli.data import (
    FORMAT_HELP,
    READ_AS_USUAL,
    ClusterOption,
    FeaturesOption,
    JsonOption,
    ProcessesOption,
    ReaderOptions,
    SourceArgument,
    check_format,
    show_parts,
)
from graphsc.cli.output import print_error

if TYPE_CHECKING:
    from graphsc.data.collection import GraphCollection
    from graphsc.training.trainer import TrainSettings

SetOption = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="A setting as KEY=VALUE: of the method, or encoder.KEY or training.KEY; repeatable; by default "
        "all are the preset's.",
    ),
]
LogOption = Annotated[
    list[str] | None,
    Parameter(
        negative=(), help="Also log to csv, mlflow, tensorboard or wandb; repeatable; none by default."
    ),
]
EpochsOption = Annotated[int | None, Parameter(help="Passes over the data; by default the preset's.")]
DeviceOption = Annotated[str, Parameter(help="auto, cpu, cuda, cuda:NUMBER or mps.")]
DevicesOption = Annotated[int, Parameter(help="Devices per machine that share each batch.")]
NodesOption = Annotated[
    int,
    Parameter(help="Machines, on each of which torchrun starts this command; it says how many there are."),
]


MetricsOption = Annotated[
    bool,
    Parameter(name="--full", negative=(), help="With --json: the metrics of every epoch, not of the last."),
]


def train(
    source: SourceArgument,
    /,
    *,
    method: Annotated[str, Parameter(help="The method, one of 'graphsc methods'.")] = "graphsc",
    encoder: Annotated[str, Parameter(help="The encoder's name.")] = "gin",
    preset: Annotated[str, Parameter(help="A preset of the method's settings.")] = "default",
    set_: SetOption = None,
    epochs: EpochsOption = None,
    seed: Annotated[int, Parameter(help="Seed of the initialisation, order and views.")] = 0,
    device: DeviceOption = "auto",
    devices: DevicesOption = 1,
    nodes: NodesOption = 1,
    out: Annotated[
        Path | None,
        Parameter(help="The run folder; by default runs/DATA-METHOD-SEED-HASH, with a hash of the settings."),
    ] = None,
    log: LogOption = None,
    tensorboard: Annotated[bool, Parameter(negative=(), help="The same as --log tensorboard.")] = False,
    features: FeaturesOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
    full: MetricsOption = False,
) -> None:
    """Train a method on graphs, without labels; the same command resumes after an interruption.

    Example: graphsc train mutag --method graphsc --epochs 20 --set margin=0.3 --out runs/mutag
    """
    check_method(method)
    check_encoder(encoder)
    check_settings([method], encoder, set_)
    check_source(source, reading, features, by_header=True)
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.config import parse_assignments
    from graphsc.methods import METHODS, training_settings, trains
    from graphsc.methods.registry import declared_settings, kind_of
    from graphsc.training.callbacks import reporter_for_terminal
    from graphsc.training.distributed import Distributed
    from graphsc.training.loggers import make_loggers
    from graphsc.training.train import train as run_training

    collection = reading.open(source, features)
    names = inspect.signature(METHODS.get(method).make).parameters
    defaults = training_settings(method, preset, collection.name, kind_of(collection))
    settings, training = split_settings(parse_assignments(set_ or []), epochs, seed, names, defaults)
    reporter = reporter_for_terminal()
    for note in collection.notes:
        reporter.log(f"note: {note}")
    if epochs is not None and not trains(method):
        reporter.log(f"note: {method} does not train; --epochs is ignored")
    identity = {
        "graphs": collection.content_hash,
        "settings": declared_settings(
            method, collection.name, settings, preset=preset, encoder=encoder, kind=kind_of(collection)
        ),
        "encoder": encoder,
    }
    folder = out or default_folder(collection.name, method, training, identity)
    run = run_training(
        collection, method, settings=settings, preset=preset, encoder=encoder, training=training,
        device=device, devices=devices, nodes=nodes, out=folder, source=source,
        reading=reading.describe(source), reporter=reporter,
        callbacks=make_loggers([*(log or []), *["tensorboard"] * tensorboard], folder),
    )  # fmt: skip
    if not Distributed.current().is_main:
        return  # only the main process prints
    facts: list[tuple[str, object]] = [
        ("run", folder), *collection_rows(collection, folder), ("dimensions", run.model.dimensions),
    ]  # fmt: skip
    if run.metrics.rows:
        last = run.metrics.rows[-1]
        facts.append(("epochs", f"{last['epoch']:.0f}"))
        facts += [(name, f"{last[name]:.4f}") for name in ("loss", "effective_rank") if name in last]
    if json:
        print_json(
            {
                "run": str(folder), "graphs": len(collection), "rejected": len(collection.rejected),
                "dimensions": run.model.dimensions,
                "metrics": run.metrics.rows if full else run.metrics.rows[-1:],
            }
        )  # fmt: skip
        return
    print_facts(f"{method} on {collection.name}", facts)


def default_folder(data: str, method: str, training: TrainSettings, identity: Mapping[str, object]) -> Path:
    """The run folder of a verb that was given none: its name has a hash of all settings but the epochs."""
    import hashlib
    import json

    from graphsc.core.files import file_name

    loop = {key: value for key, value in training.to_json().items() if key not in ("epochs", "seed")}
    text = json.dumps({"training": loop, **identity}, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode()).hexdigest()[:6]
    return Path("runs") / file_name(f"{data}-{method}-{training.seed}-{digest}")


def collection_rows(collection: GraphCollection, folder: Path, held_out: int = 0) -> list[tuple[str, object]]:
    """How many rows of a run's source were read, used (or held out) and rejected."""
    from graphsc.cli.output import row_facts
    from graphsc.data.molecules.rejected import common_reasons

    rejected = collection.rejected
    reasons = common_reasons(row.reason for row in rejected)
    read = len(collection) + held_out + len(rejected)
    facts = row_facts(read, reasons, len(rejected), folder / "rejected.csv")
    return facts + edge_facts([row.reason for row in collection.rejected_edges], folder / "rejected.csv")


def edge_facts(reasons: Sequence[str], listing: object = None) -> list[tuple[str, object]]:
    """How many rows of an edge list were rejected, the most frequent reasons, and their list."""
    from graphsc.data.molecules.rejected import common_reasons

    if not reasons:
        return []
    words = "; ".join(f"{reason} ({count:,})" for reason, count in common_reasons(reasons))
    listed = [] if listing is None else [("rejected rows", listing)]
    return [("edge rows rejected", len(reasons)), ("reasons", words), *listed]


def split_settings(
    settings: dict[str, object],
    epochs: int | None,
    seed: int,
    method_names: Container[str] = (),
    preset: Mapping[str, object] = MappingProxyType({}),
) -> tuple[dict[str, object], TrainSettings]:
    """Split the values of `--set` into settings of the method and of the training loop.

    A setting belongs to the loop if it starts with `training.`, or if the loop has it and the method has not.
    `preset` has defaults for the loop.
    """
    from graphsc.core.config import build
    from graphsc.training.trainer import TrainSettings

    names = {item.name for item in dataclasses.fields(TrainSettings)}
    of_method: dict[str, object] = {}
    of_loop: dict[str, object] = {**preset, "seed": seed}
    for key, value in settings.items():
        name = key.removeprefix("training.")
        if key.startswith("training.") or (name in names and name not in method_names):
            of_loop[name] = value
        else:
            of_method[key] = value
    if epochs is not None:
        of_loop["epochs"] = epochs
    return of_method, build(TrainSettings, of_loop, "training")


def embed(
    run: Annotated[Path, Parameter(help="A run folder, a model file, or a name listed by 'graphsc models'.")],
    source: SourceArgument,
    /,
    *,
    out: Annotated[
        Path,
        Parameter(help="FILE.npz, FILE.csv or FILE.parquet; a folder if SOURCE is a folder or a pattern."),
    ],
    format_: Annotated[
        Literal["npz", "csv", "parquet"] | None, Parameter(name="--format", help=FORMAT_HELP)
    ] = None,
    device: DeviceOption = "auto",
    jobs: ProcessesOption = 1,
    cluster: ClusterOption = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
) -> None:
    """Embed graphs with a trained model: one row per graph, with its id.

    A table of molecules keeps all its rows; a row that is not a valid molecule has no vector but the reason.
    SOURCE may also be a folder of files, or a quoted pattern such as 'parts/*.csv': then --out is a folder,
    in which each of them gets a file of its own. Run the same command again to resume after an interruption;
    only what is missing or has changed is computed.

    Example: graphsc embed runs/mutag mutag --out embeddings.csv
    """
    from graphsc.core.parts import is_many

    endings = (".npz", ".csv", ".parquet")
    many = is_many(source, out, endings)
    if not many:
        check_format(format_)
        check_ending(out, endings, "embeddings")
    check_model(run)
    from graphsc.training.model_files import trained_reading

    reader, options = reading.reader, reading.options()
    own = trained_reading(run, source) if reader is None and not options else None
    if own is None:
        check_source(source, reading, by_header=True)
    else:
        reader, options = own
    from graphsc.cli.output import print_facts, print_json, row_facts
    from graphsc.core.progress import counting_bar
    from graphsc.training.embed_io import embed_files, embed_source

    if many:
        with counting_bar(source, "files") as progress:
            parts = embed_files(
                run, source, out, format=format_, reader=reader, options=options, jobs=jobs, cluster=cluster,
                device=device, progress=progress, log=print_error,
            )  # fmt: skip
        show_parts(parts, out, json)
        return
    with counting_bar(source, "graphs") as progress:
        done = embed_source(
            run, source, out, reader=reader, options=options, jobs=jobs, cluster=cluster, device=device,
            progress=progress,
        )  # fmt: skip
    rejected = done.rows - done.graphs
    if json:
        print_json(
            {
                "graphs": done.graphs, "rows": done.rows, "rejected": rejected,
                "reasons": dict(done.reasons), "edge_rows_rejected": len(done.rejected_edges),
                "dimensions": done.dimensions, "path": str(out),
            }
        )  # fmt: skip
        return
    rows = row_facts(done.rows, done.reasons, rejected, f"column reason of {out}")
    rows += edge_facts(done.rejected_edges)
    print_facts(done.name, [*rows, ("dimensions", done.dimensions), ("written to", out)])
