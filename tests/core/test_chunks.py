"""The chunk store: finished chunks survive a kill, all others are computed again."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress

import pytest

from graphsc.core.chunks import ChunkStore, open_chunks
from graphsc.core.errors import CannotWriteError, DamagedFileError

IDENTITY = {"source": "abc", "chunk": 2}


class StopError(Exception):
    pass


@pytest.fixture
def target(tmp_path):
    return tmp_path / "out.csv"


@contextmanager
def stopped(target, identity=IDENTITY):
    """Own the chunks inside the block, then leave by an error."""
    with suppress(StopError), open_chunks(target, identity) as store:
        yield store
        raise StopError


def interrupted(target, identity=IDENTITY, chunks=((0, b"zero"), (2, b"two"))):
    """Store some chunks, then leave by an error; gives the folder."""
    with stopped(target, identity) as store:
        for index, content in chunks:
            store.write(index, content, {"rows": len(content)})
    return store.folder


def found(target, identity=IDENTITY, total=3):
    """The chunks that the next call finds."""
    with stopped(target, identity) as store:
        indices = sorted(set(range(total)) - set(store.missing(total)))
        assert len(store) == len(indices)
        for index in indices:
            assert index in store
            assert store.read(index) == {0: b"zero", 2: b"two"}[index]
    return indices


def test_finished_chunks_are_found_again_in_any_order(target):
    interrupted(target, chunks=((2, b"two"), (0, b"zero")))
    assert found(target) == [0, 2]


def test_facts_are_read_without_the_bytes(target):
    with open_chunks(target, IDENTITY) as store:
        store.write(1, b"one", {"reasons": {"0": "empty"}, "rows": 3})
        store.path(1).unlink()
        assert store.facts(1) == {"reasons": {"0": "empty"}, "rows": 3}


def test_a_chunk_may_have_no_bytes(target):
    with stopped(target) as store:
        store.write(0, b"", {"rows": 5})
    assert not store.path(0).exists()
    with open_chunks(target, IDENTITY) as store:
        assert (store.missing(1), store.facts(0), store.read(0)) == ([], {"rows": 5}, b"")


def test_folder_is_removed_after_success_and_kept_after_an_error(target, tmp_path):
    folder = interrupted(target)
    assert folder == tmp_path / ".out.csv.chunks"
    assert folder.is_dir()
    with open_chunks(target, IDENTITY):
        pass
    assert list(tmp_path.iterdir()) == []


def test_removed_chunks_do_not_come_back(target, tmp_path):
    interrupted(target)
    with stopped(target) as store:
        store.remove()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda folder: (folder / "chunk-000000.bin").write_bytes(b"zerO"),
        lambda folder: (folder / "chunk-000000.bin").write_bytes(b"zer"),
        lambda folder: (folder / "chunk-000000.bin").unlink(),
        lambda folder: (folder / "chunk-000000.json").write_bytes(b""),
        lambda folder: (folder / "chunk-000000.json").write_bytes(b"[]"),
        lambda folder: (folder / "chunk-000000.json").write_bytes(b'{"facts": 3}'),
        lambda folder: (folder / "chunk-000000.json").unlink(),
        lambda folder: changed_facts(folder / "chunk-000000.json"),
    ],
    ids=["bytes", "short", "no bytes", "empty", "list", "no hash", "no record", "facts"],
)
def test_a_damaged_chunk_is_missing_and_its_files_are_removed(target, damage):
    folder = interrupted(target)
    damage(folder)
    assert found(target) == [2]
    assert sorted(path.name for path in folder.iterdir()) == [
        "chunk-000002.bin", "chunk-000002.json", "identity.json", "lock",
    ]  # fmt: skip


def changed_facts(path):
    record = json.loads(path.read_text())
    path.write_text(json.dumps(record | {"facts": record["facts"].replace("4", "5")}))


def test_a_chunk_that_is_damaged_after_opening_is_refused(target):
    with stopped(target) as store:
        store.write(0, b"zero")
        store.path(0).write_bytes(b"other")
        with pytest.raises(DamagedFileError, match="run the same command again"):
            store.read(0)


def test_a_chunk_of_another_position_or_folder_is_refused(target, tmp_path):
    folder = interrupted(target, chunks=((0, b"zero"),))
    other = interrupted(tmp_path / "other.csv", {"source": "xyz"}, ((2, b"two"),))
    for kind in ("bin", "json"):
        (folder / f"chunk-000000.{kind}").replace(folder / f"chunk-000001.{kind}")
        (other / f"chunk-000002.{kind}").replace(folder / f"chunk-000002.{kind}")
    assert found(target) == []


@pytest.mark.parametrize("identity", [{"source": "abd", "chunk": 2}, {"source": "abc"}, {}])
def test_chunks_of_another_identity_are_removed(target, identity):
    interrupted(target)
    assert found(target, identity) == []
    assert found(target) == []


def test_a_lost_identity_starts_anew(target):
    (interrupted(target) / "identity.json").unlink()
    assert found(target) == []


def test_stray_files_are_removed(target):
    folder = interrupted(target)
    (folder / ".chunk-000001.bin.1.2.tmp").write_bytes(b"half")
    (folder / "chunk-000001.bin").write_bytes(b"without a record")
    assert found(target) == [0, 2]
    assert not list(folder.glob("*1.*"))


def test_a_second_owner_is_refused_by_the_process_id(target, tmp_path):
    with open_chunks(target, IDENTITY) as store:
        store.write(0, b"zero")
        with (
            pytest.raises(CannotWriteError, match=f"being written by process {os.getpid()} .*out.csv"),
            open_chunks(target, IDENTITY),
        ):
            pass
        assert store.read(0) == b"zero"


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotWriteError, match="cannot write"), open_chunks(tmp_path / "file" / "out", {}):
        pass


WRITER = """
import sys
from pathlib import Path
from graphsc.core.chunks import open_chunks
with open_chunks(Path(sys.argv[1]), {"source": "abc"}) as chunks:
    for index in chunks.missing(100_000):
        chunks.write(index, bytes([index % 251]) * 5_000, {"index": index})
"""


def test_a_killed_writer_loses_at_most_the_chunk_at_hand(target):
    folder = ChunkStore(target, {}).folder
    for _ in range(3):
        before = len(list(folder.glob("chunk-*.json")))
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(target)])
        until = time.monotonic() + 60
        while len(list(folder.glob("chunk-*.json"))) < before + 20:
            assert writer.poll() is None
            assert time.monotonic() < until
            time.sleep(0.001)
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        records = len(list(folder.glob("chunk-*.json")))
        with stopped(target, {"source": "abc"}) as store:
            assert len(store) == records
            for index in range(records):
                assert store.read(index) == bytes([index % 251]) * 5_000
                assert store.facts(index) == {"index": index}
        assert not list(folder.glob("*.tmp"))
