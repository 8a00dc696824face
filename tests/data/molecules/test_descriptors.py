import numpy as np
import pytest

from graphsc.data.batch import GraphBatch
from graphsc.data.collection import subset
from graphsc.data.molecules import descriptors
from graphsc.data.molecules.descriptors import DESCRIPTORS, molecule_descriptors, stored_descriptors
from graphsc.data.molecules.union import open_union

pytest.importorskip("rdkit")
ASPIRIN = "CC(=O)Oc1ccccc1C(=O)O"


def column(name):
    return DESCRIPTORS.index(name)


def test_values_are_those_of_rdkits_own_list():
    """All but the molecular quantum numbers are also in another list of RDKit, with other code around."""
    from rdkit import Chem
    from rdkit.Chem import Descriptors

    smiles = [ASPIRIN, "C[N+](C)(C)CC(=O)[O-]", "C[C@H](N)C(=O)NCc1ccc(Cl)cn1", "OCC1OC(O)C(O)C1O"]
    own, others = molecule_descriptors(smiles), dict(Descriptors.descList)
    named = [name for name in DESCRIPTORS if not name.startswith("MQN")]
    for name in named:
        expected = [others[name](Chem.MolFromSmiles(text)) for text in smiles]
        np.testing.assert_allclose(own[:, column(name)], expected, rtol=1e-4, atol=1e-4, err_msg=name)


def test_values_of_aspirin():
    """Surface 63.6 is the published one; nine carbons and four oxygens are counted by hand."""
    (values,) = molecule_descriptors([ASPIRIN])
    assert values[column("TPSA")] == pytest.approx(63.60)
    assert values[column("ExactMolWt")] == pytest.approx(180.0423, abs=1e-3)
    assert values[column("MQN1")] == 9  # carbons


def test_what_cannot_be_computed_is_missing():
    values = molecule_descriptors(["no molecule", "C[Hg]C", "C"])
    assert np.isnan(values[0]).all()
    assert np.isnan(values[1, column("MaxPartialCharge")])
    assert np.isfinite(values[2]).all()


def test_each_row_is_computed_once(tmp_path, monkeypatch):
    smiles, asked = ["C" * length for length in range(1, 9)], []

    def texts(rows):
        asked.append(rows.tolist())
        return (smiles[row] for row in rows)

    monkeypatch.setattr(descriptors, "CHUNK", 2)
    stored_descriptors(tmp_path / "d.npy", 8, np.array([1, 3, 4]), texts)
    values = stored_descriptors(tmp_path / "d.npy", 8, np.array([1, 2, 4, 7]), texts)
    assert asked == [[1, 3, 4], [2, 7]]
    np.testing.assert_array_equal(
        values[[1, 2, 3, 4, 7]], molecule_descriptors([smiles[row] for row in (1, 2, 3, 4, 7)])
    )
    assert not values[0].any()


def test_molecules_of_a_union_have_their_own_descriptors(tmp_path):
    """The second source has a duplicate and a row without a molecule, which shift its rows."""
    for name, texts in (("a", ["CCO", "CCN"]), ("b", ["CCO", "nonsense", "CCCl", "c1ccccc1"])):
        (tmp_path / f"{name}.smi").write_text("\n".join(texts))
    sources = [(str(tmp_path / "a.smi"), 1.0), (str(tmp_path / "b.smi"), 1.0)]
    union = open_union(sources, folder=tmp_path / "cache", workers=1)
    collection = union.with_descriptors(np.arange(4))
    expected = molecule_descriptors(["CCO", "CCN", "CCCl", "c1ccccc1"])
    np.testing.assert_array_equal(collection.descriptors, expected)
    batch = GraphBatch.gather(subset(collection, [3, 1]), np.array([1, 0]))
    np.testing.assert_array_equal(batch.descriptors.numpy(), expected[[1, 3]])
    np.testing.assert_array_equal(collection.take([2]).descriptors, expected[[2]])
