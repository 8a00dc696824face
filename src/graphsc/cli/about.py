"""`graphsc methods` and `graphsc info`: available methods, and versions, devices and data on this machine."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from graphsc.cli.checks import check_file
from graphsc.cli.data import JsonOption
from graphsc.cli.output import print_facts, print_json, print_table

# Pages of the modules in which methods are, where they are not called after the module.
PAGES = {"graphsc": "../graphsc.md", "graphsc_plus": "graphsc-plus.md", "baselines": "../protocol.md"}


def methods(
    *,
    long: Annotated[bool, Parameter(help="What each method contrasts with what, and at what cost.")] = False,
    page: Annotated[
        Path | None,
        Parameter(help="Rebuild the table of a page with a <!-- methods --> mark; by default of none."),
    ] = None,
    plan: Annotated[
        Path | None,
        Parameter(
            help="A plan file: of its table systems, the average rank of each method; by default no ranks."
        ),
    ] = None,
    results: Annotated[Path, Parameter(help="Where results of the plan are kept.")] = Path("results"),
    json: JsonOption = False,
) -> None:
    """List the methods by name, with their papers.

    Example: graphsc methods --long
    """
    ranks = {} if plan is None else _ranks(plan, results)
    from graphsc.methods import METHODS

    if page is not None:
        from graphsc.paper.pages import write_part

        changed = write_part(page, "methods", methods_markdown(ranks))
        sys.stdout.write(f"{page}: {'table rebuilt' if changed else 'nothing has changed'}\n")
        return
    entries = {name: METHODS.get(name) for name in METHODS}
    headers: tuple[str, ...] = ("name", "kind", "year", "what", "paper")
    rows: list[tuple[object, ...]] = [
        (name, entry.kind, entry.year, entry.summary, entry.paper) for name, entry in entries.items()
    ]
    if long:
        headers = ("name", "kind", "year", *_long_columns(ranks))
        rows = [(name, entry.kind, entry.year, *_long_row(name, ranks)) for name, entry in entries.items()]
    if json:
        print_json([dict(zip(headers, row, strict=True)) for row in rows])
    else:
        print_table("Methods", headers, rows)


def _ranks(plan: Path, results: Path) -> Mapping[str, float]:
    """Average ranks of the plan's table `systems`, over the data sets that all of its methods have."""
    check_file(plan, "plan")
    from graphsc.core.errors import ConfigError
    from graphsc.experiments.plan import TablePlan, read_plan
    from graphsc.experiments.result import ResultStore
    from graphsc.experiments.tables import stored_comparison

    for table in read_plan(plan):
        if table.name == "systems" and isinstance(table, TablePlan):
            comparison = stored_comparison(table, ResultStore(results))
            return {} if comparison is None else comparison.ranks
    raise ConfigError("the plan has no table of accuracies called systems", where=str(plan))


def _long_columns(ranks: Mapping[str, float]) -> tuple[str, ...]:
    rank = ("rank here",) if ranks else ()
    return ("contrasts", "negatives", "augmentation", "passes", *rank, "published")


def _long_row(name: str, ranks: Mapping[str, float]) -> tuple[str | int, ...]:
    """The values of `_long_columns`."""
    from graphsc.experiments.published import published, published_transfer
    from graphsc.methods import METHODS

    entry = METHODS.get(name)
    tables = {"TU": published(), "transfer": published_transfer()}
    numbers = [f"{len(table[name])} {kind}" for kind, table in tables.items() if name in table]
    rank = (f"{ranks[name]:.2f}" if name in ranks else "",) if ranks else ()
    return entry.contrast, entry.negatives, entry.augmentation, entry.passes, *rank, ", ".join(numbers)


def methods_markdown(ranks: Mapping[str, float]) -> str:
    """All methods of this package in one table, each linked to its page."""
    from graphsc.core.tables import Table
    from graphsc.methods import METHODS

    package = "graphsc.methods."
    modules = {name: METHODS.get(name).make.__module__ for name in METHODS}
    own = {name: module.removeprefix(package) for name, module in modules.items() if package in module}
    rows = tuple((f"[{name}]", METHODS.get(name).year, *_long_row(name, ranks)) for name in own)
    columns = _long_columns(ranks)
    table = Table(("method", "year", *columns), rows, align="lrlllr" + "r" * (len(columns) - 5) + "l")
    links = [f"[{name}]: {PAGES.get(module, f'{module}.md')}" for name, module in own.items()]
    return table.markdown() + "\n" + "\n".join(links) + "\n"


def info(
    model: Annotated[
        Path | None,
        Parameter(help="A run folder, model file or model name, to show its model card; by default none."),
    ] = None,
    /,
    *,
    json: JsonOption = False,
) -> None:
    """Show versions, devices, optional packages, data sets and models on this machine, or a model's card.

    Example: graphsc info graphsc-plus-molecules
    """
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
    from graphsc.cli.checks import check_model
    from graphsc.core.errors import NotFoundError

    check_model(model)
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
