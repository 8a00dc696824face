"""Splits against an independent reference, on molecules by hand and on real ones."""

import numpy as np
import pytest

from graphsc.core.errors import ConfigError, DamagedFileError, DataError
from graphsc.data.datasets.catalog import NAMED, find
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.splits import (
    TEST,
    TRAIN,
    VALID,
    groups_of,
    read_split,
    scaffolds_of,
    split_molecules,
    write_split,
)

# Ten molecules: five benzenes, two cyclohexanes, one pyridine, one furan, one thiophene.
TEN = [
    "c1ccoc1", "Cc1ccccc1", "C1CCCCC1", "CCc1ccccc1", "Oc1ccccc1", "CC1CCCCC1", "Nc1ccccc1", "c1ccncc1",
    "Fc1ccccc1", "c1ccsc1",
]  # fmt: skip


def reference(smiles):
    """The scaffold split by another route: a sorted list of scaffolds and three lists."""
    from rdkit import Chem
    from rdkit.Chem.Scaffolds import MurckoScaffold

    members = {}
    for position, text in enumerate(smiles):
        molecule = Chem.MolFromSmiles(Chem.MolToSmiles(Chem.MolFromSmiles(text)))
        core = MurckoScaffold.GetScaffoldForMol(molecule)
        members.setdefault(Chem.MolToSmiles(core, isomericSmiles=True), []).append(position)
    order = sorted(members, key=lambda core: (-len(members[core]), -members[core][0]))
    limit_train, limit_valid = 0.8 * len(smiles), 0.9 * len(smiles)
    train, valid, test = [], [], []
    for core in order:
        some = members[core]
        if len(train) + len(some) > limit_train:
            if len(train) + len(valid) + len(some) > limit_valid:
                test.extend(some)
            else:
                valid.extend(some)
        else:
            train.extend(some)
    return sorted(train), sorted(valid), sorted(test)


def positions(parts):
    return tuple(np.flatnonzero(parts == part).tolist() for part in (TRAIN, VALID, TEST))


def test_scaffold_split_of_ten_molecules_by_hand():
    # Benzenes (5), then cyclohexanes (2) make 7 of at most 8; of the single ones the last goes first: the
    # thiophene trains (8), the pyridine (position 7) validates, the furan (position 0) tests.
    train, valid, test = positions(split_molecules(TEN))
    assert train == [1, 2, 3, 4, 5, 6, 8, 9]
    assert valid == [7]
    assert test == [0]
    assert (train, valid, test) == reference(TEN)


def test_a_group_too_large_for_train_goes_to_valid():
    # Six benzenes fit train (at most 8). Three cyclohexanes would make 9 and go to valid, where 9 <= 9 holds.
    # The single thiophene still fits train.
    smiles = ["c1ccccc1" + "C" * n for n in range(6)] + ["C1CCCCC1" + "C" * n for n in range(3)] + ["c1ccsc1"]
    train, valid, test = positions(split_molecules(smiles))
    assert (train, valid, test) == ([0, 1, 2, 3, 4, 5, 9], [6, 7, 8], [])
    assert (train, valid, test) == reference(smiles)


def test_scaffold_split_ignores_the_seed():
    np.testing.assert_array_equal(split_molecules(TEN, seed=1), split_molecules(TEN, seed=2))


@pytest.mark.realdata
def test_scaffold_split_of_bbbp_equals_the_reference():
    if find(NAMED["bbbp"]) is None:
        pytest.skip("BBBP is not on this machine")
    smiles = read_dataset("bbbp").smiles
    parts = split_molecules(smiles)
    assert np.bincount(parts).tolist() == [1631, 204, 204]
    assert positions(parts) == reference(smiles)


def test_random_scaffold_split_keeps_scaffolds_together_and_follows_the_seed():
    smiles = ["C" * size + f"C1{'C' * ring}C1" for ring in range(1, 21) for size in range(3)]
    drawn = [split_molecules(smiles, "random-scaffold", seed) for seed in (0, 0, 1, 2, 3)]
    np.testing.assert_array_equal(drawn[0], drawn[1])
    assert len({tuple(parts) for parts in drawn}) > 1
    scaffolds = np.array(scaffolds_of(smiles))
    for parts in drawn:
        for scaffold in set(scaffolds):
            assert len(set(parts[scaffolds == scaffold])) == 1
        # 60 molecules in groups of three: at most 6 on each side.
        assert (parts == VALID).sum() <= 6
        assert (parts == TEST).sum() <= 6
        assert (parts == VALID).any()


def test_random_split_is_80_10_10_and_follows_the_seed():
    smiles = ["C" * k for k in range(1, 101)]
    one, other = split_molecules(smiles, "random", 0), split_molecules(smiles, "random", 1)
    assert np.bincount(one).tolist() == [80, 10, 10]
    assert not np.array_equal(one, other)


def test_too_few_molecules_and_unknown_splits_are_refused():
    with pytest.raises(DataError, match="cannot be split"):
        split_molecules(["C", "CC"])
    with pytest.raises(ConfigError, match="unknown split"):
        split_molecules(TEN, "by colour")


def test_split_file_is_read_back_and_checks_its_rows(tmp_path):
    rows, parts = np.array([0, 2, 5]), np.array([TRAIN, TEST, VALID])
    write_split(tmp_path / "split.csv", rows, parts)
    lines = (tmp_path / "split.csv").read_text().splitlines()
    assert [line.rpartition(",")[0] for line in lines] == ["row,part", "0,train", "2,test", "5,valid"]
    np.testing.assert_array_equal(read_split(tmp_path / "split.csv", rows), parts)
    with pytest.raises(DamagedFileError, match="other rows"):
        read_split(tmp_path / "split.csv", np.array([0, 2, 6]))
    (tmp_path / "split.csv").write_text("row,part\n0,train\n2,test\n5,valid\n")  # of an older version
    np.testing.assert_array_equal(read_split(tmp_path / "split.csv", rows), parts)
    (tmp_path / "split.csv").write_text("\n".join(lines).replace("test", "valid"))
    with pytest.raises(DamagedFileError, match="row 2 does not match its check"):
        read_split(tmp_path / "split.csv", rows)
    (tmp_path / "split.csv").write_text("row,part\n0,nowhere\n")
    with pytest.raises(DamagedFileError, match="not a split"):
        read_split(tmp_path / "split.csv", rows)


def test_scaffolds_are_rings_and_their_linkers_without_side_chains():
    assert scaffolds_of(["CCc1ccccc1", "OC1CCCCC1", "c1ccccc1CCc1ccccc1"]) == [
        "c1ccccc1", "C1CCCCC1", "c1ccc(CCc2ccccc2)cc1",
    ]  # fmt: skip


def test_molecules_without_a_ring_have_the_empty_scaffold():
    assert scaffolds_of(["CCO", "CC(=O)O"]) == ["", ""]


def test_scaffolds_do_not_depend_on_the_notation():
    one, other = scaffolds_of(["c1ccccc1CCN", "NCCC1=CC=CC=C1"])
    assert one == other == "c1ccccc1"


def test_chirality_tells_scaffolds_apart():
    left, right = scaffolds_of(["C[C@H]1CCC[C@@H](c2ccccc2)O1", "C[C@H]1CCC[C@H](c2ccccc2)O1"])
    assert left != right


def test_groups_are_sorted_by_size_then_by_first_position_descending():
    # a at 0, 3; b at 1; c at 2, 4, 5; d at 6, 7
    assert groups_of(list("abcaccdd")) == [[2, 4, 5], [6, 7], [0, 3], [1]]
