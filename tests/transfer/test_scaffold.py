"""Scaffolds of molecules whose scaffold anyone can draw."""

from graphsc.finetuning.splits import groups_of, scaffolds_of


def test_side_chains_go_and_rings_with_their_linkers_stay():
    assert scaffolds_of(["CCc1ccccc1", "OC1CCCCC1", "c1ccccc1CCc1ccccc1"]) == [
        "c1ccccc1", "C1CCCCC1", "c1ccc(CCc2ccccc2)cc1",
    ]  # fmt: skip


def test_molecules_without_a_ring_share_the_empty_scaffold():
    assert scaffolds_of(["CCO", "CC(=O)O"]) == ["", ""]


def test_how_a_molecule_is_written_does_not_matter():
    one, other = scaffolds_of(["c1ccccc1CCN", "NCCC1=CC=CC=C1"])
    assert one == other == "c1ccccc1"


def test_chirality_tells_scaffolds_apart():
    left, right = scaffolds_of(["C[C@H]1CCC[C@@H](c2ccccc2)O1", "C[C@H]1CCC[C@H](c2ccccc2)O1"])
    assert left != right


def test_largest_group_first_and_of_equal_ones_the_one_that_begins_later():
    # a at 0, 3; b at 1; c at 2, 4, 5; d at 6, 7
    assert groups_of(list("abcaccdd")) == [[2, 4, 5], [6, 7], [0, 3], [1]]
