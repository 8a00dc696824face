"""Registries of views, encoders, readers and methods by name, and optional dependencies.

Other packages add entries by an entry point in the group `graphsc.<kind>s`, e.g. `graphsc.views`. Entry
points are imported only when their name is looked up.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType
from typing import TYPE_CHECKING, Generic, TypeVar

from graphsc.core.errors import ConfigError, MissingExtraError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

T = TypeVar("T")


def nearest(name: str, valid: Iterable[str]) -> str:
    """A hint for an invalid name: the most similar valid name, and the list of all valid ones.

    Of more than 40 valid names only the ten most similar are listed.
    """
    import difflib

    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    if len(names) > 40:
        similar = difflib.get_close_matches(name, names, n=10, cutoff=0.0)
        listing = f"{', '.join(similar)}, ... ({len(names)} in all)"
    else:
        listing = ", ".join(names) or "none"
    return f"did you mean {close[0]!r}? valid: {listing}" if close else f"valid: {listing}"


class Registry(Generic[T]):
    """Named entries of one kind, e.g. "view", "encoder" or "method"."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator that registers a class or function under `name`."""

        def add(entry: T) -> T:
            if name in self._entries:
                raise ConfigError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = entry
            return entry

        return add

    def get(self, name: str) -> T:
        """The entry of that name, loaded from its entry point if necessary."""
        if name in self._entries:
            return self._entries[name]
        plugins = self._plugins()
        if name not in plugins:
            raise ConfigError(f"unknown {self.kind} {name!r}", hint=nearest(name, self))
        try:
            entry: T = plugins[name].load()
        except (ImportError, AttributeError) as error:
            raise ConfigError(
                f"{self.kind} {name!r} of another package cannot be loaded: {error}",
                where=plugins[name].value,
                hint="repair or remove that package",
            ) from error
        # Loading has already registered the entry if the plug-in uses the decorator.
        return self._entries.setdefault(name, entry)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._entries, *self._plugins()}))

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._plugins()

    def _plugins(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # slow to import, and most look-ups do not need it

        return {point.name: point for point in entry_points(group=f"graphsc.{self.kind}s")}


# The extra in pyproject.toml that installs each optional package.
EXTRA_OF = {
    "rdkit": "chem",
    "optuna": "sweep",
    "distributed": "cluster",
    "umap": "report",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
    "mlflow": "mlflow",
    "wandb": "wandb",
}


def require(module: str) -> ModuleType:
    """Import an optional dependency; the error for a missing one names the extra to install."""
    package = module.partition(".")[0]
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        # A missing module *inside* an installed package is a broken install, not a missing extra.
        if error.name != package:
            raise
        raise MissingExtraError(
            f"this needs {package}", hint=f"pip install 'graphsc[{EXTRA_OF[package]}]'"
        ) from error
