"""Files that are computed in chunks, one or many, in this process, in local processes or on a cluster.

A `FileTask` turns one source into one target. Its chunks are computed by a function that may run anywhere.
Only this process reads sources (unless a task sends paths), stores finished chunks (`core/chunks.py`) and
writes targets. So workers need no access to its files, and a stop or a kill loses one chunk per worker.

With many files, the folder of the targets has a hidden folder `.graphsc-parts`. It has one record per target:
the identity of the computation and the hash of the file. A target whose record matches is not computed again.
"""

from __future__ import annotations

import glob
import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Generic, TypeVar

from graphsc.core.chunks import ChunkStore, Facts, MemoryChunks, open_chunks
from graphsc.core.errors import (
    CannotWriteError,
    ConfigError,
    DamagedFileError,
    DataError,
    GraphscError,
    NotFoundError,
)
from graphsc.core.files import (
    StoppedError,
    StopRequest,
    check_writable,
    read_json,
    stop_requests,
    write_json,
)
from graphsc.core.parallel import Sendable, Shared, Value, run_parallel, share, use_cluster
from graphsc.core.registry import require

Payload = TypeVar("Payload")
Answer = tuple[bytes, Facts]  # the bytes and the facts of a chunk
Progress = Callable[[int, int], None]  # done, in total: rows of one file, or files

RECORDS = ".graphsc-parts"


class FileTask(ABC, Generic[Payload]):
    """One target that is computed from one source, chunk by chunk."""

    def __init__(self, source: str, target: Path) -> None:
        self.source = source
        self.target = target
        self.rows = 0  # set by `open`
        self.chunk = 1  # rows per chunk
        self.settings: Facts = {}  # with `fingerprint`, all that decides the bytes of the target
        self.summary: dict[str, object] = {}  # set by `write`

    @abstractmethod
    def fingerprint(self) -> str:
        """A hash of the source as it is now."""

    @abstractmethod
    def open(self) -> None:
        """Read through the source once and set `rows`."""

    @abstractmethod
    def pieces(self, missing: Collection[int]) -> Iterator[tuple[int, Payload]]:
        """Index and content of the missing chunks, in order; called once."""

    @abstractmethod
    def write(self, chunks: ChunkStore, request: StopRequest) -> None:
        """Write the target from all chunks, atomically, and set `summary`."""

    @cached_property
    def source_hash(self) -> str:
        """Hash of the source when it was first asked for."""
        return self.fingerprint()

    def start(self) -> str:
        """Hash the source, and then read through it once; gives the hash."""
        source_hash = self.source_hash
        self.open()
        return source_hash

    def check_source(self) -> None:
        """Refuse a source that was replaced meanwhile."""
        if self.fingerprint() != self.source_hash:
            raise source_changed(self.source)

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.rows // self.chunk)

    def rows_in(self, index: int) -> int:
        """Rows of a chunk."""
        return min(self.chunk, self.rows - index * self.chunk)


def compute_file(
    task: FileTask[Payload],
    function: Callable[[Shared[Value], Payload], Answer],
    value: Sendable[Value],
    *,
    jobs: int | None = 1,
    cluster: str | None = None,
    progress: Progress = lambda done, total: None,
) -> None:
    """Compute one file; after a stop or a kill, the same call computes only the chunks that are missing.

    Args:
        task: The file.
        function: Computes a chunk from the shared value and its content; must be importable by a worker.
        value: What all chunks need, such as a model; sent to each worker once.
        jobs: Chunks at a time; 1 computes them in this process, None uses one process per core.
        cluster: The scheduler of a Dask cluster, `tcp://HOST:PORT`, which is used instead of `jobs`.
        progress: Called with the rows done and the rows in total.

    Raises:
        CannotWriteError: Another process writes this target, or the disk is full or read-only.
        StoppedError: The process received SIGINT or SIGTERM; finished chunks are kept.
    """
    run = _Run([task], progress, by_rows=True)
    run.compute(function, value, jobs, cluster)
    if run.errors:
        raise run.errors[0]


@dataclass(frozen=True)
class Part:
    """How one of many files ended: computed now, found finished, or with an error."""

    source: str
    target: Path
    summary: Mapping[str, object] = field(default_factory=dict)
    error: str | None = None
    computed: bool = True


def compute_files(
    tasks: Sequence[FileTask[Payload]],
    function: Callable[[Shared[Value], Payload], Answer],
    value: Sendable[Value],
    *,
    jobs: int | None = 1,
    cluster: str | None = None,
    progress: Progress = lambda done, total: None,
    log: Callable[[str], None] = lambda message: None,
) -> list[Part]:
    """Compute many files of one folder; those that are finished and unchanged are not computed again.

    A file that fails is named, and the others finish. The arguments are those of `compute_file`; progress is
    counted in files.

    Args:
        log: Receives one sentence per file that fails.

    Returns:
        One part per task, in order.
    """
    run = _Run(tasks, progress, by_rows=False, log=log)
    run.compute(function, value, jobs, cluster)
    return [
        Part(
            task.source, task.target, task.summary,
            str(run.errors[number]) if number in run.errors else None, number not in run.unchanged,
        )
        for number, task in enumerate(tasks)
    ]  # fmt: skip


def check_parts(parts: Sequence[Part]) -> None:
    """Raise an error that counts the files that failed and names the first."""
    failed = [part for part in parts if part.error is not None]
    if failed:
        raise DataError(
            f"{len(failed)} of {len(parts)} files failed, the first: {failed[0].error}",
            hint="the others are written; the same command tries the failed ones again",
        )


# A piece for a worker, and its result


@dataclass(frozen=True)
class _Piece(Generic[Payload]):
    number: int  # of the file
    index: int  # of the chunk
    payload: Payload


@dataclass(frozen=True)
class _Done:
    number: int
    index: int
    answer: Answer = (b"", {})
    error: GraphscError | None = None


def _compute(
    function: Callable[[Shared[Value], Payload], Answer], value: Shared[Value], piece: _Piece[Payload]
) -> _Done:
    try:
        return _Done(piece.number, piece.index, function(value, piece.payload))
    except (StoppedError, CannotWriteError):
        raise  # they concern every file, not this one
    except GraphscError as error:
        return _Done(piece.number, piece.index, error=error)


class _OpenFile:
    """A file that is being computed; it holds the lock of its chunks."""

    def __init__(self, task: FileTask[Payload], source_hash: str) -> None:
        self._stack = ExitStack()
        identity = {**task.settings, "source": source_hash, "chunk": task.chunk}
        self.chunks: ChunkStore = MemoryChunks(task.target, identity)
        if task.count > 1 or self.chunks.folder.exists():
            self.chunks = self._stack.enter_context(open_chunks(task.target, identity))
        self.missing = set(self.chunks.missing(task.count))

    def close(self, error: BaseException | None = None) -> None:
        """Release the lock; the chunks are removed if there was no error."""
        if error is None:
            self._stack.close()
        else:
            self._stack.__exit__(type(error), error, error.__traceback__)


class _Run(Generic[Payload]):
    """Computes files; their pieces are read by whichever thread starts the next one."""

    def __init__(
        self,
        tasks: Sequence[FileTask[Payload]],
        progress: Progress,
        *,
        by_rows: bool,
        log: Callable[[str], None] = lambda message: None,
    ) -> None:
        self.tasks, self.progress, self.by_rows, self.log = tasks, progress, by_rows, log
        self.errors: dict[int, GraphscError] = {}
        self.unchanged: set[int] = set()
        self._open: dict[int, _OpenFile] = {}
        self._complete: list[int] = []  # all chunks are stored, the target is not written yet
        self._written = self._rows = 0
        self._fatal: CannotWriteError | None = None  # of a thread that cannot raise it

    def compute(
        self,
        function: Callable[[Shared[Value], Payload], Answer],
        value: Sendable[Value],
        jobs: int | None,
        cluster: str | None,
    ) -> None:
        """Compute all files.

        Raises:
            CannotWriteError: The disk is full or read-only.
            StoppedError: The process received SIGINT or SIGTERM.
        """
        at_once = jobs if cluster is None else None
        closing: BaseException | None = None
        try:
            if self.by_rows:
                # Errors are raised at once, and the first report has the stored rows.
                file = self._begin(0)
                if at_once is not None and file is not None:
                    at_once = min(at_once, len(file.missing)) or 1
            with (
                use_cluster(cluster),
                share(value, at_once) as shared,
                run_parallel(partial(_compute, function, shared), self._pieces(), jobs=at_once) as results,
            ):
                self._report()
                for done in results:
                    self._store(done)
                    self._write_complete()
            if self._fatal is not None:
                raise self._fatal
            self._write_complete()
        except StoppedError as stopped:
            closing = StoppedError(stopped.exit_code - 128, stopped.where or self._position())
            raise closing from None
        except BaseException as error:
            closing = error
            raise
        finally:
            for file in self._open.values():
                file.close(closing or GraphscError("not finished"))

    def _pieces(self) -> Iterator[_Piece[Payload]]:
        """The missing chunks of one file after the other. Errors are noted, not raised."""
        for number, task in enumerate(self.tasks):
            try:
                file = self._open[number] if self.by_rows else self._begin(number)
                if file is None:
                    continue
                missing = set(file.missing)
                if not missing:
                    self._complete.append(number)
                    continue
                for index, payload in task.pieces(frozenset(missing)):
                    missing.discard(index)
                    yield _Piece(number, index, payload)
                    if number in self.errors:
                        break  # a chunk failed meanwhile
                else:
                    if missing:
                        raise source_changed(task.source)
            except CannotWriteError as error:
                self._fatal = error
                return
            except GraphscError as error:
                self._fail(number, error)

    def _begin(self, number: int) -> _OpenFile | None:
        """Open a file, or note that it is finished."""
        task = self.tasks[number]
        record = _Record(task)
        if not self.by_rows and record.is_current():
            task.summary = record.summary()
            self.unchanged.add(number)
            self._complete.append(number)
            return None
        source_hash = task.start()
        if not self.by_rows:
            record.begin()
        file = _OpenFile(task, source_hash)
        self._open[number] = file
        self._rows += sum(task.rows_in(index) for index in range(task.count) if index not in file.missing)
        return file

    def _store(self, done: _Done) -> None:
        file = self._open.get(done.number)
        if file is None:
            return  # the file failed meanwhile
        if done.error is not None:
            self._fail(done.number, done.error)
            return
        file.chunks.write(done.index, *done.answer)
        file.missing.discard(done.index)
        self._rows += self.tasks[done.number].rows_in(done.index)
        if self.by_rows:
            self._report()
        if not file.missing:
            self._complete.append(done.number)

    def _write_complete(self) -> None:
        """Write the targets of the files whose chunks are all stored."""
        while self._complete:
            number = self._complete.pop(0)
            if number not in self.unchanged and not self._write(number):
                continue
            self._written += 1
            if not self.by_rows:
                self._report()

    def _write(self, number: int) -> bool:
        task, file = self.tasks[number], self._open[number]
        try:
            with stop_requests() as request:
                task.write(file.chunks, request)
            if not self.by_rows:
                _Record(task).finish()
        except (StoppedError, CannotWriteError):
            raise
        except GraphscError as error:
            self._fail(number, error)
            return False
        del self._open[number]
        file.close()
        return True

    def _fail(self, number: int, error: GraphscError) -> None:
        self.errors[number] = error
        file = self._open.pop(number, None)
        if file is not None:
            file.close(error)
        if not self.by_rows:
            self.log(f"{self.tasks[number].source}: failed: {error}")
            self._report()

    def _report(self) -> None:
        if self.by_rows:
            self.progress(self._rows, self.tasks[0].rows)
        else:
            self.progress(self._written + len(self.errors), len(self.tasks))

    def _position(self) -> str:
        if self.by_rows:
            return f"{self._rows:,} of {self.tasks[0].rows:,} rows are done"
        return f"{self._written:,} of {len(self.tasks):,} files are written"


def source_changed(source: str) -> DataError:
    """The error for a source that is not the same in the second pass as in the first."""
    return DataError("the source changed while it was read", where=source, hint="run the same command again")


class _Record:
    """The record of a target in `.graphsc-parts`: what it was computed from, and its hash."""

    def __init__(self, task: FileTask[Payload]) -> None:
        self.task = task
        self.path = task.target.parent / RECORDS / f"{task.target.name}.json"
        self._stored: dict[str, object] = {}
        if self.path.is_file():
            with suppress(DamagedFileError, NotFoundError):  # the target is computed again
                self._stored = read_json(self.path, "record")

    def is_current(self) -> bool:
        """Whether the target is finished, of this source and these settings, and unchanged since."""
        return (
            self._stored.get("identity") == self._identity()
            and self.task.target.is_file()
            and self._stored.get("target") == file_hash(self.task.target)
        )

    def summary(self) -> dict[str, object]:
        stored = self._stored.get("summary")
        return dict(stored) if isinstance(stored, dict) else {}

    def begin(self) -> None:
        """Note that the target will be ours; refuse a file that another program wrote."""
        if self.task.target.exists() and not self.path.exists():
            raise ConfigError(
                "there is a file of this name that was not written from these parts",
                where=str(self.task.target), hint="move it, or choose another folder",
            )  # fmt: skip
        write_json(self.path, {"identity": None})

    def finish(self) -> None:
        """Note that the target is complete."""
        record = {
            "identity": self._identity(),
            "target": file_hash(self.task.target),
            "summary": self.task.summary,
        }
        write_json(self.path, record, indent=1)

    def _identity(self) -> dict[str, object]:
        # The form in which JSON gives it back.
        identity: dict[str, object] = json.loads(
            json.dumps({**self.task.settings, "source": self.task.source_hash})
        )
        return identity


def file_hash(path: Path) -> str:
    """SHA-256 of the bytes of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# Names


def check_ending(path: Path, endings: Sequence[str], what: str) -> None:
    """Refuse a target of an unknown format, or one whose extra is not installed."""
    if path.suffix not in endings:
        raise ConfigError(
            f"cannot write {what} to a {path.suffix or 'nameless'} file", where=str(path),
            hint=f"end the name in {', '.join(endings[:-1])} or {endings[-1]}",
        )  # fmt: skip
    if path.suffix == ".parquet":
        require("pyarrow.parquet")


def is_many(source: str | Path, out: Path, endings: Sequence[str]) -> bool:
    """Whether a source means many files: a pattern such as `parts/*.csv`, or a folder into a folder."""
    path = Path(source)
    if not path.exists() and glob.has_magic(str(source)):
        if out.suffix in endings and not out.is_dir():
            raise ConfigError(
                "many files cannot be written to one", where=str(out), hint="give a folder: --out FOLDER"
            )
        return True
    return path.is_dir() and out.suffix not in endings


def find_parts(source: str | Path, readable: Callable[[Path], bool]) -> list[Path]:
    """The files of a pattern, or the readable ones of a folder that are not hidden; sorted by name.

    Raises:
        NotFoundError: There are none.
    """
    folder = Path(source)
    if folder.is_dir():
        files = [path for path in folder.iterdir() if not path.name.startswith(".") and readable(path)]
    else:
        files = [Path(name) for name in glob.glob(str(source), recursive=True)]  # noqa: PTH207 - absolute, too
    parts = sorted(path for path in files if path.is_file())
    if not parts:
        hint = "check the pattern"
        if folder.is_dir():
            hint = "it has no table and no .smi file; for a single target, end the name of --out in .csv"
        raise NotFoundError("there are no files to read here", where=str(source), hint=hint)
    return parts


def name_targets(
    parts: Sequence[Path], out: Path, target_name: Callable[[Path], str], endings: Sequence[str], what: str
) -> dict[Path, Path]:
    """The target of each source.

    Raises:
        ConfigError: Two sources have one target, or the sources are in the folder of the targets.
        CannotWriteError: Nothing can be written into the folder.
    """
    targets: dict[Path, Path] = {}
    source_of: dict[Path, Path] = {}
    for part in parts:
        target = out / target_name(part)
        check_ending(target, endings, what)
        if part.resolve().parent == out.resolve():
            raise ConfigError(
                "the sources are in the folder of the targets", where=str(part), hint="choose another --out"
            )
        if target in source_of:
            raise ConfigError(
                f"{source_of[target]} and {part} would both be written to {target.name}",
                hint="rename one, or write them to two folders",
            )
        source_of[target] = part
        targets[part] = target
    check_writable(out / RECORDS / "record.json")
    return targets
