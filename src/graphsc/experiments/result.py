"""Results: the outcome of a trial, small enough to keep, and the store of lines in which they are kept.

Every table and figure is made of stored results and of nothing else.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from graphsc.core.errors import DamagedFileError
from graphsc.core.files import InUseError, file_lock, file_name, read_json, write_atomic, write_json
from graphsc.core.serialization import check_stamp, pack, stamp, unpack
from graphsc.evaluation.cross_validation import Evaluation
from graphsc.experiments.selection import LEAKY, Selected
from graphsc.experiments.trial import ProbeTrial, TransferTrial, key_of
from graphsc.finetuning.result import TransferResult, transfer_from_json


@dataclass(frozen=True)
class Curve:
    """Correct predictions in each outer fold (epochs x folds) during training, and the sizes of the folds."""

    epochs: tuple[int, ...]
    right: NDArray[np.int64]
    sizes: NDArray[np.int64]

    def __post_init__(self) -> None:
        if self.right.shape != (len(self.epochs), len(self.sizes)):
            raise ValueError("a curve needs a count for each epoch and fold")
        if (self.right < 0).any() or (self.right > self.sizes).any():
            raise ValueError("a curve has more correct predictions than graphs")

    @property
    def accuracy(self) -> NDArray[np.float64]:
        """Mean over the folds at each epoch, between 0 and 1."""
        means: NDArray[np.float64] = (self.right / self.sizes).mean(axis=1)
        return means

    def to_json(self) -> dict[str, object]:
        return {
            "epochs": list(self.epochs),
            "fold_sizes": self.sizes.tolist(),
            "right": {str(epoch): row.tolist() for epoch, row in zip(self.epochs, self.right, strict=True)},
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, object]) -> Curve:
        """A curve from the output of `to_json`."""
        epochs, right = stored["epochs"], stored["right"]
        if not isinstance(epochs, list) or not isinstance(right, Mapping):
            raise TypeError("a curve has epochs and counts")
        sizes = np.array(stored["fold_sizes"], dtype=np.int64)
        counts = np.array([right[str(epoch)] for epoch in epochs], dtype=np.int64)
        return cls(tuple(epochs), counts.reshape(len(epochs), len(sizes)), sizes)


@dataclass(frozen=True)
class Result:
    """The outcome of a `ProbeTrial`. Each graph's prediction is from the fold that held it out."""

    trial: Mapping[str, object]  # the identity of the trial
    config: Mapping[str, object]  # of the training run, complete
    classes: tuple[str, ...]
    labels: NDArray[np.int64]
    fold: NDArray[np.int64]
    predictions: NDArray[np.int64]
    chosen: tuple[float, ...]  # of the grid, per outer fold
    epochs: tuple[int, ...]  # evaluated, per outer fold
    inner_accuracy: float  # mean over outer folds of the best accuracy on inner folds
    words: str  # the protocol in words, printed beside the number
    health: Mapping[str, float] = field(default_factory=dict)  # of the last epoch
    seconds: Mapping[str, float] = field(default_factory=dict)
    environment: Mapping[str, object] = field(default_factory=dict)
    inner_folds: tuple[float, ...] = ()  # best inner accuracy of each outer fold, where the trial keeps it
    curve: Curve | None = None  # where the trial has one
    by_epoch: Mapping[int, NDArray[np.int64]] = field(default_factory=dict)  # predictions, for leaky rules

    @classmethod
    def of(
        cls,
        selected: Selected,
        *,
        trial: Mapping[str, object],
        config: Mapping[str, object],
        classes: Sequence[str],
        words: str,
        health: Mapping[str, float] | None = None,
        seconds: Mapping[str, float] | None = None,
        environment: Mapping[str, object] | None = None,
        keep_inner: bool = False,
        curve: Curve | None = None,
    ) -> Result:
        """A result from the selected evaluation and the facts that belong to it."""
        found = selected.evaluation
        return cls(
            trial=trial,
            config=config,
            classes=tuple(classes),
            labels=found.labels,
            fold=found.fold,
            predictions=found.predictions,
            chosen=found.chosen,
            epochs=tuple(selected.epochs),
            inner_accuracy=float(found.inner.max(axis=1).mean()),
            words=words,
            health=health or {},
            seconds=seconds or {},
            environment=environment or {},
            inner_folds=tuple(found.inner.max(axis=1).tolist()) if keep_inner else (),
            curve=curve,
            by_epoch=selected.by_epoch,
        )

    @property
    def method(self) -> str:
        return str(self.trial["method"])

    @property
    def data(self) -> str:
        return str(self.trial["data"])

    @property
    def seed(self) -> int:
        training = self.trial["training"]
        assert isinstance(training, Mapping)  # noqa: S101 - narrows the type
        return int(training["seed"])

    @property
    def resplit(self) -> bool:
        """Whether the folds are not those of the run's own seed."""
        return self.trial["fold_seed"] != self.seed

    @property
    def leaky(self) -> bool:
        """Whether a test label took part in choosing the evaluated epoch."""
        return self.trial["selection"] in LEAKY

    @property
    def epoch_accuracies(self) -> dict[int, float]:
        """Test accuracy at every epoch that a leaky rule looked at."""
        return {epoch: self.at_epoch(epoch).accuracy for epoch in self.by_epoch}

    def at_epoch(self, epoch: int) -> Result:
        """The result with the predictions of another epoch that a leaky rule looked at."""
        return replace(self, predictions=self.by_epoch[epoch], epochs=(epoch,) * len(self.epochs))

    @property
    def protocol(self) -> Mapping[str, object]:
        """The settings of the protocol."""
        return cast(Mapping[str, object], self.trial["protocol"])

    @property
    def whole(self) -> bool:
        """Whether it was evaluated as in the main tables: all labels, random folds, the last epoch."""
        return self.evaluated_whole and self.trial["selection"] == "last"

    @property
    def evaluated_whole(self) -> bool:
        """The same of any rule that chooses the epoch."""
        partial = self.protocol["label_share"] != 1 or self.protocol["splitting"] != "stratified"
        partial |= self.protocol["inner_order"] != "shuffled"
        return not (partial or self.resplit or self.trial["inductive"])

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Accuracy on each outer fold."""
        return self.evaluation.accuracies

    @property
    def accuracy(self) -> float:
        """Mean over the outer folds."""
        return float(self.accuracies.mean())

    @property
    def evaluation(self) -> Evaluation:
        return Evaluation(
            predictions=self.predictions, fold=self.fold, labels=self.labels, chosen=self.chosen,
            inner=np.full((len(self.chosen), 1), self.inner_accuracy),
        )  # fmt: skip

    @property
    def summary(self) -> str:
        """The outcome in a few words."""
        return f"{100 * self.accuracy:.2f} % in {self.seconds.get('total', 0.0):.0f} s"

    def to_json(self) -> dict[str, object]:
        beyond: dict[str, object] = {}
        if self.inner_folds:
            beyond["inner_fold_accuracies"] = [round(100 * value, 4) for value in self.inner_folds]
        if self.curve is not None:
            beyond["curve"] = self.curve.to_json()
        if self.by_epoch:
            beyond["by_epoch"] = {str(epoch): pack(values) for epoch, values in self.by_epoch.items()}
        return {
            **stamp("result"),
            "trial": self.trial,
            "accuracy": round(100 * self.accuracy, 4),
            "deviation_over_folds": round(100 * float(self.accuracies.std()), 4),
            "fold_accuracies": [round(100 * value, 4) for value in self.accuracies],
            "inner_accuracy": round(100 * self.inner_accuracy, 4),
            "leaky": self.leaky,
            "words": self.words,
            "classes": list(self.classes),
            "chosen": list(self.chosen),
            "epochs": list(self.epochs),
            "labels": pack(self.labels),
            "folds": pack(self.fold),
            "predictions": pack(self.predictions),
            "health": dict(self.health),
            "seconds": dict(self.seconds),
            "config": self.config,
            "environment": self.environment,
            **beyond,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write it, whole or not at all."""
        write_json(path, self.to_json(), indent=1)


def load_result(path: str | os.PathLike[str]) -> Result:
    """Read a result; refuses what is damaged, of another kind or from the future."""
    return result_from_json(read_json(path, "result"), str(path))


def result_from_json(found: object, where: str) -> Result:
    """A result from the output of `to_json`, checked as a file is."""
    if not isinstance(found, Mapping):
        raise DamagedFileError("result file is damaged", where=where)
    check_stamp("result", {key: str(found.get(key, "")) for key in ("format", "format_version")}, where)
    try:
        result = Result(
            trial=found["trial"] if found["format_version"] != "1" else _complete(found),
            config=found["config"],
            classes=tuple(found["classes"]),
            labels=unpack(found["labels"]),
            fold=unpack(found["folds"]),
            predictions=unpack(found["predictions"]),
            chosen=tuple(found["chosen"]),
            epochs=tuple(found["epochs"]),
            inner_accuracy=float(found["inner_accuracy"]) / 100,
            words=str(found["words"]),
            health=found["health"],
            seconds=found["seconds"],
            environment=found["environment"],
            inner_folds=tuple(value / 100 for value in found.get("inner_fold_accuracies", ())),
            curve=Curve.from_json(found["curve"]) if "curve" in found else None,
            by_epoch={int(epoch): unpack(text) for epoch, text in found.get("by_epoch", {}).items()},
        )
        # The stored figure must follow from the stored predictions: no number is typed in.
        if abs(100 * result.accuracy - float(found["accuracy"])) > 1e-3:
            raise ValueError("accuracy does not follow from the predictions")
        if any(len(predictions) != len(result.labels) for predictions in result.by_epoch.values()):
            raise ValueError("an epoch does not have a prediction for every graph")
    except (LookupError, TypeError, ValueError, AttributeError, zlib.error) as error:
        raise DamagedFileError(f"result file is damaged: {error}", where=where) from error
    return result


def _complete(found: Mapping[str, Any]) -> dict[str, object]:
    """The identity of a result of format 1, which left out defaults and the hash of the graphs."""
    protocol = {"label_share": 1.0, "splitting": "stratified", "inner_order": "file"}
    return {
        "kind": "probe",
        "graphs": found["config"]["data"]["content_hash"],
        **found["trial"],
        "protocol": {**protocol, **found["trial"].get("protocol", {})},
    }


AnyTrial = ProbeTrial | TransferTrial
AnyResult = Result | TransferResult
T = TypeVar("T", bound=AnyResult)

# A line of a store. The check is a hash of the key and of the text of the result.
_LINE = re.compile(rb'\{"key": "([0-9a-f]{12})", "check": "([0-9a-f]{32})", "result": (\{.*\})\}\n?')
PATIENCE = 60.0  # seconds to wait for another process that writes the same file


def any_result_from_json(stored: object, where: str) -> AnyResult:
    """A result of either kind."""
    kind = stored.get("format") if isinstance(stored, Mapping) else None
    read = transfer_from_json if kind == "graphsc-transfer-result" else result_from_json
    return read(stored, where)


class ResultStore:
    """Results in a folder: one file per data set, `NAME.jsonl`, one line per trial, sorted by key.

    A file is rewritten whole and atomically under a lock, so that several processes can store results in one
    folder. Each line has a checksum of its own; a damaged line is reported with its number and never dropped.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        self._files: dict[Path, tuple[tuple[int, int], dict[str, bytes]]] = {}

    def __reduce__(self) -> tuple[type[ResultStore], tuple[Path]]:
        return ResultStore, (self.folder,)  # the lines read so far need not travel to other processes

    def path(self, trial: AnyTrial) -> Path:
        """The file that holds the results of the trial's data set."""
        return self.folder / f"{file_name(trial.data_name)}.jsonl"

    def __contains__(self, trial: AnyTrial) -> bool:
        return trial.key() in self._lines(self.path(trial))

    @overload
    def get(self, trial: ProbeTrial) -> Result | None: ...
    @overload
    def get(self, trial: TransferTrial) -> TransferResult | None: ...
    def get(self, trial: AnyTrial) -> AnyResult | None:
        """The stored result, if there is one, under the title that the data set has in this trial."""
        path, key = self.path(trial), trial.key()
        line = self._lines(path).get(key)
        if line is None:
            return None
        result = _read_line(line, f"{path}, key {key}")
        if key_of(result.trial) != key:
            raise DamagedFileError("a stored result has the key of another trial", where=f"{path}, key {key}")
        return replace(result, trial={**result.trial, "data": trial.data_name})

    def put(self, trial: AnyTrial, result: T) -> T:
        """Store a result under the identity of its trial, and return it as stored."""
        # The path of the data on the machine that ran the trial is no part of the result.
        config = {name: value for name, value in result.config.items() if name not in ("source", "reading")}
        kept = replace(result, trial=trial.identity(), config=config)
        path, key = self.path(trial), trial.key()
        path.parent.mkdir(parents=True, exist_ok=True)
        with _waiting_for(path.with_name(f".{path.stem}.lock")):
            lines = self._lines(path) | {key: _write_line(key, kept)}
            write_atomic(path, b"".join(lines[name] for name in sorted(lines)))
        return kept

    def all(self) -> list[AnyResult]:
        """Every stored result, in the order of file names and keys."""
        return [
            _read_line(line, f"{path}, key {key}")
            for path in sorted(self.folder.glob("*.jsonl"))
            for key, line in sorted(self._lines(path).items())
        ]

    def _lines(self, path: Path) -> dict[str, bytes]:
        """The lines of a file by key, read again where the file has changed."""
        try:
            status = path.stat()
        except OSError:
            return {}
        signature = (status.st_mtime_ns, status.st_size)
        if path not in self._files or self._files[path][0] != signature:
            self._files[path] = (signature, _split_lines(path))
        return dict(self._files[path][1])


def _split_lines(path: Path) -> dict[str, bytes]:
    lines: dict[str, bytes] = {}
    for number, line in enumerate(path.read_bytes().splitlines(keepends=True), start=1):
        where = f"{path}, line {number}"
        found = _LINE.fullmatch(line)
        if found is None or _check(found[1], found[3]) != found[2] or not line.endswith(b"\n"):
            raise DamagedFileError(
                "a line of stored results is damaged",
                where=where,
                hint="restore the file, or delete the line",
            )
        if found[1].decode() in lines:
            raise DamagedFileError("a trial has two lines of results", where=where, hint="delete one of them")
        lines[found[1].decode()] = line
    return lines


def _check(key: bytes, text: bytes) -> bytes:
    return hashlib.sha256(key + text).hexdigest()[:32].encode()


def _write_line(key: str, result: AnyResult) -> bytes:
    text = json.dumps(result.to_json()).encode()
    return b'{"key": "%b", "check": "%b", "result": %b}\n' % (key.encode(), _check(key.encode(), text), text)


def _read_line(line: bytes, where: str) -> AnyResult:
    return any_result_from_json(json.loads(line)["result"], where)


@contextmanager
def _waiting_for(lock: Path) -> Iterator[None]:
    """Hold a lock, waiting while another process has it."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            with file_lock(lock):
                yield
                return
        except InUseError:
            if time.monotonic() > until:
                raise
            time.sleep(0.05)
