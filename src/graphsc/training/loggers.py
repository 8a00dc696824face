"""Callbacks that log a run to a table, TensorBoard, MLflow or Weights & Biases; functions after steps."""

from __future__ import annotations

import csv
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from graphsc.core.config import read_config
from graphsc.core.errors import CannotWriteError, ConfigError, GraphscError
from graphsc.core.files import read_json, write_json
from graphsc.core.registry import nearest, require
from graphsc.training.callbacks import Callback

if TYPE_CHECKING:
    from graphsc.training.trainer import Trainer


class Logger(Callback):
    """Base class of loggers: passes on the settings of a run, and the metrics of every epoch.

    A service that cannot be reached when training starts is an error. If it fails later, training continues
    without it, with a warning.
    """

    title = "log"
    hint: str | None = None  # what to do if it cannot be opened
    _is_open = False

    def open(self, trainer: Trainer) -> None:
        """Begin, or continue after `trainer.epoch` epochs and `trainer.progress.total_steps` steps."""

    def write(self, metrics: Mapping[str, float], epoch: int) -> None:
        """Log the metrics of one epoch; a resumed run may repeat an epoch."""

    def close(self) -> None:
        """End; also after an error or a stop."""

    def on_train_start(self, trainer: Trainer) -> None:
        try:
            self.open(trainer)
        except GraphscError:
            raise
        except Exception as error:  # of any service
            raise CannotWriteError(
                f"cannot log to {self.title}: {_shortly(error)}", hint=self.hint
            ) from error
        self._is_open = True

    def on_epoch_end(self, trainer: Trainer) -> None:
        row = trainer.metrics.rows[-1]
        metrics = {name: value for name, value in row.items() if name != "epoch"}
        self._try(trainer, lambda: self.write(metrics, int(row["epoch"])))

    def on_train_end(self, trainer: Trainer) -> None:
        self._try(trainer, self.close)
        self._is_open = False

    def _try(self, trainer: Trainer, action: Callable[[], None]) -> None:
        if not self._is_open:
            return
        try:
            action()
        except Exception as error:
            self._is_open = False
            trainer.reporter.log(
                f"warning: {self.title} cannot be written any more, training continues: {_shortly(error)}"
            )


class CsvLog(Logger):
    """Writes the losses of every step to a table; `metrics.csv` of a run folder has those of epochs."""

    title = "csv"

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._file: TextIO | None = None
        self._columns: list[str] = []

    def open(self, trainer: Trainer) -> None:
        steps = trainer.progress.total_steps if trainer.resumed else 0
        lines = _lines_until(self.path, steps) if steps else []
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._columns = lines[0].rstrip("\n").split(",") if lines else []
        self._file = open(self.path, "w", encoding="utf-8", newline="")  # noqa: SIM115 - closed in `close`
        self._file.writelines(lines)

    def on_step_end(self, trainer: Trainer) -> None:
        progress = trainer.progress
        row = {"total_step": progress.total_steps, "epoch": progress.epoch + 1, "step": progress.step}
        self._try(trainer, lambda: self._add(row | trainer.step_losses))

    def _add(self, row: Mapping[str, float]) -> None:
        assert self._file is not None  # noqa: S101 - called while it is open
        writer = csv.writer(self._file, lineterminator="\n")
        if not self._columns:
            self._columns = list(row)
            writer.writerow(self._columns)
        writer.writerow([row.get(name, "") for name in self._columns])

    def write(self, metrics: Mapping[str, float], epoch: int) -> None:
        if self._file is not None:
            self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _lines_until(path: Path, steps: int) -> list[str]:
    """The header and the whole lines of the first steps, of a table that a killed run may have cut off."""
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
    if not lines or not lines[0].startswith("total_step,"):
        return []
    numbered = ((line.partition(",")[0], line) for line in lines[1:] if line.endswith("\n"))
    return [lines[0], *(line for number, line in numbered if number.isdecimal() and int(number) <= steps)]


class TensorBoard(Logger):
    """Writes the metrics of every epoch as TensorBoard events into a folder."""

    title = "TensorBoard"

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        require("tensorboard")
        self.folder = Path(folder)

    def open(self, trainer: Trainer) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # A run killed between the metrics of an epoch and its checkpoint repeats that epoch.
        self._writer = SummaryWriter(str(self.folder), purge_step=trainer.epoch + 1)

    def write(self, metrics: Mapping[str, float], epoch: int) -> None:
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, epoch)

    def close(self) -> None:
        self._writer.close()


class MlflowLog(Logger):
    """Logs settings and the metrics of every epoch to MLflow.

    Args:
        folder: Of the run; it keeps MLflow's id of the run, so that a resumed run continues it.
        experiment: Name of the experiment.
        uri: Of the tracking server; that of `$MLFLOW_TRACKING_URI` by default.
    """

    title = "MLflow"
    hint = "check the address in MLFLOW_TRACKING_URI"

    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        experiment: str = "graphsc",
        uri: str | None = None,
    ) -> None:
        self._mlflow = require("mlflow")
        self.folder = None if folder is None else Path(folder)
        self.experiment = experiment
        self.uri = uri

    def open(self, trainer: Trainer) -> None:
        client = self._client = self._mlflow.MlflowClient(tracking_uri=self.uri)
        found = client.get_experiment_by_name(self.experiment)
        experiment = client.create_experiment(self.experiment) if found is None else found.experiment_id
        stored = _stored_id(self.folder, "mlflow")
        if stored is not None and trainer.resumed:
            self.run_id = stored
            client.set_terminated(stored, status="RUNNING")
            return
        self.run_id = str(client.create_run(experiment, run_name=_name_of(trainer)).info.run_id)
        _store_id(self.folder, "mlflow", self.run_id)
        for key, value in _settings_of(trainer).items():
            client.log_param(self.run_id, key, value)

    def write(self, metrics: Mapping[str, float], epoch: int) -> None:
        now = int(1000 * time.time())
        entities = self._mlflow.entities
        values = [entities.Metric(name, value, now, epoch) for name, value in metrics.items()]
        self._client.log_batch(self.run_id, metrics=values)

    def close(self) -> None:
        self._client.set_terminated(self.run_id)


class WandbLog(Logger):
    """Logs settings and the metrics of every epoch to Weights & Biases.

    `WANDB_MODE=offline` in the environment logs to files only.

    Args:
        folder: Of the run; it keeps the id of the run, so that a resumed run continues it, and the files.
        project: Name of the project.
    """

    title = "Weights & Biases"
    hint = "run 'wandb login', or set WANDB_MODE=offline"

    def __init__(self, folder: str | os.PathLike[str] | None = None, *, project: str = "graphsc") -> None:
        self._wandb = require("wandb")
        self.folder = None if folder is None else Path(folder)
        self.project = project

    def open(self, trainer: Trainer) -> None:
        stored = _stored_id(self.folder, "wandb") if trainer.resumed else None
        if self.folder is not None:
            self.folder.mkdir(parents=True, exist_ok=True)
        self._run = self._wandb.init(
            project=self.project, name=_name_of(trainer), config=_settings_of(trainer), id=stored,
            resume="allow" if stored else None, dir=None if self.folder is None else str(self.folder),
        )  # fmt: skip
        _store_id(self.folder, "wandb", str(self._run.id))

    def write(self, metrics: Mapping[str, float], epoch: int) -> None:
        self._run.log(dict(metrics), step=epoch)

    def close(self) -> None:
        self._run.finish()


LOGGERS: Mapping[str, Callable[[Path], Logger]] = {
    "csv": lambda folder: CsvLog(folder / "steps.csv"),
    "mlflow": MlflowLog,
    "tensorboard": lambda folder: TensorBoard(folder / "tensorboard"),
    "wandb": WandbLog,
}


def make_loggers(names: Sequence[str], folder: str | os.PathLike[str]) -> list[Callback]:
    """Loggers by name for a run folder: "csv", "mlflow", "tensorboard" and "wandb".

    Raises:
        ConfigError: A name is unknown.
        MissingExtraError: The library of a logger is not installed.
    """
    for name in names:
        if name not in LOGGERS:
            raise ConfigError(f"cannot log to {name!r}", hint=nearest(name, LOGGERS))
    return [LOGGERS[name](Path(folder)) for name in dict.fromkeys(names)]


class _AfterStep(Callback):
    def __init__(self, function: Callable[[Trainer], object], every: int) -> None:
        self.function = function
        self.every = every

    def on_step_end(self, trainer: Trainer) -> None:
        if trainer.progress.total_steps % self.every == 0:
            self.function(trainer)


def after_step(function: Callable[[Trainer], object], *, every: int = 1) -> Callback:
    """A callback that calls a function with the trainer after every, or every n-th, optimisation step.

    `trainer.step_losses` has the losses of the step, `trainer.progress` its number.
    """
    if every < 1:
        raise ValueError(f"every must be at least 1, not {every}")
    return _AfterStep(function, every)


def _name_of(trainer: Trainer) -> str:
    return f"{trainer.name} on {trainer.collection.name}"


def _settings_of(trainer: Trainer) -> dict[str, object]:
    """The settings of a run under names with dots: those of its folder, or without one those of the loop."""
    config = None if trainer.metrics_file is None else trainer.metrics_file.with_name("config.yaml")
    if config is not None and config.exists():
        return dict(_flat(read_config(config)))
    settings = {
        "method": trainer.name,
        "data": trainer.collection.name,
        "training": trainer.settings.to_json(),
    }
    return dict(_flat(settings))


def _flat(settings: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _store_id(folder: Path | None, service: str, identity: str) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / f"{service}.json", {"run": identity}, indent=1)


def _stored_id(folder: Path | None, service: str) -> str | None:
    if folder is None or not (folder / f"{service}.json").exists():
        return None
    stored: Mapping[str, Any] = read_json(folder / f"{service}.json", f"id of a run of {service}")
    return str(stored["run"]) if "run" in stored else None


def _shortly(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())[:300]
