import os
import signal
import stat
import subprocess
import sys
import threading

import pytest

from graphsc.core.errors import CannotWriteError
from graphsc.core.files import (
    InUseError,
    StoppedError,
    atomic_write,
    check_writable,
    file_lock,
    file_name,
    lock_owner,
    process_alive,
    remove_stray_files,
    stop_requests,
    write_atomic,
)

WRITE_AND_HANG = """
import sys, time
from graphsc.core.files import atomic_write
with atomic_write(sys.argv[1]) as file:
    file.write(b"half of the new")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def writer(tmp_path):
    """A process in the middle of writing over `tmp_path / "result"`."""
    (tmp_path / "result").write_bytes(b"old")
    command = [sys.executable, "-c", WRITE_AND_HANG, str(tmp_path / "result")]
    child = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"writing\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_content_is_on_the_disk_before_its_name_and_the_name_at_the_end(tmp_path, monkeypatch):
    seen = []

    def fsync(handle):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        seen.append((is_folder, (tmp_path / "a").exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(tmp_path / "a", b"content")
    assert seen == [(False, False), (True, True)]  # the file, then its folder


def test_a_killed_writer_leaves_the_old_file_and_a_stray_one_that_is_removed(tmp_path, writer):
    assert remove_stray_files(tmp_path) == [], "the writer is alive, its file is not a stray"
    assert len(names(tmp_path)) == 2

    writer.send_signal(signal.SIGKILL)
    writer.wait()
    assert (tmp_path / "result").read_bytes() == b"old"
    assert len(names(tmp_path)) == 2

    removed = remove_stray_files(tmp_path)
    assert [path.name.startswith(".result.") for path in removed] == [True]
    assert names(tmp_path) == ["result"]


def test_content_is_written(tmp_path):
    write_atomic(tmp_path / "a", b"\x00new")
    assert (tmp_path / "a").read_bytes() == b"\x00new"
    assert names(tmp_path) == ["a"]


def test_text_is_written_as_utf8(tmp_path):
    write_atomic(tmp_path / "a", "é")
    assert (tmp_path / "a").read_bytes() == b"\xc3\xa9"


def test_missing_folders_are_created(tmp_path):
    write_atomic(tmp_path / "deep" / "er" / "a", b"new")
    assert (tmp_path / "deep" / "er" / "a").read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_an_exception_inside_the_block_leaves_the_old_file_and_nothing_else(tmp_path, error):
    (tmp_path / "a").write_bytes(b"old")

    def write():
        with atomic_write(tmp_path / "a") as file:
            file.write(b"half of the new")
            raise error

    with pytest.raises(error):
        write()
    assert (tmp_path / "a").read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_the_file_appears_when_the_block_ends(tmp_path):
    with atomic_write(tmp_path / "a") as file:
        file.write(b"new")
        file.flush()
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").exists()


def test_a_failed_rename_leaves_no_temporary_file(tmp_path):
    (tmp_path / "a").mkdir()
    with pytest.raises(CannotWriteError, match="Is a directory"):
        write_atomic(tmp_path / "a", b"new")
    assert names(tmp_path) == ["a"]


def test_an_open_reader_keeps_the_old_content(tmp_path):
    write_atomic(tmp_path / "a", b"old")
    with open(tmp_path / "a", "rb") as reader:
        write_atomic(tmp_path / "a", b"new")
        assert reader.read() == b"old"


def test_two_threads_writing_one_file_do_not_mix(tmp_path):
    both_open = threading.Barrier(2)
    problems = []

    def write(content):
        try:
            with atomic_write(tmp_path / "a") as file:
                both_open.wait(10)
                file.write(content)
                file.flush()
                both_open.wait(10)
        except OSError as error:
            problems.append(error)

    threads = [threading.Thread(target=write, args=(letter * 1000,)) for letter in (b"x", b"y")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert problems == []
    assert (tmp_path / "a").read_bytes() in (b"x" * 1000, b"y" * 1000)


def test_only_temporary_files_of_dead_processes_are_strays(tmp_path):
    dead, alive = 99_999_999, os.getpid()  # no system counts its processes that far
    ours = f".a.1.{dead}.tmp"
    others = [
        f".a.1.{alive}.tmp",
        ".a.tmp",
        f"a.{dead}.tmp",
        f".a.{dead}.txt",
        ".a.99999999999999999999.tmp",
    ]
    for name in [ours, *others]:
        (tmp_path / name).touch()
    assert [path.name for path in remove_stray_files(tmp_path)] == [ours]
    assert names(tmp_path) == sorted(others)


def test_a_missing_folder_has_no_strays(tmp_path):
    assert remove_stray_files(tmp_path / "nowhere") == []


def test_this_process_is_alive():
    assert process_alive(os.getpid())


def test_a_process_of_another_user_is_alive():
    assert process_alive(1)


def test_the_next_write_removes_the_temporary_file_of_a_dead_writer(tmp_path, writer):
    writer.kill()
    writer.wait()
    (tmp_path / ".other.1.999999999.tmp").write_bytes(b"of another file")
    assert len(names(tmp_path)) == 3
    write_atomic(tmp_path / "result", b"new")
    assert names(tmp_path) == [".other.1.999999999.tmp", "result"]


def test_check_writable_leaves_no_file(tmp_path):
    check_writable(tmp_path / "a")
    assert names(tmp_path) == []


def test_check_writable_refuses_a_folder(tmp_path):
    with pytest.raises(CannotWriteError, match="Is a directory"):
        check_writable(tmp_path)


def test_a_signal_is_known_to_inner_and_outer_blocks():
    before = signal.getsignal(signal.SIGTERM)
    with stop_requests() as outer:
        outer.check("nothing yet")
        with stop_requests():
            signal.raise_signal(signal.SIGTERM)
        with stop_requests() as later, pytest.raises(StoppedError, match="later"):
            later.check("later")
        with pytest.raises(StoppedError, match="outer"):
            outer.check("outer")
    assert signal.getsignal(signal.SIGTERM) is before
    with stop_requests() as other:
        other.check("the signal was for another block")


def test_a_lock_that_is_a_link_leaves_its_target_as_it_is(tmp_path):
    (tmp_path / "victim").write_text("precious")
    (tmp_path / "lock").symlink_to(tmp_path / "victim")
    with pytest.raises(CannotWriteError, match="symbolic link"), file_lock(tmp_path / "lock"):
        pass
    assert (tmp_path / "victim").read_text() == "precious"
    (tmp_path / "dangling").symlink_to(tmp_path / "new")
    with pytest.raises(CannotWriteError, match="symbolic link"), file_lock(tmp_path / "dangling"):
        pass
    assert not (tmp_path / "new").exists()


def test_a_refused_lock_leaves_the_file_as_it_is(tmp_path):
    with file_lock(tmp_path / "lock"):
        before = (tmp_path / "lock").read_text()
        assert before == str(os.getpid())
        with pytest.raises(InUseError, match=rf"in use by process {before} \(.*lock\)") as refused:
            file_lock(tmp_path / "lock").__enter__()
        assert refused.value.exit_code == 2
        assert (tmp_path / "lock").read_text() == before


@pytest.mark.parametrize("kind", ["pipe", "link to a pipe"])
def test_what_is_no_file_is_never_replaced(tmp_path, kind):
    """A superuser could replace /dev/null or /dev/full by a file."""
    os.mkfifo(tmp_path / "pipe")
    target = tmp_path / "pipe"
    if kind != "pipe":
        target = tmp_path / "link"
        target.symlink_to(tmp_path / "pipe")
    for write in (lambda: write_atomic(target, b"x"), lambda: check_writable(target)):
        with pytest.raises(CannotWriteError, match="cannot write: this is no regular file"):
            write()
    assert (tmp_path / "pipe").is_fifo()
    assert len(list(tmp_path.iterdir())) == (1 if kind == "pipe" else 2)


@pytest.mark.parametrize(
    ("text", "expected"),
    [("motifs:60", "motifs-60"), ("a/b\\c", "a-b-c"), ('x<>"|?*', "x------"), ("end. ", "end"), ("..", "-")],
)
def test_any_text_becomes_a_file_name_that_every_system_takes(text, expected):
    assert file_name(text) == expected


def test_the_owner_of_a_lock_is_known_without_taking_it(tmp_path):
    assert lock_owner(tmp_path / "lock") is None
    with file_lock(tmp_path / "lock"):
        assert lock_owner(tmp_path / "lock") == str(os.getpid())
    assert lock_owner(tmp_path / "lock") is None
