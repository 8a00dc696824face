"""`graphsc pretrain`, `pack` and `models`: from many unlabelled molecules to a model that others can use."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphsc.cli.data import DoorOption, DoorSetOption, JsonOption, SmilesOption, SourceArgument, door_options
from graphsc.cli.train import SetOption, split_settings


def pretrain(
    source: SourceArgument,
    /,
    *,
    method: Annotated[str, Parameter(help="A trained method, as 'graphsc methods' lists them.")] = "graphsc",
    molecules: Annotated[
        int | None, Parameter(help="How many to train on, spread over the source; by default all.")
    ] = None,
    held_out: Annotated[
        int, Parameter(help="How many others to score the method on; at most a tenth of the source.")
    ] = 2048,
    epochs: Annotated[int | None, Parameter(help="How often to see each; by default the preset's.")] = None,
    encoder: Annotated[str, Parameter(help="An encoder by name.")] = "molecule-gin",
    preset: Annotated[
        str | None, Parameter(help="A preset of the method; by default 'molecules' where it has one.")
    ] = None,
    set_: SetOption = None,
    seed: Annotated[int, Parameter(help="Decides molecules, first weights, order and views.")] = 0,
    device: Annotated[str, Parameter(help="auto, cpu, cuda or mps.")] = "auto",
    devices: Annotated[int, Parameter(help="How many of them on this machine share every batch.")] = 1,
    nodes: Annotated[int, Parameter(help="On how many machines, started by torchrun on each.")] = 1,
    out: Annotated[
        Path | None, Parameter(help="The run's folder; by default runs/pretrain-DATA-METHOD-SEED.")
    ] = None,
    name: Annotated[str | None, Parameter(help="What the model is called; by default METHOD-DATA.")] = None,
    licence: Annotated[str | None, Parameter(help="Of the model; by default that of a named set.")] = None,
    smiles_column: SmilesOption = None,
    door: DoorOption = None,
    door_set: DoorSetOption = None,
    json: JsonOption = False,
) -> None:
    """Pre-train on molecules without labels; run the same command again to go on after a stop."""
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.config import parse_assignments
    from graphsc.methods import METHODS, training_settings
    from graphsc.training.callbacks import reporter_for_terminal
    from graphsc.training.distributed import Distributed
    from graphsc.training.pretrain import preset_for
    from graphsc.training.pretrain import pretrain as run_pretraining

    chosen = preset_for(method) if preset is None else preset
    names = inspect.signature(METHODS.get(method).make).parameters
    settings, training = split_settings(
        parse_assignments(set_ or []), epochs, seed, names, training_settings(method, chosen, source)
    )
    stem = Path(source).name.partition(".")[0].lower().replace(":", "-")
    folder = out or Path("runs") / f"pretrain-{stem}-{method}-{training.seed}"
    done = run_pretraining(
        source, method, molecules=molecules, held_out=held_out, settings=settings, preset=chosen,
        encoder=encoder, training=training, device=device, devices=devices, nodes=nodes, out=folder,
        name=name, licence=licence, reporter=reporter_for_terminal(), door=door,
        options=door_options(None, door_set, smiles_column),
    )  # fmt: skip
    if not Distributed.current().is_main:
        return  # one of several processes has spoken for all
    if json:
        print_json({"run": str(folder), **dataclasses.asdict(done.card), "metrics": done.run.metrics.rows})
        return
    print_facts(done.card.name, [("run", folder), *done.card.facts()])


def pack(
    run: Annotated[Path, Parameter(help="A run's folder or a model file.")],
    /,
    *,
    out: Annotated[Path, Parameter(help="The file to write, NAME.safetensors.")],
    half: Annotated[bool, Parameter(help="16 bits a weight: half the size, vectors equal to 1e-3.")] = True,
    name: Annotated[str | None, Parameter(help="What it is called; by default the file's name.")] = None,
    json: JsonOption = False,
) -> None:
    """Write the encoder of a trained model and its card as one small file."""
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.errors import ConfigError
    from graphsc.training.model_io import ENDING, size_of
    from graphsc.training.model_io import pack as write_packed

    if out.suffix != ENDING:
        raise ConfigError("a model file ends in .safetensors", where=str(out), hint=f"use {out}{ENDING}")
    card = write_packed(run, out, half=half, name=name or out.name.removesuffix(ENDING))
    if json:
        print_json({"path": str(out), "bytes": out.stat().st_size, "card": card and card.to_json()})
        return
    print_facts(out.name, [("written to", out), ("size", size_of(out)), *(card.facts() if card else [])])


def models(*, json: JsonOption = False) -> None:
    """The pre-trained models there are by name."""
    from graphsc.cli.output import print_json, print_table
    from graphsc.training.model_io import available_models, card_of, size_of

    rows = []
    for name, path in available_models().items():
        card = card_of(path)
        about = (card.method, card.data, card.seen, card.dimensions) if card else ("-", "-", "-", "-")
        rows.append((name, *about, size_of(path), str(path)))
    headers = ("name", "method", "data", "graphs seen", "dimensions", "size", "path")
    if json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table("Models", headers, rows)
