import numpy as np
import pytest

from graphsc.core.errors import DataError
from graphsc.data.molecules.union import hash_graphs, open_union, test_keys
from graphsc.data.readers import open_collection

pytest.importorskip("rdkit")


def write(path, *smiles):
    path.write_text("".join(f"{text}\n" for text in smiles))
    return str(path)


def opened(tmp_path, *lists, weights=None):
    weights = weights or [1.0] * len(lists)
    files = [write(tmp_path / f"{number}.smi", *texts) for number, texts in enumerate(lists)]
    return open_union(list(zip(files, weights, strict=True)), folder=tmp_path / "cache", workers=1)


def test_a_molecule_of_an_earlier_source_or_row_is_left_out(tmp_path):
    union = opened(tmp_path, ["CCO", "C(O)C", "c1ccccc1"], ["C1=CC=CC=C1", "CCN", "CCO", "CCN"])
    expected = open_collection(["CCO", "c1ccccc1", "CCN"])
    assert np.array_equal(union.collection.node_ptr, expected.node_ptr)
    assert np.array_equal(union.collection.nodes.codes, expected.nodes.codes)
    assert np.array_equal(union.collection.edges.codes, expected.edges.codes)
    assert [(part.kept, part.duplicates) for part in union.parts] == [(2, 1), (1, 3)]


def test_stereoisomers_have_different_smiles_and_stay(tmp_path):
    union = opened(tmp_path, ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC(N)C(=O)O", "C[C@H](N)C(=O)O"])
    assert [(part.kept, part.duplicates) for part in union.parts] == [(3, 1)]


def test_invalid_rows_are_counted_and_ids_of_files_do_no_harm(tmp_path):
    union = opened(tmp_path, ["CCO first", "nonsense second", "OCC third", "CCC fourth"])
    (part,) = union.parts
    assert (part.molecules, part.rejected, part.duplicates, part.kept) == (3, 1, 1, 2)


# Two molecules of the scaffold-split test part of BBBP, the first also without its stereochemistry.
IN_TEST = [
    "CN1[C@H]2CCC[C@@H]1CC(C2)NC(=O)c3nn(C)c4ccccc34",
    "Cn1nc(C(=O)NC2CC3CCCC(C2)N3C)c2ccccc21",
    "C[C@@H]1[C@H]2Cc3ccc(O)cc3[C@]1(C)CCN2CC=C(C)C",
]


def test_molecules_of_test_sets_are_excluded_by_inchikey(tmp_path):
    union = opened(tmp_path, ["CCO", *IN_TEST, "CCC"], ["CCN", *IN_TEST])
    assert [(part.excluded, part.duplicates, part.kept) for part in union.parts] == [
        (len(IN_TEST), 0, 2),
        (len(IN_TEST), 0, 1),
    ]
    assert f"{len(IN_TEST)} of downstream test sets excluded by InChIKey" in union.notes()[0]


def test_the_union_is_made_once_and_depends_on_the_content(tmp_path):
    first = opened(tmp_path, ["CCO"], ["CCN"])
    changed = first.path.stat().st_mtime_ns
    again = opened(tmp_path, ["CCO"], ["CCN"], weights=[1.0, 2.5])
    assert again.path == first.path
    assert again.path.stat().st_mtime_ns == changed
    assert [part.weight for part in again.parts] == [1.0, 2.5]
    assert again.weights_of(np.array([0, 1])).tolist() == [1.0, 2.5]
    assert opened(tmp_path, ["CCO"], ["CCF"]).path != first.path


def test_only_lists_of_smiles_can_be_joined(tmp_path):
    saved = tmp_path / "saved.safetensors"
    open_collection(["CCO"]).save(saved)
    with pytest.raises(DataError, match="not a list of SMILES"):
        open_union([(str(saved), 1.0)], folder=tmp_path / "cache")


def test_hashes_tell_bonds_and_charges_apart_and_skeletons_do_not():
    graphs = open_collection(["CCO", "C=CO", "OCC", "CC[O-]", "CCS", "[2H]CO", "C[Hg]"])
    with_bonds, skeletons, irregular = hash_graphs(graphs)
    assert with_bonds[0] == with_bonds[2]
    assert len({*with_bonds[:4].tolist()}) == 3  # bonds and charges count
    assert len({*skeletons[:4].tolist()}) == 1
    assert skeletons[4] != skeletons[0]
    assert irregular.tolist() == [False] * 5 + [True] * 2


def test_the_keys_of_test_molecules_are_whole():
    keys = test_keys()
    assert len(keys.blocks) > 10_000
    assert all(len(block) == 14 and block.isupper() for block in keys.blocks)
