"""Graph collections, batches, file readers and named data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.data.batch import GraphBatch as GraphBatch
    from graphsc.data.batch import join as join
    from graphsc.data.builder import build_collection as build_collection
    from graphsc.data.collection import Graph as Graph
    from graphsc.data.collection import GraphCollection as GraphCollection
    from graphsc.data.collection import Subset as Subset
    from graphsc.data.columns import Column as Column
    from graphsc.data.columns import FeatureTable as FeatureTable
    from graphsc.data.features import FeatureScheme as FeatureScheme
    from graphsc.data.readers import open_collection as open_collection
    from graphsc.data.statistics import Statistics as Statistics

__all__ = export_lazily(
    __name__,
    {
        "batch": "GraphBatch join",
        "builder": "build_collection",
        "collection": "Graph GraphCollection Subset",
        "columns": "Column FeatureTable",
        "features": "FeatureScheme",
        "readers": "open_collection",
        "statistics": "Statistics",
    },
    packages="datasets molecules readers",
)
