"""What runs a folder holds: their data, settings, state and score, without opening graphs or models."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from graphsc.core.errors import DamagedFileError, GraphscError, NotFoundError
from graphsc.core.files import lock_owner, read_json, read_rows
from graphsc.core.run_folder import RunFolder

_FACTS = ("graphsc", "source", "reading", "device", "data", "epochs", "transfer")  # in columns of their own

# Of a fine-tuning, the options that are in those sections.
_ASKED = {
    "source": ("model", "weights", "censored"),
    "transfer": ("tasks", "split", "split_seed", "label_fraction"),
}


@dataclass(frozen=True)
class RunSummary:
    """One run of a folder."""

    path: Path
    data: str
    method: str
    seed: int | None
    settings: Mapping[str, str]  # all of them, by dotted names
    state: str
    score: str
    changed: float  # seconds since 1970

    @property
    def date(self) -> str:
        """When a file of the run was last written, in local time."""
        return time.strftime("%Y-%m-%d %H:%M", time.localtime(self.changed))


def list_runs(folder: str | Path) -> list[RunSummary]:
    """The runs in a folder and the folders below it, the latest first.

    Raises:
        NotFoundError: There is no such folder.
    """
    if not Path(folder).is_dir():
        raise NotFoundError("there is no such folder", where=str(folder), hint="graphsc train makes one")
    runs = [summary for path in _run_folders(Path(folder)) if (summary := _summary(path)) is not None]
    return sorted(runs, key=lambda run: -run.changed)


def differing_settings(runs: list[RunSummary]) -> list[str]:
    """For each run, the settings in which it differs from others of its method."""
    texts = []
    for run in runs:
        alike = [other.settings for other in runs if other.method == run.method]
        differing = [
            f"{name}={value}"
            for name, value in run.settings.items()
            if any(other.get(name) != value for other in alike)
        ]
        texts.append(", ".join(differing))
    return texts


def _run_folders(folder: Path) -> Iterator[Path]:
    """Folders with a config; what is inside a run belongs to it."""
    for current, names, files in os.walk(folder):
        if "config.yaml" in files:
            names.clear()
            yield Path(current)
        else:
            names[:] = sorted(name for name in names if not name.startswith("."))


def _summary(path: Path) -> RunSummary | None:
    folder = RunFolder(path)
    try:
        config = folder.load_config()
    except GraphscError as error:
        state = "damaged" if isinstance(error, DamagedFileError) else "not readable"
        return RunSummary(path, "", "", None, {}, f"{state}: {error.what}"[:80], "", _changed(path))
    data = config.get("data")
    if not isinstance(data, Mapping):
        return None  # a config of another program
    training = cast("Mapping[str, object]", config.get("training") or {})
    seed = training.get("seed")
    return RunSummary(
        path,
        str(data.get("name", "")),
        str(config.get("method", (config.get("transfer") and "fine-tuned") or "")),
        seed if isinstance(seed, int) else None,
        {name: value for name, value in _flat(config) if name != "training.seed"}
        | _transfer_settings(config),
        _state(folder, config),
        _score(folder, config),
        _changed(path),
    )


def _transfer_settings(config: Mapping[str, object]) -> dict[str, str]:
    """What a fine-tuning was asked for, which is beside its other settings."""
    settings = {}
    for section, names in _ASKED.items():
        values = config.get(section)
        if "transfer" in config and isinstance(values, Mapping):
            for name in names:
                value = values.get(name)
                if value is not None:
                    settings[name] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return settings


def _flat(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in values.items():
        if not prefix and name in _FACTS:
            continue
        if isinstance(value, Mapping):
            yield from _flat(value, "" if name == "settings" else f"{name.removesuffix('_settings')}.")
        else:
            yield prefix + name, str(value)


def _state(folder: RunFolder, config: Mapping[str, object]) -> str:
    owner = lock_owner(folder.path / ".lock")
    if owner is not None:
        return f"running as process {owner}"
    if "transfer" in config:
        return _transfer_state(folder.path, config)
    if folder.model.exists():
        return "finished"
    epochs = config.get("epochs")
    done = 0
    if folder.metrics.exists():
        try:
            done = len(read_rows(folder.metrics, "metrics"))
        except GraphscError:
            return "stopped, metrics are damaged"
    return f"stopped at epoch {done} of {epochs}"


def _transfer_state(path: Path, config: Mapping[str, object]) -> str:
    """The state of a fine-tuning, which writes its predictions last."""
    from graphsc.finetuning.delivered import PREDICTIONS

    source = config.get("source")
    model = source.get("model") if isinstance(source, Mapping) else None
    delivered = model is None or (path / PREDICTIONS).exists()
    if model not in (None, "ensemble", "encoder"):  # no encoder is trained
        return "finished" if delivered else "stopped"
    done, planned = len(list(path.glob("seed-*/result.json"))), config.get("seeds")
    return "finished" if delivered and done and done == planned else f"stopped, {done} of {planned} seeds"


def _score(folder: RunFolder, config: Mapping[str, object]) -> str:
    try:
        if "transfer" in config:
            return _transfer_score(folder.path, cast("Mapping[str, object]", config["transfer"]))
        path = folder.path / "result.json"
        if not path.exists():
            return ""
        return f"{float(cast(float, read_json(path, 'result')['accuracy'])):.2f} %"
    except (GraphscError, KeyError, TypeError, ValueError):
        return "damaged"


def _transfer_score(path: Path, transfer: Mapping[str, object]) -> str:
    """The test score of a fine-tuning: of its predictions, which are the mean over the seeds."""
    from graphsc.evaluation.metrics import MEASURES, mean_over_tasks, measure, tasks_of
    from graphsc.finetuning.delivered import MEASURE_TITLES, read_held_out

    kind = cast("Literal['classification', 'regression']", transfer["kind"])
    held_out = read_held_out(path, cast("list[str]", transfer["tasks"]), kind)
    if held_out is None:
        return ""
    main, test = next(iter(MEASURES[kind])), held_out.of("test")
    values = measure(tasks_of(held_out.labels[test], held_out.predicted[test]), kind)[main]
    return f"{MEASURE_TITLES[main]} {mean_over_tasks(values):.3f}"


def _changed(path: Path) -> float:
    files = (path / name for name in ("config.yaml", "metrics.csv", "model.safetensors", "result.json"))
    return max((file.stat().st_mtime for file in files if file.exists()), default=0.0)
