"""Generators of synthetic graphs: planted motifs with classes, and molecule-like graphs without labels.

Planted motifs are random trees with a few extra edges and one motif attached by an edge: a cycle, a clique,
a house, a star or a grid, which is the class. Each group of one graph per class has equal numbers of nodes
and edges, because the background gets the edges that its motif lacks, so only the structure tells classes
apart. A background may contain a motif by chance, so perfect accuracy is not attainable.

Molecule-like graphs have the shape, sizes and memory of a collection of molecules, by the million: sparse,
nearly trees, with rings of five and six, 23 nodes on average (standard deviation 5), at most four edges per
node, nine node types (most of them C) and four edge types.

Graph i of a seed does not depend on the number of graphs: whole blocks are drawn, each from its own seed.
"""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import ConfigError, DataError
from graphsc.core.random import numpy_generator
from graphsc.data.arrays import pointer
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.readers import READERS, Reader

MOST_GRAPHS = 100_000_000

Ints = NDArray[np.int64]


def requested_count(source: str, graphs: int | None, default: int) -> int:
    """The number of graphs in a source such as `motifs:1000`, or the option `graphs`, or the default."""
    if not isinstance(source, str):
        raise DataError(f"a {type(source).__name__} does not name a generator of graphs")
    generator, colon, text = source.partition(":")
    if colon and not re.fullmatch("[0-9]{1,12}", text):
        raise DataError(
            f"{source!r} does not say how many graphs", hint=f"write {generator}:1000, for example"
        )
    if not colon:
        return default if graphs is None else graphs
    if graphs is not None and int(text) != graphs:
        raise DataError(f"{source!r} asks for {int(text)} graphs, the option graphs for {graphs}")
    return int(text)


def check_count(graphs: int) -> None:
    if not 1 <= graphs <= MOST_GRAPHS:
        raise ConfigError(f"number of graphs must be from 1 to {MOST_GRAPHS:,}, not {graphs:,}")


def with_reverse(forward: Ints, reverse: Ints, counts: Ints) -> Ints:
    """Per graph, the values of its edges followed by those of the reverse edges.

    Args:
        forward: One value per edge, graph after graph.
        reverse: The value of each edge's reverse.
        counts: Edges per graph.
    """
    ptr = pointer(counts)
    graph = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(forward)) + ptr[:-1][graph]
    values = np.empty(2 * len(forward), dtype=forward.dtype)
    values[place] = forward
    values[place + counts[graph]] = reverse
    return values


# Molecule-like graphs


ATOMS = {
    "C": 0.735, "N": 0.115, "O": 0.100, "S": 0.018, "F": 0.014, "Cl": 0.010, "Br": 0.004, "P": 0.002,
    "I": 0.002,
}  # fmt: skip
BONDS = {"single": 0.52, "double": 0.10, "triple": 0.01, "aromatic": 0.37}
MEAN, DEVIATION, SMALLEST, LARGEST = 23, 5, 6, 60
MOST_BONDS = 4  # per node
RINGS = 4  # attempts per graph; a little over half succeed
BRANCHING = 0.3  # probability that a new node attaches to a random earlier node instead of the last
MOLECULE_BLOCK = 4096  # graphs per seed
BLOCKS_AT_ONCE = 16  # built together; bounds the memory beyond that of the result


def accepts_molecule_like(source: object) -> bool:
    """Whether this is `molecule-like` or `molecule-like:NUMBER`."""
    return isinstance(source, str) and source.partition(":")[0].replace("_", "-") == "molecule-like"


def read_molecule_like(
    source: str,
    /,
    *,
    name: str = "molecule-like",
    features: str = "auto",
    graphs: int | None = None,
    seed: int = 0,
) -> GraphCollection:
    """Generate the graphs of a source such as `molecule-like:1000000`.

    Args:
        source: `molecule-like` or `molecule-like:NUMBER`.
        name: Name of the collection.
        features: Feature scheme.
        graphs: Number of graphs, if the source does not give it; 1,000 by default.
        seed: Seed.
    """
    return molecule_like(requested_count(source, graphs, 1000), seed, name=name, features=features)


def molecule_like(
    graphs: int = 1000, seed: int = 0, *, name: str = "molecule-like", features: str = "auto"
) -> GraphCollection:
    """Generate molecule-like graphs; a seed's graph i is the same for any number of graphs."""
    check_count(graphs)
    step = MOLECULE_BLOCK * BLOCKS_AT_ONCE
    parts = [
        _part(first, min(first + step, graphs), seed, name, features) for first in range(0, graphs, step)
    ]
    return GraphCollection.concatenate(parts) if len(parts) > 1 else parts[0]


def _part(first: int, last: int, seed: int, name: str, features: str) -> GraphCollection:
    blocks = []
    for start in range(first, last, MOLECULE_BLOCK):
        generator = numpy_generator(seed, "molecule-like", step=start // MOLECULE_BLOCK)
        blocks.append(_molecule_block(min(MOLECULE_BLOCK, last - start), generator))
    columns = zip(*blocks, strict=True)
    sizes, atoms, edge_counts, sources, targets, bonds = (np.concatenate(arrays) for arrays in columns)
    return build_collection(
        node_counts=sizes,
        edge_counts=2 * edge_counts,
        source=with_reverse(sources, targets, edge_counts),
        destination=with_reverse(targets, sources, edge_counts),
        nodes=_table("atom", ATOMS, atoms),
        edges=_table("bond", BONDS, with_reverse(bonds, bonds, edge_counts)),
        ids=np.arange(first, last, dtype=np.int64),
        name=name,
        features=features,
    )


def _table(name: str, frequencies: dict[str, float], codes: Ints) -> FeatureTable:
    column = Column(name, len(frequencies), tuple(frequencies))
    return FeatureTable.of(len(codes), codes[:, None], [column])


def _molecule_block(graphs: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """Node counts, atoms, edge counts, sources and targets of the edges, bonds.

    All graphs of a block grow together, one node at a time; surplus graphs are dropped at the end.
    """
    sizes = np.clip(np.rint(generator.normal(MEAN, DEVIATION, MOLECULE_BLOCK)), SMALLEST, LARGEST).astype(
        np.int64
    )
    widest = int(sizes.max())
    row = np.arange(MOLECULE_BLOCK)
    parent = np.zeros((MOLECULE_BLOCK, widest), dtype=np.int64)
    degree = np.zeros((MOLECULE_BLOCK, widest), dtype=np.int64)
    for node in range(1, widest):
        alive = node < sizes
        branch = generator.random(MOLECULE_BLOCK) < BRANCHING
        chosen = np.where(branch, (generator.random(MOLECULE_BLOCK) * node).astype(np.int64), node - 1)
        # The last node has a free place because it has one edge; one place is left for a ring.
        chosen = np.where(degree[row, chosen] < MOST_BONDS - 1, chosen, node - 1)
        parent[:, node] = chosen
        degree[row[alive], chosen[alive]] += 1
        degree[alive, node] += 1
    tree = np.arange(widest) < sizes[:, None]
    tree[:, 0] = False  # the root has no parent
    rings = _rings(sizes, parent, degree, generator)

    children = np.broadcast_to(np.arange(widest), tree.shape)
    exists = np.concatenate([tree, rings >= 0], axis=1)[:graphs]
    sources = np.concatenate([parent, rings // widest], axis=1)[:graphs][exists]
    targets = np.concatenate([children, rings % widest], axis=1)[:graphs][exists]
    atoms = _draw(ATOMS, (MOLECULE_BLOCK, widest), generator)[np.arange(widest) < sizes[:, None]]
    bonds = _draw(BONDS, (MOLECULE_BLOCK, widest + RINGS), generator)[:graphs][exists]
    return sizes[:graphs], atoms[: int(sizes[:graphs].sum())], exists.sum(axis=1), sources, targets, bonds


def _rings(sizes: Ints, parent: Ints, degree: Ints, generator: np.random.Generator) -> Ints:
    """Edges that close rings of five or six, as ancestor * width + node; -1 for failed attempts."""
    row = np.arange(len(sizes))
    width = parent.shape[1]
    rings = np.full((len(sizes), RINGS), -1, dtype=np.int64)
    for k in range(RINGS):
        node = (generator.random(len(sizes)) * sizes).astype(np.int64)
        up = np.where(generator.random(len(sizes)) < 0.3, 4, 5)
        ancestor = node
        for step in range(5):
            possible = ancestor > 0
            ancestor = np.where(step < up, np.where(possible, parent[row, ancestor], -1), ancestor)
        free = (degree[row, node] < MOST_BONDS) & (degree[row, ancestor] < MOST_BONDS)
        edge = ancestor * width + node
        closed = (ancestor >= 0) & free & ~(rings == edge[:, None]).any(axis=1)
        rings[closed, k] = edge[closed]
        degree[row[closed], node[closed]] += 1
        degree[row[closed], ancestor[closed]] += 1
    return rings


def _draw(frequencies: dict[str, float], shape: tuple[int, int], generator: np.random.Generator) -> Ints:
    """Random codes with these frequencies."""
    bounds = np.cumsum(list(frequencies.values()))[:-1]
    return np.searchsorted(bounds, generator.random(shape), side="right")


READERS.register("molecule_like")(
    Reader(
        accepts=accepts_molecule_like,
        read=read_molecule_like,
        summary="molecule-like or molecule-like:NUMBER: synthetic graphs shaped like molecules",
    )
)


# Planted motifs


MOTIFS: dict[str, list[tuple[int, int]]] = {
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "clique": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
    "grid": [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)],
}
# Independent cycles per graph: at least those of a clique, the motif with the most, and 0 to 2 more.
FEWEST_CYCLES, MORE_CYCLES = 3, 3
FEWEST_NODES = 14  # the background of the largest motif needs room for its extra edges
MOTIF_BLOCK = 20_480  # nodes per class and seed, approximately


def accepts_motifs(source: object) -> bool:
    """Whether this is `motifs` or `motifs:NUMBER`."""
    return isinstance(source, str) and source.partition(":")[0] == "motifs"


def read_motifs(
    source: str,
    /,
    *,
    name: str = "motifs",
    features: str = "auto",
    graphs: int | None = None,
    classes: int = 2,
    nodes: int = 20,
    seed: int = 0,
) -> GraphCollection:
    """Generate the graphs of a source such as `motifs:1000`.

    Args:
        source: `motifs` or `motifs:NUMBER`.
        name: Name of the collection.
        features: Feature scheme.
        graphs: Number of graphs, if the source does not give it; 200 by default.
        classes: Number of classes, 2 to 5.
        nodes: Mean number of nodes per graph.
        seed: Seed.
    """
    return motifs(requested_count(source, graphs, 200), classes, nodes, seed, name=name, features=features)


def motifs(
    graphs: int = 200,
    classes: int = 2,
    nodes: int = 20,
    seed: int = 0,
    *,
    name: str = "motifs",
    features: str = "auto",
) -> GraphCollection:
    """Generate graphs with `nodes` nodes, plus or minus a quarter; graph i has class `i % classes`."""
    if not 2 <= classes <= len(MOTIFS):
        raise ConfigError(f"classes must be from 2 to {len(MOTIFS)}, not {classes}")
    if not FEWEST_NODES <= nodes <= 100_000:
        raise ConfigError(f"nodes must be from {FEWEST_NODES} to 100000, not {nodes}")
    check_count(graphs)
    most = classes * max(1, MOTIF_BLOCK // nodes)
    blocks = []
    for step, first in enumerate(range(0, graphs, most)):
        generator = numpy_generator(seed, "motifs", step=step)
        blocks.append(_motif_block(min(most, graphs - first), most, classes, nodes, generator))
    sizes, edge_counts, sources, targets = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return build_collection(
        node_counts=sizes,
        edge_counts=2 * edge_counts,
        source=with_reverse(sources, targets, edge_counts),
        destination=with_reverse(targets, sources, edge_counts),
        labels=(np.arange(graphs) % classes).astype(np.float64),
        tasks=("motif",),
        classes={"motif": tuple(MOTIFS)[:classes]},
        name=name,
        features=features,
    )


def _motif_block(
    graphs: int, most: int, classes: int, nodes: int, generator: np.random.Generator
) -> tuple[Ints, Ints, Ints, Ints]:
    """Node counts, edge counts, and sources and targets of the edges, of the first graphs of a block."""
    label = np.arange(most) % classes
    edges = [np.array(motif, dtype=np.int64) for motif in list(MOTIFS.values())[:classes]]
    motif_nodes = np.array([motif.max() + 1 for motif in edges])[label]
    motif_edges = np.array([len(motif) for motif in edges])[label]
    margin = nodes // 4
    sizes = np.repeat(generator.integers(nodes - margin, nodes + margin + 1, most // classes), classes)
    background = sizes - motif_nodes
    cycles = FEWEST_CYCLES + np.repeat(generator.integers(0, MORE_CYCLES, most // classes), classes)
    extra = cycles - (motif_edges - motif_nodes + 1)

    graph, child = _ragged(background - 1)
    child = child + 1
    parent = (generator.random(len(child)) * child).astype(np.int64)
    extra_graph, low, high = _extra_edges(graph, parent, child, background, extra, generator)
    anchor = (generator.random(most) * background).astype(np.int64)
    attached = background + (generator.random(most) * motif_nodes).astype(np.int64)
    planted, place = _ragged(motif_edges)
    starts = pointer(np.array([len(motif) for motif in edges]))[:-1]
    motif = np.concatenate(edges)[starts[label[planted]] + place] + background[planted, None]

    edge_graph = np.concatenate([graph, extra_graph, np.arange(most), planted])
    sources = np.concatenate([parent, low, anchor, motif[:, 0]])
    targets = np.concatenate([child, high, attached, motif[:, 1]])
    # Shuffle the nodes, so that their order does not reveal the motif.
    ptr = pointer(sizes)
    node_graph, _ = _ragged(sizes)
    shuffled = np.empty(int(ptr[-1]), dtype=np.int64)
    shuffled[np.lexsort((generator.random(int(ptr[-1])), node_graph))] = np.arange(int(ptr[-1]))
    shuffled -= ptr[:-1][node_graph]
    order = np.argsort(edge_graph, kind="stable")
    edge_graph = edge_graph[order]
    kept = edge_graph < graphs
    first = ptr[:-1][edge_graph]
    sources, targets = (shuffled[first + end[order]][kept] for end in (sources, targets))
    return sizes[:graphs], np.bincount(edge_graph[kept], minlength=graphs), sources, targets


def _ragged(counts: Ints) -> tuple[Ints, Ints]:
    """For rows of these lengths, the row of every element and its position in the row."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - pointer(counts)[:-1][row]


def _extra_edges(
    graph: Ints, parent: Ints, child: Ints, sizes: Ints, wanted: Ints, generator: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """Graph, lower and higher end of `wanted` new random edges per graph, without loops and duplicates."""
    width = int(sizes.max())
    tree = (graph * width + parent) * width + child
    edges = tree
    missing = wanted
    while missing.any():
        row, _ = _ragged(missing)
        ends = np.sort((generator.random((len(row), 2)) * sizes[row, None]).astype(np.int64), axis=1)
        key = (row * width + ends[:, 0]) * width + ends[:, 1]
        fresh = np.unique(key[(ends[:, 0] != ends[:, 1]) & ~np.isin(key, edges)])
        edges = np.concatenate([edges, fresh])
        missing = missing - np.bincount(fresh // width**2, minlength=len(missing))
    added = edges[len(tree) :]
    return added // width**2, added // width % width, added % width


READERS.register("motifs")(
    Reader(
        accepts=accepts_motifs,
        read=read_motifs,
        summary="motifs or motifs:NUMBER: synthetic graphs with a planted motif as class",
    )
)
