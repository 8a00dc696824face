"""Graph kernels and document embeddings of graphs, in NumPy and without torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphsc.core.lazy import export_lazily

if TYPE_CHECKING:
    from graphsc.kernels.doc2vec import Documents as Documents
    from graphsc.kernels.doc2vec import DocumentVectors as DocumentVectors
    from graphsc.kernels.doc2vec import subgraph_documents as subgraph_documents
    from graphsc.kernels.graphlets import GRAPHLETS as GRAPHLETS
    from graphsc.kernels.graphlets import graphlet_counts as graphlet_counts
    from graphsc.kernels.graphlets import graphlet_frequencies as graphlet_frequencies
    from graphsc.kernels.random_walks import random_walks as random_walks
    from graphsc.kernels.random_walks import walk_documents as walk_documents
    from graphsc.kernels.weisfeiler_lehman import wl_labels as wl_labels

__all__ = export_lazily(
    __name__,
    {
        "doc2vec": "DocumentVectors Documents subgraph_documents",
        "graphlets": "GRAPHLETS graphlet_counts graphlet_frequencies",
        "random_walks": "random_walks walk_documents",
        "weisfeiler_lehman": "wl_labels",
    },
)
