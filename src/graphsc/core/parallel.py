"""Many independent pieces of work at once: in local processes, on a Dask cluster or any joblib backend."""

from __future__ import annotations

import atexit
import hashlib
import os
import pickle  # nosec B403
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from itertools import count
from pathlib import Path
from types import FrameType
from typing import Any, Generic, TypeVar, cast
from uuid import uuid4

from graphsc import __version__
from graphsc.core.errors import ConfigError, GraphscError, GraphscWarning
from graphsc.core.files import InUseError, StopRequest, file_lock, stop_requests
from graphsc.core.registry import require

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Value = TypeVar("Value")

CLUSTER_TIMEOUT = 30.0  # seconds for a scheduler to answer, and for its first worker to come
WATCH_EVERY = 0.5  # seconds after which a worker looks whether its driver is alive
MAX_MESSAGE = 2048  # bytes; a pipe takes up to 4096 at once, so that no message is ever sent in part
MOST_LOSSES = 3  # how often a piece may be lost with a worker process that died


def available_jobs() -> int:
    """How many pieces the active joblib backend runs at once; local cores unless the caller has set one."""
    from joblib import effective_n_jobs

    return int(effective_n_jobs(-1))


@contextmanager
def use_cluster(address: str | None) -> Iterator[None]:
    """Run the pieces of `run_parallel` inside on a Dask cluster; without an address, locally.

    Dask runs the pieces of a worker that dies on another one. Workers need the same version of this package
    and one thread each, because training sets the state of its process.

    Args:
        address: A scheduler, `tcp://HOST:PORT`.

    Raises:
        ConfigError: The scheduler does not answer, has no workers, or a worker cannot be used.
    """
    if address is None:
        yield
        return
    distributed = require("distributed")
    from joblib import parallel_config
    from joblib.parallel import get_active_backend

    try:
        client = distributed.Client(address, timeout=CLUSTER_TIMEOUT, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ConfigError(
            "the scheduler does not answer", where=address, hint="start one: dask scheduler"
        ) from error
    try:
        try:
            client.wait_for_workers(1, timeout=CLUSTER_TIMEOUT)
        except TimeoutError as error:
            raise ConfigError(
                "the scheduler has no workers", where=address,
                hint=f"start some: dask worker {address} --nthreads 1",
            ) from error  # fmt: skip
        _check_workers(client, address)
        with parallel_config(backend="dask", client=client, wait_for_workers_timeout=CLUSTER_TIMEOUT):
            backend, _ = get_active_backend()
            threads = backend.effective_n_jobs
            # For a single job joblib does not use the cluster but runs all pieces in this process.
            backend.effective_n_jobs = lambda n_jobs: max(threads(n_jobs), 2)
            yield
    finally:
        client.close()


def _check_workers(client: Any, address: str) -> None:
    threads = client.nthreads()
    crowded = [worker for worker, count in threads.items() if count > 1]
    if crowded:
        raise ConfigError(
            f"worker {crowded[0]} has {threads[crowded[0]]} threads", where=address,
            hint="start workers with --nthreads 1, and as many as there are cores: --nworkers -1",
        )  # fmt: skip
    for worker, version in client.run(_package_version).items():
        if version != __version__:
            raise ConfigError(
                f"worker {worker} has graphsc {version}, this process has {__version__}", where=address,
                hint="install the same version everywhere",
            )  # fmt: skip


def _package_version() -> str:
    return __version__


@contextmanager
def run_parallel(
    function: Callable[[Piece], Result], pieces: Iterable[Piece], *, jobs: int | None = None, where: str = ""
) -> Iterator[Iterator[Result]]:
    """Call a function on every piece; gives an iterator over the results in order of completion.

    Pieces run in local processes, or on the backend that the caller has chosen with
    `joblib.parallel_config`. Each uses one thread. Local processes are spread over the GPUs of this machine:
    each sees one of them. Leaving the `with` block early cancels the pieces that are not finished. Results
    wait in memory, so they should be consumed about as fast as they are computed.

    Args:
        function: Must be importable by a worker, as its arguments and results must be picklable. A result
            should identify its piece.
        pieces: Read lazily, a few per job ahead, possibly from another thread.
        jobs: Number of pieces at once. 1 runs them one after the other in this process, without joblib;
            None takes all that the backend has.
        where: Description of the work for the message of `StoppedError`.

    If a local worker process dies, a `GraphscWarning` says so, and the pieces that were lost with it run
    again. Workers end with this process, whatever ends it.

    Raises:
        StoppedError: The process received SIGINT or SIGTERM. No worker process is left behind.
        GraphscError: Worker processes died again and again.
    """
    with stop_requests() as request:
        if jobs == 1:
            yield _run_here(function, pieces, request, where)
            return
        workers = _Workers(function, pieces, jobs, where)
        try:
            yield workers.results(request)
        finally:
            workers.close()


@dataclass(frozen=True)
class Sendable(Generic[Value]):
    """A value with the functions that write it into an empty folder and read it there.

    It travels in the files that the functions make. So a model travels in its own format, and no pickle is
    read or written.
    """

    value: Value
    save: Callable[[Value, Path], None]
    load: Callable[[Path], Value]  # must be importable by a worker


class Shared(Generic[Value]):
    """A value that many pieces need and each worker receives once; made by `share`.

    A copy in a worker has no value but says where the files are from which it is read.
    """

    def __init__(
        self,
        sent: Sendable[Value],
        key: str = "",
        folder: Path | None = None,
        files: dict[str, bytes] | None = None,
    ) -> None:
        self._value: Value | None = sent.value
        self._load, self._key, self._folder, self._files = sent.load, key, folder, files

    def get(self) -> Value:
        """The value; a worker process reads it at the first call and keeps the last few."""
        if self._value is not None:
            return self._value
        if self._key not in _LOADED:
            _LOADED[self._key] = self._from_files()
            for key in list(_LOADED)[:-KEPT_VALUES]:
                del _LOADED[key]
        return cast(Value, _LOADED[self._key])

    def _from_files(self) -> Value:
        files = self._files or _RECEIVED.get(self._key, {})
        if self._folder is not None and self._folder.is_dir():
            files = _read_files(self._folder)
        if not self._key.startswith(_hash_of_files(files)):
            raise GraphscError("this worker did not receive the data that all pieces share")
        with tempfile.TemporaryDirectory(prefix="graphsc-") as folder:
            for name, content in files.items():
                (Path(folder) / name).write_bytes(content)
            return self._load(Path(folder))

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_value": None}


KEPT_VALUES = 2  # that a worker keeps
_LOADED: dict[str, object] = {}  # values of a worker, by key
_RECEIVED: dict[str, dict[str, bytes]] = {}  # files that a worker of a cluster was sent, by key


def _read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def _hash_of_files(files: dict[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name, content in files.items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    return digest.hexdigest()


@contextmanager
def share(sent: Sendable[Value], jobs: int | None) -> Iterator[Shared[Value]]:
    """Give every worker of `run_parallel` a value once, not once per piece.

    Local processes read it from a temporary folder. A Dask cluster sends it to its workers, and later to
    those that join. Other joblib backends send it with every piece.

    Args:
        sent: The value. Nothing is written if `jobs` is 1.
        jobs: The argument of `run_parallel`.
    """
    if jobs == 1:
        yield Shared(sent)
        return
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    kind = type(backend).__name__
    with tempfile.TemporaryDirectory(prefix="graphsc-") as name:
        folder = Path(name)
        sent.save(sent.value, folder)
        files = _read_files(folder)
        key = f"{_hash_of_files(files)}-{uuid4().hex}"
        if kind == "LokyBackend":
            yield Shared(sent, key, folder)
        elif kind == "DaskDistributedBackend":
            with _sent_to_workers(backend.client, key, files):
                yield Shared(sent, key)
        else:
            yield Shared(sent, key, files=files)


@contextmanager
def _sent_to_workers(client: Any, key: str, files: dict[str, bytes]) -> Iterator[None]:
    """Send files to all workers of a Dask cluster.

    A plug-in does it, because the scheduler keeps plug-ins. Scattered data would be lost with the worker that
    has it.
    """
    distributed = require("distributed")

    class Receive(distributed.WorkerPlugin):  # type: ignore[misc, name-defined]
        def setup(self, worker: object) -> None:
            from graphsc.core import parallel

            parallel._RECEIVED[key] = files

        def teardown(self, worker: object) -> None:
            from graphsc.core import parallel

            parallel._RECEIVED.pop(key, None)

    client.register_plugin(Receive(), name=key)
    try:
        yield
    finally:
        with suppress(Exception):  # the scheduler may be gone, and then there is nothing to remove
            client.unregister_worker_plugin(key)


def _run_here(
    function: Callable[[Piece], Result], pieces: Iterable[Piece], request: StopRequest, where: str
) -> Iterator[Result]:
    for piece in pieces:
        request.check(where)
        yield function(piece)
    request.check(where)


class _Workers(Generic[Piece, Result]):
    """Worker processes, the pieces that they have, and those that are lost when a process dies."""

    def __init__(
        self, function: Callable[[Piece], Result], pieces: Iterable[Piece], jobs: int | None, where: str
    ) -> None:
        self._function, self._jobs, self._where = function, jobs, where
        self._source = enumerate(pieces)
        self._open: dict[int, Piece] = {}  # sent, without a result
        self._losses: Counter[int] = Counter()
        self._all_sent = False
        self._outcomes: Generator[tuple[int, object], None, None] | None = None
        self._folder: tempfile.TemporaryDirectory[str] | None = None

    def results(self, request: StopRequest) -> Iterator[Result]:
        """The result of every piece, as they complete."""
        from concurrent.futures.process import BrokenProcessPool

        end = -1, None
        while True:
            try:
                if self._outcomes is None:
                    self._outcomes = self._start()
                with _stop_ends_wait(request):
                    request.check(self._where)
                    number, result = next(self._outcomes, end)
            except _Interrupted:
                request.check(self._where)
            except BrokenProcessPool as error:
                request.check(self._where)
                self._stop_lost(error)
                continue
            if number < 0 and self._all_sent and not self._open:
                return
            if number < 0:  # a pool that breaks while joblib sends it a piece looks like the end
                self._stop_lost(None)
                continue
            del self._open[number]
            yield cast(Result, _from_file(result))

    def close(self) -> None:
        """Cancel what is not finished."""
        if self._outcomes is not None:
            _ignore_errors_of_loky()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # joblib warns about results that were not used
                self._outcomes.close()
            self._outcomes = None
        if self._folder is not None:  # workers may have written to it until now
            self._folder.cleanup()
            self._folder = None

    def _stop_lost(self, error: Exception | None) -> None:
        """End workers of which one died, so that new ones start; a piece lost too often ends the work."""
        self.close()
        self._losses.update(list(self._open))
        if max(self._losses.values(), default=MOST_LOSSES) >= MOST_LOSSES:
            raise GraphscError(
                f"worker processes died {MOST_LOSSES} times with the same piece of work",
                where=self._where or None,
                hint="is there enough memory? use fewer jobs",
            ) from error
        where = f" ({self._where})" if self._where else ""
        message = f"a worker process died{where}; its work is run again by another one"
        warnings.warn(message, GraphscWarning, stacklevel=5)

    def _pieces(self) -> Iterator[tuple[int, Piece]]:
        yield from list(self._open.items())
        for number, piece in self._source:
            self._open[number] = piece
            yield number, piece
        self._all_sent = True

    def _start(self) -> Generator[tuple[int, object], None, None]:
        from joblib import Parallel, delayed, parallel_config
        from joblib.parallel import get_active_backend

        backend, configured_jobs = get_active_backend()
        is_local = type(backend).__name__ == "LokyBackend"
        options = {
            "initializer": _start_worker,
            "initargs": (os.getpid(), visible_gpus(), _folder_of_workers()),
        }
        with parallel_config("loky", inner_max_num_threads=1, **options) if is_local else nullcontext():
            parallel = Parallel(
                n_jobs=self._jobs or configured_jobs or -1,
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch="2*n_jobs",
                max_nbytes=None,  # no temporary files for large arrays
            )
        folder = None
        if is_local:
            self._folder = tempfile.TemporaryDirectory(prefix="graphsc-", ignore_cleanup_errors=True)
            folder = Path(self._folder.name)
        run = delayed(_run_piece)
        calls = (
            run(self._function, number, _to_file(piece, folder), folder, os.getpid(), __version__)
            for number, piece in self._pieces()
        )
        with _environment_of_workers(), _signals_blocked():
            return cast("Generator[tuple[int, object], None, None]", parallel(calls))


@contextmanager
def _environment_of_workers() -> Iterator[None]:
    """Environment variables for processes started inside."""
    warned = os.environ.get("PYTHONWARNINGS")
    ignored = "ignore:resource_tracker:UserWarning"  # of locks that workers leave when they are killed
    changes = {
        "PYTHONSAFEPATH": "1",  # workers must not import modules of the working folder
        "PYTHONWARNINGS": f"{warned},{ignored}" if warned else ignored,
    }
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


@cache
def _ignore_errors_of_loky() -> None:
    """Print no traceback of the thread that feeds workers, which may fail when they are ended early."""
    others = threading.excepthook

    def show(arguments: threading.ExceptHookArgs) -> None:
        if arguments.thread is None or arguments.thread.name != "ExecutorManagerThread":
            others(arguments)

    threading.excepthook = show


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """Let SIGINT and SIGTERM wait until the end of the block.

    Processes started inside inherit it, until `_set_up_worker`. Ctrl-C and batch systems send a signal to all
    processes of a group, and workers that die of it while they start look like a crash.
    """
    if not hasattr(signal, "pthread_sigmask"):  # pragma: no cover - Windows has no such groups
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would be started inside, and then lets signals through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@dataclass(frozen=True)
class _InFile:
    """A value that is too large for a message, which has its hash, so that no other content is ever run."""

    path: Path
    sha256: str


def _to_file(value: object, folder: Path | None) -> object:
    """The value itself, or a large one in a file of the folder.

    A process that is killed while it sends a large value through a pipe leaves a part of it there, and the
    reader would wait for the rest for ever.
    """
    if folder is None:
        return value
    from joblib.externals.loky.backend.reduction import dumps  # as all other values are sent

    content = dumps(value)
    if len(content) <= MAX_MESSAGE:
        return value
    path = folder / uuid4().hex
    path.write_bytes(content)
    return _InFile(path, hashlib.sha256(content).hexdigest())


def _from_file(value: object) -> object:
    if not isinstance(value, _InFile):
        return value
    content = value.path.read_bytes()
    if hashlib.sha256(content).hexdigest() != value.sha256:
        raise GraphscError("a message between processes was changed on its way", where=str(value.path))
    value.path.unlink()
    return pickle.loads(content)  # noqa: S301  # nosec B301


def _run_piece(
    function: Callable[[Piece], Result],
    number: int,
    piece: Piece | _InFile,
    folder: Path | None,
    driver: int,
    version: str,
) -> tuple[int, object]:
    if version != __version__:  # a worker that joined a cluster later
        raise GraphscError(f"this worker has graphsc {__version__}, the caller has {version}")
    if os.getpid() == driver:  # a backend of threads; their number is the caller's choice
        return number, function(cast(Piece, piece))
    from threadpoolctl import threadpool_limits

    if os.getppid() == driver:  # e.g. of the backend "multiprocessing", which has no initializer
        _set_up_worker(driver)
    with threadpool_limits(1):
        return number, _to_file(function(cast(Piece, _from_file(piece))), folder)


def visible_gpus() -> tuple[str, ...]:
    """The GPUs of this process, named as in CUDA_VISIBLE_DEVICES; none for work that does not use torch."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is not None:
        return tuple(name for part in named.split(",") if (name := part.strip()))
    torch = sys.modules.get("torch")
    return () if torch is None else tuple(map(str, range(torch.cuda.device_count())))


@cache
def _folder_of_workers() -> Path:
    """A folder in which the local workers of this process lock their numbers."""
    folder = tempfile.mkdtemp(prefix="graphsc-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def _start_worker(driver: int, gpus: tuple[str, ...], folder: Path) -> None:
    """Called by every local worker process before it gets work."""
    _set_up_worker(driver)
    if len(gpus) > 1:
        # CUDA reads this when it is first used.
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus[_worker_number(folder) % len(gpus)]


_LOCKS = ExitStack()  # held until this process ends


def _worker_number(folder: Path) -> int:
    """The smallest number that no living worker has."""
    for number in count():
        try:
            _LOCKS.enter_context(file_lock(folder / str(number)))
        except InUseError:
            continue
        return number
    raise AssertionError("numbers do not end")


@cache
def _set_up_worker(driver: int) -> None:
    """Let a local worker process stop exactly when its driver wants it to.

    After a driver was killed, loky's workers would finish their pieces and wait for more for five minutes.
    This is called before the first piece is received, because imports can take long.
    """
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)
        if hasattr(signal, "pthread_sigmask"):  # ignored from now on, so no longer blocked
            signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))

    def watch() -> None:
        while os.getppid() == driver:
            time.sleep(WATCH_EVERY)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


class _Interrupted(BaseException):
    """Raised by a signal while waiting for a result."""


@contextmanager
def _stop_ends_wait(request: StopRequest) -> Iterator[None]:
    """Let SIGINT and SIGTERM end a wait inside, not only be noted; joblib then kills its workers."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set handlers
        return

    def interrupt(number: int, _: FrameType | None) -> None:
        request.number = number
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise _Interrupted

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
