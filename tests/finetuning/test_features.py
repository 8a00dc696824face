"""Fingerprints, descriptors and likeness of molecules."""

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import Descriptors, rdFingerprintGenerator

from graphsc.core.errors import ConfigError
from graphsc.finetuning.features import (
    CLIP,
    MoleculeFeatures,
    RawFeatures,
    Scaler,
    counts_without_atoms,
    descriptor_names,
    descriptors,
    ecfp,
    ecfp_counts,
    nearest_by_tanimoto,
    packed,
    parse_blocks,
)

SMILES = ["CCO", "CCCCCC", "c1ccccc1C(=O)O", "CC(=O)Oc1ccccc1C(=O)O", "C1CCNCC1"]


@pytest.mark.parametrize(
    ("text", "training", "blocks"),
    [
        ("ecfp", None, ("ecfp",)),
        ("rdkit, ecfp", None, ("ecfp", "rdkit")),
        ("none", 10, ()),
        ("auto", 5_000, ("ecfp", "rdkit")),
        ("auto", 5_001, ()),
    ],
)
def test_blocks_are_named_by_a_text_and_auto_depends_on_the_training_molecules(text, training, blocks):
    assert parse_blocks(text, training) == blocks


@pytest.mark.parametrize("text", ["ecpf", "ecfp,none", "", ","])
def test_unknown_blocks_are_refused(text):
    with pytest.raises(ConfigError):
        parse_blocks(text, 10)


def test_counts_are_those_of_rdkit():
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    for text, row in zip(SMILES, ecfp_counts(SMILES), strict=True):
        counts = generator.GetCountFingerprint(Chem.MolFromSmiles(text)).GetNonzeroElements()
        assert {int(bit): int(row[bit]) for bit in np.flatnonzero(row)} == counts


def test_descriptors_are_those_of_rdkit_and_nan_where_there_is_none():
    found = descriptors(["CCO", "nonsense"])
    names = descriptor_names()
    assert found.shape == (2, len(names))
    molecule = Chem.MolFromSmiles("CCO")
    assert found[0, names.index("MolWt")] == pytest.approx(Descriptors.MolWt(molecule), rel=1e-6)
    assert found[0, names.index("NumHDonors")] == 1
    assert np.isnan(found[1]).all()


def test_a_scaler_ignores_missing_values_and_cuts_off_large_ones():
    rows = np.array([[1.0, 5.0, np.nan], [3.0, 5.0, np.inf], [np.nan, 5.0, np.nan]])
    scaler = Scaler.fit(rows)
    # Column 0: mean 2, deviation 1. Column 1 is constant, column 2 has no number.
    np.testing.assert_allclose(
        scaler.transform(np.array([[1.0, 7.0, 4.0], [np.nan, np.nan, np.nan], [1e9, 5.0, -3.0]])),
        [[-1, 0, 0], [0, 0, 0], [CLIP, 0, 0]],
    )


def test_rows_are_logarithms_of_counts_then_standardised_descriptors():
    raw = RawFeatures.of(SMILES, ("ecfp", "rdkit"))
    train = np.array([True, True, True, True, False])
    features = MoleculeFeatures.fit(("ecfp", "rdkit"), raw, train)
    rows = features.rows(raw)
    assert rows.shape == (5, features.width) == (5, 2048 + len(descriptor_names()))
    np.testing.assert_allclose(rows[:, :2048], np.log(1 + ecfp_counts(SMILES).astype(float)), rtol=1e-6)
    column = 2048 + descriptor_names().index("MolWt")
    weights = np.array([Descriptors.MolWt(Chem.MolFromSmiles(text)) for text in SMILES])
    expected = (weights - weights[:4].mean()) / weights[:4].std()
    np.testing.assert_allclose(rows[:, column], np.clip(expected, -CLIP, CLIP), atol=1e-4)
    np.testing.assert_array_equal(features.of(SMILES), rows)


def test_without_an_atom_only_environments_that_contain_it_are_gone():
    molecule = Chem.MolFromSmiles("CCCO")
    whole = ecfp_counts(["CCCO"])[0].astype(int)
    without = counts_without_atoms(molecule).astype(int)
    assert without.shape == (4, 2048)
    # Radius 0: each atom is its own environment; the oxygen's is gone without the oxygen alone.
    output = rdFingerprintGenerator.AdditionalOutput()
    output.AllocateBitInfoMap()
    rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint(
        molecule, additionalOutput=output
    )
    (oxygen,) = (bit for bit, found in output.GetBitInfoMap().items() if (3, 0) in found)
    assert whole[oxygen] == 1
    assert without[:, oxygen].tolist() == [1, 1, 1, 0]
    # The environment of radius 1 around the first carbon contains atoms 0 and 1.
    (end,) = (bit for bit, found in output.GetBitInfoMap().items() if (0, 1) in found)
    assert (whole[end] - without[:, end]).tolist() == [1, 1, 0, 0]
    assert (without <= whole).all()


def test_the_nearest_molecule_is_rdkits_most_similar_one():
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    library = SMILES[1:]
    prints = [generator.GetFingerprint(Chem.MolFromSmiles(text)) for text in SMILES]
    index, similarity = nearest_by_tanimoto(packed(ecfp(SMILES)), packed(ecfp(library)))
    for row, own in enumerate(prints):
        known = DataStructs.BulkTanimotoSimilarity(own, prints[1:])
        assert similarity[row] == pytest.approx(max(known))
        assert index[row] == int(np.argmax(known))


def test_chunks_of_the_library_change_nothing(monkeypatch, rng):
    import graphsc.finetuning.features as module

    bits = (rng.random((50, 128)) < 0.3).astype(np.uint8)
    whole = nearest_by_tanimoto(packed(bits[:7]), packed(bits[7:]))
    monkeypatch.setattr(module, "_ROWS", 5)
    parts = nearest_by_tanimoto(packed(bits[:7]), packed(bits[7:]))
    np.testing.assert_array_equal(whole[0], parts[0])
    np.testing.assert_array_equal(whole[1], parts[1])


def test_an_empty_fingerprint_is_similar_to_nothing():
    none = packed(np.zeros((1, 128), np.uint8))
    assert nearest_by_tanimoto(none, none)[1].tolist() == [0.0]
