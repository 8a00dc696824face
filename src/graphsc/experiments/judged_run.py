"""A run as a report needs it: its settings, its graphs, and its result or the reason why it has none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.run_folder import RunFolder
from graphsc.data.collection import GraphCollection
from graphsc.experiments.judge import evaluate_run, graphs_of
from graphsc.experiments.result import Result, load_result
from graphsc.experiments.run import labels_of


@dataclass(frozen=True)
class JudgedRun:
    """A finished run. `result` is missing where graphs have no classes or nobody was to judge."""

    folder: RunFolder
    config: Mapping[str, object]
    collection: GraphCollection
    result: Result | None
    note: str = ""

    @property
    def method(self) -> str:
        return str(self.config["method"])

    @property
    def seed(self) -> int:
        return int(cast(Mapping[str, int], self.config["training"])["seed"])

    @property
    def recipe(self) -> dict[str, str]:
        """All settings that make it another method than its neighbour's: neither seed nor graphs."""
        kept = {}
        for group in ("settings", "encoder_settings", "training"):
            for key, value in cast(Mapping[str, object], self.config.get(group) or {}).items():
                kept[key if group == "settings" else f"{group.split('_')[0]}.{key}"] = str(value)
        kept |= {key: str(self.config.get(key)) for key in ("encoder", "epochs")}
        return {key: value for key, value in kept.items() if key != "training.seed"}


def judged_run(
    path: Path,
    source: str | GraphCollection | None = None,
    *,
    judge: bool = True,
    jobs: int = 1,
    say: Callable[[str], None] = lambda _: None,
) -> JudgedRun:
    """Read a run, with its stored result if it is one of the run's own folds, else by judging it now."""
    folder = RunFolder(path)
    config = folder.load_config()
    collection = graphs_of(config, source)
    try:
        labels_of(collection)
    except DataError as error:
        return JudgedRun(folder, config, collection, None, f"Not judged: {error}.")
    stored = path / "result.json"
    if stored.exists() and not (result := load_result(stored)).resplit:
        return JudgedRun(folder, config, collection, _renamed(result, config))
    if not judge:
        return JudgedRun(folder, config, collection, None, "Not judged: this run has no result yet.")
    say(f"{path} has no result; judging it")
    try:
        found = evaluate_run(path, collection, jobs=jobs)
    except (ConfigError, DataError) as error:  # too few graphs of a class for the folds, say
        return JudgedRun(folder, config, collection, None, f"Not judged: {error}.")
    return JudgedRun(folder, config, collection, _renamed(found.result, config), "Judged for this report.")


def _renamed(result: Result, config: Mapping[str, object]) -> Result:
    """Data by the name that the run has noted, so that runs on the same graphs meet in one column."""
    name = cast(Mapping[str, object], config["data"])["name"]
    return replace(result, trial={**result.trial, "data": name, "features": "auto"})
