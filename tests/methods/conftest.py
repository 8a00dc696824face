"""Synthetic molecules with the feature columns of molecules from SMILES."""

from dataclasses import replace

import numpy as np
import pytest

from graphsc.data.columns import FeatureTable
from graphsc.data.features import resolve_scheme
from graphsc.data.molecules.featurize import ATOM_COLUMNS, BOND, DIRECTION
from graphsc.data.readers import open_collection


def _molecules(count):
    graphs = open_collection(f"molecule-like:{count}")
    atoms = np.pad(graphs.nodes.codes.astype(np.int64) + 5, ((0, 0), (0, 3)))
    bonds = np.pad(graphs.edges.codes.astype(np.int64), ((0, 0), (0, 1)))
    nodes = FeatureTable.of(len(atoms), atoms, ATOM_COLUMNS)
    edges = FeatureTable.of(len(bonds), bonds, [BOND, DIRECTION])
    return replace(graphs, nodes=nodes, edges=edges, features=resolve_scheme("labels", nodes))


@pytest.fixture(scope="session")
def made_up_molecules():
    """Three hundred molecules, with a code for masked atoms."""
    return _molecules(300)
