"""`graphsc methods` and `graphsc info`: available methods, and versions, devices and data on this machine."""

from __future__ import annotations

import importlib.util
import platform
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphsc.cli.data import JsonOption
from graphsc.cli.output import print_facts, print_json, print_table


def methods(*, json: JsonOption = False) -> None:
    """List the methods by name, with their papers."""
    from graphsc.methods import METHODS

    rows = []
    for name in METHODS:
        entry = METHODS.get(name)
        rows.append((name, entry.kind, entry.year, entry.summary, entry.paper))
    headers = ("name", "kind", "year", "what", "paper")
    if json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table("Methods", headers, rows)


def info(
    model: Annotated[
        Path | None, Parameter(help="A run folder, model file or model name, to show its model card.")
    ] = None,
    /,
    *,
    json: JsonOption = False,
) -> None:
    """Show versions, devices, optional packages, data sets and models on this machine, or a model's card."""
    if model is not None:
        _show_card(model, json)
        return
    facts = _gather_info()
    if json:
        print_json(facts)
        return
    print_facts(
        "graphsc",
        [
            (key, ", ".join(map(str, value)) if isinstance(value, list) else value)
            for key, value in facts.items()
        ],
    )


def _show_card(model: Path, json: bool) -> None:
    from graphsc.core.errors import NotFoundError
    from graphsc.training.model_io import card_of

    card = card_of(model)
    if card is None:
        raise NotFoundError("this model has no card", where=str(model), hint="graphsc pretrain writes one")
    if json:
        print_json(card.to_json())
    else:
        print_facts(card.name, card.facts())


def _gather_info() -> dict[str, object]:
    import numpy
    import sklearn
    import torch
    import torch_geometric

    from graphsc import __version__
    from graphsc.core.registry import EXTRA_OF
    from graphsc.data.datasets.catalog import NAMED, find, search_folders
    from graphsc.training.distributed import pick_device
    from graphsc.training.model_io import available_models

    installed = {module: importlib.util.find_spec(module) is not None for module in EXTRA_OF}
    folders = search_folders()
    devices = ["cpu"]
    devices += [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    devices += ["mps"] if torch.backends.mps.is_available() else []
    return {
        "graphsc": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch-geometric": torch_geometric.__version__,
        "numpy": numpy.__version__,
        "scikit-learn": sklearn.__version__,
        "threads": torch.get_num_threads(),
        "devices": devices,
        "auto device": pick_device("auto"),
        "extras": sorted(module for module, present in installed.items() if present),
        "missing extras": sorted(
            f"{module} ({EXTRA_OF[module]})" for module, present in installed.items() if not present
        ),
        "data sets": sorted(name for name, entry in NAMED.items() if find(entry, folders) is not None),
        "models": list(available_models()),
    }
