"""Graphs as data: the collection, its batches, the doors it comes in by, and where it is found."""

from graphsc.data.collection import Graph, GraphCollection
from graphsc.data.features import FeatureScheme
from graphsc.data.table import Column, Table

__all__ = ["Column", "FeatureScheme", "Graph", "GraphCollection", "Table"]
