"""Why a prediction is what it is: the contribution of each atom, by leaving it out.

The molecule is predicted once more without each of its atoms. For encoders, the atom and its bonds are taken
out of the graph; for fingerprints, every environment that contains the atom; descriptors of the whole
molecule stay as they are. So all parts of an ensemble take part, each with what it sees of an atom. A
contribution is the change that this makes to the log-odds of a classification, or to the value of a
regression. It tells what the model uses, not what causes an effect.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from graphsc.core.registry import require
from graphsc.data.builder import build_collection
from graphsc.data.collection import GraphCollection
from graphsc.data.columns import FeatureTable
from graphsc.data.molecules.conversion import read_molecules
from graphsc.finetuning.features import BLOCKS, RawFeatures, counts_without_atoms
from graphsc.finetuning.property_model import PropertyModel

MOST_ATOMS = 150  # of a molecule that is explained; larger ones are not drawn either


@dataclass(frozen=True)
class Explanation:
    """The contributions of the atoms of a molecule, in the order of its SMILES."""

    smiles: str
    contributions: NDArray[np.float64]  # atoms x tasks


def explain(model: PropertyModel, smiles: str) -> Explanation | None:
    """Leave out each atom in turn; None for a molecule of one atom, of more than 150, or no molecule."""
    chem = require("rdkit.Chem")
    with require("rdkit.rdBase").BlockLogs():
        molecule = chem.MolFromSmiles(smiles)
    if molecule is None or not 1 < molecule.GetNumAtoms() <= MOST_ATOMS:
        return None
    whole = read_molecules([smiles]).collection
    if len(whole) != 1 or int(whole.node_ptr[-1]) != molecule.GetNumAtoms():
        return None
    atoms = molecule.GetNumAtoms()
    raw = RawFeatures.of([smiles], BLOCKS)
    assert raw.descriptors is not None  # noqa: S101 - both blocks were asked for
    changed = RawFeatures(atoms, counts_without_atoms(molecule), np.repeat(raw.descriptors, atoms, axis=0))
    with_all = model.decision(whole, [smiles], raw)
    without = model.decision(without_each_node(whole), [smiles] * atoms, changed)
    return Explanation(smiles, with_all - without)


def without_each_node(single: GraphCollection) -> GraphCollection:
    """As many graphs as the only graph of a collection has nodes: each without one of them and its edges."""
    graph = next(iter(single.graphs()))
    source, destination = graph.edge_index.astype(np.int64)
    nodes = np.arange(graph.num_nodes)
    kept_nodes, kept_edges, sources, destinations = [], [], [], []
    for node in nodes:
        own_edges = np.flatnonzero((source != node) & (destination != node))
        kept_nodes.append(np.delete(nodes, node))
        kept_edges.append(own_edges)
        sources.append(source[own_edges] - (source[own_edges] > node))
        destinations.append(destination[own_edges] - (destination[own_edges] > node))
    rows, edges = np.concatenate(kept_nodes), np.concatenate(kept_edges)
    return build_collection(
        node_counts=np.full(len(nodes), len(nodes) - 1, dtype=np.int64),
        edge_counts=np.array([len(own) for own in kept_edges], dtype=np.int64),
        source=np.concatenate(sources),
        destination=np.concatenate(destinations),
        nodes=FeatureTable.of(len(rows), graph.nodes.codes[rows], list(graph.nodes.columns)),
        edges=FeatureTable.of(len(edges), graph.edges.codes[edges], list(graph.edges.columns)),
        name=single.name,
        features=single.features.name,
    )
