"""`graphsc train` and `graphsc embed`: from graphs to a run, from a run to vectors."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Container, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from graphsc.cli.data import (
    DoorOption,
    DoorSetOption,
    FeaturesOption,
    JsonOption,
    SourceArgument,
    open_source,
)

if TYPE_CHECKING:
    from graphsc.training.trainer import TrainSettings

SetOption = Annotated[
    list[str] | None,
    Parameter(
        name="--set",
        negative=(),
        help="Any setting as key=value: the method's, encoder.KEY or training.KEY; repeatable.",
    ),
]


def train(
    source: SourceArgument,
    /,
    *,
    method: Annotated[str, Parameter(help="A method, as 'graphsc methods' lists them.")] = "graphsc",
    encoder: Annotated[str, Parameter(help="An encoder by name.")] = "gin",
    preset: Annotated[str, Parameter(help="A preset of the method.")] = "default",
    set_: SetOption = None,
    epochs: Annotated[int | None, Parameter(help="How often to see every graph.")] = None,
    seed: Annotated[int, Parameter(help="Decides first weights, order and views.")] = 0,
    device: Annotated[str, Parameter(help="auto, cpu, cuda or mps.")] = "auto",
    devices: Annotated[int, Parameter(help="How many of them on this machine share every batch.")] = 1,
    nodes: Annotated[int, Parameter(help="On how many machines, started by torchrun on each.")] = 1,
    out: Annotated[Path | None, Parameter(help="The run's folder; by default runs/DATA-METHOD-SEED.")] = None,
    tensorboard: Annotated[
        bool, Parameter(negative=(), help="Also write TensorBoard events into the folder.")
    ] = False,
    features: FeaturesOption = None,
    door: DoorOption = None,
    door_set: DoorSetOption = None,
    json: JsonOption = False,
) -> None:
    """Train a method without labels; run the same command again to go on after a stop."""
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.config import parse_assignments
    from graphsc.methods import METHODS, training_settings
    from graphsc.training.callbacks import Callback, reporter_for_terminal
    from graphsc.training.distributed import Distributed
    from graphsc.training.train import train as run_training

    collection = open_source(source, features, door, door_set)
    entry = METHODS.get(method)
    names = inspect.signature(entry.make).parameters
    of_preset = training_settings(method, preset, collection.name)
    settings, training = split_settings(parse_assignments(set_ or []), epochs, seed, names, of_preset)
    reporter = reporter_for_terminal()
    if epochs is not None and not (entry.kind == "trained" and getattr(entry.make, "trains", True)):
        reporter.log(f"note: {method} does not train; --epochs is ignored")
    folder = out or Path("runs") / f"{collection.name}-{method}-{training.seed}"
    callbacks: list[Callback] = []
    if tensorboard:
        from graphsc.training.callbacks import TensorBoard

        callbacks.append(TensorBoard(folder / "tensorboard"))
    run = run_training(
        collection, method, settings=settings, preset=preset, encoder=encoder, training=training,
        device=device, devices=devices, nodes=nodes, out=folder, source=source, callbacks=callbacks,
        reporter=reporter,
    )  # fmt: skip
    if not Distributed.current().is_main:
        return  # one of several processes has spoken for all
    facts: list[tuple[str, object]] = [("run", folder), ("dimensions", run.model.dimensions)]
    if run.metrics.rows:
        last = run.metrics.rows[-1]
        facts.append(("epochs", f"{last['epoch']:.0f}"))
        facts += [(name, f"{last[name]:.4f}") for name in ("loss", "effective_rank") if name in last]
    if json:
        print_json({"run": str(folder), "dimensions": run.model.dimensions, "metrics": run.metrics.rows})
        return
    print_facts(f"{method} on {collection.name}", facts)


def split_settings(
    given: dict[str, object],
    epochs: int | None,
    seed: int,
    of_method: Container[str] = (),
    of_preset: Mapping[str, object] = MappingProxyType({}),
) -> tuple[dict[str, object], TrainSettings]:
    """Settings of the method, and of the loop, whose names the method has not or start with `training.`."""
    from graphsc.core.config import build
    from graphsc.training.trainer import TrainSettings

    names = {item.name for item in dataclasses.fields(TrainSettings)}
    of_loop: dict[str, object] = {**of_preset, "seed": seed}
    for key in list(given):
        name = key.removeprefix("training.")
        if key.startswith("training.") or (name in names and name not in of_method):
            of_loop[name] = given.pop(key)
    if epochs is not None:
        of_loop["epochs"] = epochs
    return given, build(TrainSettings, of_loop, "training")


def embed(
    run: Annotated[Path, Parameter(help="A run's folder, a model file, or a model by name.")],
    source: SourceArgument,
    /,
    *,
    out: Annotated[Path, Parameter(help="FILE.npz, FILE.csv or FILE.parquet.")],
    door: DoorOption = None,
    door_set: DoorSetOption = None,
    json: JsonOption = False,
) -> None:
    """Embed any graphs with a trained model, a row a graph, joined to the graphs' ids.

    A table of molecules keeps all its rows: those without a molecule have no vector, but the reason.
    Many graphs take no more memory than few; run the same command again to go on after a stop.
    """
    from graphsc.cli.output import counting_bar, print_facts, print_json
    from graphsc.core.files import check_writable
    from graphsc.training.embed_io import check_target, embed_to_file
    from graphsc.training.train import hash_of_model, model_of

    check_target(out)
    check_writable(out)
    model = model_of(run)
    collection = open_source(source, None, door, door_set)
    with counting_bar(collection.name, "graphs") as progress:
        embed_to_file(model, collection, out, identity=hash_of_model(run), progress=progress)
    graphs, width = len(collection), model.dimensions
    if json:
        print_json({"graphs": graphs, "dimensions": width, "path": str(out)})
        return
    print_facts(collection.name, [("graphs", graphs), ("dimensions", width), ("written to", out)])
