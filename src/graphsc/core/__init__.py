"""Errors, files, random numbers, registries and settings; no graphs, no models."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.core.errors import CannotWriteError as CannotWriteError
    from graphsc.core.errors import ConfigError as ConfigError
    from graphsc.core.errors import DamagedFileError as DamagedFileError
    from graphsc.core.errors import DataError as DataError
    from graphsc.core.errors import DivergedError as DivergedError
    from graphsc.core.errors import GraphscError as GraphscError
    from graphsc.core.errors import GraphscWarning as GraphscWarning
    from graphsc.core.errors import MissingExtraError as MissingExtraError
    from graphsc.core.errors import NotFoundError as NotFoundError
    from graphsc.core.errors import UnsafeArchiveError as UnsafeArchiveError
    from graphsc.core.parallel import use_cluster as use_cluster
    from graphsc.core.random import numpy_generator as numpy_generator
    from graphsc.core.random import torch_generator as torch_generator
    from graphsc.core.registry import load_plugin as load_plugin
    from graphsc.core.tables import Table as Table

__all__ = export_lazily(
    __name__,
    {
        "errors": "CannotWriteError ConfigError DamagedFileError DataError DivergedError GraphscError "
        "GraphscWarning MissingExtraError NotFoundError UnsafeArchiveError",
        "parallel": "use_cluster",
        "random": "numpy_generator torch_generator",
        "registry": "load_plugin",
        "tables": "Table",
    },
)
