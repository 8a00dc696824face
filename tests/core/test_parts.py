"""Files computed in chunks: only what is missing or has changed, and nothing of other programs."""

import json
import os
import signal
from functools import partial

import pytest

from graphsc.core.errors import CannotWriteError, ConfigError, DataError, NotFoundError
from graphsc.core.files import StoppedError, write_atomic
from graphsc.core.parallel import Sendable
from graphsc.core.parts import (
    FileTask,
    check_parts,
    compute_file,
    compute_files,
    file_hash,
    find_parts,
    is_many,
    name_targets,
    source_changed,
)


class Upper(FileTask):
    """A text file in capital letters, some letters per chunk; a digit is an error of its chunk."""

    def __init__(self, path, target, *, chunk=4, version=1):
        super().__init__(str(path), target)
        self.path, self.chunk = path, chunk
        self.settings = {"version": version, "words": ("a", "b")}

    def fingerprint(self):
        return file_hash(self.path)

    def open(self):
        text = self.path.read_text()
        if not text:
            raise DataError("nothing to read", where=self.source)
        self.rows = len(text)

    def pieces(self, missing):
        text = self.path.read_text()
        for index in range(self.count):
            letters = text[index * self.chunk : (index + 1) * self.chunk]
            if index in missing and letters:
                yield index, letters

    def write(self, chunks, request):
        request.check("not written yet")
        content = b"".join(chunks.read(index) for index in range(self.count))
        if len(content) != self.rows:
            raise source_changed(self.source)
        self.check_source()
        write_atomic(self.target, content)
        self.summary = {"rows": self.rows}


def upper():
    """The function of a chunk, made here because workers cannot import this module."""

    def compute(shared, letters):
        from graphsc.core.errors import DataError

        seen = shared.get()
        seen.append(letters)
        if any(letter.isdigit() for letter in letters):
            raise DataError(f"{letters!r} has a digit")
        return letters.upper().encode(), {}

    return compute


def sendable(seen):
    """The list of computed chunks; a worker has a list of its own."""
    return Sendable(seen, lambda value, folder: (folder / "none").touch(), lambda folder: [])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "in").mkdir()
    for name, text in (("a.txt", "some letters"), ("b.txt", "other"), ("c.txt", "x")):
        (tmp_path / "in" / name).write_text(text)
    return tmp_path / "in"


def tasks_of(folder, **options):
    return [Upper(path, folder.parent / "out" / path.name, **options) for path in sorted(folder.iterdir())]


def compute(folder, **options):
    """Compute all files of a folder; gives the parts and the chunks that were computed."""
    seen = []
    parts = compute_files(tasks_of(folder, **options), upper(), sendable(seen))
    return parts, seen


def texts(folder):
    return {path.name: path.read_text() for path in (folder.parent / "out").iterdir() if path.name[0] != "."}


EXPECTED = {"a.txt": "SOME LETTERS", "b.txt": "OTHER", "c.txt": "X"}


def test_each_source_has_a_target(folder):
    parts, seen = compute(folder)
    assert texts(folder) == EXPECTED
    assert seen == ["some", " let", "ters", "othe", "r", "x"]
    assert [(part.summary["rows"], part.error, part.computed) for part in parts] == [
        (12, None, True), (5, None, True), (1, None, True),
    ]  # fmt: skip
    check_parts(parts)


def test_two_processes_write_the_same(folder):
    parts = compute_files(tasks_of(folder), upper(), sendable([]), jobs=2)
    assert texts(folder) == EXPECTED
    assert not any(part.error for part in parts)
    hidden = [path.name for path in (folder.parent / "out").iterdir() if path.name[0] == "."]
    assert hidden == [".graphsc-parts"]


def test_what_is_finished_is_not_computed_again(folder):
    compute(folder)
    parts, seen = compute(folder)
    assert seen == []
    assert [part.computed for part in parts] == [False, False, False]
    assert [part.summary["rows"] for part in parts] == [12, 5, 1]


def test_a_changed_source_is_computed_again_alone(folder):
    compute(folder)
    (folder / "b.txt").write_text("otter")
    _, seen = compute(folder)
    assert seen == ["otte", "r"]
    assert texts(folder) == {**EXPECTED, "b.txt": "OTTER"}


def test_other_settings_compute_all_again(folder):
    compute(folder)
    assert len(compute(folder, version=2)[1]) == 6


@pytest.mark.parametrize("damage", [lambda path: path.unlink(), lambda path: path.write_text("OTHE")])
def test_a_lost_or_altered_target_is_computed_again(folder, damage):
    compute(folder)
    damage(folder.parent / "out" / "b.txt")
    assert compute(folder)[1] == ["othe", "r"]
    assert texts(folder) == EXPECTED


@pytest.mark.parametrize("record", ["", "[]", "{", '{"identity": null}'])
def test_a_damaged_record_computes_its_file_again(folder, record):
    compute(folder)
    (folder.parent / "out" / ".graphsc-parts" / "b.txt.json").write_text(record)
    assert compute(folder)[1] == ["othe", "r"]


@pytest.mark.parametrize("text", ["", "four4our"])
def test_a_bad_file_is_named_and_the_others_finish(folder, text):
    (folder / "b.txt").write_text(text)
    said = []
    parts = compute_files(tasks_of(folder), upper(), sendable([]), log=said.append)
    assert texts(folder) == {"a.txt": "SOME LETTERS", "c.txt": "X"}
    assert [part.error is None for part in parts] == [True, False, True]
    assert len(said) == 1
    assert said[0].startswith(f"{folder / 'b.txt'}: failed: ")
    with pytest.raises(DataError, match="1 of 3 files failed"):
        check_parts(parts)
    (folder / "b.txt").write_text("other")
    assert compute(folder)[1] == ["othe", "r"]
    assert texts(folder) == EXPECTED


def test_a_file_of_another_program_is_not_overwritten(folder):
    out = folder.parent / "out"
    out.mkdir()
    (out / "b.txt").write_text("mine")
    (out / "notes.md").write_text("mine, too")
    parts, _ = compute(folder)
    assert "was not written from these parts" in parts[1].error
    assert texts(folder) == {**EXPECTED, "b.txt": "mine", "notes.md": "mine, too"}


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("files", [0, 1, 2])
def test_a_stop_keeps_finished_files_and_the_same_call_writes_the_rest(folder, files, jobs):
    def stop(done, total):
        assert total == 3
        if done == files:
            os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(StoppedError, match="of 3 files are written"):
        compute_files(tasks_of(folder), upper(), sendable([]), progress=stop, jobs=jobs)
    written = texts(folder) if files else {}
    assert len(written) >= files
    _, seen = compute(folder)
    assert texts(folder) == EXPECTED
    assert not any(text.lower().startswith(chunk) for chunk in seen for text in written.values())


def test_a_killed_file_resumes_from_its_chunks(folder):
    """A kill cannot clean up: the chunks that were stored before are used again."""

    def kill(done, total):
        if done == 8:
            raise KeyboardInterrupt

    task = partial(Upper, folder / "a.txt", folder.parent / "a.txt")
    with pytest.raises(KeyboardInterrupt):
        compute_file(task(), upper(), sendable([]), progress=kill)
    seen, reports = [], []
    compute_file(task(), upper(), sendable(seen), progress=lambda *report: reports.append(report))
    assert seen == ["ters"]
    assert reports == [(8, 12), (12, 12)]
    assert (folder.parent / "a.txt").read_text() == "SOME LETTERS"


@pytest.mark.parametrize("text", ["SOME letters", "some", "some letters and more"])
def test_a_source_that_is_replaced_meanwhile_is_refused(folder, text):
    def replace(done, total):
        if done == 4:
            (folder / "a.txt").write_text(text)

    with pytest.raises(DataError, match="changed while it was read"):
        compute_file(
            Upper(folder / "a.txt", folder.parent / "a.txt"), upper(), sendable([]), progress=replace
        )
    assert not (folder.parent / "a.txt").exists()


def test_a_folder_that_cannot_be_written_stops_all(folder):
    (folder.parent / "out").write_text("a file")
    with pytest.raises(CannotWriteError):
        compute(folder)


def test_a_record_says_what_a_target_was_computed_from(folder):
    compute(folder)
    record = json.loads((folder.parent / "out" / ".graphsc-parts" / "c.txt.json").read_text())
    assert record["identity"] == {
        "version": 1, "words": ["a", "b"], "source": file_hash(folder / "c.txt"),
    }  # fmt: skip
    assert record["target"] == file_hash(folder.parent / "out" / "c.txt")


# Names


def named(parts, out, ending=".csv"):
    return name_targets(parts, out, lambda path: path.stem + ending, (".csv", ".npz"), "letters")


def test_two_sources_of_one_name_are_refused(tmp_path):
    with pytest.raises(ConfigError, match=r"would both be written to a\.csv"):
        named([tmp_path / "x" / "a.csv", tmp_path / "x" / "a.smi"], tmp_path / "out")
    with pytest.raises(ConfigError, match="would both be written"):
        named([tmp_path / "x" / "a.csv", tmp_path / "y" / "a.csv"], tmp_path / "out")


def test_sources_in_the_folder_of_the_targets_are_refused(folder):
    with pytest.raises(ConfigError, match="in the folder of the targets"):
        named([folder / "a.txt"], folder)


def test_targets_of_another_format_are_refused(folder, tmp_path):
    with pytest.raises(ConfigError, match=r"cannot write letters to a \.xls file"):
        named([folder / "a.txt"], tmp_path / "out", ".xls")


def test_a_folder_gives_its_readable_files_and_a_pattern_all(folder):
    for name in (".hidden.txt", "README.md"):
        (folder / name).write_text("x")
    (folder / "deep.txt").mkdir()
    found = find_parts(folder, lambda path: path.suffix == ".txt")
    assert [path.name for path in found] == ["a.txt", "b.txt", "c.txt"]
    found = find_parts(f"{folder}/[ab]*", lambda path: False)
    assert [path.name for path in found] == ["a.txt", "b.txt"]
    assert len(find_parts(f"{folder.parent}/**/*.md", lambda path: False)) == 1
    for nothing in (f"{folder}/*.csv", folder / "deep.txt"):
        with pytest.raises(NotFoundError, match="no files to read"):
            find_parts(nothing, lambda path: False)


def test_a_pattern_means_many_files_and_a_folder_if_the_target_is_one(folder, tmp_path):
    endings = (".csv", ".npz")
    assert is_many(f"{folder}/*.txt", tmp_path / "out", endings)
    assert is_many(folder, tmp_path / "out", endings)
    assert is_many(folder, tmp_path / "v1.0", endings)
    assert not is_many(folder, tmp_path / "out.csv", endings)  # a TU folder, say
    assert not is_many("motifs:20", tmp_path / "out.csv", endings)
    (folder / "what[1].txt").write_text("x")
    assert not is_many(folder / "what[1].txt", tmp_path / "out.csv", endings)
    with pytest.raises(ConfigError, match="many files cannot be written to one"):
        is_many(f"{folder}/*.txt", tmp_path / "out.csv", endings)
