"""Graphs as data: the collection, its batches, the doors it comes in by, and where it is found."""
