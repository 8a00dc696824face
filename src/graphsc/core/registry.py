"""Names for things that can be chosen by name, ours or another package's.

Another package adds an entry by an entry point in the group `graphsc.<kind>s` (`graphsc.views`); it
is imported only when it is asked for.
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
    """What to try instead of `name`: the nearest valid name, and all of them."""
    import difflib

    names = sorted(valid)
    close = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    listing = ", ".join(names) or "none"
    return f"did you mean {close[0]!r}? valid: {listing}" if close else f"valid: {listing}"


class Registry(Generic[T]):
    """A table of named entries of one kind ("view", "encoder", "reader", "method")."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}

    def register(self, name: str) -> Callable[[T], T]:
        """Decorator: file a class or function under `name`."""

        def file(entry: T) -> T:
            if name in self._entries:
                raise ConfigError(f"{self.kind} {name!r} is registered twice")
            self._entries[name] = entry
            return entry

        return file

    def get(self, name: str) -> T:
        """The entry of that name, or an error with the nearest valid name."""
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
        # Loading may itself have registered the entry, when the plug-in uses the decorator.
        return self._entries.setdefault(name, entry)

    def __iter__(self) -> Iterator[str]:
        return iter(sorted({*self._entries, *self._plugins()}))

    def __contains__(self, name: str) -> bool:
        return name in self._entries or name in self._plugins()

    def _plugins(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # here: slow to import, and most look-ups need it not

        return {point.name: point for point in entry_points(group=f"graphsc.{self.kind}s")}


# Optional dependencies: import one, or say in one line how to get it.


# The extra of pyproject.toml that brings each optional package.
EXTRA_OF = {
    "rdkit": "chem",
    "grakel": "kernels",
    "gensim": "kernels",
    "optuna": "sweep",
    "distributed": "cluster",
    "umap": "report",
    "pyarrow": "parquet",
    "tensorboard": "tensorboard",
}


def require(module: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra to install."""
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
