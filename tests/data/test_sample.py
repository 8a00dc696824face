"""A sample of any source: the same graphs whichever form it has."""

import numpy as np
import pytest

from graphsc.data.readers import open_collection
from graphsc.data.sampling import open_sample

pytest.importorskip("rdkit")
SMILES = ["C" * length + tail for length in range(1, 21) for tail in ("", "O", "N", "=O", "#N")]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "many.smi"
    path.write_text("\n".join(SMILES) + "\n")
    return path


def test_rows_of_a_file_are_those_of_the_whole_collection(file):
    of_rows = open_sample(file, 30, held_out=7, seed=2)
    of_all = open_sample(open_collection(file), 30, held_out=7, seed=2)
    assert of_rows.total == of_all.total == 100
    for part in ("training", "held_out"):
        one, two = getattr(of_rows, part), getattr(of_all, part)
        assert [int(identity) for identity in one.copy().ids] == two.copy().ids.tolist()
        np.testing.assert_array_equal(one.copy().edge_index, two.copy().edge_index)
        np.testing.assert_array_equal(one.copy().nodes.codes, two.copy().nodes.codes)
    assert (len(of_rows.training), len(of_rows.held_out)) == (30, 7)


def test_saved_collection_stays_mapped(file, tmp_path):
    open_collection(file).save(tmp_path / "many.safetensors")
    sample = open_sample(tmp_path / "many.safetensors", 30, held_out=7)
    assert not sample.training.edge_index.flags.owndata
    assert len(sample.training) == 30


def test_rows_without_a_molecule_leave_the_sample(tmp_path):
    path = tmp_path / "some.smi"
    path.write_text("\n".join("bad" if place % 4 == 0 else text for place, text in enumerate(SMILES)))
    sample = open_sample(path, 90, held_out=10)
    assert len(sample.training) + len(sample.held_out) == 75
    ids = [*sample.training.copy().ids, *sample.held_out.copy().ids]
    assert sorted(map(int, ids)) == [place for place in range(100) if place % 4]
    assert len(sample.training.rejected) == 25


def test_without_a_number_everything_is_read(file):
    sample = open_sample(file, held_out=5)
    assert (len(sample.training), len(sample.held_out), sample.total) == (95, 5, 100)


def test_ids_of_the_file_are_kept(tmp_path):
    path = tmp_path / "named.smi"
    path.write_text("\n".join(f"{text} M-{place}" for place, text in enumerate(SMILES)))
    assert all(identity.startswith("M-") for identity in open_sample(path, 20).training.copy().ids)
