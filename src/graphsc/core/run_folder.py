"""The folder of a training run: one process at a time, one configuration for its lifetime."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from graphsc.core.config import read_config, write_config
from graphsc.core.errors import (
    CannotWriteError,
    ConfigError,
    DamagedFileError,
    GraphscError,
    NotFoundError,
)
from graphsc.core.files import (
    InUseError,
    file_lock,
    read_json,
    remove_stray_files,
    write_json,
)
from graphsc.core.serialization import check_stamp, stamp

# Settings that may differ when a run is resumed.
_CHANGEABLE = ("epochs", "seeds", "device", "source", "reading")
# Method settings that have been renamed; files written before are read under the current names.
RENAMED_SETTINGS = {"bn": "batch_norm_embedding", "batch_norm": "batch_norm_views"}
# Method settings that were added later, with the value that stands for what methods did before. Files written
# before are read with that value, and trials have the same identity with it as before.
ADDED_SETTINGS: Mapping[str, object] = {
    "kernel": "gram",
    "corpus": "neighbours",
    "self_loops": False,
    "initialisation": "xavier",
    "rates": "perturb",
    "lambda_self": 1.0,
    "contrast_share": 1.0,
    "neck": None,
    "lambda_environments": 0.0,
    "environment_bits": 2048,
    "environment_radius": 2,
    "environment_target": "presence",
    "lambda_descriptors": 0.0,
    "encoder.charges": False,
}


class RunFolderError(GraphscError):
    """The folder cannot be used for this run."""


class RunFolder:
    """Paths and rules of the files in the folder of a run."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.environment = self.path / "env.json"
        self.metrics = self.path / "metrics.csv"
        self.model = self.path / "model.safetensors"
        self.checkpoints = self.path / "checkpoints"
        self.embeddings = self.path / "embeddings"

    def embedding(self, epoch: int) -> Path:
        return self.embeddings / f"epoch-{epoch:05d}.safetensors"

    @contextmanager
    def lock(self, *, trains: bool = True) -> Iterator[None]:
        """Lock the folder for this process, create its sub-folders and remove stray temporary files.

        `trains` is False for a folder that contains other runs and has no checkpoints of its own.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(file_lock(self.path / ".lock"))
            except InUseError as error:
                raise RunFolderError(
                    f"run folder is {error.what}",
                    where=str(self.path),
                    hint="wait for it, stop it, or choose another folder",
                ) from error
            except CannotWriteError as error:
                what = error.what.replace("cannot write:", "cannot write to the run folder:")
                raise RunFolderError(what, where=str(self.path)) from error
            for folder in (self.path, *((self.checkpoints, self.embeddings) if trains else ())):
                folder.mkdir(exist_ok=True)
                remove_stray_files(folder)
            yield

    def save_config(self, config: Mapping[str, object]) -> None:
        """Write the configuration of a new run, or check it against that of the run to be resumed.

        Raises:
            ConfigError: the folder contains a run with other settings.
        """
        if self.config.exists():
            stored = self.load_config()
            changes = differences(without_added(stored), without_added(current_names(config)), _CHANGEABLE)
            if changes:
                raise ConfigError(
                    f"the run folder holds a run with other settings: {'; '.join(changes)}",
                    where=str(self.path),
                    hint="use the same settings to resume, or another folder",
                )
            config = {**config, "epochs": max(_epochs(stored), _epochs(config))}
        write_config(self.config, {**stamp("run"), **config})

    def check_exists(self) -> None:
        """Raise `NotFoundError` for a folder that holds no run."""
        if self.config.exists():
            return
        inside = any(self.path.glob(f"*/{self.config.name}"))
        hint = f"it holds folders of runs; graphsc runs {self.path} lists them" if inside else None
        raise NotFoundError(
            "this folder holds no run", where=str(self.path), hint=hint or "train one into it"
        )

    def load_config(self) -> dict[str, object]:
        """Read the configuration of the run, without its format header."""
        self.check_exists()
        config = read_config(self.config)
        header = {key: str(config.pop(key)) for key in stamp("run") if key in config}
        check_stamp("run", header, str(self.config))
        return current_names(config)

    def record_environment(self, facts: Mapping[str, object]) -> None:
        """Append the environment of this call to the list, unless it equals the previous one."""
        recorded = self.environments() if self.environment.exists() else []
        current = json.loads(json.dumps(facts))  # as it will be read back, for the comparison
        if recorded[-1:] != [current]:
            content = {**stamp("environments"), "environments": [*recorded, current]}
            write_json(self.environment, content, indent=1)

    def environments(self) -> list[dict[str, object]]:
        """The environments the run was trained in, the latest last; equal successive ones appear once."""
        where, hint = str(self.environment), "remove the file to resume without its history"
        content = read_json(self.environment, "environments", hint=hint)
        recorded = content.get("environments")
        if not isinstance(recorded, list):
            raise DamagedFileError("not a list of environments", where=where, hint=hint)
        check_stamp("environments", {key: str(content.get(key)) for key in stamp("environments")}, where)
        return recorded


def current_names(config: Mapping[str, object]) -> dict[str, object]:
    """The same configuration with `RENAMED_SETTINGS` under their current names, in every block `settings`."""
    result: dict[str, object] = {}
    for key, value in config.items():
        if isinstance(value, Mapping):
            value = current_names(value)
            if key == "settings":
                value = {RENAMED_SETTINGS.get(name, name): setting for name, setting in value.items()}
        result[key] = value
    return result


def without_added(settings: Mapping[str, object]) -> dict[str, object]:
    """The same without `ADDED_SETTINGS` at the values that stand for what methods did before."""
    return {
        name: without_added(value) if isinstance(value, Mapping) else value
        for name, value in settings.items()
        if name not in ADDED_SETTINGS or value != ADDED_SETTINGS[name]
    }


def differences(
    before: Mapping[str, object],
    after: Mapping[str, object],
    changeable: Sequence[str] = (),
    prefix: str = "",
) -> list[str]:
    """List as `key: old against new` the settings that differ, except `changeable` ones."""
    changes = []
    for key in sorted({*before, *after}):
        if key in changeable:
            continue
        old, new = before.get(key), after.get(key)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            changes += differences(old, new, prefix=f"{prefix}{key}.")
        elif old != new:
            changes.append(f"{prefix}{key}: {old!r} against {new!r}")
    return changes


def _epochs(config: Mapping[str, object]) -> int:
    epochs = config.get("epochs")
    return epochs if isinstance(epochs, int) else 0
