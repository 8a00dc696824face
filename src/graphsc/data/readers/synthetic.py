"""What the generators of made-up graphs share: how many are asked for, and edges in both directions."""

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


def asked_number(source: str, graphs: int | None, default: int) -> int:
    """The number of graphs in a source such as `motifs:1000`, or as an option."""
    if not isinstance(source, str):
        raise DataError(f"a {type(source).__name__} does not name a generator of graphs")
    word, colon, text = source.partition(":")
    if colon and not re.fullmatch("[0-9]{1,12}", text):
        raise DataError(f"{source!r} does not say how many graphs", hint=f"write {word}:1000, for example")
    number = int(text) if colon else None
    if number is not None and graphs is not None and number != graphs:
        raise DataError(f"{source!r} asks for {number} graphs, the option graphs for {graphs}")
    asked = number if graphs is None else graphs
    return default if asked is None else asked


def check_number(graphs: int) -> None:
    if not 1 <= graphs <= MOST_GRAPHS:
        raise ConfigError(f"number of graphs must be from 1 to {MOST_GRAPHS:,}, not {graphs:,}")


def both_ways(one: Ints, other: Ints, counts: Ints) -> Ints:
    """For edges laid end to end: one end of each graph's edges forth, then of the same edges back."""
    ptr = pointer(counts)
    graph = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(len(one)) + ptr[:-1][graph]
    ends = np.empty(2 * len(one), dtype=one.dtype)
    ends[place] = one
    ends[place + counts[graph]] = other
    return ends


# Molecule-like graphs: made up by the million, for trying things at scale.
#
# Sparse, nearly trees, with rings of five and six, 23 nodes give or take 5, no node with more than four
# edges, one of nine types a node (most of them C) and one of four a bond. They have no labels and no
# chemistry; they have the shape, sizes and memory of a collection of molecules.


ATOMS = {
    "C": 0.735,
    "N": 0.115,
    "O": 0.100,
    "S": 0.018,
    "F": 0.014,
    "Cl": 0.010,
    "Br": 0.004,
    "P": 0.002,
    "I": 0.002,
}
BONDS = {"single": 0.52, "double": 0.10, "triple": 0.01, "aromatic": 0.37}
MEAN, DEVIATION, SMALLEST, LARGEST = 23, 5, 6, 60
MOST_BONDS = 4  # of one node
RINGS = 4  # tried for in each graph; a little over half come about
BRANCHING = 0.3  # chance of growing on from an earlier node than the last
MOLECULE_BLOCK = 4096  # graphs drawn from one seed, so that graph i is the same however many there are
BLOCKS_AT_ONCE = 16  # assembled together; what bounds the memory beyond that of the result


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
    """Make what a source such as `molecule-like:1000000` asks for; `graphs` says the same."""
    return molecule_like(asked_number(source, graphs, 1000), seed, name=name, features=features)


def molecule_like(
    graphs: int = 1000, seed: int = 0, *, name: str = "molecule-like", features: str = "auto"
) -> GraphCollection:
    """Make so many molecule-like graphs; one seed's first thousand are the same in any number."""
    check_number(graphs)
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
    sizes, atoms, edge_counts, one, other, bonds = (np.concatenate(arrays) for arrays in columns)
    return build_collection(
        node_counts=sizes,
        edge_counts=2 * edge_counts,
        source=both_ways(one, other, edge_counts),
        destination=both_ways(other, one, edge_counts),
        nodes=_table("atom", ATOMS, atoms),
        edges=_table("bond", BONDS, both_ways(bonds, bonds, edge_counts)),
        ids=np.arange(first, last, dtype=np.int64),
        name=name,
        features=features,
    )


def _table(name: str, kinds: dict[str, float], codes: Ints) -> FeatureTable:
    return FeatureTable.of(len(codes), codes[:, None], [Column(name, len(kinds), tuple(kinds))])


def _molecule_block(graphs: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """Sizes, atoms, numbers of edges, both ends of the edges, bonds.

    All graphs of a block grow together, a node at a time. What is not wanted is left out at the end:
    graph i must not depend on the number of graphs.
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
        # The last node has one edge, so that there always is room at it; one is left for a ring.
        chosen = np.where(degree[row, chosen] < MOST_BONDS - 1, chosen, node - 1)
        parent[:, node] = chosen
        degree[row[alive], chosen[alive]] += 1
        degree[alive, node] += 1
    tree = np.arange(widest) < sizes[:, None]
    tree[:, 0] = False  # the root has no parent
    rings = _rings(sizes, parent, degree, generator)

    children = np.broadcast_to(np.arange(widest), tree.shape)
    there = np.concatenate([tree, rings >= 0], axis=1)[:graphs]
    one = np.concatenate([parent, rings // widest], axis=1)[:graphs][there]
    other = np.concatenate([children, rings % widest], axis=1)[:graphs][there]
    atoms = _draw(ATOMS, (MOLECULE_BLOCK, widest), generator)[np.arange(widest) < sizes[:, None]]
    bonds = _draw(BONDS, (MOLECULE_BLOCK, widest + RINGS), generator)[:graphs][there]
    return sizes[:graphs], atoms[: int(sizes[:graphs].sum())], there.sum(axis=1), one, other, bonds


def _rings(sizes: Ints, parent: Ints, degree: Ints, generator: np.random.Generator) -> Ints:
    """Edges that close rings of five or six, as ancestor * width + node; -1 where none came about."""
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
        room = (degree[row, node] < MOST_BONDS) & (degree[row, ancestor] < MOST_BONDS)
        edge = ancestor * width + node
        closed = (ancestor >= 0) & room & ~(rings == edge[:, None]).any(axis=1)
        rings[closed, k] = edge[closed]
        degree[row[closed], node[closed]] += 1
        degree[row[closed], ancestor[closed]] += 1
    return rings


def _draw(kinds: dict[str, float], shape: tuple[int, int], generator: np.random.Generator) -> Ints:
    """Codes with the kinds' frequencies."""
    bounds = np.cumsum(list(kinds.values()))[:-1]
    return np.searchsorted(bounds, generator.random(shape), side="right")


READERS.register("molecule_like")(
    Reader(
        accepts=accepts_molecule_like,
        read=read_molecule_like,
        summary="molecule-like or molecule-like:NUMBER: made-up graphs shaped like molecules",
    )
)


# Planted motifs: made-up graphs whose class is a small pattern hidden in a random one.
#
# A graph is a random tree with a few more edges, and one motif hung onto it by an edge: a cycle, a clique,
# a house, a star or a grid, which is its class. Graphs come in groups of one a class that agree in their
# numbers of nodes and of edges, because the background gets the extra edges that its motif lacks: only
# structure tells classes apart. (A background may hold a motif by chance; a perfect score is not to be
# had.)


MOTIFS: dict[str, list[tuple[int, int]]] = {
    "cycle": [(0, 1), (1, 2), (2, 3), (3, 4), (4, 0)],
    "clique": [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)],
    "house": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)],
    "star": [(0, 1), (0, 2), (0, 3), (0, 4), (0, 5)],
    "grid": [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)],
}
# Independent cycles a graph has at least: those of a clique, the motif that has most.
FEWEST_CYCLES, MORE_CYCLES = 3, 3
# Below this, the background of the largest motif may have no room for its extra edges.
FEWEST_NODES = 14
MOTIF_BLOCK = 20_480  # nodes a class, about, drawn from one seed: graph i is the same however many there are


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
    """Make what a source such as `motifs:1000` asks for; `graphs` says the same as the number."""
    return motifs(asked_number(source, graphs, 200), classes, nodes, seed, name=name, features=features)


def motifs(
    graphs: int = 200,
    classes: int = 2,
    nodes: int = 20,
    seed: int = 0,
    *,
    name: str = "motifs",
    features: str = "auto",
) -> GraphCollection:
    """Graphs of `nodes` nodes, give or take a quarter, in `classes` classes that take turns."""
    if not 2 <= classes <= len(MOTIFS):
        raise ConfigError(f"classes must be from 2 to {len(MOTIFS)}, not {classes}")
    if not FEWEST_NODES <= nodes <= 100_000:
        raise ConfigError(f"nodes must be from {FEWEST_NODES} to 100000, not {nodes}")
    check_number(graphs)
    most = classes * max(1, MOTIF_BLOCK // nodes)
    blocks = []
    for step, first in enumerate(range(0, graphs, most)):
        generator = numpy_generator(seed, "motifs", step=step)
        blocks.append(_motif_block(min(most, graphs - first), most, classes, nodes, generator))
    sizes, edge_counts, one, other = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return build_collection(
        node_counts=sizes,
        edge_counts=2 * edge_counts,
        source=both_ways(one, other, edge_counts),
        destination=both_ways(other, one, edge_counts),
        labels=(np.arange(graphs) % classes).astype(np.float64),
        tasks=("motif",),
        classes={"motif": tuple(MOTIFS)[:classes]},
        name=name,
        features=features,
    )


def _motif_block(
    graphs: int, most: int, classes: int, nodes: int, generator: np.random.Generator
) -> tuple[Ints, Ints, Ints, Ints]:
    """Sizes, numbers of edges, and both ends of the edges of some graphs, by local node ids."""
    # A whole block is drawn, and what is not wanted left out: graph i must not depend on the number.
    label = np.arange(most) % classes
    edges = [np.array(motif, dtype=np.int64) for motif in list(MOTIFS.values())[:classes]]
    motif_nodes = np.array([motif.max() + 1 for motif in edges])[label]
    motif_edges = np.array([len(motif) for motif in edges])[label]
    spread = nodes // 4
    sizes = np.repeat(generator.integers(nodes - spread, nodes + spread + 1, most // classes), classes)
    background = sizes - motif_nodes
    cycles = FEWEST_CYCLES + np.repeat(generator.integers(0, MORE_CYCLES, most // classes), classes)
    extra = cycles - (motif_edges - motif_nodes + 1)

    graph, child = _ragged(background - 1)
    child = child + 1
    parent = (generator.random(len(child)) * child).astype(np.int64)
    more_graph, low, high = _more_edges(graph, parent, child, background, extra, generator)
    hook = (generator.random(most) * background).astype(np.int64)
    hooked = background + (generator.random(most) * motif_nodes).astype(np.int64)
    planted, place = _ragged(motif_edges)
    starts = pointer(np.array([len(motif) for motif in edges]))[:-1]
    motif = np.concatenate(edges)[starts[label[planted]] + place] + background[planted, None]

    owner = np.concatenate([graph, more_graph, np.arange(most), planted])
    one = np.concatenate([parent, low, hook, motif[:, 0]])
    other = np.concatenate([child, high, hooked, motif[:, 1]])
    # New names for all nodes, so that their order does not tell where the motif is.
    ptr = pointer(sizes)
    node_graph, _ = _ragged(sizes)
    shuffled = np.empty(int(ptr[-1]), dtype=np.int64)
    shuffled[np.lexsort((generator.random(int(ptr[-1])), node_graph))] = np.arange(int(ptr[-1]))
    shuffled -= ptr[:-1][node_graph]
    order = np.argsort(owner, kind="stable")
    owner = owner[order]
    kept = owner < graphs
    ends = [shuffled[ptr[:-1][owner] + end[order]][kept] for end in (one, other)]
    return sizes[:graphs], np.bincount(owner[kept], minlength=graphs), ends[0], ends[1]


def _ragged(counts: Ints) -> tuple[Ints, Ints]:
    """The row and the place in its row of every element of rows of these lengths."""
    row = np.repeat(np.arange(len(counts)), counts)
    return row, np.arange(len(row)) - pointer(counts)[:-1][row]


def _more_edges(
    graph: Ints, parent: Ints, child: Ints, sizes: Ints, wanted: Ints, generator: np.random.Generator
) -> tuple[Ints, Ints, Ints]:
    """As many further edges as wanted a graph, none of them a loop or there already."""
    width = int(sizes.max())
    tree = (graph * width + parent) * width + child
    taken = tree
    missing = wanted
    while missing.any():
        row, _ = _ragged(missing)
        ends = np.sort((generator.random((len(row), 2)) * sizes[row, None]).astype(np.int64), axis=1)
        key = (row * width + ends[:, 0]) * width + ends[:, 1]
        fresh = np.unique(key[(ends[:, 0] != ends[:, 1]) & ~np.isin(key, taken)])
        taken = np.concatenate([taken, fresh])
        missing = missing - np.bincount(fresh // width**2, minlength=len(missing))
    added = taken[len(tree) :]
    return added // width**2, added // width % width, added % width


READERS.register("motifs")(
    Reader(
        accepts=accepts_motifs,
        read=read_motifs,
        summary="motifs or motifs:NUMBER: made-up graphs with a planted motif as class",
    )
)
