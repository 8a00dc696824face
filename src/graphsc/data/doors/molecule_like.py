"""Molecule-like graphs: made up by the million, for trying things at scale.

Sparse, nearly trees, with rings of five and six, 23 nodes give or take 5, no node with more than four
edges, one of nine types a node (most of them C) and one of four a bond. They have no labels and no
chemistry; they have the shape, sizes and memory of a collection of molecules.
"""

from __future__ import annotations

import numpy as np

from graphsc.core.random import numpy_generator
from graphsc.data.assemble import assemble
from graphsc.data.collection import GraphCollection
from graphsc.data.doors import DOORS, Door
from graphsc.data.doors.generated import Ints, asked_number, both_ways, check_number
from graphsc.data.table import Column, Table

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
BLOCK = 4096  # graphs drawn from one seed, so that graph i is the same however many there are
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
    step = BLOCK * BLOCKS_AT_ONCE
    parts = [
        _part(first, min(first + step, graphs), seed, name, features) for first in range(0, graphs, step)
    ]
    return GraphCollection.concatenate(parts) if len(parts) > 1 else parts[0]


def _part(first: int, last: int, seed: int, name: str, features: str) -> GraphCollection:
    blocks = []
    for start in range(first, last, BLOCK):
        generator = numpy_generator(seed, "molecule-like", step=start // BLOCK)
        blocks.append(_block(min(BLOCK, last - start), generator))
    columns = zip(*blocks, strict=True)
    sizes, atoms, edge_counts, one, other, bonds = (np.concatenate(arrays) for arrays in columns)
    return assemble(
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


def _table(name: str, kinds: dict[str, float], codes: Ints) -> Table:
    return Table.of(len(codes), codes[:, None], [Column(name, len(kinds), tuple(kinds))])


def _block(graphs: int, generator: np.random.Generator) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
    """Sizes, atoms, numbers of edges, both ends of the edges, bonds.

    All graphs of a block grow together, a node at a time. What is not wanted is left out at the end:
    graph i must not depend on the number of graphs.
    """
    sizes = np.clip(np.rint(generator.normal(MEAN, DEVIATION, BLOCK)), SMALLEST, LARGEST).astype(np.int64)
    widest = int(sizes.max())
    row = np.arange(BLOCK)
    parent = np.zeros((BLOCK, widest), dtype=np.int64)
    degree = np.zeros((BLOCK, widest), dtype=np.int64)
    for node in range(1, widest):
        alive = node < sizes
        branch = generator.random(BLOCK) < BRANCHING
        chosen = np.where(branch, (generator.random(BLOCK) * node).astype(np.int64), node - 1)
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
    atoms = _draw(ATOMS, (BLOCK, widest), generator)[np.arange(widest) < sizes[:, None]]
    bonds = _draw(BONDS, (BLOCK, widest + RINGS), generator)[:graphs][there]
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


DOORS.register("molecule_like")(
    Door(
        accepts=accepts_molecule_like,
        read=read_molecule_like,
        summary="molecule-like or molecule-like:NUMBER: made-up graphs shaped like molecules",
    )
)
