"""GraphSC: self-supervised graph representation learning, one embedding per graph."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from graphsc.data.batch import GraphBatch as GraphBatch
    from graphsc.data.collection import GraphCollection as GraphCollection
    from graphsc.data.readers import open_collection as open_collection
    from graphsc.estimator import GraphEmbedder as GraphEmbedder

# Imported on first use, so that `import graphsc` and the command line start without torch.
_HOME = {
    "GraphBatch": "graphsc.data.batch",
    "GraphCollection": "graphsc.data.collection",
    "GraphEmbedder": "graphsc.estimator",
    "open_collection": "graphsc.data.readers",
}

__all__ = ["GraphBatch", "GraphCollection", "GraphEmbedder", "__version__", "open_collection"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'graphsc' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
