"""Optional dependencies: import one, or say in one line how to get it."""

from __future__ import annotations

import importlib
from types import ModuleType

from graphsc.core.errors import MissingExtraError

# The extra of pyproject.toml that brings each optional package.
EXTRA_OF = {
    "rdkit": "chem",
    "grakel": "kernels",
    "gensim": "kernels",
    "optuna": "sweep",
    "psycopg": "sweep",
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
