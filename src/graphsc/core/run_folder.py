"""A run is a folder: one owner at a time, one configuration for good."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from graphsc.core.config import dump_yaml, read_config
from graphsc.core.errors import ConfigError, GraphscError
from graphsc.core.files import remove_stray_files, write_atomic

try:
    import fcntl
except ImportError:  # pragma: no cover - no locks on Windows; a run there is its user's to guard
    fcntl = None  # type: ignore[assignment]

# Settings that may change from one call to the next without making it another run.
FREE = ("epochs", "device", "source")


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
    def owned(self) -> Iterator[None]:
        """Hold the folder for this process; freed by the system when the process ends, however it ends."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunFolderError(
                f"cannot write to the run folder: {error.strerror}", where=str(self.path)
            ) from error
        try:
            self._take(lock)
            for folder in (self.path, self.checkpoints, self.embeddings):
                folder.mkdir(exist_ok=True)
                remove_stray_files(folder)
            yield
        finally:
            os.close(lock)  # closing releases the lock

    def _take(self, lock: int) -> None:
        if fcntl is not None:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                owner = os.pread(lock, 32, 0).decode("ascii", "replace").strip() or "unknown"
                raise RunFolderError(
                    f"run folder is in use by process {owner}",
                    where=str(self.path),
                    hint="wait for it, stop it, or choose another folder",
                ) from error
        os.ftruncate(lock, 0)
        os.pwrite(lock, str(os.getpid()).encode(), 0)

    def settle(self, config: Mapping[str, object]) -> None:
        """Write the configuration, or refuse to go on where another one is already there."""
        if self.config.exists():
            before = read_config(self.config)
            differing = differences(before, config)
            if differing:
                raise ConfigError(
                    f"the run folder holds a run with other settings: {'; '.join(differing)}",
                    where=str(self.path),
                    hint="use the same settings to go on, or another folder",
                )
            # Asking for fewer epochs than were asked for before undoes none of them.
            most = max(_whole(before.get("epochs")), _whole(config.get("epochs")))
            config = {**config, "epochs": most}
        write_atomic(self.config, dump_yaml(config))


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
