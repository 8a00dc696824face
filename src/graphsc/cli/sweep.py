"""`graphsc sweep`: search settings of a method, by inner folds alone."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from graphsc.cli.checks import check_file, check_method, check_settings, check_source
from graphsc.cli.data import READ_AS_USUAL, ClusterOption, FeaturesOption, JsonOption, ReaderOptions
from graphsc.cli.evaluate import FoldsOption
from graphsc.cli.train import DeviceOption, SetOption


def sweep(
    source: Annotated[str, Parameter(help="A collection, as for train.")],
    /,
    *,
    method: Annotated[str, Parameter(help="A method, as 'graphsc methods' lists them.")] = "graphsc",
    space: Annotated[str, Parameter(help="A YAML file of settings and their values, or 'paper'.")],
    trials: Annotated[
        int | None, Parameter(help="How many settings to try; by default 20, or a whole grid.")
    ] = None,
    sampler: Annotated[Literal["tpe", "random", "grid"], Parameter(help="How settings are drawn.")] = "tpe",
    pruner: Annotated[
        Literal["none", "median", "hyperband"], Parameter(help="What ends poor trials early.")
    ] = "none",
    seeds: Annotated[int, Parameter(help="Trainings a trial; their mean decides.")] = 1,
    first_seed: Annotated[int, Parameter(help="The first of the seeds; none that a table reports.")] = 1000,
    set_: SetOption = None,
    epochs: Annotated[int | None, Parameter(help="For every trial; by default the method's own.")] = None,
    preset: Annotated[str, Parameter(help="A preset of the method, to start from.")] = "default",
    features: FeaturesOption = None,
    folds: FoldsOption = 10,
    storage: Annotated[
        str | None,
        Parameter(
            help="Where the study is kept: FILE.journal, or any storage URL of Optuna (sqlite:///FILE, "
            "postgresql://...); by default a file in the folder of --out."
        ),
    ] = None,
    study: Annotated[str | None, Parameter(help="The study's name; by default DATA-METHOD.")] = None,
    jobs: Annotated[int | None, Parameter(help="Trials at a time; with more than 1, draws may differ.")] = 1,
    cluster: ClusterOption = None,
    device: DeviceOption = "auto",
    runs: Annotated[Path, Parameter(help="Where training runs live.")] = Path("runs"),
    out: Annotated[
        Path | None, Parameter(help="Where tables and pictures go; by default sweeps/DATA-METHOD.")
    ] = None,
    reading: ReaderOptions = READ_AS_USUAL,
    json: JsonOption = False,
) -> None:
    """Search for good settings; the same command resumes, and with more trials extends the search.

    What decides is the accuracy on inner folds, which hold training graphs only. No test fold is predicted.

    Example: graphsc sweep mutag --space paper --trials 20
    """
    check_method(method)
    check_settings([method], "gin", set_)
    check_source(source, reading, features, by_header=True)
    if space != "paper":
        check_file(Path(space), "space of settings")
    from graphsc.cli.output import print_facts, print_json
    from graphsc.core.config import parse_assignments
    from graphsc.core.errors import DivergedError
    from graphsc.core.files import file_name
    from graphsc.experiments.plan import split_settings
    from graphsc.experiments.search_space import read_space
    from graphsc.experiments.sweep import Sweep, SweepStudy, command_of, write_sweep
    from graphsc.experiments.trial import ProbeTrial
    from graphsc.training.callbacks import reporter_for_terminal

    settings, training = split_settings(parse_assignments(set_ or []))
    if epochs is not None:
        training["epochs"] = epochs
    asked = Sweep(
        source, method, read_space(space), features=features or "auto", preset=preset, settings=settings,
        training=training, folds=folds, seeds=seeds, first_seed=first_seed, sampler=sampler, pruner=pruner,
        reader=reading.reader, options=reading.options(),
    )  # fmt: skip
    asked.check()
    name = study or f"{ProbeTrial(source, method).data_name}-{method}"
    folder = out or Path("sweeps") / file_name(name)
    reporter = reporter_for_terminal()
    opened = SweepStudy(asked, storage or f"sqlite:///{folder / 'sweep.db'}", name)
    opened.run(
        trials,
        runs=runs,
        jobs=jobs,
        lock=folder / ".lock",
        reporter=reporter,
        cluster=cluster,
        device=device,
    )
    for sentence in write_sweep(opened, folder):
        reporter.log(f"note: {sentence}")
    best = opened.best()
    if best is None or best.value is None:
        raise DivergedError(
            f"none of {len(opened.trials())} trials has finished", where=str(folder / "trials.csv"),
            hint="the table says why; try other values",
        )  # fmt: skip
    found = dict(best.settings)
    if json:
        print_json(
            {"trial": best.number, "inner_accuracy": best.value, "settings": found, "out": str(folder)}
        )
        return
    facts = [("best trial", best.number), ("inner accuracy", f"{100 * best.value:.2f} %"), *found.items()]
    print_facts(f"{method} on {source}", [*facts, ("written to", folder)])
    sys.stdout.write(f"{command_of(asked, found)}\ngraphsc results run {folder / 'best.yaml'}\n")
