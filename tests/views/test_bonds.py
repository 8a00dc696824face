"""Bonds in every view: those kept have their own type and direction, those added have one that there is."""

import pytest
import torch

from graphsc.data.batch import GraphBatch
from graphsc.data.columns import Column, FeatureTable
from graphsc.data.features import resolve_scheme
from graphsc.data.readers import open_collection
from graphsc.views import VIEWS, Choice, weak_and_strong
from graphsc.views.sampling import keep_nodes

pytest.importorskip("rdkit")
SMILES = ["F/C=C/F", "CC(=O)Oc1ccccc1C(=O)O", "C#CC=C", "O", "C1CC1N", "C/C(F)=C(\\Cl)Br", "[Na+].[Cl-]"]


@pytest.fixture(scope="module")
def molecules():
    """Real bonds; every atom's code is its place in the batch, so that a view cannot hide who it is."""
    from dataclasses import replace

    import numpy as np

    graphs = open_collection(SMILES)
    places = np.arange(graphs.num_nodes)[:, None]
    nodes = FeatureTable.of(graphs.num_nodes, places, [Column("place", graphs.num_nodes)])
    return GraphBatch.of(replace(graphs, nodes=nodes, features=resolve_scheme("labels", nodes)))


def bonds_of(batch, places):
    ends = zip(places[batch.source.long()].tolist(), places[batch.destination.long()].tolist(), strict=True)
    return list(zip(ends, map(tuple, batch.edge_codes.tolist()), strict=True))


def check(molecules, view):
    # Only masking changes codes, and it moves no atom.
    kept = torch.equal(view.ptr, molecules.ptr)
    places = molecules.codes[:, 0] if kept else view.codes[:, 0]
    own = dict(bonds_of(molecules, molecules.codes[:, 0]))
    graph = dict(zip(molecules.codes[:, 0].tolist(), molecules.batch.tolist(), strict=True))
    there = {(graph[start], bond) for (start, _), bond in own.items()}
    found = bonds_of(view, places)
    both = dict(found)
    for (start, end), bond in found:
        if (start, end) in own:
            assert bond == own[start, end]
        else:
            assert (graph[start], bond) in there  # an added bond is like one of its molecule
        if view.undirected:
            assert both[end, start] == bond


RATES = (0.1, 0.4, 1.0)


@pytest.mark.parametrize("name", list(VIEWS))
def test_every_view(molecules, name):
    for seed in range(6):
        for rate in RATES:
            check(molecules, VIEWS.get(name)()(molecules, rate, torch.Generator().manual_seed(seed)))


def test_choice_of_all_and_both_strengths(molecules):
    view = Choice(["drop-nodes", "subgraph", "perturb-edges", "mask-attributes", "identity"])
    for seed in range(6):
        for coupling in ("same", "independent", "nested"):
            generator = torch.Generator().manual_seed(seed)
            for one in weak_and_strong(view, molecules, 0.1, 0.4, generator, coupling):
                check(molecules, one)


def test_kept_nodes_of_a_rationale(molecules):
    wanted = torch.rand(molecules.num_nodes, generator=torch.Generator().manual_seed(0)) + 0.01
    counts = (molecules.ptr.diff() + 1) // 2
    check(molecules, keep_nodes(molecules, wanted, counts, torch.Generator().manual_seed(1)))
