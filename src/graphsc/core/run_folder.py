"""A run is a folder: one owner at a time, one configuration for good."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from graphsc.core.config import dump_yaml, read_config
from graphsc.core.errors import ConfigError, DamagedFileError, GraphscError, NotFoundError
from graphsc.core.files import InUseError, hold, remove_stray_files, write_atomic
from graphsc.core.serialization import check_stamp, stamp

# Settings that may change from one call to the next without making it another run.
FREE = ("epochs", "seeds", "device", "source")
# Method settings that have been renamed; files written before are read under the current names.
RENAMED_SETTINGS = {"bn": "batch_norm_embedding", "batch_norm": "batch_norm_views"}


class RunFolderError(GraphscError):
    """The folder cannot be used for this run."""


class RunFolder:
    """Names and rules of the files in a run's folder."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)

    @property
    def config(self) -> Path:
        return self.path / "config.yaml"

    @property
    def environment(self) -> Path:
        return self.path / "env.json"

    @property
    def metrics(self) -> Path:
        return self.path / "metrics.csv"

    @property
    def model(self) -> Path:
        return self.path / "model.safetensors"

    @property
    def checkpoints(self) -> Path:
        return self.path / "checkpoints"

    @property
    def embeddings(self) -> Path:
        return self.path / "embeddings"

    def embedding(self, epoch: int) -> Path:
        return self.embeddings / f"epoch-{epoch:05d}.safetensors"

    @contextmanager
    def owned(self, *, trains: bool = True) -> Iterator[None]:
        """Hold the folder for this process; freed by the system when the process ends, however it ends.

        A folder that only holds other runs has no checkpoints of its own: `trains` is False.
        """
        with ExitStack() as stack:
            try:
                stack.enter_context(hold(self.path / ".lock"))
            except InUseError as error:
                raise RunFolderError(
                    f"run folder is {error}",
                    where=str(self.path),
                    hint="wait for it, stop it, or choose another folder",
                ) from error
            except OSError as error:
                raise RunFolderError(
                    f"cannot write to the run folder: {error.strerror}", where=str(self.path)
                ) from error
            for folder in (self.path, *((self.checkpoints, self.embeddings) if trains else ())):
                folder.mkdir(exist_ok=True)
                remove_stray_files(folder)
            yield

    def settle(self, config: Mapping[str, object]) -> None:
        """Write the configuration, or refuse to go on where another one is already there."""
        if self.config.exists():
            before = self.settled()
            differing = differences(before, current_names(config))
            if differing:
                raise ConfigError(
                    f"the run folder holds a run with other settings: {'; '.join(differing)}",
                    where=str(self.path),
                    hint="use the same settings to go on, or another folder",
                )
            # Asking for fewer epochs than were asked for before undoes none of them.
            most = max(_whole(before.get("epochs")), _whole(config.get("epochs")))
            config = {**config, "epochs": most}
        write_atomic(self.config, dump_yaml({**stamp("run"), **config}))

    def settled(self) -> dict[str, object]:
        """The configuration that is there, once its format is known to be one of ours."""
        if not self.config.exists():
            raise NotFoundError("this folder holds no run", where=str(self.path), hint="train one into it")
        found = read_config(self.config)
        header = {key: str(found.pop(key)) for key in stamp("run") if key in found}
        check_stamp("run", header, str(self.config))
        return current_names(found)

    def note_environment(self, facts: Mapping[str, object]) -> None:
        """Add what this call runs on to the list of environments, unless it is that of the call before."""
        noted = self.environments() if self.environment.exists() else []
        # As JSON has it, so that what was read back compares with what is to be written.
        now = json.loads(json.dumps(facts))
        if noted[-1:] != [now]:
            text = json.dumps({**stamp("environments"), "environments": [*noted, now]}, indent=1)
            write_atomic(self.environment, text + "\n")

    def environments(self) -> list[dict[str, object]]:
        """What the run has run on, each environment once for every stretch of calls; the latest last."""
        where = str(self.environment)
        try:
            found = json.loads(self.environment.read_bytes())
            noted: list[dict[str, object]] = list(found["environments"])
        except (ValueError, TypeError, KeyError) as error:
            raise DamagedFileError(
                "not a list of environments", where=where, hint="remove the file to go on without its history"
            ) from error
        check_stamp("environments", {key: str(found.get(key)) for key in stamp("environments")}, where)
        return noted


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


def _whole(value: object) -> int:
    return value if isinstance(value, int) else 0


def differences(before: Mapping[str, object], after: Mapping[str, object], prefix: str = "") -> list[str]:
    """`key: old against new` for every setting that makes it another run."""
    found = []
    for key in sorted({*before, *after}):
        if not prefix and key in FREE:
            continue
        one, two = before.get(key), after.get(key)
        if isinstance(one, Mapping) and isinstance(two, Mapping):
            found += differences(one, two, f"{prefix}{key}.")
        elif one != two:
            found.append(f"{prefix}{key}: {one!r} against {two!r}")
    return found
