"""Every trained method with the encoder of molecules: one step, and embeddings."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.features import resolve_scheme
from graphsc.data.sources import open_collection
from graphsc.data.table import Column, Table
from graphsc.methods import METHODS, make_recipe

NAMES = [name for name in METHODS if METHODS.get(name).kind == "trained" and not name.startswith("toy-")]
SMALL = {"encoder.depth": 3, "encoder.width": 20}


@pytest.fixture(scope="module")
def molecules():
    """Made-up molecules under the columns that molecules from SMILES have."""
    graphs = open_collection("molecule-like:16")
    atoms = np.pad(graphs.nodes.codes.astype(np.int64) + 5, ((0, 0), (0, 1)))
    bonds = np.pad(graphs.edges.codes.astype(np.int64), ((0, 0), (0, 1)))
    nodes = Table.of(len(atoms), atoms, [Column("atom", 120), Column("chirality", 4)])
    edges = Table.of(len(bonds), bonds, [Column("bond", 4), Column("direction", 3)])
    return replace(graphs, nodes=nodes, edges=edges, features=resolve_scheme("labels", nodes))


@pytest.mark.parametrize("name", NAMES)
def test_one_step(molecules, name):
    method = make_recipe(name, molecules, SMALL, encoder="molecule-gin").build(molecules.features, 0)
    generator = torch.Generator().manual_seed(0)
    batch = GraphBatch.of(molecules)
    method.begin(molecules, generator)
    for player in method.players() if method.trains else []:
        encoded = method.encode(method.views(batch, generator), player.name)
        losses = method.objective(encoded, player.name)
        torch.stack(list(losses.values())).sum().backward()
        for parameter in player.parameters:
            assert parameter.grad is not None
            assert torch.isfinite(parameter.grad).all()
    with torch.no_grad():
        rows = method.eval().embed(batch)
    assert rows.shape == (16, method.dimensions(molecules.features))
    assert torch.isfinite(rows).all()
