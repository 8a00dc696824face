"""What a sweep leaves behind: its trials as a table, the best settings as a plan, and two pictures."""

from __future__ import annotations

import csv
import io
import json
import shlex
import warnings
from collections.abc import Mapping
from pathlib import Path

from graphsc.core.config import dump_yaml
from graphsc.core.errors import DataError
from graphsc.core.files import write_atomic
from graphsc.core.registry import require
from graphsc.core.tables import safe_cell
from graphsc.experiments.study import Cell, Study
from graphsc.experiments.sweep import Sweep, sweep_of
from graphsc.report.charts import importance_bars
from graphsc.report.figure import save_figure
from graphsc.report.parallel_coordinates import parallel_coordinates


def best_of(study: Study) -> Cell | None:
    """The trial with the best inner accuracy; the first of equals."""
    done = [cell for cell in study.cells() if cell.state == "done" and cell.value is not None]
    return max(done, key=lambda cell: (cell.value, -cell.number), default=None)


def settings_of(cell: Cell) -> dict[str, object]:
    """What a finished trial had drawn."""
    found = cell.attributes.get("settings")
    return dict(found) if isinstance(found, Mapping) else {}


def command_of(sweep: Sweep, settings: Mapping[str, object]) -> str:
    """The line that trains with these settings."""
    fixed = {**sweep.settings, **{f"training.{key}": value for key, value in sweep.training.items()}}
    assignments = [f"{key}={json.dumps(value)}" for key, value in {**fixed, **settings}.items()]
    words = ["graphsc", "train", sweep.data, "--method", sweep.method]
    for option, value, default in (
        ("--preset", sweep.preset, "default"),
        ("--features", sweep.features, "auto"),
    ):
        words += [option, value] if value != default else []
    return shlex.join([*words, *(word for text in assignments for word in ("--set", text))])


def plan_of(sweep: Sweep, settings: Mapping[str, object], seeds: int = 5) -> dict[str, object]:
    """A plan that judges these settings on seeds the sweep has not seen, beside the method as it was."""
    trial = sweep.trials(settings)[0]
    block: dict[str, object] = {
        "data": [sweep.data],
        "methods": [sweep.method],
        "seeds": seeds,
        "features": [sweep.features],
        "preset": sweep.preset,
        "folds": sweep.folds,
    }
    tuned = {
        **block,
        "label": f"{sweep.method} (swept)",
        "settings": dict(trial.settings),
        "training": dict(trial.training),
    }
    before = {**block, "settings": dict(sweep.settings), "training": dict(sweep.training)}
    title = f"{sweep.method} on {trial.data_name}, before and after the sweep"
    return {"tables": {"swept": {"title": title, "trials": [before, tuned]}}}


def write_sweep(study: Study, out: Path) -> list[str]:
    """Write trials.csv, best.yaml and the pictures into a folder; gives a sentence for what was left out."""
    sweep = sweep_of(study)
    out.mkdir(parents=True, exist_ok=True)
    write_atomic(out / "trials.csv", _table(study, sweep))
    best = best_of(study)
    if best is None:
        return ["no trial has finished: there are no best settings"]
    write_atomic(out / "best.yaml", dump_yaml(plan_of(sweep, settings_of(best))))
    said = []
    done = [cell for cell in study.cells() if cell.state == "done"]
    keys = [one.key for one in sweep.dimensions.dimensions]
    columns = {
        one.key: [_shown(one.names, settings_of(cell)) for cell in done]
        for one in sweep.dimensions.dimensions
    }
    figures = {"parallel": parallel_coordinates(columns, [100 * (cell.value or 0.0) for cell in done])}
    try:
        figures["importance"] = importance_bars(importance_of(study, keys))
    except DataError as error:
        said.append(str(error))
    for name, figure in figures.items():
        for ending in ("png", "svg"):
            save_figure(figure, out / f"{name}.{ending}")
    return said


def importance_of(study: Study, keys: list[str]) -> dict[str, float]:
    """The share of the variance between finished trials that each setting explains (fANOVA)."""
    optuna = require("optuna")
    values = [cell.value for cell in study.cells() if cell.state == "done"]
    if len(values) < 4 or len(set(values)) < 2:
        raise DataError("too few trials have finished, or all are equal: no importance of settings is drawn")
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = optuna.importance.get_param_importances(study.optuna, evaluator=evaluator)
    return {key: float(found.get(key, 0.0)) for key in keys}


def _shown(names: list[str], settings: Mapping[str, object]) -> object:
    """A dimension's value in a picture: a number as it is, lists in a few letters."""
    values = [settings.get(name) for name in names]
    if len(values) == 1 and isinstance(values[0], (int, float, str)):
        return values[0]
    parts = values[0] if len(values) == 1 and isinstance(values[0], list) else values
    return ", ".join(str(part) for part in parts) if isinstance(parts, list) else str(parts)


def _table(study: Study, sweep: Sweep) -> str:
    names = [name for one in sweep.dimensions.dimensions for name in one.names]
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(["trial", "state", "inner_accuracy", *names, "reason"])
    for cell in study.cells():
        settings = settings_of(cell)
        accuracy = "" if cell.value is None else round(100 * cell.value, 4)
        reason = cell.reason if cell.state == "failed" else ""
        row = [cell.number, cell.state, accuracy, *(settings.get(name, "") for name in names), reason]
        writer.writerow([safe_cell(value) for value in row])
    return file.getvalue()
