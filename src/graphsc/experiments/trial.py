"""Trials: one repetition of one method on one data set, before it has run.

Both kinds share one form. A `ProbeTrial` trains an encoder without labels and evaluates its embeddings by
cross-validation. A `TransferTrial` starts from pre-trained weights or from fingerprints and predicts the
labels of molecules. Plans, the runner, the result store and the tables take either.
"""

from __future__ import annotations

import hashlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, Literal

from graphsc.core.config import build
from graphsc.core.errors import ConfigError, DataError
from graphsc.core.files import file_name
from graphsc.core.registry import nearest
from graphsc.core.run_folder import without_added
from graphsc.data.datasets.catalog import NAMED
from graphsc.data.datasets.sources import is_union
from graphsc.data.readers import open_collection
from graphsc.evaluation.protocol import Protocol
from graphsc.experiments.selection import LEAKY, RULES, Rule
from graphsc.finetuning.baselines import BITS, BOOSTING, RADIUS, STRENGTHS, TREES
from graphsc.finetuning.dataset import read_dataset
from graphsc.finetuning.ensemble import RULE as ENSEMBLE_RULE
from graphsc.finetuning.finetune import FineTuneSettings
from graphsc.finetuning.model import ENCODER as MOLECULE_ENCODER
from graphsc.finetuning.model import NONE, encoder_defaults
from graphsc.finetuning.splits import SplitKind
from graphsc.methods import METHODS, training_settings, trains
from graphsc.methods.registry import ENCODER, TUNED, GraphKind, declared_settings, kind_of
from graphsc.training.model_files import find_model
from graphsc.training.model_io import weights_hash
from graphsc.training.pretrain import declared_pretraining
from graphsc.training.trainer import TrainSettings

Way = Literal[
    "ensemble", "fine-tuned", "frozen", "ecfp-forest", "ecfp-linear", "ecfp-boosting", "rdkit-forest",
    "rdkit-linear", "rdkit-boosting", "minimol-linear",
]  # fmt: skip
ENCODER_WAYS = ("ensemble", "fine-tuned", "frozen")
MODEL = "model"  # key of `pretraining`: a model by name or file, in place of weights that are pre-trained


class Trial(ABC):
    """One repetition of a method on a data set; everything random in it comes from `seed`."""

    kind: ClassVar[Literal["probe", "transfer"]]
    data: str
    method: str
    seed: int

    @property
    def data_name(self) -> str:
        """The title of the data set in tables."""
        named = NAMED.get(self.data.lower())
        return named.title if named and not Path(self.data).exists() else Path(self.data).stem

    @property
    @abstractmethod
    def data_hash(self) -> str:
        """The content hash of the graphs. Results belong to graphs, not to names of files."""

    @abstractmethod
    def identity(self) -> dict[str, object]:
        """Everything that decides the outcome, with every default written out."""

    @property
    @abstractmethod
    def row(self) -> str:
        """The title of the trial's row in tables."""

    @property
    @abstractmethod
    def variant(self) -> str:
        """What tells trials of one method and data set apart, besides the seed."""

    @property
    @abstractmethod
    def details(self) -> str:
        """`variant` and the settings that the trial changes."""

    @property
    @abstractmethod
    def description(self) -> str:
        """The trial in a few words, for progress lines."""

    def key(self) -> str:
        """Twelve hexadecimal digits of the identity's hash."""
        return key_of(self.identity())

    def to_json(self) -> dict[str, object]:
        """All fields, from which `trial_from_json` makes the same trial on another machine."""
        return {"kind": self.kind} | {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]


def key_of(identity: Mapping[str, object]) -> str:
    """The key of a stored identity. The name of the data set is a title, not part of the identity."""
    text = json.dumps({name: value for name, value in identity.items() if name != "data"}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@dataclass(frozen=True)
class ProbeTrial(Trial):
    """Train without labels, then evaluate the embeddings by a probe on cross-validation folds.

    Args:
        data: A source that `open_collection` takes.
        method: A method by name.
        seed: Seed of initialisation, training and folds.
        fold_seed: Seed of the folds, where the same embeddings are evaluated on other folds.
        reader: The reader of `data`; guessed by default.
        options: Options of the reader. The hash of the graphs stands for both in the identity.
        curve: Epochs that are evaluated during training; 0 is the untrained encoder.
        inner: Keep the inner accuracy of each outer fold, by which a nested search chooses among trials.
    """

    kind: ClassVar[Literal["probe"]] = "probe"
    data: str
    method: str
    seed: int = 0
    fold_seed: int | None = None
    features: str = "auto"
    preset: str = "default"
    encoder: str = ENCODER
    settings: Mapping[str, object] = field(default_factory=dict)
    training: Mapping[str, object] = field(default_factory=dict)
    protocol: Protocol = field(default_factory=Protocol)
    selection: Rule = "last"
    inductive: bool = False
    curve: tuple[int, ...] = ()
    inner: bool = False
    reader: str | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "curve", tuple(self.curve))  # JSON has lists
        if self.curve and (self.inductive or min(self.curve) < 0):
            raise ConfigError("a curve is of epochs from 0 on, and not inductive")
        if self.selection not in RULES:
            raise ConfigError(f"unknown selection rule {self.selection!r}", hint=f"valid: {', '.join(RULES)}")
        if self.inductive and self.selection != "last":
            raise ConfigError(f"inductive trials take the last epoch, not {self.selection!r}")
        _check_precision(self.training)

    @property
    def data_hash(self) -> str:
        return graphs_hash(self.data, reader=self.reader, options=self.options)

    @property
    def row(self) -> str:
        return self.method if self.preset == "default" else f"{self.method} ({self.preset})"

    @property
    def variant(self) -> str:
        return self.features

    @property
    def details(self) -> str:
        changed = [f"{key}={value}" for key, value in {**self.settings, **self.training}.items()]
        return ", ".join([self.features, *changed])

    @property
    def description(self) -> str:
        return f"{self.method} on {self.data_name}, seed {self.seed}"

    @property
    def folds_from(self) -> int:
        """The seed of the folds."""
        return self.seed if self.fold_seed is None else self.fold_seed

    @property
    def _kind(self) -> GraphKind | None:
        """The kind of graph, by which only the preset `tuned` differs; no file is opened for others."""
        if self.preset != TUNED:
            return None
        return graph_kind(self.data, reader=self.reader, options=self.options)

    def loop(self) -> TrainSettings:
        """Settings of the training loop: the preset's, then the trial's, then its seed."""
        of_preset = training_settings(self.method, self.preset, self.data_name, self._kind)
        return build(TrainSettings, {**of_preset, **self.training, "seed": self.seed}, "training")

    def identity(self) -> dict[str, object]:
        entry = METHODS.get(self.method)
        return {
            "kind": self.kind,
            "data": self.data_name,
            "graphs": self.data_hash,
            "features": self.features,
            "method": self.method,
            "preset": self.preset,
            "encoder": self.encoder if entry.kind == "trained" else None,
            "settings": declared_settings(
                self.method,
                self.data_name,
                self.settings,
                preset=self.preset,
                encoder=self.encoder,
                kind=self._kind,
            ),
            "training": self.loop().to_json() if trains(self.method) else {"seed": self.seed},
            "fold_seed": self.folds_from,
            "protocol": self.protocol.to_json(),
            "selection": self.selection,
            "inductive": self.inductive,
            "curve": list(self.curve),
            "inner": self.inner,
        }

    def run_name(self) -> str:
        """A folder for the training. Trials that differ only in their evaluation share it."""
        # A curve is evaluated during training, so its protocol belongs to the run.
        alone = self.inductive or bool(self.curve)
        evaluated = ("selection", "inner") if alone else ("protocol", "selection", "fold_seed", "inner")
        learned = {name: value for name, value in self.identity().items() if name not in evaluated}
        if self.selection in LEAKY:
            learned["every_epoch"] = True  # the run keeps embeddings that other rules do not need
        folder = f"{file_name(self.data_name)}/{self.method}-{self.features.replace(':', '')}"
        return f"{folder}-{self.seed}-{key_of(learned)[:10]}"

    def to_json(self) -> dict[str, object]:
        return super().to_json() | {
            "settings": dict(self.settings),
            "training": dict(self.training),
            "protocol": self.protocol.to_json(),
            "curve": list(self.curve),
            "options": dict(self.options),
        }

    def resplit(self, count: int) -> list[ProbeTrial]:
        """The trial with its own folds, then with `count` - 1 others."""
        return [self, *(replace(self, fold_seed=self.seed + 1000 * n) for n in range(1, count))]


@dataclass(frozen=True)
class TransferTrial(Trial):
    """Predict the labels of molecules from pre-trained weights or fingerprints.

    Args:
        data: A data set of labelled molecules.
        method: The method that pre-trained the weights; `none` for a random initialisation.
        way: Fine-tune the encoder, fit the ensemble around it that `graphsc finetune` delivers, fit a linear
            model on frozen embeddings, or fit a linear model, a forest or boosting on fingerprints or RDKit's
            descriptors, or a linear model on MiniMol's vectors.
        settings: Settings of fine-tuning.
        pretraining: What the weights are pre-trained on, and for how long; or `model`, a finished one.
        members: Fine-tuned encoders that an ensemble averages.
    """

    kind: ClassVar[Literal["transfer"]] = "transfer"
    data: str
    method: str
    way: Way
    seed: int = 0
    split: SplitKind = "scaffold"
    settings: Mapping[str, object] = field(default_factory=dict)
    pretraining: Mapping[str, object] = field(default_factory=dict)
    members: int = 1

    def __post_init__(self) -> None:
        _check_precision(self.settings)
        _check_precision(self.pretraining)
        if self.members < 1 or (self.members > 1 and self.way != "ensemble"):
            raise ConfigError("members is the number of fine-tuned encoders of an ensemble, 1 or more")

    @property
    def data_hash(self) -> str:
        return graphs_hash(self.data, molecules=True)

    @property
    def row(self) -> str:
        return self.method

    @property
    def variant(self) -> str:
        return self.way

    @property
    def details(self) -> str:
        return self.way

    @property
    def description(self) -> str:
        return f"{self.method}, {self.way}, on {self.data_name}, seed {self.seed}"

    @property
    def needs_weights(self) -> bool:
        return self.way in ENCODER_WAYS and self.method != NONE

    @property
    def member_seeds(self) -> range:
        """Seeds of the fine-tuned encoders of an ensemble; no two trials share one."""
        return range(self.seed * self.members, (self.seed + 1) * self.members)

    def tuning(self) -> FineTuneSettings:
        """Settings of fine-tuning, complete."""
        return build(FineTuneSettings, self.settings, "settings of fine-tuning")

    def weights(self) -> dict[str, object]:
        """How the weights are pre-trained: what the trial says, and every setting that follows from it.

        Of a finished model its name and the hash of its weights.
        """
        if MODEL in self.pretraining:
            name = str(self.pretraining[MODEL])
            file = find_model(name)
            return {MODEL: name, "weights": _weights_hash(file, _signature(file))}
        declared = declared_pretraining(self.method, **self.pretraining)  # type: ignore[arg-type]
        if is_union(str(self.pretraining.get("data", ""))):
            # An epoch of a union has molecules as often as their weights say, which its files decide.
            declared = {name: value for name, value in declared.items() if name not in ("seen", "steps")}
        return {**self.pretraining, **declared}

    def identity(self) -> dict[str, object]:
        identity: dict[str, object] = {
            "kind": self.kind,
            "data": self.data_name,
            "graphs": self.data_hash,
            "method": self.method,
            "way": self.way,
            "seed": self.seed,
            "split": self.split,
            "pretraining": self.weights() if self.needs_weights else None,
        }
        if self.way in ENCODER_WAYS and not self.needs_weights:
            of_encoder = {f"encoder.{key}": value for key, value in encoder_defaults().items()}
            settings = {key.removeprefix("encoder."): v for key, v in without_added(of_encoder).items()}
            identity["encoder"] = {"name": MOLECULE_ENCODER, **settings}
        if self.way in ("ensemble", "fine-tuned"):
            identity["settings"] = self.tuning().to_json()
        if self.way == "ensemble":
            identity |= {
                "members": self.members, "fingerprint": [RADIUS, BITS], "strengths": list(STRENGTHS),
                "boosting": dict(BOOSTING), "ensemble": dict(ENSEMBLE_RULE),
            }  # fmt: skip
        if self.way == "frozen" or self.way.endswith("linear"):
            identity["strengths"] = list(STRENGTHS)
        if self.way.startswith("ecfp"):
            identity["fingerprint"] = [RADIUS, BITS]
        if self.way.endswith("forest"):
            identity["trees"] = TREES
        if self.way.endswith("boosting"):
            identity["boosting"] = dict(BOOSTING)
        return identity

    def run_name(self) -> str:
        """A folder for the run, which is removed when the result is stored."""
        return f"transfer/{file_name(self.data_name)}/{self.method}-{self.way}-{self.seed}-{self.key()}"

    def to_json(self) -> dict[str, object]:
        return super().to_json() | {"settings": dict(self.settings), "pretraining": dict(self.pretraining)}


def _check_precision(settings: Mapping[str, object]) -> None:
    """Refuse what each machine would resolve for itself: a trial's key must say what was computed."""
    if settings.get("precision") == "auto":
        raise ConfigError("a trial needs one precision for all machines, not auto", hint="use full or bf16")


KINDS: Mapping[str, type[ProbeTrial] | type[TransferTrial]] = {
    kind.kind: kind for kind in (ProbeTrial, TransferTrial)
}


def trial_from_json(stored: Mapping[str, object]) -> ProbeTrial | TransferTrial:
    """A trial from the output of `to_json`; unknown kinds and keys are refused by name."""
    kind = KINDS.get(str(stored.get("kind")))
    if kind is None:
        raise ConfigError(f"a trial has no kind {stored.get('kind')!r}", hint=f"use {' or '.join(KINDS)}")
    values = {name: value for name, value in stored.items() if name != "kind"}
    names = {item.name for item in fields(kind)}
    unknown = sorted(set(values) - names)
    if unknown:
        raise ConfigError(f"a trial has no {unknown[0]!r}", hint=nearest(unknown[0], names))
    if kind is ProbeTrial:
        protocol = values.get("protocol")
        if not isinstance(protocol, Mapping):
            raise ConfigError("a trial needs its protocol")
        values["protocol"] = Protocol.from_json(protocol)
    return kind(**values)  # type: ignore[arg-type]


def check_graphs(data: str, found: str, expected: str) -> None:
    """Refuse graphs that are not those of the trial, or no longer."""
    if found != expected:
        raise DataError(
            f"the graphs of {data} are not those of the trial: content hash {found[:12]}, expected "
            f"{expected[:12]}",
            hint="to use other graphs than the known ones under this name, give the path of their file",
        )


def graphs_hash(
    source: str,
    *,
    molecules: bool = False,
    reader: str | None = None,
    options: Mapping[str, object] | None = None,
) -> str:
    """The content hash of a collection of graphs, or of a table of labelled molecules.

    The catalogue knows the hashes of named data sets, so that tables can be built from stored results on a
    machine without the data. The runner compares it with the graphs that it opens.
    """
    named = NAMED.get(source.lower())
    if named is not None and named.content_hash and not Path(source).exists() and not (reader or options):
        return named.content_hash
    text = json.dumps(dict(options or {}), sort_keys=True, default=str)
    return _opened_hash(source, molecules, reader, text, _signature(Path(source)))


@lru_cache(maxsize=64)
def _opened_hash(source: str, molecules: bool, reader: str | None, options: str, _: tuple[int, int]) -> str:
    if molecules:
        return read_dataset(source).content_hash
    return open_collection(source, reader=reader, **json.loads(options)).content_hash


def graph_kind(
    source: str, *, reader: str | None = None, options: Mapping[str, object] | None = None
) -> GraphKind:
    """Whether the nodes of a collection have labels; known for named data sets, otherwise it is opened."""
    named = NAMED.get(source.lower())
    if named is not None and not Path(source).exists() and not (reader or options):
        return "unlabelled" if named.kind == "social" else "labelled"
    text = json.dumps(dict(options or {}), sort_keys=True, default=str)
    return _opened_kind(source, reader, text, _signature(Path(source)))


@lru_cache(maxsize=64)
def _opened_kind(source: str, reader: str | None, options: str, _: tuple[int, int]) -> GraphKind:
    return kind_of(open_collection(source, reader=reader, **json.loads(options)))


@lru_cache(maxsize=64)
def _weights_hash(path: Path, _: tuple[int, int]) -> str:
    return weights_hash(path)


def _signature(path: Path) -> tuple[int, int]:
    """Time and size of a file or folder: one that was replaced in place is opened again."""
    try:
        files = [path, *path.rglob("*")] if path.is_dir() else [path]
        states = [file.stat() for file in files]
    except OSError:
        return 0, 0
    return max(state.st_mtime_ns for state in states), sum(state.st_size for state in states)
