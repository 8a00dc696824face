"""Results as files in a folder: found by what was asked, never run twice."""

from __future__ import annotations

from pathlib import Path

from graphsc.core.files import remove_stray_files
from graphsc.experiments.result import Result, load_result
from graphsc.experiments.trial import Trial


class ResultStore:
    """One JSON file a trial, under the name of its data set."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def path(self, trial: Trial) -> Path:
        """Where the trial's result is, or would be."""
        return self.folder / trial.data_name / f"{self.name(trial)}-{trial.key()}.json"

    @staticmethod
    def name(trial: Trial) -> str:
        """What a result's file begins with, before the key."""
        return f"{trial.method}-{trial.features.replace(':', '')}-{trial.seed}"

    def get(self, trial: Trial) -> Result | None:
        """The stored result, if there is one."""
        path = self.path(trial)
        return load_result(path) if path.exists() else None

    def put(self, trial: Trial, result: Result) -> Path:
        """Keep a result."""
        path = self.path(trial)
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_stray_files(path.parent)
        result.save(path)
        return path

    def all(self) -> list[Result]:
        """Every result there is, in the order of file names."""
        return [load_result(path) for path in sorted(self.folder.glob("*/*.json"))]
