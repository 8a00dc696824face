"""GraphSC: self-supervised graph representation learning, one embedding per graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

__version__ = "0.1.0"

if TYPE_CHECKING:
    from graphsc.data.batch import GraphBatch as GraphBatch
    from graphsc.data.collection import GraphCollection as GraphCollection
    from graphsc.data.readers import open_collection as open_collection
    from graphsc.estimator import GraphEmbedder as GraphEmbedder

# Imported on first use, so that `import graphsc` and the command line start without torch.
__all__ = [
    "__version__",
    *export_lazily(
        __name__,
        {
            "data.batch": "GraphBatch",
            "data.collection": "GraphCollection",
            "data.readers": "open_collection",
            "estimator": "GraphEmbedder",
        },
        packages="core data encoders evaluation experiments finetuning kernels losses methods report "
        "training views",
    ),
]
