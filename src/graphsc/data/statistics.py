"""Statistics of a collection, as papers print them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from graphsc.core.tables import Table
from graphsc.data.arrays import chunks_of_edges
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable


@dataclass(frozen=True)
class Statistics:
    """Summary statistics of a collection; undirected edges count once."""

    name: str
    graphs: int
    nodes_mean: float
    nodes_min: int
    nodes_max: int
    edges_mean: float
    undirected: bool
    isolated_nodes: int
    self_loops: int
    duplicate_edges: int
    node_labels: dict[str, dict[str, int]]  # column -> {"ids": ..., "in_use": ...}
    node_attributes: int
    edge_labels: dict[str, dict[str, int]]
    edge_attributes: int
    tasks: int
    classes: dict[str, int]  # graphs per class, for a single task with few distinct labels
    missing_labels: int
    features: str
    feature_width: int
    notes: list[str]
    bytes: int
    content_hash: str

    def to_json(self) -> dict[str, object]:
        return asdict(self)

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        return Table(("", self.name), tuple(self.facts()), align="ll").html()

    def facts(self) -> list[tuple[str, str]]:
        """Name and formatted value of every statistic that applies."""
        sizes = f"{self.nodes_mean:.2f} on average, {self.nodes_min} to {self.nodes_max}"
        kind = "undirected" if self.undirected else "directed"
        facts = [
            ("graphs", f"{self.graphs:,}"),
            ("nodes", sizes),
            ("edges", f"{self.edges_mean:.2f} on average, {kind}"),
        ]
        for name, count in (
            ("isolated nodes", self.isolated_nodes),
            ("self-loops", self.self_loops),
            ("duplicate edges", self.duplicate_edges),
        ):
            if count:
                facts.append((name, f"{count:,}"))
        for what, labels, attributes in (
            ("node", self.node_labels, self.node_attributes),
            ("edge", self.edge_labels, self.edge_attributes),
        ):
            for column, usage in labels.items():
                used = "" if usage["in_use"] == usage["ids"] else f", {usage['in_use']} in use"
                facts.append((f"{what} labels", f"{usage['ids']} ids{used} ({column})"))
            if attributes:
                facts.append((f"{what} attributes", str(attributes)))
        if self.classes:
            counts = " / ".join(f"{count} of {name}" for name, count in self.classes.items())
            facts.append(("classes", f"{len(self.classes)}: {counts}"))
        elif self.tasks:
            facts.append(("label columns", str(self.tasks)))
        if self.missing_labels:
            facts.append(("missing labels", f"{self.missing_labels:,}"))
        facts.append(("features", f"{self.features} ({self.feature_width} wide)"))
        facts += [("note", note) for note in self.notes]
        size = f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e6 else f"{self.bytes / 1e3:.1f} kB"
        return [*facts, ("memory", size), ("hash", self.content_hash)]

    def __str__(self) -> str:
        facts = self.facts()
        width = max(len(name) for name, _ in facts)
        return "\n".join([self.name, *(f"  {name:<{width}}  {value}" for name, value in facts)])


MOST_CLASSES = 100  # a label with more distinct values is a regression target


def describe(collection: GraphCollection) -> Statistics:
    """Compute the statistics in one pass over the edges."""
    collection.verify_hashes()
    sizes = np.diff(collection.node_ptr)
    loops = duplicates = isolated = 0
    for chunk in chunks_of_edges(collection.edge_ptr):
        edges = slice(int(collection.edge_ptr[chunk.start]), int(collection.edge_ptr[chunk.stop]))
        start, stop = int(collection.node_ptr[chunk.start]), int(collection.node_ptr[chunk.stop])
        source, destination = collection.edge_index[:, edges]
        loops += int((source == destination).sum())
        lengths = np.diff(collection.edge_ptr[chunk.start : chunk.stop + 1])
        graph = np.repeat(np.arange(chunk.start, chunk.stop), lengths)
        same = (source[1:] == source[:-1]) & (destination[1:] == destination[:-1])
        if collection.undirected:  # count one of the two directions
            same &= source[1:] <= destination[1:]
        duplicates += int((same & (graph[1:] == graph[:-1])).sum())
        has_edge = np.zeros(stop - start, dtype=bool)
        first = collection.node_ptr[graph] - start
        has_edge[first + source] = True
        has_edge[first + destination] = True
        isolated += int((~has_edge).sum())
    edges_total = collection.num_edges
    if collection.undirected:
        edges_total = (edges_total - loops) // 2 + loops
    labels = collection.labels
    classes: dict[str, int] = {}
    if labels is not None and labels.shape[1] == 1:
        values, counts = np.unique(labels[~np.isnan(labels)], return_counts=True)
        if len(values) <= MOST_CLASSES:
            names = collection.classes.get(collection.tasks[0])
            classes = {
                names[int(value)] if names else np.format_float_positional(value, trim="-"): int(count)
                for value, count in zip(values, counts, strict=True)
            }
    graphs = max(len(collection), 1)
    return Statistics(
        name=collection.name,
        graphs=len(collection),
        nodes_mean=collection.num_nodes / graphs,
        nodes_min=int(sizes.min()) if len(sizes) else 0,
        nodes_max=int(sizes.max(initial=0)),
        edges_mean=edges_total / graphs,
        undirected=collection.undirected,
        isolated_nodes=isolated,
        self_loops=loops,
        duplicate_edges=duplicates,
        node_labels=_usage(collection.nodes),
        node_attributes=len(collection.nodes.float_names),
        edge_labels=_usage(collection.edges),
        edge_attributes=len(collection.edges.float_names),
        tasks=len(collection.tasks),
        classes=classes,
        missing_labels=0 if labels is None else int(np.isnan(labels).sum()),
        features=collection.features.name,
        feature_width=collection.features.width,
        notes=list(collection.notes),
        bytes=_size(collection),
        content_hash=collection.content_hash,
    )


def _usage(table: FeatureTable) -> dict[str, dict[str, int]]:
    return {
        column.name: {
            "ids": column.cardinality,
            "in_use": int((np.bincount(table.codes[:, k], minlength=column.cardinality) > 0).sum()),
        }
        for k, column in enumerate(table.columns)
    }


def _size(collection: GraphCollection) -> int:
    nodes, edges = collection.nodes, collection.edges
    tables = nodes.codes.nbytes + nodes.floats.nbytes + edges.codes.nbytes + edges.floats.nbytes
    for values in (collection.pos, collection.edge_weight):
        tables += 0 if values is None else values.nbytes
    return collection.node_ptr.nbytes + collection.edge_ptr.nbytes + collection.edge_index.nbytes + tables
