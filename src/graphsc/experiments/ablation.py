"""What each part of a pre-training adds to frozen vectors: short runs of equal processor time, on validation.

    python -m graphsc.experiments.ablation results/molecules/ablation.yaml results/molecules/ablation.jsonl

runs what the second file lacks, adds it there, and prints the table. A variant has as many molecules as it
trains on in the processor time of the plan, measured in a first short run. No test molecule is scored.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

from graphsc.core.config import build, read_config
from graphsc.core.errors import DamagedFileError
from graphsc.core.files import write_atomic
from graphsc.core.random import numpy_generator
from graphsc.core.tables import Table
from graphsc.data.collection import GraphCollection, subset
from graphsc.data.datasets.sources import parse_sources
from graphsc.data.molecules.union import open_union
from graphsc.data.sampling import HELD_OUT, split_positions
from graphsc.experiments.frozen import check_sets, score_vectors
from graphsc.training.model_io import save_model
from graphsc.training.train import Run, train

MEASURED = 24  # batches of the run that measures the time
ECFP = "ECFP"


@dataclass(frozen=True)
class AblationPlan:
    """Variants of one method, and the budget that each has."""

    source: str  # a union of sources with weights
    pool: int  # molecules of it that runs draw from
    seconds: float  # of processor time per run
    seeds: tuple[int, ...]
    sets: tuple[str, ...]
    # Settings by name; `train: false` leaves training out, `method` names another method.
    variants: Mapping[str, Mapping[str, object]]
    method: str = "graphsc-plus"
    preset: str = "molecules"
    settings: Mapping[str, object] = field(default_factory=dict)  # of all variants of the method
    batch_size: int = 256


@dataclass(frozen=True)
class Trial:
    """One run of a variant: validation ROC-AUC by set."""

    variant: str
    seed: int
    seen: int  # molecules
    seconds: float  # of processor time
    settings: Mapping[str, object] = field(default_factory=dict)
    scores: Mapping[str, float] = field(default_factory=dict)


def read_plan(path: Path) -> AblationPlan:
    """Read a plan from YAML."""
    return build(AblationPlan, dict(read_config(path)), "ablation")


def read_trials(path: Path) -> list[Trial]:
    """The trials of a file of JSON lines; none if there is no file."""
    if not path.exists():
        return []
    try:
        return [Trial(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise DamagedFileError("these are no trials of an ablation", where=str(path)) from error


def run_plan(plan: AblationPlan, store: Path) -> list[Trial]:
    """Run the trials that the file lacks, and add each to it as it ends."""
    trials = read_trials(store)
    known = {(trial.variant, trial.seed) for trial in trials}
    lengths = {trial.variant: trial.seen for trial in trials}
    pool: tuple[GraphCollection, np.ndarray] | None = None
    # All variants of a seed before the next seed: a table of one seed comes first.
    wanted = [(ECFP, 0), *((name, seed) for seed in plan.seeds for name in plan.variants)]
    for name, seed in wanted:
        if (name, seed) in known:
            continue
        if name == ECFP:
            trial = Trial(ECFP, 0, 0, 0.0, {}, _scores(plan, None))
        else:
            pool = pool or _open_pool(plan)
            trial = _run(plan, name, seed, *pool, lengths.get(name))
        trials.append(trial)
        lengths[name] = trial.seen
        write_atomic(store, "".join(json.dumps(asdict(trial)) + "\n" for trial in trials))
        sys.stderr.write(f"{name}, seed {seed}: {np.mean(list(trial.scores.values())):.4f}\n")
    return trials


def _open_pool(plan: AblationPlan) -> tuple[GraphCollection, np.ndarray]:
    """The molecules to draw from, with descriptors, and the probability of each."""
    union = open_union(parse_sources(plan.source))
    rows = split_positions(len(union.collection), plan.pool, HELD_OUT, 0).training
    weights = union.weights_of(rows)
    return subset(union.with_descriptors(rows), rows), weights / weights.sum()


def _run(
    plan: AblationPlan,
    name: str,
    seed: int,
    pool: GraphCollection,
    probability: np.ndarray,
    length: int | None,
) -> Trial:
    settings = dict(plan.variants[name])
    if not settings.pop("train", True):
        run, seen, seconds = _train(plan, settings, seed, pool, 0), 0, 0.0
    else:
        if length is None:  # a run of few batches, twice: the first one compiles and allocates
            few = subset(pool, np.arange(MEASURED * plan.batch_size))
            _train(plan, settings, seed, few, 1)
            begin = time.process_time()
            _train(plan, settings, seed, few, 1)
            share = plan.seconds / (time.process_time() - begin)
            length = plan.batch_size * min(int(share * MEASURED), plan.pool // 2 // plan.batch_size)
        rng = numpy_generator(seed, "ablation")
        rows = rng.choice(len(pool), length, replace=False, p=probability)
        begin = time.process_time()
        run = _train(plan, settings, seed, subset(pool, rows), 1)
        seen, seconds = length, time.process_time() - begin
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        save_model(path, run.model.method, run.model.recipe, run.model.features)
        scores = _scores(plan, path)
    return Trial(name, seed, seen, round(seconds, 1), settings, scores)


def _train(
    plan: AblationPlan, settings: Mapping[str, object], seed: int, graphs: GraphCollection, epochs: int
) -> Run:
    loop = {"epochs": epochs, "schedule": "linear", "seed": seed, "batch_size": plan.batch_size,
            "precision": "auto"}  # fmt: skip
    others = dict(settings)
    method, preset = str(others.pop("method", plan.method)), "default"
    if method == plan.method:
        preset, others = plan.preset, {**plan.settings, **others}
    return train(graphs, method, settings=others, preset=preset, encoder="molecule-gin", training=loop)


def _scores(plan: AblationPlan, model: Path | None) -> dict[str, float]:
    return {name: round(score_vectors(name, model)[0], 6) for name in check_sets(plan.sets)}


def table_of(plan: AblationPlan, trials: Sequence[Trial]) -> Table:
    """One row per variant: means over the seeds in percent, and the deviation of the average."""
    rows = []
    for name in (*plan.variants, ECFP):
        own = [trial for trial in trials if trial.variant == name]
        if not own:
            continue
        values = 100 * np.array([[trial.scores[data] for data in plan.sets] for trial in own])
        averages = values.mean(axis=1)
        spread = f" ± {averages.std(ddof=1):.2f}" if len(own) > 1 else ""
        rows.append(
            (name, f"{own[0].seen:,}" if name != ECFP else "-", str(len(own)) if name != ECFP else "-",
             *(f"{value:.1f}" for value in values.mean(axis=0)), f"{averages.mean():.2f}{spread}")
        )  # fmt: skip
    columns = ("vectors", "molecules seen", "seeds", *plan.sets, "average")
    return Table(columns, tuple(rows), align="l" + "r" * (len(columns) - 1))


def ablation_markdown(results: Path) -> str:
    """The table of the trials that are stored in a folder of results."""
    folder = results / "molecules"
    return table_of(read_plan(folder / "ablation.yaml"), read_trials(folder / "ablation.jsonl")).markdown()


def main(plan: Path, store: Path) -> None:
    """Run the plan and print its table."""
    read = read_plan(plan)
    sys.stdout.write(table_of(read, run_plan(read, store)).markdown())


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
