import numpy as np
import pytest
import torch

from graphsc.core.errors import ConfigError, DataError
from graphsc.data.batch import GraphBatch
from graphsc.data.environments import environment_counts, environment_keys
from graphsc.data.readers import open_collection

pytest.importorskip("rdkit")


def names(smiles, radius):
    """The environments of all atoms by their nested names, written out with RDKit."""
    from rdkit import Chem

    molecule = Chem.MolFromSmiles(smiles)

    def name(atom, r):
        bonds = sorted(str(bond.GetBondType()) for bond in atom.GetBonds())
        if r == 0:
            return f"{atom.GetSymbol()}{bonds}"
        around = sorted(
            f"{bond.GetBondType()}-{name(bond.GetOtherAtom(atom), r - 1)}" for bond in atom.GetBonds()
        )
        return f"{name(atom, r - 1)}{around}"

    return [[name(atom, r) for atom in molecule.GetAtoms()] for r in range(radius + 1)]


SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "c1ccncc1", "CCO", "OCC", "C", "N[C@@H](C)C(=O)O", "C1CC1.C1CCC1"]


def test_atoms_have_equal_keys_exactly_if_their_environments_have_equal_names():
    keys = environment_keys(GraphBatch.of(open_collection(SMILES)), 3)
    for radius in range(4):
        expected = [name for text in SMILES for name in names(text, 3)[radius]]
        pairs = set(zip(expected, keys[radius].tolist(), strict=True))
        assert len(pairs) == len(set(expected)) == len({key for _, key in pairs})


def test_counts_are_those_of_the_environments():
    counts = environment_counts(GraphBatch.of(open_collection(SMILES)), 2, 100_000)
    for row, text in zip(counts, SMILES, strict=True):
        expected = [name for of_radius in names(text, 2) for name in of_radius]
        _, times = np.unique(expected, return_counts=True)
        assert sorted(row[row > 0].tolist()) == sorted(times.tolist())
    assert torch.equal(counts[2], counts[3])  # the same molecule, written in another order


def test_few_bits_hold_all_environments():
    counts = environment_counts(GraphBatch.of(open_collection(SMILES)), 2, 4)
    assert counts.shape == (7, 4)
    assert counts.sum(1).tolist() == [39, 18, 9, 9, 3, 18, 21]


def test_wrong_sizes_and_graphs_without_labels_are_refused():
    batch = GraphBatch.of(open_collection(SMILES))
    with pytest.raises(ConfigError, match="must not be negative"):
        environment_counts(batch, -1)
    with pytest.raises(ConfigError, match="at least one column"):
        environment_counts(batch, 2, 0)
    floats = open_collection("motifs:3", features="constant")
    bare = GraphBatch.of(floats)
    with pytest.raises(DataError, match="nodes with labels"):
        environment_counts(type(bare)(**{**vars(bare), "codes": bare.codes[:, :0]}))


def test_charges_are_told_apart_where_nodes_have_them():
    keys = environment_keys(GraphBatch.of(open_collection(["CCO", "CC[O-]"])), 1)
    assert keys[0][0] == keys[0][3]  # a carbon far from the charge
    assert keys[0][2] != keys[0][5]
    bare = environment_keys(GraphBatch.of(open_collection(["CCO", "CC[O-]"])), 1, charges=False)
    assert torch.equal(bare[1][:3], bare[1][3:])
