"""What a cell of a study can ask for, and what comes of it: trials of a table, or of transfer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from graphsc.experiments.result import Result, result_from_json
from graphsc.experiments.store import ResultStore
from graphsc.experiments.transfer_plan import TransferTrial
from graphsc.experiments.transfer_run import TransferStore
from graphsc.experiments.trial import Trial
from graphsc.finetuning.result import TransferResult, transfer_from_json

AnyTrial = Trial | TransferTrial
AnyResult = Result | TransferResult


class Store(Protocol):
    """Where results of one kind lie in a folder."""

    def path(self, trial: AnyTrial, /) -> Path: ...
    def get(self, trial: AnyTrial, /) -> AnyResult | None: ...
    def put(self, trial: AnyTrial, result: AnyResult, /) -> object: ...


@dataclass(frozen=True)
class CellKind:
    """One kind of cell: the attribute that says what to run, and how both sides of it are read."""

    name: str
    read: Callable[[Mapping[str, object]], AnyTrial]
    read_result: Callable[[object, str], AnyResult]
    store: Callable[[Path], Store]


TABLE = CellKind("trial", Trial.from_json, result_from_json, ResultStore)  # type: ignore[arg-type]
TRANSFER = CellKind("transfer", TransferTrial.from_json, transfer_from_json, TransferStore)  # type: ignore[arg-type]


def kind_for(trial: AnyTrial) -> CellKind:
    """The kind of a trial."""
    return TRANSFER if isinstance(trial, TransferTrial) else TABLE


def kind_of(attributes: Mapping[str, object]) -> CellKind | None:
    """The kind of a stored cell; None for one of a search, whose settings are drawn when it runs."""
    return next((kind for kind in (TABLE, TRANSFER) if kind.name in attributes), None)
