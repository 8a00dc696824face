"""Evenly spread training and held-out graphs."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphsc.core.errors import ConfigError
from graphsc.data.readers import open_collection
from graphsc.data.sampling import open_sample, sample_evenly, split_positions


@given(total=st.integers(1, 400), share=st.floats(0, 1), seed=st.integers(0, 9))
def test_one_position_from_each_interval_of_equal_length(total, share, seed):
    count = int(share * total)
    found = sample_evenly(total, count, np.random.default_rng(seed))
    assert len(found) == count
    for index, position in enumerate(found):
        assert index * total // count <= position < (index + 1) * total // count


@given(total=st.integers(10, 500), share=st.floats(0.01, 1), held_out=st.integers(0, 60))
def test_parts_are_disjoint_ascending_and_of_the_requested_size(total, share, held_out):
    apart = min(held_out, total // 10)
    training = max(1, int(share * (total - apart)))
    found = split_positions(total, training, held_out, 0)
    assert (len(found.training), len(found.held_out)) == (training, apart)
    both = np.concatenate(found)
    assert len(np.unique(both)) == len(both)
    assert both.min(initial=0) >= 0
    assert both.max() < total
    for part in found:
        assert (np.diff(part) > 0).all()


def test_without_a_number_all_others_are_for_training():
    found = split_positions(1000, None, 50, 3)
    np.testing.assert_array_equal(np.sort(np.concatenate(found)), np.arange(1000))


def test_held_out_graphs_come_from_everywhere():
    found = split_positions(100_000, None, 100, 0).held_out
    assert np.bincount(found // 10_000, minlength=10).tolist() == [10] * 10


def test_the_seed_decides_the_split():
    one, again, other = (split_positions(500, 100, 20, seed) for seed in (0, 0, 1))
    assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True))
    assert not np.array_equal(one.training, other.training)


@pytest.mark.parametrize(("training", "held_out"), [(0, 5), (96, 5), (-3, 0), (5, -1)])
def test_impossible_numbers_are_refused(training, held_out):
    with pytest.raises(ConfigError, match=r"ask for 1 to 95|negative|ask for 1 to 100"):
        split_positions(100, training, held_out, 0)


# Samples of a source


SMILES = ["C" * length + tail for length in range(1, 21) for tail in ("", "O", "N", "=O", "#N")]


@pytest.fixture
def rdkit():
    pytest.importorskip("rdkit")


@pytest.fixture
def file(tmp_path, rdkit):
    path = tmp_path / "many.smi"
    path.write_text("\n".join(SMILES) + "\n")
    return path


def test_rows_of_a_file_are_those_of_the_whole_collection(file):
    of_rows = open_sample(file, 30, held_out=7, seed=2)
    of_all = open_sample(open_collection(file), 30, held_out=7, seed=2)
    assert of_rows.total == of_all.total == 100
    for part in ("training", "held_out"):
        one, two = getattr(of_rows, part), getattr(of_all, part)
        assert [int(graph_id) for graph_id in one.copy().ids] == two.copy().ids.tolist()
        np.testing.assert_array_equal(one.copy().edge_index, two.copy().edge_index)
        np.testing.assert_array_equal(one.copy().nodes.codes, two.copy().nodes.codes)
    assert (len(of_rows.training), len(of_rows.held_out)) == (30, 7)


def test_saved_collection_stays_mapped(file, tmp_path):
    open_collection(file).save(tmp_path / "many.safetensors")
    sample = open_sample(tmp_path / "many.safetensors", 30, held_out=7)
    assert not sample.training.edge_index.flags.owndata
    assert len(sample.training) == 30


def test_rejected_rows_are_not_in_the_sample(tmp_path, rdkit):
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


def test_ids_of_the_file_are_kept(tmp_path, rdkit):
    path = tmp_path / "named.smi"
    path.write_text("\n".join(f"{text} M-{place}" for place, text in enumerate(SMILES)))
    assert all(graph_id.startswith("M-") for graph_id in open_sample(path, 20).training.copy().ids)
