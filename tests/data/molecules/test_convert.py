"""Conversion in chunks: the same bytes after any interruption, and nothing left behind."""

import json
import subprocess
import sys
from contextlib import contextmanager
from itertools import islice

import numpy as np
import pytest

from graphsc import GraphBatch, GraphCollection, open_collection
from graphsc.core.chunks import ChunkStore
from graphsc.core.errors import CannotWriteError, ConfigError, DataError, GraphscError
from graphsc.core.files import file_lock
from graphsc.core.parallel import run_parallel
from graphsc.data import storage
from graphsc.data.molecules import conversion
from graphsc.data.molecules.conversion import convert_smiles

pytest.importorskip("rdkit")

SMILES = ["C" * (1 + k % 9) + ("=O" if k % 3 else "#N") for k in range(230)]


@pytest.fixture
def table(tmp_path):
    rows = [f"m{k},{smiles},{k % 2 if k % 5 else ''}" for k, smiles in enumerate(SMILES)]
    rows[7] = "m7,bad,1"
    (tmp_path / "m.csv").write_text("\n".join(["id,smiles,y", *rows]) + "\n")
    return tmp_path / "m.csv"


OPTIONS = {"label_columns": "y", "id_column": "id", "chunk": 50}


def left_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_file_is_what_reading_and_saving_gives(table, tmp_path):
    done = convert_smiles(table, tmp_path / "a.safetensors", **OPTIONS, workers=1)
    collection = open_collection(table, label_columns="y", id_column="id")
    collection.save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert (done.graphs, done.rows, done.rejected) == (229, 230, 1)
    assert done.content_hash == collection.content_hash
    assert left_in(tmp_path) == ["a.rejected.csv", "a.safetensors", "b.safetensors", "m.csv"]


def test_number_of_workers_and_size_of_chunks_do_not_show(table, tmp_path):
    convert_smiles(table, tmp_path / "a.safetensors", **OPTIONS, workers=2)
    convert_smiles(table, tmp_path / "b.safetensors", **{**OPTIONS, "chunk": 1000}, workers=1)
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    assert (tmp_path / "a.rejected.csv").read_bytes() == (tmp_path / "b.rejected.csv").read_bytes()


def test_wide_labels_and_large_molecules_in_one_chunk_only(tmp_path):
    """Types of the file are the widest of all chunks: 64-bit labels, 16-bit node ids."""
    rows = ["C,1"] * 5 + ["C,0.1"] + [f"{'C' * 300},1"] + ["C,0"] * 3
    (tmp_path / "m.csv").write_text("\n".join(["smiles,y", *rows]))
    convert_smiles(tmp_path / "m.csv", tmp_path / "a.safetensors", label_columns="y", chunk=4, workers=1)
    open_collection(tmp_path / "m.csv", label_columns="y").save(tmp_path / "b.safetensors")
    assert (tmp_path / "a.safetensors").read_bytes() == (tmp_path / "b.safetensors").read_bytes()
    opened = GraphCollection.open(tmp_path / "a.safetensors")
    assert (opened.edge_index.dtype, opened.labels.dtype) == (np.uint16, np.float64)
    opened.check()


def test_chunk_without_a_molecule_is_skipped(tmp_path):
    (tmp_path / "m.smi").write_text("C\nO\nbad\nworse\nN\nF\n")
    done = convert_smiles(tmp_path / "m.smi", tmp_path / "a.safetensors", chunk=2, workers=1)
    assert done.graphs == 4
    assert GraphCollection.open(done.path).ids.tolist() == [0, 1, 4, 5]


class StopError(Exception):
    pass


def stopped_after(table, target, rows):
    """Convert until so many rows are done, then fail with an unexpected error."""

    def progress(done, _):
        if done >= rows:
            raise StopError

    with pytest.raises(StopError):
        convert_smiles(table, target, **OPTIONS, workers=1, progress=progress)
    return ChunkStore(target, {})


def resume(table, target):
    seen = []
    convert_smiles(
        table, target, **OPTIONS, workers=1, progress=lambda done, total: seen.append((done, total))
    )
    return seen


@pytest.fixture
def whole(table, tmp_path):
    convert_smiles(table, tmp_path / "whole.safetensors", **OPTIONS, workers=1)
    return (tmp_path / "whole.safetensors").read_bytes()


class TestResume:
    def test_finished_chunks_are_not_converted_again(self, table, tmp_path, whole):
        target = tmp_path / "a.safetensors"
        stopped_after(table, target, 100)
        assert not target.exists()
        assert resume(table, target) == [(100, 230), (150, 230), (200, 230), (230, 230)]
        assert target.read_bytes() == whole
        assert not list(tmp_path.glob(".*"))

    @pytest.mark.parametrize("damage", ["content", "facts", "no facts", "no content"])
    def test_damaged_chunks_are_converted_again(self, table, tmp_path, whole, damage):
        target = tmp_path / "a.safetensors"
        chunk = stopped_after(table, target, 100).path(0)
        record = chunk.with_suffix(".json")
        if damage == "content":
            content = bytearray(chunk.read_bytes())
            content[-1] ^= 1
            chunk.write_bytes(content)
        elif damage == "facts":
            stored = json.loads(record.read_text())
            record.write_text(json.dumps(stored | {"facts": stored["facts"].replace("bad", "sad")}))
        else:
            (record if damage == "no facts" else chunk).unlink()
        assert resume(table, target)[0] == (50, 230)
        assert target.read_bytes() == whole

    def test_chunks_of_another_source_are_removed(self, table, tmp_path, whole):
        target = tmp_path / "a.safetensors"
        stopped_after(table, target, 100)
        table.write_text(table.read_text().replace("m3,CCCC", "m3,CCCCN"))
        assert resume(table, target)[0] == (0, 230)
        assert target.read_bytes() != whole

    def test_chunks_of_other_options_are_removed(self, table, tmp_path):
        target = tmp_path / "a.safetensors"
        stopped_after(table, target, 100)
        done = convert_smiles(table, target, id_column="id", chunk=50, workers=1)
        assert GraphCollection.open(done.path).labels is None


def test_two_at_once_are_refused(table, tmp_path):
    target = tmp_path / "a.safetensors"
    with (
        file_lock(ChunkStore(target, {}).folder / "lock"),
        pytest.raises(CannotWriteError, match="being written by"),
    ):
        convert_smiles(table, target, **OPTIONS, workers=1)


@pytest.mark.parametrize("workers", [1, 2])
def test_strict_leaves_only_finished_chunks(table, tmp_path, workers, whole):
    """They are what the command without `strict` need not convert again."""
    target = tmp_path / "a.safetensors"
    with pytest.raises(DataError, match="row 7 holds no molecule"):
        convert_smiles(table, target, **OPTIONS, strict=True, workers=workers)
    assert not target.exists()
    assert not (tmp_path / "a.rejected.csv").exists()
    assert resume(table, target)[0][0] >= 50
    assert target.read_bytes() == whole


def test_results_that_end_early_keep_finished_chunks(table, tmp_path, monkeypatch, whole):
    """joblib may end without an error when a worker is killed."""

    @contextmanager
    def two_results(*arguments, **options):
        with run_parallel(*arguments, **options) as results:
            yield islice(results, 2)

    target = tmp_path / "a.safetensors"
    with monkeypatch.context() as patch:
        patch.setattr(conversion, "run_parallel", two_results)
        with pytest.raises(GraphscError, match=r"3 of 5 chunks are missing.*run the same command again"):
            convert_smiles(table, target, **OPTIONS, workers=1)
    assert resume(table, target)[0] == (100, 230)
    assert target.read_bytes() == whole


class TestListOfRejected:
    OWN = "row,line,smiles,reason,mine\n3,4,CC,typo,1\n"

    def test_a_file_of_that_name_that_is_not_a_list_is_left_alone(self, tmp_path):
        (tmp_path / "a.rejected.csv").write_text(self.OWN)
        convert_smiles(SMILES, tmp_path / "a.safetensors", workers=1)
        assert (tmp_path / "a.rejected.csv").read_text() == self.OWN

    def test_it_is_not_replaced_either(self, table, tmp_path, whole):
        target = tmp_path / "a.safetensors"
        (tmp_path / "a.rejected.csv").write_text(self.OWN)
        with pytest.raises(ConfigError, match=r"did not write \(.*a\.rejected\.csv\); move it"):
            convert_smiles(table, target, **OPTIONS, workers=1)
        assert (tmp_path / "a.rejected.csv").read_text() == self.OWN
        assert not target.exists()
        (tmp_path / "a.rejected.csv").unlink()
        assert resume(table, target) == [(230, 230)]
        assert target.read_bytes() == whole

    def test_a_name_that_is_asked_for_is_written(self, table, tmp_path):
        (tmp_path / "own.csv").write_text("old")
        convert_smiles(table, tmp_path / "a.safetensors", **OPTIONS, rejected=tmp_path / "own.csv", workers=1)
        assert (tmp_path / "own.csv").read_text().splitlines()[1:] == ["7,9,bad,not a SMILES string,m7"]


def test_list_of_rejects_of_an_earlier_source_goes(table, tmp_path):
    convert_smiles(table, tmp_path / "a.safetensors", **OPTIONS, workers=1)
    convert_smiles(SMILES, tmp_path / "a.safetensors", chunk=100, workers=1)
    assert left_in(tmp_path) == ["a.safetensors", "m.csv"]


def test_workers_do_not_import_torch():
    """Otherwise each would take seconds to start, and hundreds of megabytes."""
    code = """
import sys
from graphsc.core.parallel import _run_piece
from graphsc.data.molecules.conversion import Plan, _convert_chunk
from graphsc.data.molecules.rows import open_rows, pack
plan = Plan("m", "auto", (), {}, False, 9, 9)
_convert_chunk(plan, (0, pack(list(open_rows(["CCO"]).rows()))))
assert "torch" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("change", ["shorter", "same length"])
def test_a_source_that_changes_while_it_is_read_is_refused(table, tmp_path, change):
    def progress(done, _):
        if done == 0:
            lines = table.read_text().splitlines()
            lines = lines[:60] if change == "shorter" else [*lines[:200], "m,CC,1", *lines[201:]]
            table.write_text("\n".join(lines) + "\n")

    with pytest.raises(DataError, match="the source changed while it was read"):
        convert_smiles(table, tmp_path / "a.safetensors", **OPTIONS, workers=1, progress=progress)
    assert left_in(tmp_path) == ["m.csv"]


def test_batches_come_from_a_map_whose_blocks_are_verified_when_touched(table, tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "WHOLE_LIMIT", 0)
    convert_smiles(table, tmp_path / "a.safetensors", **OPTIONS, workers=1)
    opened = GraphCollection.open(tmp_path / "a.safetensors")
    batch = GraphBatch.gather(opened, np.array([3, 100]))
    assert batch.num_nodes == int(np.diff(opened.node_ptr)[[3, 100]].sum())
