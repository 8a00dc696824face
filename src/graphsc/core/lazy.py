"""Packages that show their public names and import them on first use."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from types import ModuleType


def export_lazily(package: str, exports: Mapping[str, str], *, packages: str = "") -> list[str]:
    """Make names of submodules available in their package, without importing anything yet.

    A name may be that of its module, as in `graphsc.training.train`: the package then has the function, and
    `from graphsc.training.train import ...` still finds the module.

    Args:
        package: `__name__` of the package.
        exports: Names by module, relative to the package; separated by spaces.
        packages: Subpackages that are attributes of the package too, separated by spaces.

    Returns:
        The names, for `__all__`.
    """
    module = sys.modules[package]
    homes = {name: f"{package}.{home}" for home, names in exports.items() for name in names.split()}
    # Set first: once the class is changed, setting an attribute looks them up.
    module.__dict__.update(_homes=homes, _packages=packages.split())
    module.__class__ = _LazyPackage
    return sorted(homes)


class _LazyPackage(ModuleType):
    __all__: list[str]
    _homes: dict[str, str]
    _packages: list[str]

    def __getattr__(self, name: str) -> object:
        if name in self._packages:
            return importlib.import_module(f"{self.__name__}.{name}")
        if name not in self._homes:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(self._homes[name]), name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: object) -> None:
        # The import system binds a module to its package under the module's name.
        if isinstance(value, ModuleType) and self._homes.get(name) == value.__name__:
            value = getattr(value, name)
        super().__setattr__(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*self.__all__, *self._packages})
