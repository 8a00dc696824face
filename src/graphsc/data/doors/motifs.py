"""Planted motifs: made-up graphs whose class is a small pattern hidden in a random one.

A graph is a random tree with a few more edges, and one motif hung onto it by an edge: a cycle, a clique,
a house, a star or a grid, which is its class. Graphs come in groups of one a class that agree in their
numbers of nodes and of edges, because the background gets the extra edges that its motif lacks: only
structure tells classes apart. (A background may hold a motif by chance; a perfect score is not to be
had.)
"""

from __future__ import annotations

import numpy as np

from graphsc.core.errors import ConfigError
from graphsc.core.random import numpy_generator
from graphsc.data.assemble import assemble
from graphsc.data.collection import GraphCollection
from graphsc.data.doors import DOORS, Door
from graphsc.data.doors.generated import Ints, asked_number, both_ways, check_number
from graphsc.data.ragged import pointer

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
BLOCK = 20_480  # nodes a class, about, drawn from one seed: graph i is the same however many there are


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
    most = classes * max(1, BLOCK // nodes)
    blocks = []
    for step, first in enumerate(range(0, graphs, most)):
        generator = numpy_generator(seed, "motifs", step=step)
        blocks.append(_block(min(most, graphs - first), most, classes, nodes, generator))
    sizes, edge_counts, one, other = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    return assemble(
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


def _block(
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


DOORS.register("motifs")(
    Door(
        accepts=accepts_motifs,
        read=read_motifs,
        summary="motifs or motifs:NUMBER: made-up graphs with a planted motif as class",
    )
)
